/**
 * A KUBEBUILDER_ASSETS directory for controller-runtime's envtest, in which etcd and kube-apiserver are this
 * executable.
 */
import { access, constants, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import { packaged, selfCommand } from '../process/assets.ts';
import type { ApiProfile } from './run.ts';

export { API_PROFILES as ENVTEST_PROFILES } from './run.ts';

/**
 * Creates the directory. Resolves with its absolute path. Existing files with the names etcd, kube-apiserver and
 * kubectl are replaced. Throws CodedError 'unwritable'.
 */
export async function prepareEnvtest(
  directory: string | undefined,
  environment: Readonly<Record<string, string | undefined>>,
  profile: ApiProfile = 'kubernetes',
  program: readonly string[] = selfCommand(),
): Promise<string> {
  const place = resolve(directory ?? defaultDirectory(environment));
  try {
    await mkdir(place, { recursive: true });
    await replace(join(place, 'etcd'), (path) =>
      packaged ? symlink(process.execPath, path) : writeScript(path, [...program, 'etcd']),
    );
    const api = [...program, 'api', `--profile=${profile}`];
    await replace(join(place, 'kube-apiserver'), (path) => writeScript(path, api));
    const kubectl = await find('kubectl', environment['PATH'] ?? '');
    if (kubectl !== undefined) await replace(join(place, 'kubectl'), (path) => symlink(kubectl, path));
    return place;
  } catch (error) {
    throw new CodedError('unwritable', `cannot prepare ${place}: ${messageOf(error)}; name another directory`, {
      cause: error,
    });
  }
}

function defaultDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const { XDG_CACHE_HOME: cache, HOME: home } = environment;
  if (cache !== undefined && cache !== '') return join(cache, 'hyperedge/envtest');
  return home === undefined || home === ''
    ? join(tmpdir(), 'hyperedge-envtest')
    : join(home, '.cache/hyperedge/envtest');
}

/** Replaces the link atomically: an envtest that starts at the same time finds either the old or the new link. */
async function replace(path: string, make: (path: string) => Promise<void>): Promise<void> {
  const temporary = `${path}.new`;
  await rm(temporary, { force: true });
  await make(temporary);
  await rename(temporary, path);
}

function writeScript(path: string, command: readonly string[]): Promise<void> {
  const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  return writeFile(path, `#!/bin/sh\nexec ${quoted} "$@"\n`, { mode: 0o755 });
}

async function find(program: string, path: string): Promise<string | undefined> {
  for (const directory of path.split(delimiter)) {
    if (directory === '') continue;
    const file = join(directory, program);
    const usable = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return file;
  }
  return undefined;
}
