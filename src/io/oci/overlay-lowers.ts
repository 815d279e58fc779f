/** Lower directories of overlay mounts: the kernel takes 500 of them, but only one page of options. */
import { mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Leaves room on the page for the upper and work directories. */
const MOST_OPTION_BYTES = 3000;

/**
 * Calls `mount` with a working directory and names of the layers in it that fit a page: links with short names when the
 * layers' own are too long. The links are needed only until the file system is mounted.
 */
export async function withLowers(
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
