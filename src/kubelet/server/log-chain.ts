/** Log files of a container, including rotated ones, in the order in which they were written. */
import { basename, dirname, join } from 'node:path';
import type { LogFiles, OpenLog } from '../ports/files-port.ts';

/** Limit for retries because of concurrent rotations. */
const MAX_ATTEMPTS = 10;

/** Rotated logs, oldest first. */
export async function rotatedLogs(logs: LogFiles, path: string): Promise<string[]> {
  const directory = dirname(path);
  const prefix = `${basename(path)}.`;
  const names = await logs.names(directory);
  return names
    .filter((name) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
    .sort()
    .map((name) => join(directory, name));
}

/**
 * Opens all log files, oldest first, the current one last. If no file exists, throws the error for the current file,
 * with the code ENOENT. Shortly after a rotation, only rotated files may exist.
 */
export async function openLogs(files: LogFiles, path: string): Promise<OpenLog[]> {
  for (let look = 1; ; look += 1) {
    const before = await rotatedLogs(files, path).catch(() => []);
    const opened: OpenLog[] = [];
    for (const each of before) {
      const log = await files.open(each).catch(() => undefined);
      if (log !== undefined) opened.push(log);
    }
    const current = await files.open(path).catch((error: unknown) => error);
    if (isOpen(current)) opened.push(current);
    const after = await rotatedLogs(files, path).catch(() => []);
    // A rotation between the two listings would leave a gap before the current file.
    if (after.at(-1) === before.at(-1) || look === MAX_ATTEMPTS) {
      if (opened.length === 0) throw current;
      return opened;
    }
    await closeAll(opened);
  }
}

const isOpen = (found: unknown): found is OpenLog => typeof found === 'object' && found !== null && 'identity' in found;

/** Log file that follows `log`. Undefined if `log` is the last file. */
export async function nextLog(files: LogFiles, path: string, log: OpenLog): Promise<OpenLog | undefined> {
  const own = await log.identity();
  const current = await files.open(path).catch(() => undefined);
  const isCurrent = current !== undefined && (await current.identity()) === own;
  await current?.close();
  if (isCurrent) return undefined;
  const opened = await openLogs(files, path).catch(() => []);
  const identities = await Promise.all(opened.map((each) => each.identity()));
  // If the file was deleted by rotation, its index is -1 and the oldest remaining file is next.
  const next = opened[identities.indexOf(own) + 1];
  await closeAll(opened.filter((each) => each !== next));
  return next;
}

export async function closeAll(logs: readonly OpenLog[]): Promise<void> {
  for (const log of logs) await log.close();
}
