/**
 * The image store of this host. Several processes may use it at a time, so commands work with and without a running
 * host process.
 */
import { silentLog } from '../../base/log.ts';
import { createImageStore } from '../../io/images/index.ts';
import { trees } from '../../io/trees/index.ts';
import { canonicalRoot, pathsBelow } from '../config/settings.ts';

export async function openImageStore(root: string | undefined) {
  return createImageStore({ root: pathsBelow(await canonicalRoot(root)).images, trees, log: silentLog });
}
