/**
 * Converts a layer's deletions (OCI image layer specification, "Whiteouts") to overlayfs form. A removed name becomes a
 * character device 0:0. Opaque directories would need an extended attribute, which Node cannot set. Instead, every name
 * of the layers below in such a directory is whited out individually. The result is the same, because the stack below a
 * layer never changes.
 */
import { execFile } from 'node:child_process';
import { link, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type LowerLayers, lstatOrUndefined } from './lower-layers.ts';

const run = promisify(execFile);

export interface LayerDeletions {
  /** Relative paths that the layer removes. */
  readonly removed: ReadonlySet<string>;
  /** Relative directories that hide everything below them; '' is the root. */
  readonly opaque: ReadonlySet<string>;
}

/** `device` is a path for the shared whiteout inode on the same file system. */
export async function applyDeletions(
  layer: string,
  lower: LowerLayers,
  deletions: LayerDeletions,
  device: string,
): Promise<void> {
  const hide = async (directory: string): Promise<void> => {
    for (const name of await lower.names(directory)) {
      const relative = directory === '' ? name : `${directory}/${name}`;
      const own = await lstatOrUndefined(join(layer, relative));
      if (own === undefined) await linkWhiteout(device, join(layer, relative));
      else if (own.isDirectory()) await hide(relative);
    }
  };
  for (const directory of deletions.opaque) {
    if (!(await ensureRealDirectory(layer, directory))) continue;
    await hide(directory);
  }
  for (const relative of deletions.removed) {
    const slash = relative.lastIndexOf('/');
    const parent = slash < 0 ? '' : relative.slice(0, slash);
    // If the layers below have no such entry, the whiteout would be visible: overlayfs hides it only in merged
    // directories.
    if ((await lower.find(relative)) === undefined) continue;
    if (!(await ensureRealDirectory(layer, parent))) continue;
    const own = await lstatOrUndefined(join(layer, relative));
    if (own === undefined) await linkWhiteout(device, join(layer, relative));
    // The layer replaces the removed entry by its own directory, which must hide the entries of the lower one.
    else if (own.isDirectory()) await hide(relative);
  }
}

/**
 * Creates a directory of the layer if it is missing. Returns false if another entry is in its place: a layer that
 * replaced the directory, for example by a link, has already hidden the lower entries.
 */
async function ensureRealDirectory(layer: string, directory: string): Promise<boolean> {
  let path = layer;
  for (const component of directory === '' ? [] : directory.split('/')) {
    path = join(path, component);
    const stats = await lstatOrUndefined(path);
    if (stats === undefined) await mkdir(path, { mode: 0o755 });
    else if (!stats.isDirectory()) return false;
  }
  return true;
}

/** Links the shared whiteout inode. When it has its maximum number of links, a new inode is created. */
async function linkWhiteout(device: string, path: string): Promise<void> {
  try {
    await link(device, path);
    return;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : '';
    if (code !== 'ENOENT' && code !== 'EMLINK') throw error;
    if (code === 'EMLINK') await rm(device, { force: true });
  }
  try {
    await run('mknod', ['-m', '000', device, 'c', '0', '0']);
  } catch (error) {
    if ((await lstatOrUndefined(device)) === undefined) throw error;
  }
  await link(device, path);
}
