/**
 * Transfers files to and from containers with `tar` over exec, like `kubectl cp`. Archives of a container are not
 * trusted: each entry must be a file or directory below the requested name, and the size is limited. Source:
 * k8s.io/kubectl/pkg/cmd/cp.
 */
import { createTarDecoder, createTarPacker, type TarHeader } from 'modern-tar';
import { bytesText } from '../format.ts';
import { sanitizeText as printable } from '../plain-text.ts';

export const MAX_TRANSFER_BYTES = 256 << 20;
const MAX_ENTRIES = 10_000;
const MAX_NAME_BYTES = 100;
const MAX_PATH_LENGTH = 4_096;
const CHUNK_BYTES = 64 << 10;

/** Runs a command in the container. Rejects if it fails. */
export type RunCommand = (command: readonly string[], streams: CommandStreams) => Promise<void>;

export interface CommandStreams {
  /** Input of the command. If undefined, the command gets no input. */
  readonly input?: AsyncIterable<Uint8Array>;
  /** Called with output. The command ends if the function throws. */
  readonly onOutput?: (bytes: Uint8Array) => void | Promise<void>;
  readonly signal: AbortSignal;
}

export interface Progress {
  readonly done: number;
  /** Total number of bytes; undefined if unknown. */
  readonly total: number | undefined;
}

export interface TransferOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
  readonly maxBytes?: number;
}

/** The subset of `File` that is used. */
export interface LocalFile {
  readonly name: string;
  readonly size: number;
  readonly lastModified: number;
  stream(): ReadableStream<Uint8Array>;
}

/** Throws if the path cannot be used in a container. */
export function checkPath(path: string): string {
  if (!path.startsWith('/')) throw new Error(`path ${printable(path)}: must be absolute; begin it with /`);
  if (path.length > MAX_PATH_LENGTH) throw new Error(`path: is longer than ${MAX_PATH_LENGTH} characters; shorten it`);
  if (path.includes('\0')) throw new Error('path: contains a NUL character; remove it');
  if (path.split('/').includes('..'))
    throw new Error(`path ${printable(path)}: contains ".."; name the directory itself`);
  return path.replace(/\/+$/, '') || '/';
}

/** Throws if the file name cannot be used in an archive for a container. */
export function checkFileName(name: string): void {
  const shown = printable(name);
  if (name === '' || name === '.' || name === '..' || /[/\\\0]/.test(name))
    throw new Error(`file ${shown}: is not the name of a file; rename it`);
  if (new TextEncoder().encode(name).length > MAX_NAME_BYTES)
    throw new Error(`file ${shown}: its name is longer than ${MAX_NAME_BYTES} bytes; rename it`);
}

/** Writes files to a directory of a container. */
export async function upload(
  run: RunCommand,
  files: readonly LocalFile[],
  directory: string,
  { signal, onProgress, maxBytes = MAX_TRANSFER_BYTES }: TransferOptions,
): Promise<void> {
  const target = checkPath(directory);
  for (const { name } of files) checkFileName(name);
  if (new Set(files.map(({ name }) => name)).size < files.length)
    throw new Error('files: two have the same name; upload them one after the other');
  const total = files.reduce((sum, { size }) => sum + size, 0);
  if (total > maxBytes)
    throw new Error(`files: ${bytesText(total)} exceed the limit of ${bytesText(maxBytes)}; use kubectl cp`);
  let done = 0;
  const count = (bytes: number): void => {
    done += bytes;
    onProgress({ done, total });
  };
  await run(['tar', '-xmf', '-', '-C', target], { input: archiveOf(files, count), signal });
}

async function* archiveOf(files: readonly LocalFile[], onBytes: (count: number) => void): AsyncGenerator<Uint8Array> {
  const { readable, controller } = createTarPacker();
  const write = async (): Promise<void> => {
    for (const file of files) {
      const { name, size, lastModified } = file;
      const header = { name, size, mtime: new Date(lastModified), mode: 0o644, type: 'file' } as const;
      const entry = controller.add(header).getWriter();
      for await (const chunk of chunksOf(file.stream())) {
        await entry.write(chunk);
        onBytes(chunk.length);
      }
      await entry.close();
    }
    controller.finalize();
  };
  const written = write().catch((error: unknown) => controller.error(error));
  yield* chunksOf(readable);
  await written;
}

/** Splits a stream into chunks of limited size. Leaving the loop cancels the stream. */
async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  let hasEnded = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        hasEnded = true;
        return;
      }
      for (let from = 0; from < value.length; from += CHUNK_BYTES) yield value.subarray(from, from + CHUNK_BYTES);
    }
  } finally {
    if (!hasEnded) await reader.cancel().catch(() => undefined);
  }
}

export interface Downloaded {
  readonly blob: Blob;
  /** Name of the local file, without characters that operating systems forbid. */
  readonly name: string;
  /** Number of links and special files that were omitted. */
  readonly skipped: number;
}

/** Downloads a file, or a directory as a new tar archive that contains only its files and directories. */
export async function download(
  run: RunCommand,
  path: string,
  { signal, onProgress, maxBytes = MAX_TRANSFER_BYTES }: TransferOptions,
): Promise<Downloaded> {
  const source = checkPath(path);
  if (source === '/') throw new Error('path: the root directory cannot be read as a whole; name a directory');
  const at = source.lastIndexOf('/');
  const name = source.slice(at + 1);
  let done = 0;
  const decoder = createTarDecoder({ strict: true });
  const writer = decoder.writable.getWriter();
  // An invalid archive ends the command.
  const stop = new AbortController();
  const unpacked = repack(decoder.readable, name).catch((error: unknown) => {
    stop.abort(error);
    throw error;
  });
  const command = async (): Promise<void> => {
    await run(['tar', '-cf', '-', '-C', source.slice(0, at) || '/', '--', name], {
      signal: AbortSignal.any([signal, stop.signal]),
      onOutput: async (bytes) => {
        done += bytes.length;
        if (done > maxBytes) throw new Error(`${printable(name)}: exceeds ${bytesText(maxBytes)}; use kubectl cp`);
        onProgress({ done, total: undefined });
        await writer.write(new Uint8Array(bytes));
      },
    });
    await writer.close();
  };
  let hasFailed = false;
  const [result, transfer] = await Promise.allSettled([
    unpacked,
    command().catch(async (error: unknown) => {
      hasFailed = !stop.signal.aborted;
      await writer.abort(error).catch(() => undefined);
      throw error;
    }),
  ]);
  if (stop.signal.aborted && result.status === 'rejected' && !hasFailed) throw result.reason;
  // If both failed, the error of the command is thrown, because it explains why the archive ends too early.
  if (transfer.status === 'rejected') throw transfer.reason;
  if (result.status === 'rejected') throw result.reason;
  return result.value;
}

type Entries = ReadableStream<{ readonly header: EntryHeader; readonly body: ReadableStream<Uint8Array> }>;

async function repack(entries: Entries, name: string): Promise<Downloaded> {
  const reader = entries.getReader();
  const { readable, controller } = createTarPacker();
  const packed = blobOf(readable);
  let only: BlobPart[] | undefined;
  let count = 0;
  let skipped = 0;
  try {
    for (;;) {
      const { done, value: entry } = await reader.read();
      if (done) break;
      const { header, body } = entry;
      const isKept = checkEntry(header, name);
      if (++count > MAX_ENTRIES) throw new Error(`${printable(name)}: has more than ${MAX_ENTRIES} entries`);
      if (only !== undefined) throw new Error(`${printable(name)}: the container sent other entries with a file`);
      if (count === 1 && !isKept)
        throw new Error(
          `${printable(name)}: is a ${header.type} to ${printable(header.linkname ?? '')}; name its target`,
        );
      if (count === 1 && header.type === 'file') only = [];
      if (!isKept) skipped++;
      const { size, mode = 0o644, mtime = new Date(0), type = 'file' } = header;
      const target =
        isKept && only === undefined
          ? controller.add({ name: header.name, size, mode: mode & 0o777, mtime, type }).getWriter()
          : undefined;
      for await (const chunk of chunksOf(body)) {
        const copy = new Uint8Array(chunk);
        if (target === undefined) only?.push(copy);
        else await target.write(copy);
      }
      await target?.close();
    }
    if (count === 0) throw new Error(`${printable(name)}: the container sent an empty archive`);
    controller.finalize();
  } catch (error) {
    controller.error(error);
    await packed.catch(() => undefined);
    throw error;
  }
  const archive = await packed;
  return only === undefined
    ? { blob: new Blob([archive], { type: 'application/x-tar' }), name: `${localName(name)}.tar`, skipped }
    : { blob: new Blob(only, { type: 'application/octet-stream' }), name: localName(name), skipped };
}

const blobOf = (stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<Blob> => new Response(stream).blob();

type EntryHeader = Pick<TarHeader, 'name' | 'size' | 'mode' | 'mtime' | 'type' | 'linkname'>;

/**
 * Returns whether an entry is a file or a directory; links and devices are omitted. Throws if its name leads out of the
 * requested file or directory.
 */
export function checkEntry({ name, type = 'file' }: EntryHeader, root: string): boolean {
  const shown = printable(name);
  const steps = name.replace(/\/$/, '').split('/');
  if (steps.some((step) => step === '..' || step === '' || step === '.') || /[\0\\]/.test(name))
    throw new Error(`entry ${shown}: leads out of the directory; the archive is refused`);
  if (steps[0] !== root) throw new Error(`entry ${shown}: is not below ${printable(root)}; the archive is refused`);
  return type === 'file' || type === 'directory';
}

/**
 * Removes everything from a name that an operating system could interpret: separators, control characters and leading
 * dots.
 */
export function localName(name: string): string {
  const clean = name
    .replaceAll(/[\p{Cc}\p{Cf}\p{Cs}<>:"/\\|?*]/gu, '_')
    .replace(/^\.+/, '_')
    .slice(0, 200);
  return clean === '' ? 'file' : clean;
}
