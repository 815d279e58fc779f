/** Snapshots of the store as files: taken through its API, listed, checked, thinned out. */
import { createHash, randomBytes } from 'node:crypto';
import { closeSync, createReadStream, fsyncSync, openSync, writeSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { CodedError, messageOf } from '../base/errors.ts';
import type { EtcdAdmin } from '../io/grpc/index.ts';
import { checkKind, type SnapshotSummary, snapshotRevision, summarizeSnapshot } from '../io/sqlite/index.ts';
import { openAssets } from './assets.ts';
import { flushDirectory } from './files.ts';

const DIGEST_BYTES = 32;
const NAME = /^etcd-(\d+)-(\d{8}T\d{6}Z)\.db$/;

export interface SavedSnapshot {
  readonly file: string;
  readonly revision: number;
  readonly bytes: number;
  readonly sha256: string;
}

/**
 * Takes a snapshot into `directory`, or as exactly `file`. It is there as a whole or not at all, flushed, for this user only. Throws
 * CodedError 'unwritable', 'no-space', 'corrupt' when what arrived is not what was sent, and those of the store.
 */
export async function saveSnapshot(
  admin: EtcdAdmin,
  target: { readonly file: string } | { readonly directory: string },
  nowMs: number,
): Promise<SavedSnapshot> {
  const directory = 'file' in target ? dirname(resolve(target.file)) : target.directory;
  if (!('file' in target)) await makeDirectory(directory);
  const part = join(directory, `.snapshot-${process.pid}-${randomBytes(4).toString('hex')}.part`);
  try {
    const { told, bytes, sha256 } = await receive(admin, part);
    const revision = (await revisionOf(part)) ?? told;
    const file = 'file' in target ? resolve(target.file) : join(directory, `etcd-${revision}-${stampOf(nowMs)}.db`);
    await rename(part, file);
    await flushDirectory(directory);
    return { file, revision, bytes, sha256 };
  } catch (error) {
    await rm(part, { force: true });
    throw error instanceof CodedError ? error : unwritable(directory, error);
  }
}

/** In this process nothing else goes on: writing at once is what slows a fast store down to a slow disk. */
async function receive(
  admin: EtcdAdmin,
  part: string,
): Promise<{ readonly told: number; readonly bytes: number; readonly sha256: string }> {
  const file = openSync(part, 'wx', 0o600);
  try {
    const hash = createHash('sha256');
    let last: Buffer | undefined;
    let bytes = 0;
    const told = await admin.snapshot((piece) => {
      if (last !== undefined) hash.update(last);
      for (let at = 0; at < piece.length; ) at += writeSync(file, piece, at);
      bytes += piece.length;
      last = Buffer.from(piece);
    });
    const sha256 = hash.digest('hex');
    if (last?.length !== DIGEST_BYTES || last.toString('hex') !== sha256) {
      throw new CodedError(
        'corrupt',
        'the snapshot arrived damaged: its SHA-256 is not what the store said; take it again',
      );
    }
    fsyncSync(file);
    return { told, bytes, sha256 };
  } finally {
    closeSync(file);
  }
}

/** Undefined for a file of etcd's own. */
async function revisionOf(path: string): Promise<number | undefined> {
  try {
    return await snapshotRevision(path, (await openAssets()).sqliteAddon);
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
        `${directory}: no space left on the device; remove old snapshots, or name another place`,
      )
    : new CodedError('unwritable', `cannot write into ${directory}: ${messageOf(error)}`, { cause: error });
}

/** `20260102T030405Z` */
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
  readonly takenMs: number;
  readonly bytes: number;
  /** What is wrong with it; '' when its SHA-256 is right. */
  readonly problem: string;
}

/** Newest first. `verify`: read each of them and compare its SHA-256. An absent directory holds none. */
export async function listSnapshots(directory: string, verify: boolean): Promise<ListedSnapshot[]> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new CodedError('unreadable', `cannot read ${directory}: ${messageOf(error)}`, { cause: error });
  });
  const found: ListedSnapshot[] = [];
  for (const name of names.filter((each) => each.endsWith('.db') && !each.startsWith('.'))) {
    const file = join(directory, name);
    const { size, mtimeMs } = await stat(file);
    const listed = { file, takenMs: takenAt(name) ?? mtimeMs, bytes: size };
    try {
      if (verify) await checkDigest(file);
      found.push({ ...listed, revision: (await revisionOf(file)) ?? 0, problem: '' });
    } catch (error) {
      found.push({ ...listed, revision: revisionIn(name), problem: messageOf(error) });
    }
  }
  return found.sort((left, right) => right.takenMs - left.takenMs || right.revision - left.revision);
}

/** Of those that were taken into `directory` by this program, newest first. */
export async function scheduledSnapshots(directory: string): Promise<ListedSnapshot[]> {
  return (await listSnapshots(directory, false)).filter(({ file }) => NAME.test(basename(file)));
}

const revisionIn = (name: string): number => Number(NAME.exec(name)?.[1] ?? 0);

function takenAt(name: string): number | undefined {
  const stamp = NAME.exec(name)?.[2];
  if (stamp === undefined) return undefined;
  const [, year, month, day, hour, minute, second] = /(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)/.exec(stamp) ?? [];
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** Whether the newest that is kept is of the revision that the store has. */
export async function isUnchanged(admin: EtcdAdmin, directory: string): Promise<boolean> {
  const [newest] = await listSnapshots(directory, false);
  return newest?.problem === '' && newest.revision === (await admin.status()).revision;
}

/**
 * Removes all but the `keep` newest of those that were taken into `directory` by this program. Resolves with what went. `taken`, the one that was
 * taken just now, is the newest whatever its date says: the clock of a machine may have been set back.
 */
export async function pruneSnapshots(directory: string, keep: number, taken: string): Promise<string[]> {
  const rank = (name: string): readonly [number, number] => [
    name === basename(taken) ? Number.POSITIVE_INFINITY : (takenAt(name) ?? 0),
    revisionIn(name),
  ];
  const names = (await readdir(directory)).filter((name) => NAME.test(name));
  names.sort((left, right) => {
    const [leftTime, leftRevision] = rank(left);
    const [rightTime, rightRevision] = rank(right);
    return leftTime === rightTime ? rightRevision - leftRevision : rightTime - leftTime;
  });
  const gone = names.slice(keep).map((name) => join(directory, name));
  for (const file of gone) await rm(file, { force: true });
  return gone;
}

/** The bytes that belong to the database. Throws CodedError 'corrupt', 'unreadable', 'unsupported'. */
export async function checkDigest(file: string): Promise<{ readonly bytes: number; readonly sha256: string }> {
  checkKind(file, true);
  const { size } = await stat(file);
  const hash = createHash('sha256');
  const tail: Buffer[] = [];
  const bytes = size - DIGEST_BYTES;
  let at = 0;
  for await (const piece of createReadStream(file, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    hash.update(piece.subarray(0, Math.max(0, bytes - at)));
    if (at + piece.length > bytes) tail.push(piece.subarray(Math.max(0, bytes - at)));
    at += piece.length;
  }
  const sha256 = hash.digest('hex');
  if (bytes <= 0 || bytes % 512 !== 0) {
    throw new CodedError('corrupt', `${file} has no SHA-256 at its end, so it was cut short or is no snapshot`);
  }
  if (Buffer.concat(tail).toString('hex') !== sha256) {
    throw new CodedError(
      'corrupt',
      `${file} is damaged: its SHA-256 is not what stands at its end; use another snapshot`,
    );
  }
  return { bytes, sha256 };
}

export interface SnapshotStatus extends SnapshotSummary {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** Reads and checks everything. Throws CodedError 'corrupt', 'unreadable', 'unsupported'. */
export async function snapshotStatus(path: string): Promise<SnapshotStatus> {
  const file = resolve(path);
  const { sha256 } = await checkDigest(file);
  const summary = await summarizeSnapshot(file, (await openAssets()).sqliteAddon);
  return { file, ...summary, bytes: (await stat(file)).size, sha256 };
}
