/**
 * Turns a layer's deletions (OCI image layer specification, "Whiteouts") into overlayfs form. A removed name becomes a
 * character device 0:0. Opaque directories would need an extended attribute, which Node cannot set: instead every name
 * that the layers below show in such a directory is whited out one by one, which reads the same because the stack below
 * a layer never changes.
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
    // Where nothing is below, a whiteout would show in listings: overlayfs hides them in merged directories only.
    if ((await lower.find(relative)) === undefined) continue;
    if (!(await ensureRealDirectory(layer, parent))) continue;
    const own = await lstatOrUndefined(join(layer, relative));
    if (own === undefined) await linkWhiteout(device, join(layer, relative));
    // A whiteout beside a directory of the same name removes what is below and keeps the layer's own directory.
    else if (own.isDirectory()) await hide(relative);
  }
}

/**
 * Makes a directory of the layer when it is missing. False when something else stands in its way: a layer that replaced
 * the directory, perhaps by a link that leads to the host, has hidden what was to be deleted there already.
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

/** One device inode serves all whiteouts; when the file system allows no more links to it, the next one begins. */
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
