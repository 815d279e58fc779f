/** Programs of the handlers of runtime classes. Source: KEP-585; containerd's `plugins.cri.containerd.runtimes`. */
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeError, type RuntimeHandler } from '../../port.ts';
import { findOnPath } from '../programs.ts';
import { createRunc, type Runc } from '../runc.ts';
import { isMountSafe } from '../spec/mount-guard.ts';
import type { CgroupDriver } from '../spec/spec.ts';

export interface HandlerRuntime {
  readonly runc: Runc;
  /**
   * Name and version of a runtime that is vulnerable to mounts over the kernel's file systems; undefined if the runtime
   * is not vulnerable.
   */
  affected(): Promise<string | undefined>;
}

export interface Handlers {
  /**
   * '' and `runc` are the default. Throws RuntimeError 'create-failed' with containerd's message for an unknown
   * handler.
   */
  get(handler: string | undefined): HandlerRuntime;
  /** Runtime of an existing container; the default one if its handler is no longer configured. */
  of(record: { readonly runtimeHandler?: string }): HandlerRuntime;
  all(): readonly HandlerRuntime[];
  /** Handlers as reported in the Node status, the default first. */
  describe(kernel: KernelFeatures): Promise<readonly RuntimeHandler[]>;
}

export interface KernelFeatures {
  readonly recursiveReadOnly: boolean;
  readonly userNamespaces: boolean;
}

export interface HandlerOptions {
  readonly runc: string;
  /** Programs by handler name; `crun` is searched on the path if it is not listed. */
  readonly more: Readonly<Record<string, string>>;
  readonly roots: { readonly runc: string; readonly handlers: string };
  readonly driver: CgroupDriver;
}

/** Throws RuntimeError 'internal' if the program of a handler cannot be run. */
export async function openHandlers(options: HandlerOptions): Promise<Handlers> {
  const { driver, more, roots } = options;
  const programs = new Map(Object.entries(more));
  if (!programs.has('crun')) {
    const crun = await findOnPath('crun');
    if (crun !== undefined) programs.set('crun', crun);
  }
  for (const [name, path] of programs) {
    const usable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (!usable) throw new RuntimeError('internal', `runtime handler ${name}: ${path} is not an executable program`);
  }
  const standard = handlerRuntime(createRunc(options.runc, roots.runc, driver));
  const byName = new Map([['', standard]]);
  if (!programs.has('runc')) byName.set('runc', standard);
  for (const [name, path] of programs)
    byName.set(name, handlerRuntime(createRunc(path, join(roots.handlers, name), driver)));
  return {
    get(handler = '') {
      const found = byName.get(handler);
      if (found !== undefined) return found;
      const message = `failed to get sandbox runtime: no runtime for ${JSON.stringify(handler)} is configured`;
      throw new RuntimeError('create-failed', message);
    },
    of: ({ runtimeHandler = '' }) => byName.get(runtimeHandler) ?? standard,
    all: () => [...new Set(byName.values())],
    async describe({ recursiveReadOnly, userNamespaces }) {
      const one = async ([name, { runc }]: [string, HandlerRuntime]): Promise<RuntimeHandler> => ({
        name,
        recursiveReadOnlyMounts: recursiveReadOnly && (await runc.mountOptions()).includes('rro'),
        userNamespaces,
      });
      return Promise.all([...byName].map(one));
    },
  };
}

function handlerRuntime(runc: Runc): HandlerRuntime {
  let affected: Promise<string | undefined> | undefined;
  const look = async (): Promise<string | undefined> => {
    const text = await runc.versionText();
    return isMountSafe(text) ? undefined : text.split('\n')[0]?.replace(' version', '');
  };
  return {
    runc,
    affected: () => {
      affected ??= look();
      return affected;
    },
  };
}
