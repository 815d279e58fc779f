import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeError } from '../port.ts';
import { childEnvironment } from './command.ts';
import type { RuntimePrograms } from './containers/context.ts';

/**
 * Completes `given` with programs on the default path. Throws RuntimeError 'internal' with the name of a missing
 * package.
 */
export async function findPrograms(given: Partial<RuntimePrograms> = {}): Promise<RuntimePrograms> {
  const required = async (name: 'runc' | 'conmon'): Promise<string> => {
    const path = given[name] ?? (await findOnPath(name));
    if (path === undefined) throw new RuntimeError('internal', `${name} is not installed; install the package ${name}`);
    return path;
  };
  const [runc, conmon] = await Promise.all([required('runc'), required('conmon')]);
  return { runc, conmon, socat: given.socat ?? (await findOnPath('socat')) ?? 'socat' };
}

export async function findOnPath(name: string): Promise<string | undefined> {
  for (const directory of (childEnvironment['PATH'] ?? '').split(':')) {
    const path = join(directory, name);
    const usable = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (usable) return path;
  }
  return undefined;
}
