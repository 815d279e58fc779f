/**
 * Unpacks one layer tar into a fresh directory. The archive is hostile: absolute names, `..`, and entries that pass
 * through a symbolic link are refused, links are never followed, and sizes and counts are bounded; so nothing is ever
 * written outside.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, lchown, link, lutimes, mkdir, open, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { extract, type Header } from 'tar-stream';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { RuntimeError } from '../../core/podplan/port.ts';
import type { Trees } from '../trees/port.ts';
import { MAX_LAYER_BYTES, roomAt } from './blob-download.ts';
import { boundExtendedHeaders, type HeaderLimits } from './extended-headers.ts';
import { type LayerDeletions, lstatOrUndefined } from './whiteouts.ts';

const run = promisify(execFile);

const WHITEOUT_PREFIX = '.wh.';
const OPAQUE_MARK = '.wh..wh..opq';
/** Between two looks at the free space. */
const CHECK_SPACE_BYTES = 64 * 1024 ** 2;
const MAX_PATH_BYTES = 4096;

/** What an archive can make a host keep in memory and do, however small it is compressed. */
export interface LayerLimits {
  readonly entries: number;
  /** Bytes of all names together. */
  readonly nameBytes: number;
  /** Attributes, and devices and pipes, each of which takes a process to make. */
  readonly programs: number;
  /** Names that are gone through when directories are replaced by something else. */
  readonly replaced: number;
  /** Bytes of the archive, with headers and what is not unpacked. */
  readonly archiveBytes: number;
  readonly headers: HeaderLimits;
}

const LIMITS: LayerLimits = {
  entries: 1_000_000,
  nameBytes: 256 * 1024 ** 2,
  programs: 10_000,
  replaced: 100_000_000,
  archiveBytes: MAX_LAYER_BYTES + 2 * 1024 ** 3,
  headers: { one: 1024 ** 2, all: 512 * 1024 ** 2 },
};

export interface UnpackedLayer {
  readonly deletions: LayerDeletions;
  readonly sizeBytes: number;
  /** One line per regular file: `sha256 size mode path-as-JSON`; what a later verification compares. */
  readonly manifest: readonly string[];
}

interface Progress {
  readonly limits: LayerLimits;
  readonly root: string;
  readonly trees: Trees;
  readonly directories: Set<string>;
  readonly removed: Set<string>;
  readonly opaque: Set<string>;
  readonly files: Map<string, string>;
  readonly directoryTimes: Map<string, Date>;
  readonly attributes: { path: string; name: string; value: string }[];
  sizeBytes: number;
  checkAtBytes: number;
  entries: number;
  nameBytes: number;
  programs: number;
  replaced: number;
}

/** `tar` is the uncompressed layer; it is consumed to its end. Throws RuntimeError 'image-pull' on a bad archive. */
export async function unpackLayer(
  tar: Readable,
  root: string,
  trees: Trees,
  log: Log,
  limits = LIMITS,
): Promise<UnpackedLayer> {
  const progress: Progress = {
    limits,
    root,
    trees,
    directories: new Set(['']),
    removed: new Set(),
    opaque: new Set(),
    files: new Map(),
    directoryTimes: new Map(),
    attributes: [],
    sizeBytes: 0,
    checkAtBytes: CHECK_SPACE_BYTES,
    entries: 0,
    nameBytes: 0,
    programs: 0,
    replaced: 0,
  };
  const parser = extract();
  boundExtendedHeaders(parser, limits.headers);
  let read = 0;
  tar.on('data', (chunk: Buffer) => {
    read += chunk.length;
    if (read > limits.archiveBytes) tar.destroy(new Error(`it has more than ${limits.archiveBytes} bytes`));
  });
  tar.on('error', (error) => parser.destroy(error));
  tar.pipe(parser);
  try {
    for await (const entry of parser) {
      await unpackEntry(progress, entry.header, entry, log);
      // What an entry did not consume (a device with a body) must be skipped, or the parser waits for ever.
      entry.resume();
    }
  } catch (error) {
    tar.destroy();
    if (error instanceof RuntimeError) throw error;
    throw new RuntimeError('image-pull', `layer archive: ${messageOf(error)}`, { cause: error });
  }
  for (const [path, time] of progress.directoryTimes) await lutimes(join(root, path), time, time);
  await restoreAttributes(progress, log);
  return {
    deletions: { removed: progress.removed, opaque: progress.opaque },
    sizeBytes: progress.sizeBytes,
    manifest: [...progress.files]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([path, facts]) => `${facts} ${JSON.stringify(path)}`),
  };
}

async function unpackEntry(progress: Progress, header: Header, body: AsyncIterable<unknown>, log: Log): Promise<void> {
  const { limits } = progress;
  if (++progress.entries > limits.entries) throw bad(`the layer has more than ${limits.entries} entries`);
  // A size that is no number never comes to its end.
  if (!Number.isSafeInteger(header.size)) throw bad(`${JSON.stringify(header.name.slice(0, 200))} has no valid size`);
  const path = safePath(header.name);
  progress.nameBytes += path.length;
  if (progress.nameBytes > limits.nameBytes) throw bad(`the layer's names have more than ${limits.nameBytes} bytes`);
  const slash = path.lastIndexOf('/');
  const parent = slash < 0 ? '' : path.slice(0, slash);
  const name = path.slice(slash + 1);
  if (name === OPAQUE_MARK) {
    await ensureDirectory(progress, parent);
    progress.opaque.add(parent);
    return;
  }
  if (name.startsWith(WHITEOUT_PREFIX)) {
    const target = name.slice(WHITEOUT_PREFIX.length);
    if (target.startsWith(WHITEOUT_PREFIX)) return;
    if (target === '' || target === '.' || target === '..') throw bad(`bad whiteout ${JSON.stringify(header.name)}`);
    await ensureDirectory(progress, parent);
    progress.removed.add(parent === '' ? target : `${parent}/${target}`);
    return;
  }
  const { root } = progress;
  const target = join(root, path);
  const mode = (header.mode ?? 0o644) & 0o7777;
  const time = header.mtime ?? new Date(0);
  if (header.type === 'directory') {
    await ensureDirectory(progress, path);
    await lchown(target, header.uid ?? 0, header.gid ?? 0);
    await chmod(target, mode);
    progress.directoryTimes.set(path, time);
    return;
  }
  if (path === '') throw bad('the root of the layer is not a directory');
  await ensureDirectory(progress, parent);
  await makeRoom(progress, path);
  switch (header.type) {
    case 'file':
    case 'contiguous-file':
      await writeFile(progress, path, target, header, body, mode);
      break;
    case 'link': {
      const source = safePath(header.linkname ?? '');
      const sourceParent = source.includes('/') ? source.slice(0, source.lastIndexOf('/')) : '';
      if (!(await isRealDirectory(progress, sourceParent)))
        throw bad(`hard link ${JSON.stringify(header.name)} passes through a link`);
      await link(join(root, source), target).catch((error: unknown) => {
        throw bad(
          `hard link ${JSON.stringify(header.name)} to ${JSON.stringify(header.linkname)}: ${messageOf(error)}`,
        );
      });
      const facts = progress.files.get(source);
      if (facts !== undefined) progress.files.set(path, facts);
      return;
    }
    case 'symlink':
      await symlink(header.linkname ?? '', target);
      await lchown(target, header.uid ?? 0, header.gid ?? 0);
      await lutimes(target, time, time);
      return;
    case 'character-device':
    case 'block-device':
    case 'fifo':
      countProgram(progress);
      await makeNode(target, header);
      break;
    default:
      log.v(4, 'layer entry of a type that is not unpacked', { path, type: header.type });
      return;
  }
  await lchown(target, header.uid ?? 0, header.gid ?? 0);
  await chmod(target, mode);
  await lutimes(target, time, time);
  collectAttributes(progress, path, header);
}

async function writeFile(
  progress: Progress,
  path: string,
  target: string,
  header: Header,
  body: AsyncIterable<unknown>,
  mode: number,
): Promise<void> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const file = await open(target, flags, 0o600);
  const hash = createHash('sha256');
  let size = 0;
  try {
    for await (const chunk of body) {
      if (!Buffer.isBuffer(chunk)) continue;
      hash.update(chunk);
      size += chunk.length;
      progress.sizeBytes += chunk.length;
      if (progress.sizeBytes > MAX_LAYER_BYTES) throw bad('the layer is larger than 64 GiB');
      if (progress.sizeBytes >= progress.checkAtBytes) {
        progress.checkAtBytes = progress.sizeBytes + CHECK_SPACE_BYTES;
        if ((await roomAt(progress.root)) === 0) throw bad('no space left on device');
      }
      await file.write(chunk);
    }
  } finally {
    await file.close();
  }
  if (header.size !== undefined && header.size !== size) throw bad(`${JSON.stringify(header.name)} is cut short`);
  progress.files.set(path, `${hash.digest('hex')} ${size} ${mode.toString(8)}`);
}

/** An entry that comes again replaces the earlier one. */
async function makeRoom(progress: Progress, path: string): Promise<void> {
  const existing = await lstatOrUndefined(join(progress.root, path));
  if (existing === undefined) return;
  await progress.trees.remove(join(progress.root, path));
  progress.files.delete(path);
  if (!existing.isDirectory()) return;
  for (const set of [progress.directories, progress.files, progress.directoryTimes]) {
    progress.replaced += set.size;
    if (progress.replaced > progress.limits.replaced) throw bad('too many directories are replaced by other entries');
    for (const key of set.keys()) if (key === path || key.startsWith(`${path}/`)) set.delete(key);
  }
}

async function ensureDirectory(progress: Progress, path: string): Promise<void> {
  if (progress.directories.has(path)) return;
  const slash = path.lastIndexOf('/');
  await ensureDirectory(progress, slash < 0 ? '' : path.slice(0, slash));
  const target = join(progress.root, path);
  const existing = await lstatOrUndefined(target);
  if (existing === undefined) await mkdir(target, { mode: 0o755 });
  else if (!existing.isDirectory())
    throw bad(`an entry below ${JSON.stringify(path)} passes through what is no directory`);
  progress.directories.add(path);
}

async function isRealDirectory(progress: Progress, path: string): Promise<boolean> {
  if (progress.directories.has(path)) return true;
  const slash = path.lastIndexOf('/');
  if (!(await isRealDirectory(progress, slash < 0 ? '' : path.slice(0, slash)))) return false;
  return (await lstatOrUndefined(join(progress.root, path)))?.isDirectory() === true;
}

async function makeNode(target: string, header: Header): Promise<void> {
  if (header.type === 'fifo') {
    await run('mknod', [target, 'p']);
    return;
  }
  const kind = header.type === 'block-device' ? 'b' : 'c';
  await run('mknod', [target, kind, String(header.devmajor ?? 0), String(header.devminor ?? 0)]);
}

/** A relative path without `.` and `..`; '' is the layer's root. */
function safePath(name: string): string {
  if (name.startsWith('/')) throw bad(`absolute name ${JSON.stringify(name.slice(0, 200))}`);
  if (name.includes('\0') || Buffer.byteLength(name) > MAX_PATH_BYTES) throw bad('a name with NUL or over 4096 bytes');
  const components = name.split('/').filter((component) => component !== '' && component !== '.');
  if (components.includes('..')) throw bad(`name ${JSON.stringify(name.slice(0, 200))} leaves the layer`);
  return components.join('/');
}

const PAX_ATTRIBUTE = 'SCHILY.xattr.';

/**
 * File capabilities are what images carry attributes for; other names (SELinux, overlay's own) must not come from an
 * archive.
 */
function collectAttributes(progress: Progress, path: string, header: Header): void {
  for (const [key, value] of Object.entries(header.pax ?? {})) {
    if (!key.startsWith(PAX_ATTRIBUTE) || typeof value !== 'string') continue;
    const name = key.slice(PAX_ATTRIBUTE.length);
    if (name !== 'security.capability' && !/^user\.[\w.-]+$/.test(name)) continue;
    countProgram(progress);
    progress.attributes.push({ path, name, value });
  }
}

function countProgram(progress: Progress): void {
  if (++progress.programs > progress.limits.programs)
    throw bad(`more than ${progress.limits.programs} attributes, devices and pipes`);
}

async function restoreAttributes(progress: Progress, log: Log): Promise<void> {
  if (progress.attributes.length === 0) return;
  try {
    for (const { path, name, value } of progress.attributes) {
      // The tar reader decodes attribute values as UTF-8; one that was not ASCII has lost its bytes.
      if (!/^[\0-\x7f]*$/.test(value))
        throw new Error(`the attribute ${name} of ${path} does not survive the archive reader`);
      const encoded = `0x${Buffer.from(value, 'latin1').toString('hex')}`;
      await run('setfattr', ['-h', '-n', name, '-v', encoded, '--', join(progress.root, path)]);
    }
  } catch (error) {
    log.warn('file capabilities of an image layer are lost; install the package "attr" and import the image again', {
      files: progress.attributes.length,
      error: messageOf(error),
    });
  }
}

const bad = (why: string): RuntimeError => new RuntimeError('image-pull', `layer refused: ${why}`);
