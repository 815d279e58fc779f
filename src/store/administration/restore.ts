/** Creates data directories from a snapshot or from a running etcd, and writes snapshots into a running etcd. */
import { randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdtemp, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { adding, counted, type OnProgress } from '../../base/command-line/progress.ts';
import { CodedError, ifMissing } from '../../base/errors.ts';
import type { LogState, StoreLog } from '../disk/port.ts';
import { contentOf, importInto, type Restored, restoreAs } from '../membership/offline.ts';
import { flushDirectory } from './durable-files.ts';
import { foreignContent } from './import.ts';
import type { EtcdAdmin, StoreFiles } from './port.ts';
import { checkDigest, makeDirectory } from './snapshots.ts';

export interface RestoreTarget {
  readonly dataDirectory: string;
  readonly name: string;
  readonly members: ReadonlyArray<{ readonly name: string; readonly peerUrls: readonly string[] }>;
  readonly token: string;
  /**
   * Whether the token is a default. If so, a suffix is added, so that the new cluster's ID differs from the original's.
   */
  readonly anyToken: boolean;
}

export interface RestoreOptions {
  /** Whether to accept a file without SHA-256, such as a copied database file. */
  readonly skipHashCheck: boolean;
  readonly bumpRevision: number;
  /** Whether to reject a snapshot of a cluster with other members. */
  readonly onlyAlone?: boolean;
}

const FILE_NAME = 'revisions.db';
/** Directory of a restore in progress below a data directory that is a mount point. */
const PARTIAL = '.restoring';

/** Creates the data directory atomically. Throws CodedErrors with file or directory, 'has-others' for `onlyAlone`. */
export async function restoreSnapshot(
  path: string,
  target: RestoreTarget,
  options: RestoreOptions,
  files: StoreFiles,
  onProgress?: OnProgress,
): Promise<Restored> {
  const file = resolve(path);
  files.checkKind(file, options.skipHashCheck);
  // The file is read for its digest and again for the copy.
  const read = adding((await stat(file)).size * (options.skipHashCheck ? 1 : 2), onProgress);
  const { bytes, sha256 } = options.skipHashCheck
    ? { bytes: await wholePages(file), sha256: '' }
    : await checkDigest(file, files, read);
  // Members that restore the same file must derive the same cluster ID.
  const token = target.anyToken ? `${target.token}-${sha256.slice(0, 16)}` : target.token;
  return intoNew(target.dataDirectory, async (directory) => {
    await copy(file, join(directory, FILE_NAME), bytes, read);
    return opened(files, directory, (state, storage) => restoreAs(state, storage, { ...target, ...options, token }));
  });
}

/** Imports the keys and leases of a running etcd. Throws CodedErrors. */
export async function restoreFromEtcd(
  admin: EtcdAdmin,
  target: RestoreTarget,
  files: StoreFiles,
  progress: (done: number, of: number) => void,
): Promise<Restored & { readonly keys: number; readonly leases: number }> {
  if (target.members.length > 1) {
    throw new CodedError(
      'bad-config',
      '--initial-cluster: --from-etcd restores one member; add the others with hyperedge members add',
    );
  }
  const foreign = await foreignContent(admin, progress);
  const token = target.anyToken ? `${target.token}-${randomBytes(8).toString('hex')}` : target.token;
  return intoNew(target.dataDirectory, (directory) =>
    opened(files, directory, async (_state, storage) => ({
      ...(await importInto(storage, foreign, { ...target, token })),
      leases: foreign.leases.length,
    })),
  );
}

/** Size of the database in bytes without an appended SHA-256. */
async function wholePages(file: string): Promise<number> {
  const { size } = await stat(file);
  return size - (size % 512);
}

async function copy(
  from: string,
  to: string,
  bytes: number,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<void> {
  const source = createReadStream(from, { end: bytes - 1 });
  await pipeline(counted(source, onBytes), createWriteStream(to, { mode: 0o600 }));
}

async function intoNew<T>(dataDirectory: string, fill: (directory: string) => Promise<T>): Promise<T> {
  const wanted = await realOf(resolve(dataDirectory));
  await makeDirectory(dirname(wanted));
  const isMounted = await isMountPoint(wanted);
  // A mount point cannot be replaced, and its parent is on another file system, so the store is prepared below it.
  const partial = isMounted ? join(wanted, PARTIAL) : join(dirname(wanted), `.${basename(wanted)}.restoring`);
  await checkEmpty(wanted, isMounted);
  await rm(partial, { recursive: true, force: true });
  await makeDirectory(partial);
  try {
    const result = await fill(partial);
    for (const name of await readdir(partial)) {
      const handle = await open(join(partial, name), 'r');
      await handle.sync().finally(() => handle.close());
    }
    await flushDirectory(partial);
    if (isMounted) await moveFiles(partial, wanted);
    else await rename(partial, wanted);
    await flushDirectory(isMounted ? wanted : dirname(wanted));
    return result;
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}

/** Path of a directory behind symbolic links; the path itself if it does not exist yet. */
const realOf = (path: string): Promise<string> => realpath(path).catch(ifMissing(path));

/** Whether rename(2) cannot replace the directory. Two mounts of one file system have the same device. */
async function isMountPoint(path: string): Promise<boolean> {
  return (await mountTargets()).has(path);
}

async function mountTargets(): Promise<ReadonlySet<string>> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
  return new Set(lines.map((line) => (line.split(' ')[4] ?? '').replaceAll(/\\([0-7]{3})/g, unescaped)));
}

const unescaped = (_: string, octal: string): string => String.fromCharCode(Number.parseInt(octal, 8));

/** Moves the files of a complete store. The database is last, because a directory without it counts as empty. */
async function moveFiles(from: string, to: string): Promise<void> {
  const names = await readdir(from);
  const isDatabase = (name: string): number => Number(name === FILE_NAME);
  for (const name of names.toSorted((left, right) => isDatabase(left) - isDatabase(right))) {
    await flushDirectory(to);
    await rename(join(from, name), join(to, name));
  }
  await rm(from, { recursive: true });
}

/** Throws CodedError 'not-empty' unless the directory is empty. A new ext4 file system contains lost+found. */
async function checkEmpty(directory: string, isMounted: boolean): Promise<void> {
  const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw new CodedError('unreadable', `${directory}: ${error.message}`);
  });
  const ignored = new Set(isMounted ? [PARTIAL, 'lost+found'] : []);
  if (names.every((name) => ignored.has(name))) return;
  const away = isMounted ? 'move its files away' : `move it away (mv ${directory} ${directory}.old)`;
  throw new CodedError(
    'not-empty',
    `${directory} is not empty; stop the store and ${away}, or name another --data-dir`,
  );
}

async function opened<T>(
  files: StoreFiles,
  directory: string,
  use: (state: LogState, storage: StoreLog) => Promise<T>,
): Promise<T> {
  const storage = await files.openLog(directory, { isCopy: true });
  let failure: Error | undefined;
  const state = await storage.open((error) => {
    failure = error;
  });
  try {
    return await use(state, storage);
  } finally {
    if (failure === undefined) await storage.close();
  }
}

export interface Pushed {
  readonly keys: number;
  readonly leases: number;
  /** Target store's revision after the last write. */
  readonly revision: number;
}

const PUSH_BYTES = 1 << 20;
const PUSH_OPERATIONS = 100;

/**
 * Writes the keys and leases of a snapshot to another store through its API. Throws CodedError 'not-empty' without
 * `overwrite`.
 */
export async function pushSnapshot(
  path: string,
  admin: EtcdAdmin,
  overwrite: boolean,
  files: StoreFiles,
  progress: (done: number, of: number) => void,
): Promise<Pushed> {
  const file = resolve(path);
  const { bytes } = await checkDigest(file, files);
  const present = await admin.range({ key: '\0', end: '\0', countOnly: true });
  if (present.count > 0 && !overwrite) {
    throw new CodedError('not-empty', `the store holds ${present.count} keys already; empty it, or give --overwrite`);
  }
  const scratch = await mkdtemp(join(tmpdir(), 'hyperedge-push-'));
  try {
    await copy(file, join(scratch, FILE_NAME), bytes);
    return await opened(files, scratch, (state, storage) => push(state, storage, admin, progress));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function push(
  state: LogState,
  storage: StoreLog,
  admin: EtcdAdmin,
  progress: (done: number, of: number) => void,
): Promise<Pushed> {
  const content = await contentOf(state, storage);
  const present = new Set((await admin.leases()).map(({ id }) => id));
  for (const { id, ttlSeconds } of content.leases) if (!present.has(id)) await admin.grantLease(id, ttlSeconds);
  let batch: Array<{ key: string; value: Uint8Array; lease: bigint }> = [];
  let bytes = 0;
  let keys = 0;
  let revision = 0;
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    revision = await admin.putAll(batch);
    keys += batch.length;
    progress(keys, content.keys);
    batch = [];
    bytes = 0;
  };
  for await (const { key, value, lease } of content.live()) {
    const size = key.length + value.length;
    if (batch.length >= PUSH_OPERATIONS || (batch.length > 0 && bytes + size > PUSH_BYTES)) await flush();
    batch.push({ key, value, lease });
    bytes += size;
  }
  await flush();
  return { keys, leases: content.leases.length, revision };
}
