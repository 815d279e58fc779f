/**
 * What a store goes back to that is alone and damaged: the newest of this host's scheduled snapshots that is whole. It is made ready beside the
 * store and takes its place in a way that a power cut cannot leave half done; what is damaged is kept.
 */
import { mkdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { type Fallback, lostOf, type WentBack } from '../components/etcd/index.ts';
import type { StoreLog } from '../components/etcd/port.ts';
import type { HostCondition } from '../components/kubelet/index.ts';
import { lastIntactRevision } from '../io/sqlite/index.ts';
import { openAssets } from './assets.ts';
import { restoreSnapshot } from './etcd-restore.ts';
import { type ListedSnapshot, scheduledSnapshots } from './etcd-snapshots.ts';
import { flushDirectory, writeDurably } from './files.ts';

export interface FallbackOptions {
  readonly dataDirectory: string;
  readonly storage: StoreLog;
  /** This member, as it is to be called afterwards. */
  readonly name: string;
  readonly peerUrls: readonly string[];
  readonly token: string;
  /** The directory of this host's snapshots. */
  readonly snapshots: string;
  readonly nowMs: () => number;
  readonly log: Log;
}

/** Of etcd's own runbook: more than what is ever written between two snapshots. */
const BUMP = 1_000_000_000;
/** More often than this it is the disk, and each time something is lost. */
const MOST_TIMES = 3;
const WITHIN_MS = 24 * 3600_000;
/** Being made, or made and not decided on. */
const MAKING = 'restoring';
/** Whole, and to take the store's place. */
const READY = 'restored';
const DATABASE = 'revisions.db';
/** For the next time; stays. */
const NOTE = 'went-back.json';
/** For people. */
const TOLD = 'WENT-BACK';
const CONDITION = 'StoreRestored';

/** What is remembered of it in the data directory. */
interface WentBackNote extends Omit<WentBack, 'kept'> {
  /** When, in milliseconds since 1970; the last is this one. */
  readonly times: readonly number[];
}

export function createFallback(options: FallbackOptions): Fallback {
  return { goBack: (lastSeen) => goBack(lastSeen, options) };
}

async function goBack(lastSeen: number, options: FallbackOptions): Promise<WentBack> {
  const { dataDirectory, storage, nowMs } = options;
  const before = await wentBack(dataDirectory);
  const now = nowMs();
  const times = (before?.times ?? []).filter((at) => now - at < WITHIN_MS && at <= now);
  if (times.length >= MOST_TIMES)
    throw new CodedError('io', `it has done so ${MOST_TIMES} times within a day: look at the disk first`);
  const making = join(dataDirectory, MAKING);
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 });
  const { snapshot, revision } = await restored(making, options, Math.max(before?.revision ?? 0, lastSeen));
  const last = await lastIntactRevision(join(dataDirectory, DATABASE), (await openAssets()).sqliteAddon);
  const known = Math.max(lastSeen, last ?? 0);
  const to = last !== undefined || known > snapshot.revision ? known : undefined;
  const back = { snapshot: snapshot.file, from: snapshot.revision, to, revision };
  // Before anybody can see the new revisions: the next time begins above them.
  const note: WentBackNote = { ...back, times: [...times, now] };
  await writeDurably(join(dataDirectory, NOTE), `${JSON.stringify(note, undefined, 2)}\n`, 0o644);
  await writeDurably(join(dataDirectory, TOLD), `${told(note, dataDirectory)}\n`, 0o644);
  await rename(making, join(dataDirectory, READY));
  return { ...back, kept: (await finishGoingBack(dataDirectory, storage)) ?? dataDirectory };
}

/** Makes a store of the newest snapshot that is whole. Throws CodedError 'not-found' saying what is wrong with each of them. */
async function restored(
  making: string,
  options: FallbackOptions,
  usedUpTo: number,
): Promise<{ readonly snapshot: ListedSnapshot; readonly revision: number }> {
  const { name, peerUrls, token, log } = options;
  const target = { dataDirectory: making, name, members: [{ name, peerUrls }], token };
  const problems: string[] = [];
  for (const snapshot of await scheduledSnapshots(options.snapshots)) {
    await rm(making, { recursive: true, force: true });
    try {
      if (snapshot.problem !== '') throw new CodedError('corrupt', snapshot.problem);
      // An older snapshot may come after one that was restored before.
      const bumpRevision = Math.max(0, usedUpTo - snapshot.revision) + BUMP;
      const { revision } = await restoreSnapshot(
        snapshot.file,
        { ...target, anyToken: true },
        { skipHashCheck: false, bumpRevision, onlyAlone: true },
      );
      // Only the database takes the store's place: it has to hold everything.
      if (await isThere(join(making, `${DATABASE}-log`)))
        throw new CodedError('no-space', `${making}: no room to finish what was restored`);
      return { snapshot, revision };
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      log.warn('a snapshot cannot be gone back to', { file: snapshot.file, cause: error.message });
      problems.push(error.message);
      // Others have the data, or there is no room: an older one is no better.
      if (error.code !== 'corrupt' && error.code !== 'unreadable' && error.code !== 'unsupported') break;
    }
  }
  throw new CodedError(
    'not-found',
    problems.length === 0 ? `there is none in ${options.snapshots}` : problems.join('; '),
  );
}

/**
 * Puts what stands ready in the place of the store, which is put aside. It is called before every start as well, for the one whose power went in
 * the middle. Resolves with where the old one is kept; undefined when nothing stood ready.
 */
export async function finishGoingBack(dataDirectory: string, storage: StoreLog): Promise<string | undefined> {
  const ready = join(dataDirectory, READY);
  if (!(await isThere(ready))) return undefined;
  let kept: string | undefined;
  if (await isThere(join(ready, DATABASE))) {
    kept = await storage.quarantine();
    await flushDirectory(dataDirectory);
    await rename(join(ready, DATABASE), join(dataDirectory, DATABASE));
    await flushDirectory(dataDirectory);
  }
  await rm(ready, { recursive: true });
  return kept;
}

/** What the host's Node says about it, until somebody removes the file that does; `said` are the types of conditions that it has. */
export async function storeConditions(
  dataDirectory: string,
  said: ReadonlySet<string>,
): Promise<readonly HostCondition[]> {
  const message = await readFile(join(dataDirectory, TOLD), 'utf8').catch(() => undefined);
  if (message !== undefined)
    return [{ type: CONDITION, status: 'True', reason: 'WentBackToSnapshot', message: message.trim() }];
  if (!said.has(CONDITION)) return [];
  return [{ type: CONDITION, status: 'False', reason: 'Acknowledged', message: 'the store goes on from there' }];
}

function told({ snapshot, from, to, times }: WentBackNote, dataDirectory: string): string {
  const at = new Date(times.at(-1) ?? 0).toISOString().replace(/\.\d+Z$/, 'Z');
  return `at ${at} the store was damaged and went back to ${snapshot}; lost: ${lostOf(from, to)}; when you have seen this, remove ${join(dataDirectory, TOLD)}`;
}

/** Undefined when it never did. */
async function wentBack(dataDirectory: string): Promise<WentBackNote | undefined> {
  try {
    const note: Record<keyof WentBackNote, unknown> = JSON.parse(await readFile(join(dataDirectory, NOTE), 'utf8'));
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
    throw new CodedError('unreadable', `${join(dataDirectory, NOTE)}: ${messageOf(error)}`);
  }
}

async function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
