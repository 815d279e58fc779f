/** The thread that owns the SQLite file. Disk flushes take milliseconds and block only this thread. */
import '../../base/short-buffers.ts';
import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { CodedError, messageOf } from '../../base/errors.ts';
import { Ballast } from './ballast.ts';
import type { JournalPart } from './journal/journal.ts';
import { JournalFile, lastRevisionIn } from './journal/journal-file.ts';
import type { JournalRecord } from './journal/journal-format.ts';
import { sqliteCode } from './open-database.ts';
import type { CommitBody } from './packed-entries.ts';
import { memoryOf, type PackedEntries } from './packed-entries.ts';
import type { NumberedRequest, Opening, WorkerAnswers, WorkerFailure, WorkerReply, WorkerRequest } from './protocol.ts';
import { lastIntactRevision, sealCopy, snapshotPosition, summarizeSnapshot } from './snapshot-file.ts';
import { StoreFile } from './store-file.ts';

const port = parentPort;
if (port === null) throw new Error('this is the entry of a worker thread');

const INCOMING = 'incoming.db';
const STORE = 'revisions.db';
const JOURNAL = 'revisions.db-log';
/** Prefix and suffix of the names of snapshot copies. SQLite's journals of the copies have longer names. */
const COPY = 'snapshot-';
const COPY_SUFFIX = '.tmp';
/** Bytes of journal records that one SQLite transaction absorbs. */
const ABSORB_BYTES = 2 << 20;

let directory = '';
let binding: string | undefined;
let flush = true;
let file: StoreFile | undefined;
let incoming: StoreFile | undefined;
let ballast: Ballast | undefined;
let journal: JournalFile | undefined;
let housekeepingTimer: NodeJS.Immediate | undefined;
/** Rows have been deleted since the last search for free pages. */
let mayHaveFreePages = true;
/** The journal may not have its full length yet. */
let mayBeShort = false;
let snapshots = 0;

function opened(): StoreFile {
  if (file === undefined) throw new CodedError('closed', 'the log is closed');
  return file;
}

function isFull(error: unknown): boolean {
  return sqliteCode(error) === 'SQLITE_FULL';
}

/** Commits to the file. If the disk is full, the ballast is dropped and the commit retried. */
function commit(bodies: readonly CommitBody[], sequence: number): { readonly full: boolean } {
  const target = opened();
  mayHaveFreePages ||= bodies.some((body) => body.discards.length > 0);
  try {
    target.commit(bodies, sequence);
    return { full: false };
  } catch (error) {
    if (!isFull(error)) throw error;
    ballast?.drop();
    target.commit(bodies, sequence);
    return { full: true };
  } finally {
    if (mayHaveFreePages) scheduleHousekeeping();
  }
}

/** Moves records from the journal into the file in pieces, so that a reader waits for at most one piece. */
async function absorb(records: readonly JournalRecord[]): Promise<{ readonly full: boolean }> {
  const { sequence: present } = opened();
  let full = false;
  let some: JournalRecord[] = [];
  let bytes = 0;
  for (const [i, record] of records.entries()) {
    if (record.sequence <= present) continue;
    some.push(record);
    bytes += record.body.entries.data.length;
    if (bytes < ABSORB_BYTES && i < records.length - 1) continue;
    if (commitRecords(some).full) full = true;
    some = [];
    bytes = 0;
    await new Promise((resolve) => setImmediate(resolve));
  }
  return { full };
}

/**
 * Commits records together. If the disk is full, it commits them one by one, because SQLite's journal then needs less
 * space.
 */
function commitRecords(records: readonly JournalRecord[]): { readonly full: boolean } {
  const last = records.at(-1)?.sequence ?? 0;
  try {
    return commit(
      records.map(({ body }) => body),
      last,
    );
  } catch (error) {
    if (!isFull(error) || records.length < 2) throw error;
    for (const { body, sequence } of records) commit([body], sequence);
    return { full: true };
  }
}

function absorbPart({ stretches, upTo }: JournalPart): Promise<{ readonly full: boolean }> {
  const from = journal;
  if (from === undefined) throw new CodedError('closed', 'the log is closed');
  const records = stretches.flatMap((stretch) => from.read(stretch));
  if (records.at(-1)?.sequence !== upTo)
    throw new CodedError('corrupt', `${from.path} does not contain the bytes that were written`);
  return absorb(records);
}

/** Housekeeping after commits, one step at a time: returns free pages and extends the journal. */
function runHousekeeping(): void {
  housekeepingTimer = undefined;
  if (file === undefined) return;
  try {
    if (mayHaveFreePages) mayHaveFreePages = file.space.vacuumStep({ all: false });
    if (mayBeShort) mayBeShort = journal?.prepare() ?? false;
    if (mayHaveFreePages || mayBeShort) scheduleHousekeeping();
  } catch (error) {
    // On a full disk the step is skipped until there is room. Other errors also appear at the next commit.
    if (!isFull(error)) fatal(error);
  }
}

function scheduleHousekeeping(): void {
  housekeepingTimer ??= setImmediate(runHousekeeping);
}

async function hash(revision: number): Promise<number> {
  let step = { checksum: 0, after: 0, done: false };
  while (!step.done) {
    step = opened().hashStep(step.checksum, step.after, revision);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return step.checksum;
}

/**
 * Verifies the checksums of the next rows above revision `from`. If `from` is 0, all other tables are verified first.
 */
async function scrub(from: number): Promise<number> {
  const checked = opened();
  if (from === 0) {
    for (const _ of checked.checkState()) {
      await new Promise((resolve) => setImmediate(resolve));
      // The file was closed or replaced by a snapshot meanwhile.
      if (file !== checked) return 0;
    }
  }
  const { after, done } = checked.hashStep(0, from, Number.MAX_SAFE_INTEGER);
  return done ? 0 : after;
}

async function defragment(): Promise<undefined> {
  while (opened().space.vacuumStep({ all: true })) await new Promise((resolve) => setImmediate(resolve));
}

async function snapshot(upTo: number): Promise<string> {
  snapshots += 1;
  const path = join(directory, `${COPY}${process.pid}-${snapshots}${COPY_SUFFIX}`);
  try {
    await opened().copyTo(path);
    sealCopy(path, upTo, binding);
    return path;
  } catch (error) {
    rmSync(path, { force: true });
    throw error;
  }
}

/** Removes copies that a crash has left. Their owner no longer holds the lock. */
function removeCopies(): void {
  for (const name of readdirSync(directory))
    if (name.startsWith(COPY) && name.includes(COPY_SUFFIX)) rmSync(join(directory, name), { force: true });
}

/** Last revision that can still be read from the journal and the file. */
function lastRevision(path: string, nativeBinding: string): number | undefined {
  const inJournal = lastRevisionIn(`${path}-log`);
  const inDatabase = lastIntactRevision(path, nativeBinding);
  return inJournal > 0 ? Math.max(inJournal, inDatabase ?? 0) : inDatabase;
}

function removeIncoming(): void {
  incoming?.close();
  incoming = undefined;
  for (const suffix of ['', '-journal', '-wal', '-shm'])
    rmSync(join(directory, `${INCOMING}${suffix}`), { force: true });
}

function receive(id: string): number {
  if (incoming === undefined) {
    try {
      incoming = StoreFile.open(directory, binding, flush, INCOMING);
    } catch (error) {
      if (!(error instanceof CodedError && error.code === 'corrupt')) throw error;
    }
  }
  const known = incoming?.incoming;
  if (incoming !== undefined && known?.id === id) return known.last;
  removeIncoming();
  incoming = StoreFile.open(directory, binding, flush, INCOMING);
  incoming.beginIncoming(id);
  return 0;
}

function taking(id: string): StoreFile {
  if (incoming?.incoming?.id !== id) throw new CodedError('not-receiving', `no snapshot ${id} is being received`);
  return incoming;
}

function install({ id, head, hardState, sequence }: Extract<WorkerRequest, { kind: 'install' }>): Opening {
  const next = taking(id);
  const identity = opened().state().identity;
  if (identity === undefined || journal === undefined)
    throw new CodedError('unsupported', 'a store without an identity cannot receive a snapshot');
  const { shape } = journal;
  next.finishIncoming({ clusterId: head.clusterId, memberId: identity.memberId }, head, hardState, {
    id: shape.id,
    sequence,
  });
  // Both files are closed before the rename. Otherwise SQLite would apply a remaining rollback journal to the new file.
  next.close();
  incoming = undefined;
  file?.close();
  file = undefined;
  flushPath(join(directory, INCOMING));
  renameSync(join(directory, INCOMING), join(directory, STORE));
  flushPath(directory);
  file = StoreFile.open(directory, binding, flush);
  return opening();
}

function flushPath(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

async function open(request: Extract<WorkerRequest, { kind: 'open' }>): Promise<Opening> {
  directory = request.directory;
  binding = request.nativeBinding;
  flush = request.flush;
  const path = join(directory, JOURNAL);
  file = StoreFile.open(directory, binding, flush);
  removeCopies();
  ballast = new Ballast(directory);
  try {
    const { journalId } = file;
    if (journalId === undefined || request.isCopy) {
      journal = JournalFile.make(path, randomBytes(4).readUInt32LE() || 1);
      file.setJournal(journal.shape.id);
    } else {
      const found = JournalFile.open(path, journalId, file.sequence);
      journal = found.file;
      await absorb(found.records);
    }
  } catch (error) {
    file.close();
    file = undefined;
    throw error;
  }
  ballast.put({ spare: false });
  return opening();
}

function checkSpace(): WorkerAnswers['checkSpace'] {
  const target = opened();
  const room = ballast?.room();
  let full = room?.full === true;
  try {
    if (room !== undefined) target.space.reserve(room.reserveBytes);
  } catch (error) {
    if (!isFull(error)) throw error;
    full = true;
  }
  return { full, reserveBytes: target.space.freeBytes };
}

function opening(): Opening {
  const { path, shape } = journal as JournalFile;
  return { state: opened().state(), journal: { ...shape, path, sequence: opened().sequence } };
}

/** Closes the files. `inOrder`: the database contains every record of the journal, so the journal is removed. */
function close(inOrder: boolean): void {
  if (housekeepingTimer !== undefined) clearImmediate(housekeepingTimer);
  const closing = file;
  file = undefined;
  incoming?.close();
  let alone = false;
  try {
    if (inOrder) {
      closing?.setJournal(undefined);
      alone = true;
    }
  } catch (error) {
    // The journal then stays and is read at the next start. It contains no record that the database lacks.
    if (!isFull(error)) throw error;
  } finally {
    closing?.close();
  }
  if (alone) journal?.remove();
  journal = undefined;
}

type Answer = WorkerAnswers[keyof WorkerAnswers];

function handle(request: WorkerRequest): Answer | Promise<Answer> {
  switch (request.kind) {
    case 'open':
      return open(request);
    case 'initialise':
      opened().initialise(request.identity, request.first);
      return undefined;
    case 'load':
      return opened().rows(request.after, Number.MAX_SAFE_INTEGER, request.upTo);
    case 'prepare':
      mayBeShort = true;
      scheduleHousekeeping();
      return undefined;
    case 'absorb':
      return absorbPart(request.part);
    case 'commit':
      return commit([request.body], request.sequence);
    case 'checkSpace':
      return checkSpace();
    case 'recoverSpace':
      return ballast?.put({ spare: true }) ?? true;
    case 'entries':
      return opened().entries(request.from, request.maxBytes);
    case 'read':
      return opened().read(request.revisions);
    case 'rows':
      return opened().rows(request.after, request.upTo);
    case 'hash':
      return hash(request.revision);
    case 'scrub':
      return scrub(request.after);
    case 'size':
      return opened().space.size();
    case 'defragment':
      return defragment();
    case 'changeSchema':
      return opened().changeSchema(request.level);
    case 'snapshot':
      return snapshot(request.upTo);
    case 'summarize':
      return summarizeSnapshot(request.path, request.nativeBinding);
    case 'snapshotPosition':
      return snapshotPosition(request.path, request.nativeBinding);
    case 'lastIntact':
      return lastRevision(request.path, request.nativeBinding);
    case 'receive':
      return receive(request.id);
    case 'received':
      taking(request.id).addIncoming(request.rows);
      return undefined;
    case 'install':
      return install(request);
    case 'close':
      close(request.inOrder);
      return undefined;
  }
}

function failureOf(error: unknown): WorkerFailure {
  if (isFull(error)) return { code: 'no-space', message: 'no space left on the device', fatal: false };
  if (error instanceof CodedError) return { code: error.code, message: error.message, fatal: error.code === 'corrupt' };
  const code = sqliteCode(error);
  const message = code === '' ? messageOf(error) : `${code}: ${messageOf(error)}`;
  // Data that SQLite cannot parse are damaged, as are data with a wrong checksum.
  if (code.startsWith('SQLITE_CORRUPT') || code === 'SQLITE_NOTADB') return { code: 'corrupt', message, fatal: true };
  return { code: 'io', message, fatal: true };
}

function fatal(error: unknown): void {
  send({ id: 0, failure: { ...failureOf(error), fatal: true } });
}

function send(reply: WorkerReply): void {
  port?.postMessage(reply, 'value' in reply && isPacked(reply.value) ? memoryOf(reply.value) : []);
}

function isPacked(value: WorkerAnswers[keyof WorkerAnswers]): value is PackedEntries {
  return typeof value === 'object' && 'numbers' in value;
}

port.on('message', ({ id, request }: NumberedRequest) => {
  const failed = (error: unknown): void => send({ id, failure: failureOf(error) });
  try {
    const value = handle(request);
    if (value instanceof Promise) value.then((answer) => send({ id, value: answer }), failed);
    else send({ id, value });
  } catch (error) {
    failed(error);
  }
});
