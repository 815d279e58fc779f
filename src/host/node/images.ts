/**
 * The image store of this host. Several processes may use it simultaneously, so commands work whether the host process
 * runs or not.
 */
import { CodedError } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { trees } from '../../runtime/directory-removal/index.ts';
import { createImageStore, type Platform, parsePlatform } from '../../runtime/images/index.ts';
import { canonicalRoot, pathsBelow } from '../config/paths.ts';
import { registryOptions } from '../config/registries.ts';
import { loadSettings } from '../config/settings.ts';
import { useHelpers } from '../process/helper-programs.ts';

export type ImageStore = ReturnType<typeof createImageStore>;

export async function openImageStore(root: string | undefined) {
  return createImageStore({ root: pathsBelow(await canonicalRoot(root)).images, trees, log: silentLog });
}

/**
 * Opens the image store for imports. Uses the programs in the executable to set file attributes. Throws CodedError
 * 'bad-platform'.
 */
export async function openImportStore(root: string | undefined, platform: string | undefined) {
  const wanted = chosenPlatform(platform);
  await useHelpers({ hostTools: false });
  const { images } = pathsBelow(await canonicalRoot(root));
  return createImageStore({ root: images, trees, log: silentLog, ...wanted });
}

/**
 * Opens the image store for pulls with the mirrors and credentials that the host process uses. Throws CodedErrors
 * 'bad-config' and 'bad-platform'.
 */
export async function openPullStore(root: string | undefined, platform: string | undefined) {
  const wanted = chosenPlatform(platform);
  const settings = await loadSettings({ root });
  await useHelpers(settings);
  const registry = await registryOptions(settings);
  return createImageStore({ root: settings.paths.images, trees, log: silentLog, registry, ...wanted });
}

function chosenPlatform(text: string | undefined): { readonly platform?: Platform } {
  if (text === undefined) return {};
  const platform = parsePlatform(text);
  if (platform !== undefined) return { platform };
  throw new CodedError(
    'bad-platform',
    `--platform: ${JSON.stringify(text)} is not a platform; give linux/ARCHITECTURE`,
  );
}
