/**
 * Follows the log files of all containers of this host. Symbolic links are not followed. Each file stays open and is
 * read from the last position, even after the log rotation has renamed it or it was deleted with its pod.
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import { CriLines, type Line } from '../core/cri-lines.ts';
import { componentOf, orderedLogs, type PodDirectory, podDirectoryOf, severityOf } from '../core/log-names.ts';
import type { LogRecord, LogSource, Offsets } from '../port.ts';

export interface ContainerLogsOptions {
  /** Directory with the kubelet's log files. */
  readonly directory: string;
  readonly bytesPerSecond: number;
  /** Read positions that an earlier process has stored, by key of the file. */
  readonly offsets: Offsets;
  /** If a file has no stored position and is older than this time, only lines that are added later are read. */
  readonly sinceMs: number;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  readonly log: Log;
}

interface LogFile {
  readonly key: string;
  readonly handle: FileHandle;
  lines: CriLines;
  position: number;
  /** Name of the file at the latest scan; undefined if the file has been deleted. */
  name: string | undefined;
}

interface Container extends PodDirectory {
  readonly container: string;
  readonly path: string;
  readonly component: string;
  /** Files that are being read, oldest first. The container writes to the last one. */
  files: LogFile[];
  /** Whether the directory of the container exists. */
  isPresent: boolean;
  /** Number of bytes that may be read now, according to the rate limit. */
  budget: number;
}

const SCAN_MS = 5_000;
const READ_BYTES = 64 * 1024;
/** After a quiet period, a container may read as many bytes at once as its rate allows for this number of seconds. */
const BURST_SECONDS = 8;
const MAX_BATCH_RECORDS = 500;
const MAX_BATCH_CHARACTERS = 128 * 1024;
/** Maximum number of containers, and of open files per container. Further ones are not read. */
const MAX_CONTAINERS = 1_000;
const MAX_FILES = 4;
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class ContainerLogs implements LogSource {
  readonly #options: ContainerLogsOptions;
  readonly #containers = new Map<string, Container>();
  readonly #rejected = new Set<string>();
  /** Keys of files that have been read completely and still exist. */
  readonly #done = new Set<string>();
  readonly #buffer = Buffer.allocUnsafe(READ_BYTES);
  #scannedMs = Number.NEGATIVE_INFINITY;
  #polledMs: number | undefined;
  #first = 0;

  constructor(options: ContainerLogsOptions) {
    this.#options = options;
  }

  async poll(
    emit: (records: readonly LogRecord[], offsets: Offsets) => Promise<void>,
    hasRoom: () => boolean,
  ): Promise<void> {
    const now = this.#options.monotonicMs();
    if (now - this.#scannedMs >= SCAN_MS) {
      await this.#scan();
      this.#scannedMs = now;
    }
    const elapsed = this.#polledMs === undefined ? 1 : (now - this.#polledMs) / 1000;
    this.#polledMs = now;
    const batch = new BatchBuilder(emit);
    const containers = [...this.#containers.values()];
    // Each poll begins with another container, so that the same container is not always last when the buffer becomes
    // full.
    this.#first = containers.length === 0 ? 0 : (this.#first + 1) % containers.length;
    for (const container of [...containers.slice(this.#first), ...containers.slice(0, this.#first)]) {
      const rate = this.#options.bytesPerSecond;
      container.budget = Math.min(container.budget + rate * elapsed, rate * BURST_SECONDS);
      await this.#read(container, batch, hasRoom);
    }
    await batch.flush();
  }

  isPresent(file: string): boolean {
    for (const { files } of this.#containers.values()) if (files.some(({ key }) => key === file)) return true;
    return this.#done.has(file);
  }

  async close(): Promise<void> {
    for (const { files } of this.#containers.values()) for (const { handle } of files) await handle.close();
    this.#containers.clear();
  }

  async #read(container: Container, batch: BatchBuilder, hasRoom: () => boolean): Promise<void> {
    while (container.files.length > 0 && container.budget > 0 && hasRoom()) {
      const file = container.files[0];
      if (file === undefined) return;
      const size = (await file.handle.stat()).size;
      if (size < file.position) {
        // Another program has truncated the file, so it is read from the beginning.
        file.position = 0;
        file.lines = new CriLines(0);
      }
      while (file.position < size && container.budget > 0 && hasRoom()) {
        const length = Math.min(READ_BYTES, size - file.position);
        const { bytesRead } = await file.handle.read(this.#buffer, 0, length, file.position);
        if (bytesRead === 0) break;
        file.position += bytesRead;
        container.budget -= bytesRead;
        const lines = file.lines.push(this.#buffer.subarray(0, bytesRead), this.#options.nowMs());
        await batch.add(recordsOf(container, lines), file.key, file.lines.safePosition);
      }
      if (file.position < size) return;
      // The container may still write to the last file, unless the file or its directory was deleted.
      if (container.files.length === 1 && container.isPresent && file.name !== undefined) return;
      const rest = recordsOf(container, file.lines.finish(this.#options.nowMs()));
      await batch.add(rest, file.key, file.position);
      await file.handle.close();
      container.files.shift();
      if (file.name !== undefined) this.#done.add(file.key);
    }
    if (container.files.length === 0 && !container.isPresent) this.#containers.delete(container.path);
  }

  async #scan(): Promise<void> {
    const root = await realpath(this.#options.directory).catch(() => undefined);
    const present = new Set<string>();
    const keys = new Set<string>();
    for (const pod of root === undefined ? [] : await namesIn(root)) {
      const parts = podDirectoryOf(pod);
      if (parts === undefined) continue;
      for (const name of await namesIn(join(root ?? '', pod))) {
        const path = join(root ?? '', pod, name);
        present.add(path);
        const known = this.#containers.get(path);
        if (known === undefined && this.#containers.size >= MAX_CONTAINERS) continue;
        const container = known ?? {
          ...parts,
          container: name,
          path,
          files: [],
          isPresent: true,
          budget: 0,
          component: componentOf(parts, name),
        };
        container.isPresent = true;
        await this.#scanContainer(container, keys);
        if (container.files.length > 0) this.#containers.set(path, container);
      }
    }
    for (const container of this.#containers.values()) {
      if (present.has(container.path)) continue;
      container.isPresent = false;
      for (const file of container.files) file.name = undefined;
    }
    for (const key of this.#done) if (!keys.has(key)) this.#done.delete(key);
    for (const path of this.#rejected) if (!keys.has(path)) this.#rejected.delete(path);
  }

  async #scanContainer(container: Container, keys: Set<string>): Promise<void> {
    const names = orderedLogs(await namesIn(container.path));
    const found = new Map<string, LogFile>();
    for (const file of container.files) {
      file.name = undefined;
      found.set(file.key, file);
    }
    for (const name of names.slice(-MAX_FILES * 2)) {
      const path = join(container.path, name);
      // A file that is open or has been read completely is recognized by its key. Other files are opened and checked.
      const seen = await lstat(path).then(keyOfFile, () => undefined);
      const current = seen === undefined ? undefined : found.get(seen);
      if (seen !== undefined && (current !== undefined || this.#done.has(seen))) {
        keys.add(seen);
        if (current !== undefined) current.name = name;
        continue;
      }
      if (container.files.length >= MAX_FILES) continue;
      const opened = await this.#open(path, keys);
      if (opened === undefined) continue;
      const { key, handle, size, bornMs } = opened;
      keys.add(key);
      if (found.has(key) || this.#done.has(key)) {
        await handle.close();
        continue;
      }
      const stored = this.#options.offsets[key];
      const start = stored ?? (bornMs < this.#options.sinceMs ? size : 0);
      const position = start > size ? 0 : start;
      container.files.push({ key, handle, lines: new CriLines(position), position, name });
    }
  }

  /**
   * Opens a regular file; undefined if it does not exist, is not a regular file, or was reached through a symbolic
   * link.
   */
  async #open(
    path: string,
    keys: Set<string>,
  ): Promise<
    { readonly key: string; readonly handle: FileHandle; readonly size: number; readonly bornMs: number } | undefined
  > {
    let handle: FileHandle;
    try {
      handle = await open(path, OPEN_FLAGS);
    } catch (error) {
      this.#reject(path, keys, error);
      return undefined;
    }
    try {
      const stat = await handle.stat();
      if (!stat.isFile()) throw new Error('not a regular file');
      // A directory of the path may have been replaced by a symbolic link before the file was opened.
      if ((await realpath(`/proc/self/fd/${handle.fd}`)) !== path) throw new Error('reached through a link');
      return { key: keyOfFile(stat), handle, size: stat.size, bornMs: stat.birthtimeMs };
    } catch (error) {
      await handle.close();
      this.#reject(path, keys, error);
      return undefined;
    }
  }

  #reject(path: string, keys: Set<string>, error: unknown): void {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
    keys.add(path);
    if (this.#rejected.has(path)) return;
    this.#rejected.add(path);
    const problem = error instanceof Error ? error.message : String(error);
    this.#options.log.warn('container log not forwarded', { file: path, error: problem });
  }
}

const keyOfFile = ({ dev, ino, birthtimeMs }: Stats): string => `${dev}:${ino}:${Math.floor(birthtimeMs)}`;

/** Collects records into batches, together with the read positions after the records. */
class BatchBuilder {
  readonly #emit: (records: readonly LogRecord[], offsets: Offsets) => Promise<void>;
  #records: LogRecord[] = [];
  #offsets: Record<string, number> = {};
  #characters = 0;

  constructor(emit: (records: readonly LogRecord[], offsets: Offsets) => Promise<void>) {
    this.#emit = emit;
  }

  async add(records: readonly LogRecord[], key: string, position: number): Promise<void> {
    this.#records.push(...records);
    this.#offsets[key] = position;
    for (const { text } of records) this.#characters += text.length;
    if (this.#records.length >= MAX_BATCH_RECORDS || this.#characters >= MAX_BATCH_CHARACTERS) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.#records.length === 0) return;
    const [records, offsets] = [this.#records, this.#offsets];
    this.#records = [];
    this.#offsets = {};
    this.#characters = 0;
    await this.#emit(records, offsets);
  }
}

function recordsOf(container: Container, lines: readonly Line[]): LogRecord[] {
  const { namespace, pod, uid, component } = container;
  return lines.map(({ time, stream, text }) => ({
    time,
    text,
    stream,
    namespace,
    pod,
    uid,
    component,
    container: container.container,
    severity: component === '' ? 'info' : severityOf(text),
  }));
}

async function namesIn(directory: string): Promise<string[]> {
  // The directory may have been deleted since its parent was listed.
  return readdir(directory).catch(() => []);
}
