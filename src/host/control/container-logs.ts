/**
 * Log files of containers: `<ns>_<pod>_<uid>/<container>/<n>.log`, each line in CRI's format `time stream F|P text`.
 */

import { open, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { watchPath } from '../../kubelet/io/host-facts/index.ts';

/**
 * Log files of a static pod's container, oldest first. `pod` is matched as a prefix, because the name of a mirror pod
 * ends with the node name.
 */
export async function findContainerLogs(
  podLogs: string,
  pod: string,
  container: string,
  nowMs: number,
): Promise<string[]> {
  const pods = await readdir(podLogs).catch(() => []);
  const files: LogFile[] = [];
  for (const directory of pods.filter((name) => name === pod || name.startsWith(`kube-system_${pod}`))) {
    const place = join(podLogs, directory, container);
    for (const name of await readdir(place).catch(() => [])) {
      if (!/^\d+\.log$/.test(name)) continue;
      const path = join(place, name);
      files.push({ directory, attempt: Number.parseInt(name, 10), path, mtimeMs: (await stat(path)).mtimeMs });
    }
  }
  return oldestFirst(files, nowMs).map(({ path }) => path);
}

interface LogFile {
  readonly directory: string;
  readonly attempt: number;
  readonly path: string;
  readonly mtimeMs: number;
}

/**
 * Orders the pods by the time of their last log line, and the logs of each pod by attempt. A time in the future counts
 * as the oldest, because it was written before the clock was set back.
 */
function oldestFirst(files: readonly LogFile[], nowMs: number): LogFile[] {
  const pods = Map.groupBy(files, ({ directory }) => directory);
  const written = (logs: readonly LogFile[]): number =>
    Math.max(...logs.map(({ mtimeMs }) => (mtimeMs > nowMs + CLOCK_TOLERANCE_MS ? 0 : mtimeMs)));
  return [...pods.values()]
    .sort((left, right) => written(left) - written(right))
    .flatMap((logs) => logs.sort((left, right) => left.attempt - right.attempt));
}

/** Time stamps of files come from a coarser clock than `nowMs`, so they may be slightly later. */
const CLOCK_TOLERANCE_MS = 1_000;

const CHUNK = 64 * 1024;

/**
 * Prints lines of the container's stdout to `stdout` and lines of its stderr to `stderr`. With `follow`, continues
 * until the process is interrupted.
 */
export async function printLog(
  path: string,
  options: { readonly follow: boolean; readonly tail: number | undefined },
  stdout: (text: string) => void,
  stderr: (text: string) => void,
): Promise<void> {
  const handle = await open(path, 'r');
  try {
    let position = options.tail === undefined ? 0 : await startOfTail(handle, options.tail);
    let rest = Buffer.alloc(0);
    const buffer = Buffer.alloc(CHUNK);
    const drain = async (): Promise<void> => {
      for (;;) {
        const { bytesRead } = await handle.read(buffer, 0, CHUNK, position);
        if (bytesRead === 0) return;
        position += bytesRead;
        rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
        for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
          printLine(rest.subarray(0, end).toString('utf8'), stdout, stderr);
          rest = rest.subarray(end + 1);
        }
      }
    };
    await drain();
    if (!options.follow) return;
    await new Promise<void>((resolve, reject) => {
      let running: Promise<void> = Promise.resolve();
      const watcher = watchPath(dirname(path), () => {
        running = running.then(drain).catch(reject);
      });
      process.once('SIGINT', () => {
        watcher.close();
        resolve();
      });
    });
  } finally {
    await handle.close();
  }
}

function printLine(line: string, stdout: (text: string) => void, stderr: (text: string) => void): void {
  const match = /^\S+ (stdout|stderr) ([FP])(?: (.*))?$/s.exec(line);
  if (match === null) {
    stdout(`${line}\n`);
    return;
  }
  const text = `${match[3] ?? ''}${match[2] === 'F' ? '\n' : ''}`;
  (match[1] === 'stderr' ? stderr : stdout)(text);
}

/** Offset of the last `lines` lines, found by reading backwards in chunks. */
async function startOfTail(handle: Awaited<ReturnType<typeof open>>, lines: number): Promise<number> {
  const { size } = await handle.stat();
  if (lines === 0) return size;
  const buffer = Buffer.alloc(CHUNK);
  let found = 0;
  for (let end = size; end > 0; ) {
    const length = Math.min(CHUNK, end);
    const { bytesRead } = await handle.read(buffer, 0, length, end - length);
    if (bytesRead < length) return 0;
    for (let index = length - 1; index >= 0; index--) {
      const offset = end - length + index;
      if (buffer[index] === 10 && offset < size - 1 && ++found === lines) return offset + 1;
    }
    end -= length;
  }
  return 0;
}
