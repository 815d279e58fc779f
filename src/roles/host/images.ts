/**
 * The image store of this host. Several processes may use it at a time, so commands work with and without a running
 * host process.
 */
import { silentLog } from '../../base/log.ts';
import { createImageStore } from '../../io/images/index.ts';
import { trees } from '../../io/trees/index.ts';
import { registryOptions } from '../config/registries.ts';
import { canonicalRoot, loadSettings, pathsBelow } from '../config/settings.ts';

export async function openImageStore(root: string | undefined) {
  return createImageStore({ root: pathsBelow(await canonicalRoot(root)).images, trees, log: silentLog });
}

/** As the host process pulls: with the mirrors and credentials that are configured. Throws CodedError 'bad-config'. */
export async function openPullStore(root: string | undefined) {
  const settings = await loadSettings({ root });
  const registry = await registryOptions(settings);
  return createImageStore({ root: settings.paths.images, trees, log: silentLog, registry });
}
