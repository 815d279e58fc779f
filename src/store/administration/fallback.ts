/**
 * Fallback for a store that is damaged and has no other members, or that this build cannot read because an update was
 * rolled back. Restores the newest intact snapshot of this host or, after a rollback, the snapshot taken before the
 * update. The snapshot is prepared beside the store and renamed into place, so that a power failure leaves either the
 * old or the new store. The damaged database is kept.
 */

import { mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { StoreLog } from '../disk/port.ts';
import { type Fallback, type FallbackResult, lostOf } from '../index.ts';
import { flushDirectory, writeDurably } from './durable-files.ts';
import type { StoreFiles } from './port.ts';
import { restoreSnapshot } from './restore.ts';
import { newestFirst } from './snapshot-order.ts';
import { type ListedSnapshot, listSnapshots, scheduledSnapshots } from './snapshots.ts';

export interface FallbackOptions {
  readonly dataDirectory: string;
  readonly storage: StoreLog;
  /** Name of the restored member. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly token: string;
  /** Snapshot directory of this host, or the single snapshot to restore. */
  readonly snapshots: string | { readonly only: string };
  readonly files: StoreFiles;
  readonly nowMs: () => number;
  readonly log: Log;
}

/**
 * Number added to the restored revision. It is larger than the number of revisions that a store writes between two
 * snapshots. Source: etcd's disaster recovery guide.
 */
const BUMP = 1_000_000_000;
/**
 * Maximum number of fallbacks within a day. Every fallback loses revisions, and more fallbacks indicate a failing disk.
 */
const MAX_FALLBACKS = 3;
const WINDOW_MS = 24 * 3600_000;
/** Directory of a restore in progress. */
const RESTORING = 'restoring';
/** Directory of a complete restore that has not replaced the store yet. */
const READY = 'restored';
const DATABASE = 'revisions.db';
/** File with the history of fallbacks, which the next fallback reads. */
const HISTORY = 'went-back.json';
/** File with a message for the administrator. Removing the file acknowledges the message. */
const MARKER = 'WENT-BACK';
const CONDITION = 'StoreRestored';

interface FallbackHistory extends Omit<FallbackResult, 'kept'> {
  /** Milliseconds since 1970, the latest fallback last. */
  readonly times: readonly number[];
}

/** A Node condition about the store. */
export interface StoreCondition {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

export function createFallback(options: FallbackOptions): Fallback {
  return { fallBack: (lastSeen) => fallBack(lastSeen, options) };
}

async function fallBack(lastSeen: number, options: FallbackOptions): Promise<FallbackResult> {
  const { dataDirectory, storage, nowMs } = options;
  const before = await historyOf(dataDirectory);
  const now = nowMs();
  const times = (before?.times ?? []).filter((at) => now - at < WINDOW_MS && at <= now);
  if (times.length >= MAX_FALLBACKS)
    throw new CodedError('io', `the store was restored ${MAX_FALLBACKS} times within a day; check the disk first`);
  const restoring = join(dataDirectory, RESTORING);
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  const restoredAt = before?.revision ?? 0;
  const { snapshot, revision } = await restoredFrom(restoring, options, restoredAt, Math.max(restoredAt, lastSeen));
  const last = await options.files.lastIntactRevision(join(dataDirectory, DATABASE));
  const known = Math.max(lastSeen, last ?? 0);
  const to = last !== undefined || known > snapshot.revision ? known : undefined;
  const back = { snapshot: snapshot.file, from: snapshot.revision, to, revision };
  // The history is on disk before any client sees the new revisions, because the next fallback must start above them.
  const history: FallbackHistory = { ...back, times: [...times, now] };
  await writeDurably(join(dataDirectory, HISTORY), `${JSON.stringify(history, undefined, 2)}\n`, 0o644);
  await writeDurably(join(dataDirectory, MARKER), `${markerText(history, options)}\n`, 0o644);
  await rename(restoring, join(dataDirectory, READY));
  return { ...back, kept: (await completeFallback(dataDirectory, storage)) ?? dataDirectory };
}

/** Restores the newest intact snapshot. Throws CodedError 'not-found' with the problem of each snapshot. */
async function restoredFrom(
  restoring: string,
  options: FallbackOptions,
  restoredAt: number,
  usedUpTo: number,
): Promise<{ readonly snapshot: ListedSnapshot; readonly revision: number }> {
  const { name, peerUrls, token, files, log } = options;
  const target = { dataDirectory: restoring, name, members: [{ name, peerUrls }], token };
  const problems: string[] = [];
  for (const snapshot of await candidates(options, restoredAt)) {
    await rm(restoring, { recursive: true, force: true });
    try {
      if (snapshot.problem !== '') throw new CodedError('corrupt', snapshot.problem);
      // Clients may have seen revisions above this snapshot, so the new revisions must start above the highest used
      // revision.
      const bumpRevision = Math.max(0, usedUpTo - snapshot.revision) + BUMP;
      const { revision } = await restoreSnapshot(
        snapshot.file,
        { ...target, anyToken: true },
        { skipHashCheck: false, bumpRevision, onlyAlone: true },
        files,
      );
      // Only the database file replaces the store: a journal beside it would be lost.
      if (await exists(join(restoring, `${DATABASE}-log`)))
        throw new CodedError('no-space', `${restoring}: no space left to finish the restore`);
      return { snapshot, revision };
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      log.warn('snapshot cannot be restored', { file: snapshot.file, cause: error.message });
      problems.push(error.message);
      // 'has-others' and 'no-space' apply to older snapshots too.
      if (error.code !== 'corrupt' && error.code !== 'unreadable' && error.code !== 'unsupported') break;
    }
  }
  throw new CodedError(
    'not-found',
    problems.length === 0 ? `${whereOf(options)} has no snapshots` : problems.join('; '),
  );
}

const whereOf = ({ snapshots }: FallbackOptions): string =>
  typeof snapshots === 'string' ? snapshots : dirname(snapshots.only);

/** Snapshots to try in order. `restoredAt`: revision of the last fallback, below which snapshots are older. */
async function candidates(options: FallbackOptions, restoredAt: number): Promise<ListedSnapshot[]> {
  const { snapshots, files } = options;
  if (typeof snapshots === 'string')
    return newestFirst(await scheduledSnapshots(snapshots, files), ({ revision }) => revision >= restoredAt);
  return (await listSnapshots(whereOf(options), { verify: false }, files)).filter(
    ({ file }) => file === snapshots.only,
  );
}

/**
 * Replaces the store with a complete restore and keeps the old database. Also called before every start, to complete a
 * restore that a power failure interrupted. Resolves with the path of the old database, or undefined when no restore
 * was pending.
 */
export async function completeFallback(dataDirectory: string, storage: StoreLog): Promise<string | undefined> {
  const ready = join(dataDirectory, READY);
  if (!(await exists(ready))) return undefined;
  let kept: string | undefined;
  if (await exists(join(ready, DATABASE))) {
    kept = await storage.quarantine();
    await flushDirectory(dataDirectory);
    await rename(join(ready, DATABASE), join(dataDirectory, DATABASE));
    await flushDirectory(dataDirectory);
  }
  await rm(ready, { recursive: true });
  return kept;
}

/** Conditions of the host's Node until the marker file is removed. `present`: condition types that the Node has. */
export async function storeConditions(
  dataDirectory: string,
  present: ReadonlySet<string>,
): Promise<readonly StoreCondition[]> {
  const message = await readFile(join(dataDirectory, MARKER), 'utf8').catch(() => undefined);
  if (message !== undefined)
    return [{ type: CONDITION, status: 'True', reason: 'WentBackToSnapshot', message: message.trim() }];
  if (!present.has(CONDITION)) return [];
  return [{ type: CONDITION, status: 'False', reason: 'Acknowledged', message: 'restored store is serving' }];
}

function markerText(
  { snapshot, from, to, times }: FallbackHistory,
  { snapshots, dataDirectory }: FallbackOptions,
): string {
  const at = timestamp(times.at(-1) ?? 0);
  const why =
    typeof snapshots === 'string' ? 'was damaged' : 'had the format of a newer release after the rollback of an update';
  return `at ${at} the store ${why} and was restored from ${snapshot}; lost: ${lostOf(from, to)}; to acknowledge, remove ${join(dataDirectory, MARKER)}`;
}

/** Returns undefined before the first fallback. */
async function historyOf(dataDirectory: string): Promise<FallbackHistory | undefined> {
  try {
    const note: Record<keyof FallbackHistory, unknown> = JSON.parse(
      await readFile(join(dataDirectory, HISTORY), 'utf8'),
    );
    const { snapshot, from, to, revision, times } = note;
    if (typeof snapshot !== 'string' || !Number.isSafeInteger(from) || !Number.isSafeInteger(revision))
      return undefined;
    if (!Array.isArray(times) || !times.every(Number.isFinite)) return undefined;
    return {
      snapshot,
      from: Number(from),
      to: typeof to === 'number' ? to : undefined,
      revision: Number(revision),
      times,
    };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CodedError('unreadable', `${join(dataDirectory, HISTORY)}: ${messageOf(error)}`);
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
