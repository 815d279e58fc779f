/**
 * Unpacks one layer tar into a new directory. The archive is untrusted: names above the root are rejected, links are
 * resolved inside the layer, and sizes and counts are limited. Entries are created below open directories, and their
 * attributes are set through their own descriptors, so no file outside is ever written.
 */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, chown, type FileHandle, link, open, readlink, symlink, utimes } from 'node:fs/promises';
import type { Readable } from 'node:stream';
import { extract, type Header } from 'tar-stream';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Trees } from '../../directory-removal/port.ts';
import { RuntimeError } from '../../port.ts';
import { MAX_LAYER_BYTES, roomAt } from '../registry/blob-download.ts';
import { type Attributes, readAttributes, runWith, setAttributes } from './attributes.ts';
import { attributesOf, boundExtendedHeaders, captureAttributes, type HeaderLimits } from './extended-headers.ts';
import { entryPath, type FoundEntry, LayerPaths, quotedName, refused } from './layer-paths.ts';
import { joinLayerPath, LayerTree, nameOf, parentOf, pathOf } from './layer-tree.ts';
import { LowerLayers, lstatOrUndefined } from './lower-layers.ts';
import { applyDeletions } from './whiteouts.ts';

const WHITEOUT_PREFIX = '.wh.';
const OPAQUE_MARK = '.wh..wh..opq';
/** Bytes written between two checks of the free space. */
const CHECK_SPACE_BYTES = 64 * 1024 ** 2;
/** Entries between two checks: each takes an inode and a block, however small it is. */
const CHECK_SPACE_ENTRIES = 1_024;

/** Limits for the memory and work that an archive can cause, however small it is compressed. */
export interface LayerLimits {
  readonly entries: number;
  /** Bytes of all names together. */
  readonly nameBytes: number;
  /** Attributes, devices and fifos: each needs a process. */
  readonly programs: number;
  /** Names that are scanned when directories are replaced by other entries. */
  readonly replaced: number;
  /** Components of followed links, and searched directories of lower layers. */
  readonly lookups?: number;
  /** Bytes of the archive, including headers and entries that are not unpacked. */
  readonly archiveBytes: number;
  readonly headers: HeaderLimits;
}

const LIMITS: LayerLimits = {
  entries: 1_000_000,
  nameBytes: 256 * 1024 ** 2,
  programs: 10_000,
  replaced: 100_000_000,
  lookups: 20_000_000,
  archiveBytes: MAX_LAYER_BYTES + 2 * 1024 ** 3,
  headers: { one: 1024 ** 2, all: 512 * 1024 ** 2 },
};

export interface LayersBelow {
  /** Directories of unpacked layers, topmost first. */
  readonly layers: readonly string[];
  /** Path for the shared whiteout inode on the file system of the layer. */
  readonly whiteoutDevice: string;
}

export interface UnpackedLayer {
  readonly sizeBytes: number;
  /** One line per regular file, for a later verification: `sha256 size mode path-as-JSON`. */
  readonly manifest: readonly string[];
  /** Path, attribute name and base64 value, of files and directories. */
  readonly attributes: readonly (readonly [path: string, name: string, value: string])[];
}

export interface LayerTarget {
  /** Directory of the unpacked files. */
  readonly root: string;
  readonly trees: Trees;
  readonly log: Log;
  readonly below?: LayersBelow;
}

/**
 * `tar` is the uncompressed layer and is read to its end. The caller verifies the digest. Throws RuntimeError
 * 'image-pull' for an invalid archive.
 */
export async function unpackLayer(tar: Readable, target: LayerTarget, limits = LIMITS): Promise<UnpackedLayer> {
  const { root } = target;
  const parser = extract();
  boundExtendedHeaders(parser, limits.headers);
  captureAttributes(parser);
  tar.on('error', (error) => parser.destroy(error));
  const tree = await LayerTree.open(root);
  let read = 0;
  tar.on('data', (chunk: Buffer) => {
    read += chunk.length;
    if (read > limits.archiveBytes) tar.destroy(new Error(`the archive has more than ${limits.archiveBytes} bytes`));
  });
  try {
    const layer = new LayerUnpacking(tree, target, limits);
    tar.pipe(parser);
    for await (const entry of parser) {
      await layer.add(entry.header, entry);
      // The unread body of an entry (such as a device with a body) must be skipped, or the parser waits forever.
      entry.resume();
    }
    return await layer.finish();
  } catch (error) {
    tar.destroy();
    if (error instanceof RuntimeError) throw error;
    throw new RuntimeError('image-pull', `layer archive: ${messageOf(error)}`, { cause: error });
  } finally {
    await tree.close();
  }
}

interface Metadata {
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
  readonly mtime: Date;
  readonly attributes: Attributes;
}

class LayerUnpacking {
  readonly #root: string;
  readonly #tree: LayerTree;
  readonly #trees: Trees;
  readonly #log: Log;
  readonly #limits: LayerLimits;
  readonly #lower: LowerLayers;
  readonly #whiteoutDevice: string | undefined;
  readonly #paths: LayerPaths;
  readonly #files = new Map<string, string>();
  readonly #attributes = new Map<string, Attributes>();
  /** Inode and time of directories. Times are set at the end, because adding entries changes them. */
  readonly #times = new Map<string, { readonly inode: number; readonly mtime: Date }>();
  /** Files of lower layers that hard links have copied into this one. */
  readonly #copies = new Set<string>();
  #sizeBytes = 0;
  #checkAtBytes = CHECK_SPACE_BYTES;
  #entries = 0;
  #nameBytes = 0;
  #programs = 0;
  #replaced = 0;

  constructor(tree: LayerTree, { root, trees, log, below }: LayerTarget, limits: LayerLimits) {
    this.#root = root;
    this.#tree = tree;
    this.#trees = trees;
    this.#log = log;
    this.#limits = limits;
    this.#lower = new LowerLayers(below?.layers ?? []);
    this.#whiteoutDevice = below?.whiteoutDevice;
    this.#paths = new LayerPaths(root, tree, this.#lower, limits.lookups);
  }

  async add(header: Header, body: AsyncIterable<unknown>): Promise<void> {
    const { entries, nameBytes } = this.#limits;
    if (++this.#entries > entries) throw refused(`the layer has more than ${entries} entries`);
    if (this.#entries % CHECK_SPACE_ENTRIES === 0) await this.#checkSpace();
    // An entry with an invalid size would never end.
    if (!Number.isSafeInteger(header.size)) throw refused(`${quotedName(header.name)} has no valid size`);
    const path = entryPath(header.name);
    this.#nameBytes += path.length;
    if (this.#nameBytes > nameBytes) throw refused(`the layer's names have more than ${nameBytes} bytes`);
    if (nameOf(path).startsWith(WHITEOUT_PREFIX)) await this.#addWhiteout(path, header.name);
    else if (header.type === 'directory') await this.#addDirectory(path, header);
    else await this.#addOther(path, header, body);
  }

  async finish(): Promise<UnpackedLayer> {
    const { removed, opaque, implicit } = this.#paths;
    if (this.#whiteoutDevice !== undefined)
      await applyDeletions(this.#root, this.#lower, { removed, opaque }, this.#whiteoutDevice);
    await this.#inheritAttributes();
    for (const [path, { mtime }] of implicit) if (!this.#times.has(path)) await this.#remember(path, mtime);
    for (const [path, { inode, mtime }] of this.#times) {
      const directory = await this.#tree.directory(path);
      if ((await directory.stat()).ino === inode) await utimes(pathOf(directory), mtime, mtime);
    }
    return {
      sizeBytes: this.#sizeBytes,
      manifest: [...this.#files]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([path, facts]) => `${facts} ${JSON.stringify(path)}`),
      attributes: [...this.#attributes].flatMap(([path, attributes]) =>
        [...attributes].map(([name, value]) => [path, name, value.toString('base64')] as const),
      ),
    };
  }

  async #checkSpace(): Promise<void> {
    if ((await roomAt(this.#root)) === 0) throw refused('no space left on device');
  }

  async #addWhiteout(path: string, name: string): Promise<void> {
    // The directory is resolved together with the entry, because a link may have replaced it.
    const place = await this.#paths.place(path);
    const parent = parentOf(place);
    if (nameOf(place) === OPAQUE_MARK) {
      this.#paths.opaque.add(parent);
      return;
    }
    const target = nameOf(place).slice(WHITEOUT_PREFIX.length);
    if (target.startsWith(WHITEOUT_PREFIX)) return;
    if (target === '' || target === '.' || target === '..') throw refused(`bad whiteout ${quotedName(name)}`);
    const removed = joinLayerPath(parent, target);
    this.#paths.removed.add(removed);
    if (this.#copies.has(removed)) await this.#remove(removed, { isDirectory: false });
  }

  async #addDirectory(path: string, header: Header): Promise<void> {
    const place = await this.#paths.place(path);
    if (!this.#paths.directories.has(place)) {
      await this.#makeRoom(place);
      await this.#paths.make(place);
    }
    const metadata = metadataOf(header);
    await this.#apply(await this.#tree.directory(place), place, metadata, 'directory');
    await this.#remember(place, metadata.mtime);
  }

  async #addOther(path: string, header: Header, body: AsyncIterable<unknown>): Promise<void> {
    if (path === '') throw refused('the root of the layer is not a directory');
    const place = await this.#paths.place(path);
    const { type } = header;
    const metadata = metadataOf(header);
    if (type === 'file' || type === 'contiguous-file') {
      await this.#writeFile(place, metadata, body, header.size);
    } else if (type === 'link') {
      await this.#makeRoom(place);
      await this.#addLink(place, header);
    } else if (type === 'symlink') {
      await this.#makeRoom(place);
      await symlink(header.linkname ?? '', await this.#tree.at(place));
      await this.#applyToEntry(place, metadata, 'link');
    } else if (type === 'character-device' || type === 'block-device' || type === 'fifo') {
      await this.#makeRoom(place);
      this.#countProgram();
      await this.#makeNode(place, header);
      await this.#applyToEntry(place, metadata, 'other');
    } else this.#log.v(4, 'layer entry skipped: unsupported type', { path, type });
  }

  /**
   * Adds a hard link. Owner, mode and times in its header are ignored: they belong to the file, and most archives
   * repeat them. Extended attributes are added to those of the file.
   */
  async #addLink(place: string, header: Header): Promise<void> {
    const source = entryPath(header.linkname ?? '');
    const found = await this.#paths.find(source);
    const failed = (why: string): RuntimeError =>
      refused(`hard link ${quotedName(header.name)} to ${quotedName(header.linkname)}: ${why}`);
    if (found === undefined) throw failed('the image has no such file');
    if (found.kind === 'lower') await this.#copyUp(found, failed);
    await link(await this.#tree.at(found.path), await this.#tree.at(place)).catch((error: unknown) => {
      throw failed(messageOf(error));
    });
    const facts = this.#files.get(found.path);
    if (facts !== undefined) this.#files.set(place, facts);
    const known = this.#attributes.get(found.path);
    if (known !== undefined) this.#attributes.set(place, known);
    const given = attributesOf(header);
    if (given.size === 0) return;
    const entry = await this.#tree.entry(place);
    try {
      await this.#setAttributes(entry, place, new Map([...(known ?? []), ...given]));
    } finally {
      await entry.close();
    }
    const all = this.#attributes.get(place);
    if (all !== undefined) this.#attributes.set(found.path, all);
  }

  /** Copies a file of a lower layer, as overlayfs does before it links: both names must be one file in the image. */
  async #copyUp(found: FoundEntry & { kind: 'lower' }, failed: (why: string) => RuntimeError): Promise<void> {
    const { layer, path, stats } = found;
    const place = await this.#paths.place(path);
    if (place !== path) throw failed('the directory of the entry is not in the image');
    const source = await LayerTree.open(layer);
    try {
      const { uid, gid, mtime } = stats;
      const attributes = stats.isFile() ? ((await readAttributes(layer, [path])).get(path) ?? new Map()) : new Map();
      const metadata = { uid, gid, mtime, mode: stats.mode & 0o7777, attributes };
      if (stats.isSymbolicLink()) {
        await symlink(await readlink(await source.at(path)), await this.#tree.at(path));
        await this.#applyToEntry(path, metadata, 'link');
      } else if (stats.isFile()) {
        const file = await open(await source.at(path), constants.O_RDONLY | constants.O_NOFOLLOW);
        try {
          await this.#writeFile(path, metadata, file.createReadStream({ autoClose: false }), stats.size);
        } finally {
          await file.close();
        }
      } else throw failed('it is neither a file nor a link');
    } finally {
      await source.close();
    }
    this.#copies.add(path);
  }

  async #writeFile(
    path: string,
    metadata: Metadata,
    body: AsyncIterable<unknown>,
    expected: number | undefined,
  ): Promise<void> {
    const file = await this.#create(path);
    const hash = createHash('sha256');
    let size = 0;
    try {
      for await (const chunk of body) {
        if (!Buffer.isBuffer(chunk)) continue;
        hash.update(chunk);
        size += chunk.length;
        this.#sizeBytes += chunk.length;
        if (this.#sizeBytes > MAX_LAYER_BYTES) throw refused('the layer is larger than 64 GiB');
        if (this.#sizeBytes >= this.#checkAtBytes) {
          this.#checkAtBytes = this.#sizeBytes + CHECK_SPACE_BYTES;
          await this.#checkSpace();
        }
        await file.writeFile(chunk);
      }
      if (expected !== undefined && expected !== size) throw refused(`${quotedName(path)} is cut short`);
      await file.chown(metadata.uid, metadata.gid);
      await file.chmod(metadata.mode);
      if (metadata.attributes.size > 0) await this.#setAttributes(file, path, metadata.attributes);
      await file.utimes(metadata.mtime, metadata.mtime);
    } finally {
      await file.close();
    }
    this.#files.set(path, `${hash.digest('hex')} ${size} ${metadata.mode.toString(8)}`);
  }

  /** Creates a file. Most files are new, so an existing entry is removed only after the first attempt fails. */
  async #create(path: string): Promise<FileHandle> {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    try {
      return await open(await this.#tree.at(path), flags, 0o600);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      await this.#makeRoom(path);
      return open(await this.#tree.at(path), flags, 0o600);
    }
  }

  async #applyToEntry(path: string, metadata: Metadata, kind: 'link' | 'other'): Promise<void> {
    const entry = await this.#tree.entry(path);
    try {
      await this.#apply(entry, path, metadata, kind);
    } finally {
      await entry.close();
    }
  }

  /** Sets owner, mode and attributes in this order: changing the owner clears set-id bits and capabilities. */
  async #apply(
    entry: FileHandle,
    path: string,
    { uid, gid, mode, mtime, attributes }: Metadata,
    kind: 'directory' | 'link' | 'other',
  ): Promise<void> {
    const self = pathOf(entry);
    await chown(self, uid, gid);
    if (kind !== 'link') await chmod(self, mode);
    await this.#setAttributes(entry, path, attributes);
    if (kind !== 'directory') await utimes(self, mtime, mtime);
  }

  async #setAttributes(entry: FileHandle, path: string, attributes: Attributes): Promise<void> {
    for (const _ of attributes) this.#countProgram();
    await setAttributes(entry.fd, attributes).catch((error: unknown) => {
      throw refused(`attributes ${[...attributes.keys()].join(', ')} of ${quotedName(path)}: ${messageOf(error)}`);
    });
    if (attributes.size > 0) this.#attributes.set(path, attributes);
  }

  /**
   * Directories that the archive does not contain inherit the attributes of the directory below, like owner and mode.
   */
  async #inheritAttributes(): Promise<void> {
    const layers = new Map<string, string[]>();
    for (const [path, { layer }] of this.#paths.implicit)
      if (!this.#times.has(path)) layers.set(layer, [...(layers.get(layer) ?? []), path]);
    for (const [layer, paths] of layers) {
      for (const [path, attributes] of await readAttributes(layer, paths))
        await this.#setAttributes(await this.#tree.directory(path), path, attributes);
    }
  }

  async #remember(path: string, mtime: Date): Promise<void> {
    const { ino } = await (await this.#tree.directory(path)).stat();
    this.#times.set(path, { inode: ino, mtime });
  }

  async #makeNode(path: string, header: Header): Promise<void> {
    const directory = await this.#tree.directory(parentOf(path));
    const target = `/proc/self/fd/3/${nameOf(path)}`;
    const kind = header.type === 'block-device' ? 'b' : 'c';
    const numbers = [String(header.devmajor ?? 0), String(header.devminor ?? 0)];
    await runWith([directory.fd], 'mknod', header.type === 'fifo' ? [target, 'p'] : [target, kind, ...numbers]);
  }

  /** Removes an earlier entry, which a later one with the same name replaces. */
  async #makeRoom(path: string): Promise<void> {
    const existing = await lstatOrUndefined(await this.#tree.at(path));
    if (existing !== undefined) await this.#remove(path, { isDirectory: existing.isDirectory() });
  }

  async #remove(path: string, { isDirectory }: { readonly isDirectory: boolean }): Promise<void> {
    await this.#trees.remove(await this.#tree.at(path));
    const known = [this.#files, this.#attributes, this.#times, this.#copies];
    for (const each of known) each.delete(path);
    if (!isDirectory) return;
    for (const each of [this.#paths.directories, ...known]) {
      this.#replaced += each.size;
      if (this.#replaced > this.#limits.replaced) throw refused('too many directories are replaced by other entries');
    }
    for (const each of known) for (const key of each.keys()) if (key.startsWith(`${path}/`)) each.delete(key);
    await this.#paths.forget(path);
  }

  #countProgram(): void {
    const { programs } = this.#limits;
    if (++this.#programs > programs) throw refused(`more than ${programs} attributes, devices and pipes`);
  }
}

function metadataOf(header: Header): Metadata {
  // tar-stream reads only names and sizes from pax records.
  const pax = new Map<string, unknown>(Object.entries(header.pax ?? {}));
  const seconds = Number.parseFloat(String(pax.get('mtime') ?? ''));
  return {
    uid: numberOr(pax.get('uid'), header.uid ?? 0),
    gid: numberOr(pax.get('gid'), header.gid ?? 0),
    mode: (header.mode ?? 0o644) & 0o7777,
    mtime: Number.isFinite(seconds) ? new Date(seconds * 1000) : (header.mtime ?? new Date(0)),
    attributes: attributesOf(header),
  };
}

const numberOr = (text: unknown, otherwise: number): number =>
  typeof text === 'string' && /^\d{1,10}$/.test(text) ? Number(text) : otherwise;
