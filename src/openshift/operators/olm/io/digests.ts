/** Digests of catalogs in directories, by which masters compare their copies. */
import { createHash } from 'node:crypto';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { contentOf } from './catalog-stream.ts';
import { CATALOG, filesBelow, isCatalogFile } from './tree.ts';

interface Known {
  readonly stamp: string;
  readonly digest: string;
}

const MAX_CATALOGS = 50;

export class CatalogDigests {
  readonly #directory: string;
  #known = new Map<string, Known>();

  /** `directory` contains one sub-directory per catalog. */
  constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * Digests of all catalogs that can be read, by name. Files are read only if they have changed since the last call.
   */
  async all(): Promise<Readonly<Record<string, string>>> {
    const names = (await readdir(this.#directory).catch(() => [])).filter((name) => !name.startsWith('.')).sort();
    const kept = new Map<string, Known>();
    for (const name of names.slice(0, MAX_CATALOGS)) {
      const found = await this.#read(name).catch(() => undefined);
      if (found !== undefined) kept.set(name, found);
    }
    this.#known = kept;
    return Object.fromEntries([...kept].map(([name, { digest }]) => [name, digest]));
  }

  /** Digest of one catalog; undefined if the directory is not a catalog. */
  async of(name: string): Promise<string | undefined> {
    return (await this.#read(name).catch(() => undefined))?.digest;
  }

  async #read(name: string): Promise<Known | undefined> {
    if (!(await lstat(join(this.#directory, name))).isDirectory()) return undefined;
    const files = (await filesBelow([join(this.#directory, name)], '', CATALOG)).filter((each) =>
      isCatalogFile(each.name),
    );
    if (files.length === 0) return undefined;
    const stamp = files.map((each) => `${each.name} ${each.stamp}`).join('\n');
    const known = this.#known.get(name);
    if (known?.stamp === stamp) return known;
    const hash = createHash('sha256');
    for await (const chunk of contentOf(files)) hash.update(chunk);
    return { stamp, digest: `sha256:${hash.digest('hex')}` };
  }
}
