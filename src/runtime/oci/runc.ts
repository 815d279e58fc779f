/** Command line of the OCI runtime; the same for runc and crun. */

import { randomBytes } from 'node:crypto';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { decodeJson, list, object, optional, text } from '../../base/decode.ts';
import type { LinuxResources } from '../port.ts';
import { runCommand } from './command.ts';
import { openGate } from './exec/exec-gate.ts';
import { type CgroupDriver, linuxResources } from './spec/spec.ts';

const FEATURES = object({ mountOptions: optional(list(text)) });

export interface Runc {
  readonly path: string;
  /** Arguments that precede every sub-command. */
  readonly globalArgs: readonly string[];
  version(): Promise<string>;
  /** Supported mount options; empty if the runtime does not report them (runc before 1.1). */
  mountOptions(): Promise<readonly string[]>;
  /** Complete output of `--version`. */
  versionText(): Promise<string>;
  /** `isAlive`: whether the container's first process, which waits for the start, still exists. */
  start(id: string, isAlive: () => Promise<boolean>): Promise<void>;
  /** Kills remaining processes and removes cgroup and state. Succeeds if there are none. */
  deleteForce(id: string): Promise<void>;
  /** Runs a bundle's container detached. For the pid namespace holder, which needs no monitor. */
  runDetached(id: string, bundle: string, pidFile: string): Promise<void>;
  updateResources(id: string, resources: LinuxResources, pureV2: boolean): Promise<void>;
}

export function createRunc(path: string, root: string, driver: CgroupDriver): Runc {
  const globalArgs = ['--root', root, ...(driver === 'systemd' ? ['--systemd-cgroup'] : [])];
  const run = (...args: string[]): Promise<string> => runCommand(path, [...globalArgs, ...args]);
  // Cached, because every node status queries it.
  let known: { readonly program: string; readonly version: string } | undefined;
  /**
   * Whether the program is runc. A container of runc starts when its fifo is opened; other programs use the fifo
   * differently.
   */
  let isRunc: Promise<boolean> | undefined;
  return {
    path,
    globalArgs,
    versionText: () => runCommand(path, ['--version']),
    async version() {
      const { ino, size, mtimeMs } = await stat(path);
      const program = `${ino} ${size} ${mtimeMs}`;
      if (known?.program !== program) {
        const text = await runCommand(path, ['--version']);
        known = { program, version: /version\s+(\S+)/.exec(text)?.[1] ?? 'unknown' };
      }
      return known.version;
    },
    async mountOptions() {
      try {
        return decodeJson(FEATURES, await runCommand(path, ['features']), 'runc features').mountOptions ?? [];
      } catch {
        return [];
      }
    },
    async start(id, isAlive) {
      isRunc ??= runCommand(path, ['--version']).then(
        (text) => text.startsWith('runc version'),
        () => false,
      );
      if (!(await isRunc) || !(await openGate(join(root, id), isAlive))) await run('start', id);
    },
    async deleteForce(id) {
      await run('delete', '--force', id);
    },
    async runDetached(id, bundle, pidFile) {
      const log = `${pidFile}.log`;
      try {
        const args = [...globalArgs, '--log', log, 'run', '--detach', '--bundle', bundle, '--pid-file', pidFile, id];
        await runCommand(path, args, { discardOutput: true });
      } catch (error) {
        const logged = await readFile(log, 'utf8').catch(() => '');
        throw new Error(logged.trim() || String(error), { cause: error });
      } finally {
        await rm(log, { force: true });
      }
    },
    async updateResources(id, resources, pureV2) {
      const file = join(root, `.update-${randomBytes(8).toString('hex')}`);
      await writeFile(file, JSON.stringify(linuxResources(resources, pureV2)), { mode: 0o600 });
      try {
        await run('update', '--resources', file, id);
      } finally {
        await rm(file, { force: true });
      }
    },
  };
}
