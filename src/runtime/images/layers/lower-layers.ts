/** Merged view of the unpacked layers below the layer that is being unpacked. */
import type { Stats } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

export const isWhiteout = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;

export interface LowerEntry {
  /** Directory of the layer that contains the entry. */
  readonly layer: string;
  readonly stats: Stats;
}

export class LowerLayers {
  /** Topmost first. */
  readonly #layers: readonly string[];

  constructor(layers: readonly string[]) {
    this.#layers = layers;
  }

  get isEmpty(): boolean {
    return this.#layers.length === 0;
  }

  get count(): number {
    return this.#layers.length;
  }

  /** The visible entry at `path`; links are not followed. */
  async find(path: string): Promise<LowerEntry | undefined> {
    const slash = path.lastIndexOf('/');
    for (const layer of this.#layers) {
      const state = await directoryIn(layer, slash < 0 ? '' : path.slice(0, slash));
      if (state === 'blocked') return undefined;
      if (state === 'absent') continue;
      const stats = await lstatOrUndefined(join(layer, path));
      if (stats !== undefined) return isWhiteout(stats) ? undefined : { layer, stats };
    }
    return undefined;
  }

  /** Visible names in `directory`. */
  async names(directory: string): Promise<ReadonlySet<string>> {
    const visible = new Set<string>();
    const hidden = new Set<string>();
    for (const layer of this.#layers) {
      const state = await directoryIn(layer, directory);
      if (state === 'blocked') break;
      if (state === 'absent') continue;
      for (const entry of await readdir(join(layer, directory), { withFileTypes: true })) {
        if (hidden.has(entry.name) || visible.has(entry.name)) continue;
        if (entry.isCharacterDevice() && isWhiteout(await lstat(join(layer, directory, entry.name))))
          hidden.add(entry.name);
        else visible.add(entry.name);
      }
    }
    return visible;
  }
}

/** 'blocked': a component is whited out or not a directory, so it hides the layers further below. */
async function directoryIn(layer: string, directory: string): Promise<'present' | 'absent' | 'blocked'> {
  let path = layer;
  for (const component of directory === '' ? [] : directory.split('/')) {
    path = join(path, component);
    const stats = await lstatOrUndefined(path);
    if (stats === undefined) return 'absent';
    if (!stats.isDirectory()) return 'blocked';
  }
  return 'present';
}

export async function lstatOrUndefined(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR'))
      return undefined;
    throw error;
  }
}
