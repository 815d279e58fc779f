import { type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises';
import type { Recording } from '../rig-host-port.ts';

const DEFAULT_FILE_BYTES = 10 * 1024 * 1024;
const DEFAULT_FILES = 20;
/** Largest number in the name of a file. */
const MAX_PARTS = 999_999;

export interface RecordingOptions {
  readonly directory: string;
  readonly nowMs: () => number;
  /** Size at which the recording continues in another file. */
  readonly maxFileBytes?: number;
  /** Maximum number of files of a rig. When it is exceeded, the oldest files are deleted. */
  readonly maxFiles?: number;
  /** Set to which the path of the current file is added while the file is being written. */
  readonly writing?: Set<string>;
}

/**
 * Starts a recording to a file `<time>.log` that only root can read. After `maxFileBytes` it continues in
 * `<time>-0001.log`, `<time>-0002.log` and so on.
 */
export async function startRecording({
  directory,
  nowMs,
  maxFileBytes = DEFAULT_FILE_BYTES,
  maxFiles = DEFAULT_FILES,
  writing = new Set(),
}: RecordingOptions): Promise<Recording> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const started = new Date(nowMs()).toISOString().replaceAll(':', '').replace('.', '-');
  let part = 0;
  let bytes = 0;
  let path = '';
  /** Creates the next file. After a change of the host's clock, a file with this time may exist already. */
  const create = async (): Promise<FileHandle> => {
    for (;;) {
      const name = part === 0 ? `${started}.log` : `${started}-${String(part).padStart(4, '0')}.log`;
      part += 1;
      try {
        const file = await open(`${directory}/${name}`, 'ax', 0o600);
        path = `${directory}/${name}`;
        return file;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST' || part > MAX_PARTS) throw error;
      }
    }
  };
  const next = async (): Promise<FileHandle> => {
    bytes = 0;
    writing.delete(path);
    const file = await create();
    writing.add(path);
    const names = (await readdir(directory)).filter((each) => each.endsWith('.log')).sort(byTime);
    // Before the host's clock is set, the new file has the oldest name.
    const old = names.slice(0, Math.max(0, names.length - maxFiles)).map((name) => `${directory}/${name}`);
    for (const each of old) if (!writing.has(each)) await rm(each);
    return file;
  };
  let file = await next();
  return {
    async write(chunk) {
      let rest = chunk;
      while (rest.length > 0) {
        if (bytes >= maxFileBytes) {
          await file.close();
          file = await next();
        }
        const piece = rest.subarray(0, maxFileBytes - bytes);
        await file.appendFile(piece);
        bytes += piece.length;
        rest = rest.subarray(piece.length);
      }
    },
    close() {
      writing.delete(path);
      return file.close();
    },
  };
}

/** Sorts `<time>.log` before `<time>-0001.log`. */
function byTime(a: string, b: string): number {
  const [first, second] = [a.slice(0, -4), b.slice(0, -4)];
  return first < second ? -1 : 1;
}
