/**
 * Unpacked layers: addressed by OCI chain id (a layer's deletions depend on the layers below), shared between images,
 * created atomically, and collected when they are no longer referenced.
 */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { mkdir, open, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { counted } from '../../../base/command-line/progress.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import { contentDigest } from '../../../wire/digest.ts';
import { RuntimeError } from '../../port.ts';
import {
  imageFile,
  isMissing,
  listImages,
  listRefs,
  names,
  ownerOf,
  readJson,
  removeFile,
  type StoreLayout,
  strings,
  syncDirectory,
  temporaryName,
  writeDurably,
} from '../layout.ts';
import { readAttributes } from './attributes.ts';
import { LayerTree } from './layer-tree.ts';
import { unpackLayer } from './unpack.ts';

const run = promisify(execFile);

export interface LayerSource {
  /** `sha256:…` of the uncompressed tar, from the image configuration. */
  readonly diffId: string;
  /**
   * File that contains the layer, as tar, tar+gzip or tar+zstd (detected by its first bytes), and its offset in the
   * file.
   */
  readonly path: string;
  readonly offset: number;
  readonly length: number;
  /** Called with the number of bytes of the file that were read, or are not needed. */
  readonly onBytes?: (bytes: number) => void;
}

export interface LayerStore {
  /**
   * Unpacks missing layers (`sources` are lowest first), then calls `record` with the chain names, topmost first, and
   * the unpacked size. Neither the layers nor `image` can be collected before `record` has resolved.
   */
  ensure(
    image: string,
    sources: readonly LayerSource[],
    record: (stack: { readonly layers: readonly string[]; readonly sizeBytes: number }) => Promise<void>,
  ): Promise<void>;
  /** Whether all layers of this stack exist. */
  has(diffIds: readonly string[]): Promise<boolean>;
  /**
   * Removes images without a name, and layers that no image, container or running import references. Returns the number
   * of removed layers.
   */
  collect(): Promise<number>;
  /** Compares a layer's files with the recorded ones; one line per difference. */
  verify(chain: string): Promise<readonly string[]>;
}

/** `isAlive`: whether the process of an owner (`<pid>-<start time>`) still runs. */
export function createLayerStore(
  layout: StoreLayout,
  isAlive: (owner: string) => Promise<boolean>,
  log: Log,
): LayerStore {
  return new UnpackedLayers(layout, isAlive, log);
}

class UnpackedLayers implements LayerStore {
  readonly #layout: StoreLayout;
  readonly #isAlive: (owner: string) => Promise<boolean>;
  readonly #log: Log;

  constructor(layout: StoreLayout, isAlive: (owner: string) => Promise<boolean>, log: Log) {
    this.#layout = layout;
    this.#isAlive = isAlive;
    this.#log = log;
  }

  async ensure(
    image: string,
    sources: readonly LayerSource[],
    record: (stack: { readonly layers: readonly string[]; readonly sizeBytes: number }) => Promise<void>,
  ): Promise<void> {
    const chains = chainNames(sources.map((source) => source.diffId));
    const intent = join(this.#layout.intents, `${temporaryName(this.#layout)}.json`);
    await writeDurably(this.#layout, intent, JSON.stringify({ image, layers: chains }));
    try {
      let sizeBytes = 0;
      for (const [index, source] of sources.entries()) {
        const chain = chains[index] ?? '';
        if (await this.#exists(chain)) source.onBytes?.(source.length);
        else await this.#unpack(chain, source, chains.slice(0, index).reverse());
        sizeBytes += await this.#sizeOf(chain);
      }
      await record({ layers: chains.toReversed(), sizeBytes });
    } finally {
      await removeFile(intent);
    }
  }

  async has(diffIds: readonly string[]): Promise<boolean> {
    for (const chain of chainNames(diffIds)) if (!(await this.#exists(chain))) return false;
    return true;
  }

  async collect(): Promise<number> {
    const known = await listImages(this.#layout);
    const before = await this.#referenced();
    for (const { id } of known) {
      if (before.images.has(id)) continue;
      await this.#removeUnless(async () => (await this.#referenced()).images.has(id), imageFile(this.#layout, id));
    }
    let removed = 0;
    const { layers: used } = await this.#referenced();
    for (const chain of await names(this.#layout.layers)) {
      if (used.has(chain)) continue;
      const needed = async (): Promise<boolean> => (await this.#referenced()).layers.has(chain);
      if (!(await this.#removeUnless(needed, join(this.#layout.layers, chain)))) continue;
      await removeFile(join(this.#layout.layerManifests, chain));
      removed++;
    }
    return removed;
  }

  async verify(chain: string): Promise<string[]> {
    const manifest = await readJson(join(this.#layout.layerManifests, chain));
    if (manifest === undefined || !(await this.#exists(chain))) return [`layer ${chain} is missing`];
    const root = join(this.#layout.layers, chain);
    const faults: string[] = [];
    const tree = await LayerTree.open(root);
    try {
      for (const line of strings(manifest['files'])) {
        const fault = await verifyFile(tree, line);
        if (fault !== undefined) faults.push(`layer ${chain}: ${fault}`);
      }
    } finally {
      await tree.close();
    }
    for (const fault of await verifyAttributes(root, manifest['attributes'])) faults.push(`layer ${chain}: ${fault}`);
    return faults;
  }

  async #exists(chain: string): Promise<boolean> {
    try {
      return (await stat(join(this.#layout.layers, chain))).isDirectory();
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  async #unpack(chain: string, source: LayerSource, below: readonly string[]): Promise<void> {
    const work = join(this.#layout.tmp, temporaryName(this.#layout));
    await mkdir(work, { mode: 0o755 });
    try {
      const hash = createHash('sha256');
      const hashing = new Transform({
        transform(chunk: Buffer, _encoding, done) {
          hash.update(chunk);
          done(null, chunk);
        },
      });
      const compressed =
        source.length === 0
          ? Readable.from([])
          : createReadStream(source.path, { start: source.offset, end: source.offset + source.length - 1 });
      const { onBytes = () => undefined } = source;
      const reading = pipeline(counted(compressed, onBytes), await decompressor(source), hashing).catch(
        (error: unknown) => {
          hashing.destroy(error instanceof Error ? error : new Error(String(error)));
        },
      );
      const unpacked = await unpackLayer(hashing, {
        root: work,
        trees: this.#layout.trees,
        log: this.#log,
        below: {
          layers: below.map((name) => join(this.#layout.layers, name)),
          whiteoutDevice: this.#layout.whiteoutDevice,
        },
      });
      // Padding after the end-of-archive mark is part of the digest.
      if (!hashing.readableEnded && !hashing.destroyed) for await (const _ of hashing);
      await reading;
      const digest = `sha256:${hash.digest('hex')}`;
      if (digest !== source.diffId) {
        throw new RuntimeError(
          'image-pull',
          `layer digest is ${digest}, but the image configuration has ${source.diffId}`,
        );
      }
      await run('sync', ['-f', work]);
      const { sizeBytes, manifest: files, attributes } = unpacked;
      const manifest = { diffId: source.diffId, sizeBytes, files, attributes };
      await writeDurably(this.#layout, join(this.#layout.layerManifests, chain), JSON.stringify(manifest));
      await rename(work, join(this.#layout.layers, chain));
      await syncDirectory(this.#layout.layers);
    } catch (error) {
      await this.#layout.trees.remove(work);
      // Another process may have created the same layer first.
      if (!(error instanceof RuntimeError) && (await this.#exists(chain))) return;
      throw error;
    }
  }

  async #sizeOf(chain: string): Promise<number> {
    const size = (await readJson(join(this.#layout.layerManifests, chain)))?.['sizeBytes'];
    return typeof size === 'number' ? size : 0;
  }

  /**
   * Referenced layers and images. Holds and running imports are read before the images: an import releases its claim
   * only after the image that references the layer has been written, so at least one of the two is always found.
   */
  async #referenced(): Promise<{ readonly layers: ReadonlySet<string>; readonly images: ReadonlySet<string> }> {
    const layers = new Set<string>();
    const images = new Set<string>();
    for (const directory of [this.#layout.holds, this.#layout.intents]) {
      for (const file of await names(directory)) {
        const path = join(directory, file);
        const record = await readJson(path);
        if (directory === this.#layout.intents) {
          if (!(await this.#isAlive(ownerOf(file)))) {
            await removeFile(path);
            continue;
          }
          if (typeof record?.['image'] === 'string') images.add(record['image']);
        }
        for (const layer of strings(record?.['layers'])) layers.add(layer);
      }
    }
    for (const { id } of await listRefs(this.#layout)) images.add(id);
    for (const image of await listImages(this.#layout)) for (const layer of image.layers) layers.add(layer);
    return { layers, images };
  }

  /**
   * Removes a path unless it is needed. Renames the path, checks again and only then deletes it. A path that was
   * referenced meanwhile is renamed back.
   */
  async #removeUnless(needed: () => Promise<boolean>, path: string): Promise<boolean> {
    const aside = join(this.#layout.tmp, temporaryName(this.#layout));
    try {
      await rename(path, aside);
    } catch (error) {
      // Another process is collecting at the same time.
      if (isMissing(error)) return false;
      throw error;
    }
    if (await needed()) {
      await rename(aside, path).catch(() => this.#layout.trees.remove(aside));
      return false;
    }
    await this.#layout.trees.remove(aside);
    return true;
  }
}

/** Verifies attributes. Layers of older releases, which silently lost attributes, have no record of them. */
async function verifyAttributes(root: string, recorded: unknown): Promise<string[]> {
  const expected = (Array.isArray(recorded) ? recorded : []).map(strings);
  const paths = [...new Set(expected.flatMap(([path]) => path ?? []))];
  let found: Awaited<ReturnType<typeof readAttributes>>;
  try {
    found = await readAttributes(root, paths);
  } catch (error) {
    return [`the attributes cannot be read: ${messageOf(error)}`];
  }
  return expected.flatMap(([path = '', name = '', value = '']) => {
    const present = found.get(path)?.get(name);
    if (present === undefined) return [`${path} has lost its attribute ${name}`];
    return present.toString('base64') === value ? [] : [`${path} has another value of its attribute ${name}`];
  });
}

async function verifyFile(tree: LayerTree, line: string): Promise<string | undefined> {
  const match = /^([0-9a-f]{64}) (\d+) ([0-7]+) (.*)$/.exec(line);
  if (match === null) return 'the manifest is damaged';
  const [, digest = '', size = '', mode = '', quoted = ''] = match;
  const path: unknown = JSON.parse(quoted);
  if (typeof path !== 'string') return 'the manifest is damaged';
  let file: Awaited<ReturnType<typeof open>>;
  try {
    file = await open(await tree.at(path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    return messageOf(error);
  }
  try {
    const stats = await file.stat();
    if (stats.size !== Number(size)) return `${path} has ${stats.size} bytes instead of ${size}`;
    if ((stats.mode & 0o7777) !== Number.parseInt(mode, 8))
      return `${path} has mode ${(stats.mode & 0o7777).toString(8)} instead of ${mode}`;
    const hash = createHash('sha256');
    for await (const chunk of file.createReadStream({ autoClose: false })) hash.update(chunk as Buffer);
    return hash.digest('hex') === digest ? undefined : `${path} has other content`;
  } finally {
    await file.close();
  }
}

/**
 * Names of stacked layers, lowest first: OCI chain IDs, truncated to 32 digits because the options of an overlay mount
 * must fit one page. Source: OCI image specification, "Layer ChainID".
 */
export function chainNames(diffIds: readonly string[]): readonly string[] {
  const chains: string[] = [];
  let chain = '';
  for (const diffId of diffIds) {
    chain = chain === '' ? diffId : contentDigest(`${chain} ${diffId}`);
    chains.push(chain.slice('sha256:'.length, 'sha256:'.length + 32));
  }
  return chains;
}

/** Selects the decompressor by the first bytes. */
async function decompressor(source: LayerSource): Promise<Transform> {
  const file = await open(source.path, 'r');
  try {
    const magic = Buffer.alloc(4);
    await file.read(magic, 0, 4, source.offset);
    if (magic[0] === 0x1f && magic[1] === 0x8b) return createGunzip();
    if (magic.readUInt32LE(0) === 0xfd2fb528) return createZstdDecompress();
    return new PassThrough();
  } finally {
    await file.close();
  }
}
