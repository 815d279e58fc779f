/** Lower directories of overlay mounts. The kernel supports 500 of them, but limits the mount options to one page. */
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Maximum length of the lower directories in the mount options. Leaves room in the page for the upper and work
 * directories.
 */
const MOST_OPTION_BYTES = 3000;

/**
 * Calls `mount` with a working directory and a list of lower directories relative to it. If the layers' own names are
 * too long for a page, the list consists of short links, which are removed after the mount.
 */
export async function withLowerDirectories(
  layerRoot: string,
  layers: readonly string[],
  mount: (directory: string, lowerdir: string) => Promise<unknown>,
): Promise<void> {
  const whole = layers.join(':');
  if (whole.length <= MOST_OPTION_BYTES) {
    await mount(layerRoot, whole);
    return;
  }
  const directory = await mkdtemp(join(tmpdir(), 'hyperedge-layers-'));
  try {
    for (const [index, layer] of layers.entries()) await symlink(join(layerRoot, layer), join(directory, `${index}`));
    await mount(directory, [...layers.keys()].join(':'));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
