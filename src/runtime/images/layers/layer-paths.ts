/**
 * Resolves paths of entries in a layer that is being unpacked. Names in an archive are resolved as in containerd: below
 * the layer's root, through links of the layer itself, whose absolute targets and `..` stay inside. Parents that the
 * archive does not contain are created with the owner and mode of the directory in the layers below. Source: containerd
 * pkg/archive/tar.go, github.com/containerd/continuity/fs RootPath.
 */
import type { Stats } from 'node:fs';
import { chmod, chown, mkdir, readlink } from 'node:fs/promises';
import { RuntimeError } from '../../port.ts';
import { joinLayerPath, type LayerTree, nameOf, parentOf, pathOf } from './layer-tree.ts';
import { type LowerLayers, lstatOrUndefined } from './lower-layers.ts';

const MAX_LINKS = 255;
const MAX_PATH_BYTES = 4096;

export const refused = (why: string): RuntimeError => new RuntimeError('image-pull', `layer refused: ${why}`);

export const quotedName = (name: string | undefined): string => JSON.stringify((name ?? '').slice(0, 200));

/**
 * Path of an entry relative to the root of its layer, '' for the root itself. Throws RuntimeError 'image-pull' for
 * names outside the root.
 */
export function entryPath(name: string): string {
  if (name.includes('\0') || Buffer.byteLength(name) > MAX_PATH_BYTES)
    throw refused('a name with NUL or over 4096 bytes');
  const parts: string[] = [];
  for (const part of name.split('/')) {
    if (part === '' || part === '.') continue;
    if (part !== '..') parts.push(part);
    else if (parts.pop() === undefined) throw refused(`name ${quotedName(name)} leaves the layer`);
  }
  return parts.join('/');
}

export interface ImplicitDirectory {
  /** Directory of the lower layer from which the directory gets its extended attributes. */
  readonly layer: string;
  readonly mtime: Date;
}

/** The entry that a name refers to in the image so far: an entry of the layer itself, or of a lower layer. */
export type FoundEntry =
  | { readonly kind: 'own'; readonly path: string }
  | { readonly kind: 'lower'; readonly path: string; readonly layer: string; readonly stats: Stats };

export class LayerPaths {
  readonly #root: string;
  readonly #tree: LayerTree;
  readonly #lower: LowerLayers;
  readonly #mostLookups: number | undefined;
  #lookups = 0;
  /** Existing directories of the layer, by their paths without links. */
  readonly directories = new Set(['']);
  /** Directories of the layer that hide the directories at the same paths in the layers below. */
  readonly #covering = new Set<string>();
  readonly implicit = new Map<string, ImplicitDirectory>();
  readonly removed = new Set<string>();
  readonly opaque = new Set<string>();

  constructor(root: string, tree: LayerTree, lower: LowerLayers, mostLookups: number | undefined) {
    this.#root = root;
    this.#tree = tree;
    this.#lower = lower;
    this.#mostLookups = mostLookups;
  }

  /** Resolves the path of an entry and creates missing parents. */
  async place(path: string): Promise<string> {
    if (path === '') return '';
    return this.#within(joinLayerPath(await this.#directory(parentOf(path), { left: MAX_LINKS }), nameOf(path)));
  }

  /** Creates the directory `path`, whose parent exists. */
  async make(path: string): Promise<void> {
    await mkdir(await this.#tree.at(path), { mode: 0o755 });
    this.directories.add(path);
    const parent = parentOf(path);
    if (this.#covering.has(parent) || this.opaque.has(parent) || this.removed.has(path)) this.#covering.add(path);
  }

  /**
   * Drops the record of an entry and of everything below it. Must be called after the entry at `path` has been removed.
   */
  async forget(path: string): Promise<void> {
    await this.#tree.forget(path);
    for (const set of [this.directories, this.implicit, this.#covering])
      for (const key of set.keys()) if (key === path || key.startsWith(`${path}/`)) set.delete(key);
  }

  /** Resolves the target of a hard link. Its last component is not followed. */
  async find(path: string): Promise<FoundEntry | undefined> {
    const parent = await this.#view(parentOf(path).split('/'), '', { left: MAX_LINKS });
    if (parent === undefined || path === '') return undefined;
    const found = this.#within(joinLayerPath(parent, nameOf(path)));
    const own = await this.#own(found);
    if (own !== undefined) return { kind: 'own', path: found };
    const below = this.#isHidden(found) ? undefined : await this.#findBelow(found);
    return below === undefined ? undefined : { kind: 'lower', path: found, ...below };
  }

  /** Resolves `path` to a directory, which is created if it is missing. */
  async #directory(path: string, links: { left: number }): Promise<string> {
    if (this.directories.has(path)) return path;
    return this.#step(await this.#directory(parentOf(path), links), nameOf(path), links);
  }

  async #step(parent: string, name: string, links: { left: number }): Promise<string> {
    const path = this.#within(joinLayerPath(parent, name));
    if (this.directories.has(path)) return path;
    const existing = await this.#own(path);
    if (existing === undefined) {
      await this.#makeImplicit(path);
      return path;
    }
    if (existing.isDirectory()) {
      this.directories.add(path);
      return path;
    }
    if (!existing.isSymbolicLink())
      throw refused(`an entry below ${quotedName(path)} passes through an entry that is not a directory`);
    const target = await this.#follow(await this.#tree.at(path), links);
    let current = target.startsWith('/') ? '' : parent;
    for (const part of target.split('/')) {
      this.#count(1, current);
      if (part === '..') current = parentOf(current);
      else if (part !== '' && part !== '.') current = await this.#step(current, part, links);
    }
    return current;
  }

  async #makeImplicit(path: string): Promise<void> {
    await this.make(path);
    if (this.#covering.has(path) || this.#lower.isEmpty) return;
    const below = await this.#findBelow(path);
    if (below === undefined || !below.stats.isDirectory()) return;
    const { layer, stats } = below;
    const self = pathOf(await this.#tree.directory(path));
    await chown(self, stats.uid, stats.gid);
    await chmod(self, stats.mode & 0o7777);
    this.implicit.set(path, { layer, mtime: stats.mtime });
  }

  /**
   * Resolves `parts` in the merged view of the layer and the layers below, without creating directories. Undefined if
   * the path does not lead to a directory.
   */
  async #view(parts: readonly string[], from: string, links: { left: number }): Promise<string | undefined> {
    let current = from;
    for (const part of parts) {
      this.#count(1, current);
      if (part === '..') current = parentOf(current);
      if (part === '' || part === '.' || part === '..') continue;
      const path = this.#within(joinLayerPath(current, part));
      if (this.directories.has(path)) {
        current = path;
        continue;
      }
      const own = await this.#own(path);
      const below = own === undefined && !this.#isHidden(path) ? await this.#findBelow(path) : undefined;
      const stats = own ?? below?.stats;
      if (stats?.isDirectory() === true) current = path;
      else if (stats?.isSymbolicLink() === true) {
        const place = below === undefined ? await this.#tree.at(path) : `${below.layer}/${path}`;
        const target = await this.#follow(place, links);
        const next = await this.#view(target.split('/'), target.startsWith('/') ? '' : current, links);
        if (next === undefined) return undefined;
        current = next;
      } else return undefined;
    }
    return current;
  }

  async #follow(place: string, links: { left: number }): Promise<string> {
    if (--links.left < 0) throw refused('a name passes through too many links');
    return readlink(place);
  }

  /** Entry of the layer itself; also undefined if a parent is missing. */
  async #own(path: string): Promise<Stats | undefined> {
    if (!this.directories.has(parentOf(path))) return undefined;
    return lstatOrUndefined(await this.#tree.at(path));
  }

  async #findBelow(path: string) {
    this.#count(this.#lower.count * path.split('/').length, '');
    return this.#lower.find(path);
  }

  #isHidden(path: string): boolean {
    if (this.removed.size + this.opaque.size === 0) return false;
    if (this.removed.has(path)) return true;
    for (let above = path; above !== ''; ) {
      above = parentOf(above);
      this.#count(1, above);
      if (this.opaque.has(above) || (above !== '' && this.removed.has(above))) return true;
    }
    return false;
  }

  /** Returns the path. Throws if the path, including the root, is too long for the system calls of later readers. */
  #within(path: string): string {
    if (Buffer.byteLength(this.#root) + 1 + Buffer.byteLength(path) >= MAX_PATH_BYTES)
      throw refused(`${quotedName(path)} leads to a path over ${MAX_PATH_BYTES} bytes`);
    return path;
  }

  /** Counts the cost of lookups. Long paths cost more than short ones. */
  #count(lookups: number, path: string): void {
    this.#lookups += lookups + path.length / 256;
    if (this.#mostLookups !== undefined && this.#lookups > this.#mostLookups)
      throw refused(`the names need more than ${this.#mostLookups} look-ups`);
  }
}
