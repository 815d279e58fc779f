/**
 * Reads `docker save` and OCI image archives without extracting them: one pass over the headers builds an index of the
 * tar's members, then layers are read in place.
 */
import { createReadStream, createWriteStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { adding, counted, type OnProgress } from '../../base/command-line/progress.ts';
import { messageOf } from '../../base/errors.ts';
import { contentDigest } from '../../wire/digest.ts';
import { RuntimeError } from '../port.ts';
import { MAX_DOCUMENT_BYTES, objectOf, type ParsedConfig, parseImageConfig, parseManifest } from './image-config.ts';
import type { LayerSource } from './layers/layers.ts';
import { strings } from './layout.ts';
import { choosePlatform, type Platform } from './platforms.ts';
import { roomAt } from './registry/blob-download.ts';

const BLOCK = 512;
const MAX_MEMBERS = 10_000;
/** Decompressed bytes between two checks of the free space. */
const CHECK_SPACE_BYTES = 64 * 1024 ** 2;
const FOR_SCRATCH = { flags: 'wx', mode: 0o600 } as const;

export interface ArchivedImage {
  /** Bytes of the configuration, from which the caller computes its digest. */
  readonly configBytes: Buffer;
  readonly parsed: ParsedConfig;
  readonly layers: readonly LayerSource[];
  /** Names as in the archive, not normalized. */
  readonly names: readonly string[];
}

interface Member {
  readonly offset: number;
  readonly size: number;
}

/** Opens an archive; a compressed one is first decompressed to `scratch`. Throws RuntimeError 'image-pull'. */
export async function readArchive(
  path: string,
  scratch: string,
  host: Platform,
  onDecompressed?: OnProgress,
): Promise<readonly ArchivedImage[]> {
  const plain = await decompressed(path, scratch, onDecompressed);
  const file = await open(plain, 'r');
  try {
    const members = await indexMembers(file, path);
    const read = async (name: string): Promise<Buffer> => {
      const member = members.get(name);
      if (member === undefined) throw bad(path, `${name} is missing`);
      if (member.size > MAX_DOCUMENT_BYTES) throw bad(path, `${name} is larger than 4 MiB`);
      const bytes = Buffer.alloc(member.size);
      await file.read(bytes, 0, member.size, member.offset);
      return bytes;
    };
    const source = (name: string, diffId: string): LayerSource => {
      const member = members.get(name);
      if (member === undefined) throw bad(path, `layer ${name} is missing`);
      return { diffId, path: plain, offset: member.offset, length: member.size };
    };
    if (members.has('manifest.json')) return await readDocker(path, read, source);
    if (members.has('index.json')) return await readOci(path, read, source, host);
    throw bad(path, 'neither manifest.json (docker-archive) nor index.json (oci-archive) found');
  } finally {
    await file.close();
  }
}

type ReadMember = (name: string) => Promise<Buffer>;
type LayerMember = (name: string, diffId: string) => LayerSource;

async function readDocker(path: string, read: ReadMember, source: LayerMember): Promise<readonly ArchivedImage[]> {
  const list: unknown = parseJson(await read('manifest.json'), path, 'manifest.json');
  if (!Array.isArray(list)) throw bad(path, 'manifest.json is not a list');
  const images: ArchivedImage[] = [];
  for (const item of list) {
    const entry = objectOf(item);
    const configName = entry['Config'];
    if (typeof configName !== 'string') throw bad(path, 'manifest.json specifies no configuration');
    const configBytes = await read(cleanName(configName));
    images.push(
      assemble(path, configBytes, strings(entry['Layers']).map(cleanName), strings(entry['RepoTags']), source),
    );
  }
  return images;
}

async function readOci(
  path: string,
  read: ReadMember,
  source: LayerMember,
  host: Platform,
): Promise<readonly ArchivedImage[]> {
  const nameOf = (digest: string): string => `blobs/sha256/${digest.slice('sha256:'.length)}`;
  const blob = async (digest: string): Promise<Buffer> => {
    const bytes = await read(nameOf(digest));
    const found = contentDigest(bytes);
    if (found !== digest) throw bad(path, `${nameOf(digest)} has digest ${found}`);
    return bytes;
  };
  const index = parseManifest(await read('index.json'), `${path}: index.json`);
  if (index.kind !== 'index') throw bad(path, 'index.json lists no manifests');
  const images: ArchivedImage[] = [];
  for (const descriptor of index.manifests) {
    let manifest = parseManifest(await blob(descriptor.digest), `${path}: ${descriptor.digest}`);
    if (manifest.kind === 'index') {
      const chosen = choosePlatform(manifest.manifests, host);
      if (chosen === undefined) throw bad(path, `no image found for linux/${host.architecture}`);
      manifest = parseManifest(await blob(chosen.digest), `${path}: ${chosen.digest}`);
      if (manifest.kind === 'index') throw bad(path, 'nested indexes are not supported');
    }
    const names = ['io.containerd.image.name', 'org.opencontainers.image.ref.name'].flatMap(
      (key) => descriptor.annotations.get(key) ?? [],
    );
    const configBytes = await blob(manifest.config.digest);
    const layers = manifest.layers.map((layer) => nameOf(layer.digest));
    images.push(assemble(path, configBytes, layers, names.slice(0, 1), source));
  }
  return images;
}

function assemble(
  path: string,
  configBytes: Buffer,
  layerNames: readonly string[],
  names: readonly string[],
  source: LayerMember,
): ArchivedImage {
  const parsed = parseImageConfig(configBytes, `${path}: image configuration`);
  if (parsed.diffIds.length !== layerNames.length)
    throw bad(path, 'the configuration and the manifest disagree on the layers');
  const layers = layerNames.map((name, position) => source(name, parsed.diffIds[position] ?? ''));
  return { configBytes, parsed, layers, names };
}

/**
 * Reads the headers (POSIX ustar, with pax and GNU long names) and resolves links between members, which old versions
 * of `docker save` created.
 */
async function indexMembers(file: FileHandle, path: string): Promise<ReadonlyMap<string, Member>> {
  const { size: total } = await file.stat();
  const members = new Map<string, Member>();
  const links = new Map<string, string>();
  const header = Buffer.alloc(BLOCK);
  let offset = 0;
  let longName: string | undefined;
  let longLink: string | undefined;
  let longSize: number | undefined;
  while (offset + BLOCK <= total) {
    await file.read(header, 0, BLOCK, offset);
    if (header.every((byte) => byte === 0)) break;
    if (!checksumMatches(header)) throw bad(path, `damaged at byte ${offset}, or not a tar archive`);
    const type = String.fromCharCode(header[156] ?? 0);
    const isExtended = type === 'x' || type === 'L' || type === 'K';
    const size = (isExtended ? undefined : longSize) ?? numberField(header, 124, 12);
    const body = offset + BLOCK;
    if (!Number.isSafeInteger(size) || size < 0 || body + size > total) throw bad(path, 'the archive is truncated');
    offset = body + Math.ceil(size / BLOCK) * BLOCK;
    if (isExtended) {
      if (size > 1024 * 1024) throw bad(path, 'an extended header is too large');
      const bytes = Buffer.alloc(size);
      await file.read(bytes, 0, size, body);
      if (type === 'L') longName = textField(bytes, 0, size);
      else if (type === 'K') longLink = textField(bytes, 0, size);
      else {
        const records = paxRecords(bytes);
        longName = records.get('path') ?? longName;
        longLink = records.get('linkpath') ?? longLink;
        const text = records.get('size');
        if (text !== undefined) longSize = /^\d+$/.test(text) ? Number(text) : -1;
      }
      continue;
    }
    const prefix = textField(header, 345, 155);
    const shortName = textField(header, 0, 100);
    const ustar = textField(header, 257, 5) === 'ustar' && prefix !== '';
    const name = cleanName(longName ?? (ustar ? `${prefix}/${shortName}` : shortName));
    if (type === '0' || type === '\0' || type === '7') members.set(name, { offset: body, size });
    else if (type === '1' || type === '2')
      links.set(name, linkTarget(name, type, longLink ?? textField(header, 157, 100)));
    longName = undefined;
    longLink = undefined;
    longSize = undefined;
    if (members.size + links.size > MAX_MEMBERS) throw bad(path, `more than ${MAX_MEMBERS} members`);
  }
  for (const [name, target] of links) {
    const member = members.get(target);
    if (member !== undefined && !members.has(name)) members.set(name, member);
  }
  return members;
}

/**
 * Symbolic links are relative to their directory, hard links to the archive. The result is always a name inside the
 * archive.
 */
function linkTarget(name: string, type: string, target: string): string {
  if (type === '1') return cleanName(target);
  const components = name.split('/').slice(0, -1);
  for (const component of target.split('/')) {
    if (component === '..') components.pop();
    else if (component !== '' && component !== '.') components.push(component);
  }
  return components.join('/');
}

function checksumMatches(header: Buffer): boolean {
  let sum = 8 * 0x20;
  for (let index = 0; index < BLOCK; index++) if (index < 148 || index >= 156) sum += header[index] ?? 0;
  return sum === numberField(header, 148, 8);
}

function numberField(header: Buffer, at: number, length: number): number {
  const first = header[at] ?? 0;
  if ((first & 0x80) !== 0) {
    let value = first & 0x7f;
    for (let index = 1; index < length; index++) value = value * 256 + (header[at + index] ?? 0);
    return Number.isSafeInteger(value) ? value : -1;
  }
  const text = textField(header, at, length).trim();
  return /^[0-7]*$/.test(text) ? Number.parseInt(text === '' ? '0' : text, 8) : -1;
}

function textField(bytes: Buffer, at: number, length: number): string {
  const end = bytes.indexOf(0, at);
  return bytes.toString('utf8', at, end < 0 || end > at + length ? at + length : end);
}

function paxRecords(bytes: Buffer): ReadonlyMap<string, string> {
  const records = new Map<string, string>();
  let offset = 0;
  while (offset < bytes.length) {
    const space = bytes.indexOf(0x20, offset);
    const length = Number(bytes.toString('latin1', offset, space));
    if (space < 0 || !Number.isInteger(length) || length < 5 || offset + length > bytes.length) break;
    const record = bytes.toString('utf8', space + 1, offset + length - 1);
    const equals = record.indexOf('=');
    records.set(record.slice(0, equals), record.slice(equals + 1));
    offset += length;
  }
  return records;
}

const cleanName = (name: string): string => name.replace(/^(?:\.?\/)+/, '').replace(/\/+$/, '');

async function decompressed(path: string, scratch: string, onProgress?: OnProgress): Promise<string> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    throw new RuntimeError('image-pull', `${path}: ${messageOf(error)}`, { cause: error });
  }
  const magic = Buffer.alloc(4);
  try {
    await file.read(magic, 0, 4, 0);
  } finally {
    await file.close();
  }
  const gzip = magic[0] === 0x1f && magic[1] === 0x8b;
  if (!gzip && magic.readUInt32LE(0) !== 0xfd2fb528) return path;
  try {
    const inflate = gzip ? createGunzip() : createZstdDecompress();
    const source = counted(createReadStream(path), adding((await stat(path)).size, onProgress));
    await pipeline(source, inflate, withinSpace(dirname(scratch)), createWriteStream(scratch, FOR_SCRATCH));
  } catch (error) {
    throw bad(path, messageOf(error));
  }
  return scratch;
}

/** Passes data on until it would use the reserved space, because a small archive may expand to any size. */
function withinSpace(directory: string): Transform {
  let unchecked = CHECK_SPACE_BYTES;
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      unchecked += chunk.length;
      if (unchecked < CHECK_SPACE_BYTES) return done(null, chunk);
      unchecked = 0;
      roomAt(directory).then(
        (bytes) => (bytes > 0 ? done(null, chunk) : done(new Error('no space left on device'))),
        (error: unknown) => done(error instanceof Error ? error : new Error(messageOf(error))),
      );
    },
  });
}

function parseJson(bytes: Buffer, path: string, what: string): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw bad(path, `${what} is not JSON`);
  }
}

const bad = (path: string, why: string): RuntimeError =>
  new RuntimeError('image-pull', `image archive ${path}: ${why}`);
