/** The thread that owns the SQLite file. A flush of the disk takes milliseconds; here nobody waits but the log. */
import { join } from 'node:path';
import { parentPort } from 'node:worker_threads';
import { CodedError, messageOf } from '../../base/errors.ts';
import type {
  CommitBody,
  NumberedRequest,
  WorkerAnswers,
  WorkerFailure,
  WorkerReply,
  WorkerRequest,
} from './protocol.ts';
import { RevisionFile, sqliteCode } from './revision-file.ts';

const port = parentPort;
if (port === null) throw new Error('this is the entry of a worker thread');

let directory = '';
let file: RevisionFile | undefined;
let houseKeeping: NodeJS.Immediate | undefined;
/** Rows have been deleted since free pages were last looked for. */
let mayHaveFreePages = true;
let snapshots = 0;

function opened(): RevisionFile {
  if (file === undefined) throw new CodedError('closed', 'the log is closed');
  return file;
}

/** A commit that does not fit gets a second try after the write-ahead log has been emptied into the database. */
function commit(body: CommitBody): void {
  const target = opened();
  try {
    target.commit(body);
  } catch (error) {
    if (sqliteCode(error) !== 'SQLITE_FULL') throw error;
    try {
      target.checkpoint(true);
    } catch (failed) {
      if (sqliteCode(failed) !== 'SQLITE_FULL') throw failed;
    }
    target.commit(body);
  }
}

/** After commits, one step at a time: empty a large write-ahead log, give back free pages. */
function keepHouse(): void {
  houseKeeping = undefined;
  if (file === undefined) return;
  try {
    if (file.walIsLarge) file.checkpoint(false);
    if (mayHaveFreePages) mayHaveFreePages = file.vacuumStep(false);
    if (file.walIsLarge || mayHaveFreePages) scheduleHousekeeping();
  } catch (error) {
    // Without room it stays as it is until there is some; anything else shows in the next commit as well.
    if (sqliteCode(error) !== 'SQLITE_FULL') fatal(error);
  }
}

function scheduleHousekeeping(): void {
  houseKeeping ??= setImmediate(keepHouse);
}

async function hash(revision: number): Promise<number> {
  let step = { checksum: 0, after: 0, done: false };
  while (!step.done) {
    step = opened().hashStep(step.checksum, step.after, revision);
    await new Promise((resolve) => setImmediate(resolve));
  }
  return step.checksum;
}

async function defragment(): Promise<undefined> {
  while (opened().vacuumStep(true)) await new Promise((resolve) => setImmediate(resolve));
  opened().checkpoint(true);
}

async function snapshot(): Promise<string> {
  snapshots += 1;
  const path = join(directory, `snapshot-${process.pid}-${snapshots}.tmp`);
  await opened().copyTo(path);
  return path;
}

function handle(
  request: WorkerRequest,
): WorkerAnswers[keyof WorkerAnswers] | Promise<WorkerAnswers[keyof WorkerAnswers]> {
  switch (request.kind) {
    case 'open':
      directory = request.directory;
      file = RevisionFile.open(directory, request.nativeBinding);
      return file.state();
    case 'load':
      return opened().load(request.after);
    case 'commit':
      commit(request.body);
      mayHaveFreePages ||= request.body.discards.length > 0;
      if (mayHaveFreePages || opened().walIsLarge) scheduleHousekeeping();
      return undefined;
    case 'read':
      return opened().read(request.revisions);
    case 'hash':
      return hash(request.revision);
    case 'size':
      return opened().size();
    case 'defragment':
      return defragment();
    case 'snapshot':
      return snapshot();
    case 'close': {
      if (houseKeeping !== undefined) clearImmediate(houseKeeping);
      const closing = file;
      file = undefined;
      closing?.close();
      return undefined;
    }
  }
}

function failureOf(error: unknown): WorkerFailure {
  const code = sqliteCode(error);
  if (code === 'SQLITE_FULL') return { code: 'no-space', message: 'no space left on the device', fatal: false };
  if (error instanceof CodedError) return { code: error.code, message: error.message, fatal: error.code === 'corrupt' };
  const message = code === '' ? messageOf(error) : `${code}: ${messageOf(error)}`;
  return { code: 'io', message, fatal: true };
}

function fatal(error: unknown): void {
  send({ id: 0, failure: { ...failureOf(error), fatal: true } });
}

function send(reply: WorkerReply): void {
  port?.postMessage(reply);
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
