/** Operations on a volume in their own process. See `createForeignFiles`. */
import type { Mounter } from '../../port.ts';
import { ownByGroup } from './ownership.ts';
import { bindSubPath } from './sub-path.ts';

/** `args`: `own PATH GID POLICY` or `bind VOLUME SUBPATH TARGET`. */
export async function runVolumeCall(args: readonly string[], mounts: Mounter): Promise<void> {
  const [operation, first = '', second = '', third = ''] = args;
  if (operation === 'own') await ownByGroup(first, Number(second), third === '' ? undefined : third);
  else if (operation === 'bind') await bindSubPath(first, second, third, mounts);
  else throw new Error(`volume-call: unknown operation ${JSON.stringify(operation)}`);
}
