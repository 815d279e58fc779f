/** Snapshot files of the store: saved through its API, listed, verified and pruned. */
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, createReadStream, fsyncSync, openSync, writeSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import type { OnProgress } from '../../base/command-line/progress.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { flushDirectory } from './durable-files.ts';
import type { EtcdAdmin, SnapshotPosition, SnapshotSummary, StoreFiles } from './port.ts';
import { newestFirst } from './snapshot-order.ts';

const DIGEST_BYTES = 32;
const PART = /^\.snapshot-\d+-[0-9a-f]{8}\.part$/;
/** A partial file that was not written for this long belongs to an interrupted save. */
const PART_MS = 3_600_000;
const NAME = /^etcd-(\d+)-(\d{8}T\d{6}Z)\.db$/;

export interface SavedSnapshot {
  readonly file: string;
  readonly revision: number;
  readonly bytes: number;
  readonly sha256: string;
}

export type SnapshotTarget = { readonly file: string } | { readonly directory: string };

/**
 * Saves a snapshot to `directory`, or to exactly `file`: atomic, flushed, mode 0600. Throws CodedErrors of the store,
 * 'unwritable', 'no-space', and 'corrupt' when the received bytes do not match their SHA-256.
 */
export async function saveSnapshot(
  admin: EtcdAdmin,
  target: SnapshotTarget,
  files: StoreFiles,
  nowMs: number,
  onProgress?: OnProgress,
): Promise<SavedSnapshot> {
  const directory = 'file' in target ? dirname(resolve(target.file)) : target.directory;
  if (!('file' in target)) await makeDirectory(directory);
  await removeParts(directory, nowMs);
  const part = join(directory, `.snapshot-${process.pid}-${randomBytes(4).toString('hex')}.part`);
  try {
    const { storeRevision, bytes, sha256 } = await receive(admin, part, onProgress);
    const revision = (await positionOf(part, files))?.revision ?? storeRevision;
    const file = 'file' in target ? resolve(target.file) : join(directory, `etcd-${revision}-${stampOf(nowMs)}.db`);
    await rename(part, file);
    await flushDirectory(directory);
    return { file, revision, bytes, sha256 };
  } catch (error) {
    await rm(part, { force: true });
    throw error instanceof CodedError ? error : unwritable(directory, error);
  }
}

/** Removes partial files of saves that were killed. */
async function removeParts(directory: string, nowMs: number): Promise<void> {
  for (const name of await readdir(directory).catch(() => [])) {
    if (!PART.test(name)) continue;
    const status = await stat(join(directory, name)).catch(() => undefined);
    if (status !== undefined && nowMs - status.mtimeMs > PART_MS) await rm(join(directory, name), { force: true });
  }
}

/** Writes synchronously, because this process has no other work and back-pressure then slows down the store. */
async function receive(
  admin: EtcdAdmin,
  part: string,
  onProgress: OnProgress | undefined,
): Promise<{ readonly storeRevision: number; readonly bytes: number; readonly sha256: string }> {
  const file = openSync(part, 'wx', 0o600);
  try {
    const hash = createHash('sha256');
    let last: Buffer | undefined;
    let bytes = 0;
    const storeRevision = await admin.snapshot((piece, remaining) => {
      if (last !== undefined) hash.update(last);
      for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at);
      bytes += piece.length;
      onProgress?.(bytes, bytes + remaining);
      last = Buffer.from(piece);
    });
    const sha256 = hash.digest('hex');
    if (last?.length !== DIGEST_BYTES || last.toString('hex') !== sha256) {
      throw new CodedError('corrupt', 'the received snapshot does not match its SHA-256; save it again');
    }
    fsyncSync(file);
    return { storeRevision, bytes, sha256 };
  } finally {
    closeSync(file);
  }
}

/** Returns undefined for a file in etcd's own format. */
async function positionOf(path: string, files: StoreFiles): Promise<SnapshotPosition | undefined> {
  try {
    return await files.positionOf(path);
  } catch (error) {
    if (error instanceof CodedError && error.code === 'unsupported') return undefined;
    throw error;
  }
}

function unwritable(directory: string, error: unknown): CodedError {
  const full = (error as NodeJS.ErrnoException).code === 'ENOSPC';
  return full
    ? new CodedError(
        'no-space',
        `${directory}: no space left on the device; remove old snapshots, or name another directory`,
      )
    : new CodedError('unwritable', `cannot write to ${directory}: ${messageOf(error)}`, { cause: error });
}

/** Time stamp such as `20260102T030405Z`. */
function stampOf(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
}

export async function makeDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new CodedError('unwritable', `cannot make ${directory}: ${messageOf(error)}`, { cause: error });
  }
}

export interface ListedSnapshot {
  readonly file: string;
  readonly revision: number;
  /** Empty if it cannot be read. */
  readonly clusterId: string;
  readonly takenMs: number;
  readonly bytes: number;
  /** Reason for a failed verification, or '' when the snapshot is valid. */
  readonly problem: string;
}

/**
 * Lists snapshots, newest first. `verify`: also verifies the SHA-256 of every file. Returns an empty list when the
 * directory does not exist.
 */
export async function listSnapshots(
  directory: string,
  { verify }: { readonly verify: boolean },
  files: StoreFiles,
): Promise<ListedSnapshot[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new CodedError('unreadable', `cannot read ${directory}: ${messageOf(error)}`, { cause: error });
  });
  const found: ListedSnapshot[] = [];
  for (const name of names.filter((each) => each.endsWith('.db') && !each.startsWith('.'))) {
    const file = join(directory, name);
    const { size, mtimeMs } = await stat(file);
    const listed = { file, takenMs: createdAt(name) ?? mtimeMs, bytes: size };
    try {
      if (verify) await checkDigest(file, files);
      const { revision, clusterId } = (await positionOf(file, files)) ?? { revision: revisionIn(name), clusterId: '' };
      found.push({ ...listed, revision, clusterId, problem: '' });
    } catch (error) {
      found.push({ ...listed, revision: revisionIn(name), clusterId: '', problem: messageOf(error) });
    }
  }
  return found.sort((left, right) => right.takenMs - left.takenMs || right.revision - left.revision);
}

/** The snapshots that the schedule saved into `directory`, newest first. */
export async function scheduledSnapshots(directory: string, files: StoreFiles): Promise<ListedSnapshot[]> {
  return (await listSnapshots(directory, { verify: false }, files)).filter(({ file }) => NAME.test(basename(file)));
}

/** Whether the name is that of a snapshot that is being saved. */
export const isSnapshotPart = (name: string): boolean => PART.test(name);

/** Revision and time in the name of a saved snapshot. Undefined for other names. */
export function snapshotNameParts(name: string): { readonly revision: number; readonly takenMs: number } | undefined {
  const takenMs = createdAt(name);
  return takenMs === undefined ? undefined : { revision: revisionIn(name), takenMs };
}

const revisionIn = (name: string): number => Number(NAME.exec(name)?.[1] ?? 0);

function createdAt(name: string): number | undefined {
  const stamp = NAME.exec(name)?.[2];
  if (stamp === undefined) return undefined;
  const [, year, month, day, hour, minute, second] = /(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)/.exec(stamp) ?? [];
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** True when the newest snapshot in `directory` has the store's revision. */
export async function isUnchanged(admin: EtcdAdmin, directory: string, files: StoreFiles): Promise<boolean> {
  const [newest] = await listSnapshots(directory, { verify: false }, files);
  return newest?.problem === '' && newest.revision === (await admin.status()).revision;
}

/**
 * Removes all but the `keep` newest snapshots that the schedule saved to `directory`. Resolves with the removed paths.
 * `newestFile`, the snapshot just saved, counts as the newest, and its cluster as the current one.
 */
export async function pruneSnapshots(
  directory: string,
  keep: number,
  newestFile: string,
  files: StoreFiles,
): Promise<string[]> {
  const listed = await scheduledSnapshots(directory, files);
  const isNewest = ({ file }: ListedSnapshot): boolean => basename(file) === basename(newestFile);
  const current = listed.find(isNewest)?.clusterId ?? '';
  // A file that cannot be read counts as a snapshot of the current cluster, because an error while reading must not
  // lead to its removal.
  const known = listed.map((each) => (each.clusterId === '' ? { ...each, clusterId: current } : each));
  const ordered = newestFirst(known, ({ clusterId }) => clusterId === current);
  const sorted = [...ordered.filter(isNewest), ...ordered.filter((each) => !isNewest(each))];
  const removed = sorted.slice(keep).map(({ file }) => file);
  for (const file of removed) await rm(file, { force: true });
  return removed;
}

/**
 * Verifies the appended SHA-256. Resolves with the size of the database in bytes. Throws CodedError 'corrupt',
 * 'unreadable', 'unsupported'.
 */
export async function checkDigest(
  file: string,
  files: StoreFiles,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  files.checkKind(file, true);
  const { size } = await stat(file);
  const hash = createHash('sha256');
  const tail: Buffer[] = [];
  const bytes = size - DIGEST_BYTES;
  let at = 0;
  for await (const piece of createReadStream(file, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    hash.update(piece.subarray(0, Math.max(0, bytes - at)));
    if (at + piece.length > bytes) tail.push(piece.subarray(Math.max(0, bytes - at)));
    at += piece.length;
    onBytes(piece.length);
  }
  const sha256 = hash.digest('hex');
  if (bytes <= 0 || bytes % 512 !== 0) {
    throw new CodedError('corrupt', `${file} has no SHA-256 at its end: it is truncated or not a snapshot`);
  }
  if (Buffer.concat(tail).toString('hex') !== sha256) {
    throw new CodedError(
      'corrupt',
      `${file} is damaged: it does not match the SHA-256 at its end; use another snapshot`,
    );
  }
  return { bytes, sha256 };
}

export interface SnapshotStatus extends SnapshotSummary {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Verifies every row of the file. Throws CodedError 'corrupt', 'unreadable', 'unsupported'. */
export async function snapshotStatus(path: string, files: StoreFiles): Promise<SnapshotStatus> {
  const file = resolve(path);
  const { sha256 } = await checkDigest(file, files);
  const summary = await files.summarize(file);
  return { file, ...summary, bytes: (await stat(file)).size, sha256 };
}
