/**
 * Layout of the image store on disk, which several processes may read at once. Every file is created by rename and
 * never changed in place.
 *
 *     layers/<chain>/            unpacked layer in overlayfs form; <chain> are 32 hex digits of the OCI chain id
 *     layer-manifests/<chain>    unpacked files: sizes and digests, for verification
 *     images/<hex>.json          an image: configuration, layers, size; <hex> is the digest of its configuration
 *     refs/<sha256 of name>.json name → image
 *     pins/<sha256 of name>.json names that garbage collection keeps
 *     partial/<hex>              interrupted downloads of layers, by digest
 *     holds/<container>.json     images that containers use
 *     intents/<random>.json      layers that a running import needs, with its process
 *     tmp/                       work in progress; cleaned at start if its process has ended
 */

import { randomBytes } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { sha256Hex } from '../../wire/digest.ts';
import type { Trees } from '../directory-removal/port.ts';
import type { ImageConfig } from '../oci/port.ts';

export interface StoredImage {
  /** `sha256:…` of the configuration. */
  readonly id: string;
  /** Chain names, topmost first. */
  readonly layers: readonly string[];
  readonly sizeBytes: number;
  readonly config: ImageConfig;
  /** The original configuration without its layers; undefined for images of earlier releases. */
  readonly raw?: string;
}

/** Image in a list. Authors of images choose the size of configurations, so lists do not contain them. */
export interface ListedImage extends Pick<StoredImage, 'id' | 'layers' | 'sizeBytes'> {
  readonly user: string;
}

export interface StoredRef {
  readonly name: string;
  readonly id: string;
}

export interface StoreLayout {
  readonly layers: string;
  readonly layerManifests: string;
  readonly images: string;
  readonly refs: string;
  readonly holds: string;
  readonly pins: string;
  readonly partial: string;
  readonly intents: string;
  readonly tmp: string;
  readonly whiteoutDevice: string;
  /** This process: `<pid>-<start time>`. */
  readonly owner: string;
  readonly trees: Trees;
}

export function storeLayout(root: string, owner: string, trees: Trees): StoreLayout {
  return {
    owner,
    trees,
    layers: join(root, 'layers'),
    layerManifests: join(root, 'layer-manifests'),
    images: join(root, 'images'),
    refs: join(root, 'refs'),
    holds: join(root, 'holds'),
    pins: join(root, 'pins'),
    partial: join(root, 'partial'),
    intents: join(root, 'intents'),
    tmp: join(root, 'tmp'),
    whiteoutDevice: join(root, 'tmp', 'whiteout'),
  };
}

export async function makeLayout(layout: StoreLayout): Promise<void> {
  const { layers, layerManifests, images, refs, holds, pins, partial, intents, tmp } = layout;
  for (const directory of [layers, layerManifests, images, refs, holds, pins, partial, intents, tmp]) {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  }
}

/** Name for work in progress, which identifies the owning process. */
export const temporaryName = (layout: StoreLayout): string => `${layout.owner}-${randomBytes(8).toString('hex')}`;

/** The part of a temporary name that identifies its process. */
export const ownerOf = (name: string): string => name.split('-').slice(0, 2).join('-');

export const refFile = (layout: StoreLayout, name: string): string => join(layout.refs, `${sha256Hex(name)}.json`);

export const pinFile = (layout: StoreLayout, name: string): string => join(layout.pins, `${sha256Hex(name)}.json`);

export const imageFile = (layout: StoreLayout, id: string): string =>
  join(layout.images, `${id.slice('sha256:'.length)}.json`);

export const holdFile = (layout: StoreLayout, holder: string): string =>
  join(layout.holds, `${encodeURIComponent(holder)}.json`);

/** Writes atomically but not durably: after a power failure the file may be absent or empty. */
export async function writeWhole(layout: StoreLayout, path: string, content: string): Promise<void> {
  const temporary = join(layout.tmp, temporaryName(layout));
  try {
    await writeFile(temporary, content, { flag: 'wx', mode: 0o600 });
    await rename(temporary, path);
  } catch (error) {
    await removeFile(temporary);
    throw error;
  }
}

/** Writes atomically and durably: temporary file, fsync, rename, fsync of the directory. */
export async function writeDurably(layout: StoreLayout, path: string, content: string): Promise<void> {
  const temporary = join(layout.tmp, temporaryName(layout));
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await removeFile(temporary);
    throw error;
  }
  await syncDirectory(dirname(path));
}

export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Returns undefined if the file is missing or does not contain a JSON object, which happens after a disk fault. */
export async function readJson(path: string): Promise<Record<string, unknown> | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value))
      : undefined;
  } catch {
    return undefined;
  }
}

export async function readImage(layout: StoreLayout, id: string): Promise<StoredImage | undefined> {
  const raw = await readJson(imageFile(layout, id));
  if (raw === undefined || typeof raw['config'] !== 'object' || raw['config'] === null) return undefined;
  const config = Object.fromEntries(Object.entries(raw['config']));
  return {
    id,
    layers: strings(raw['layers']),
    sizeBytes: typeof raw['sizeBytes'] === 'number' ? raw['sizeBytes'] : 0,
    config: {
      entrypoint: strings(config['entrypoint']),
      cmd: strings(config['cmd']),
      env: strings(config['env']),
      workingDir: text(config['workingDir']),
      user: text(config['user']),
      stopSignal: text(config['stopSignal']),
    },
    ...(typeof raw['raw'] === 'string' ? { raw: raw['raw'] } : {}),
  };
}

/** Listed images by file, with the identity of the file. Files never change in place. */
const listed = new WeakMap<StoreLayout, Map<string, { readonly identity: string; readonly image: ListedImage }>>();

/** Reads each file once per layout, because parsing the configurations of many images takes seconds. */
export async function listImages(layout: StoreLayout): Promise<readonly ListedImage[]> {
  const before = listed.get(layout);
  const now: typeof before = new Map();
  for (const name of await names(layout.images)) {
    if (!/^[0-9a-f]{64}\.json$/.test(name)) continue;
    const found = await stat(join(layout.images, name)).catch(() => undefined);
    if (found === undefined) continue;
    const identity = `${found.ino} ${found.size} ${found.mtimeMs}`;
    const known = before?.get(name);
    const image = known?.identity === identity ? known.image : await readListed(layout, `sha256:${name.slice(0, 64)}`);
    if (image !== undefined) now.set(name, { identity, image });
  }
  listed.set(layout, now);
  return Array.from(now.values(), ({ image }) => image);
}

async function readListed(layout: StoreLayout, id: string): Promise<ListedImage | undefined> {
  const image = await readImage(layout, id);
  if (image === undefined) return undefined;
  // A part of a parsed text can keep the whole text in memory, so it is copied.
  const copy = (value: string): string => Buffer.from(value).toString();
  return { id, layers: image.layers.map(copy), sizeBytes: image.sizeBytes, user: copy(image.config.user) };
}

export async function readRef(layout: StoreLayout, name: string): Promise<StoredRef | undefined> {
  const raw = await readJson(refFile(layout, name));
  const id = raw?.['id'];
  return typeof id === 'string' ? { name, id } : undefined;
}

export async function listRefs(layout: StoreLayout): Promise<readonly StoredRef[]> {
  const refs: StoredRef[] = [];
  for (const file of await names(layout.refs)) {
    const raw = await readJson(join(layout.refs, file));
    if (typeof raw?.['name'] === 'string' && typeof raw['id'] === 'string')
      refs.push({ name: raw['name'], id: raw['id'] });
  }
  return refs;
}

/** IDs of the images that containers use. */
export async function listImagesInUse(layout: StoreLayout): Promise<ReadonlySet<string>> {
  const held = new Set<string>();
  for (const file of await names(layout.holds)) {
    const image = (await readJson(join(layout.holds, file)))?.['image'];
    if (typeof image === 'string') held.add(image);
  }
  return held;
}

export async function listPins(layout: StoreLayout): Promise<ReadonlySet<string>> {
  const pins = new Set<string>();
  for (const file of await names(layout.pins)) {
    const name = (await readJson(join(layout.pins, file)))?.['name'];
    if (typeof name === 'string') pins.add(name);
  }
  return pins;
}

/** Directory entries; empty if the directory is missing. */
export async function names(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

export const removeFile = (path: string): Promise<void> => rm(path, { force: true });

export const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ENOENT';

export const strings = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];

const text = (value: unknown): string => (typeof value === 'string' ? value : '');
