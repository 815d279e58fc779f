/** Logs of this host: files below a directory, without following links out of it, and journald's journal. */
import { spawn } from 'node:child_process';
import { constants, createReadStream } from 'node:fs';
import { open, readdir, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import type { HostLogs, JournalQuery } from '../../ports/host-logs-port.ts';

const MAX_NAMES = 10_000;
const MAX_STDERR = 4096;

export interface HostLogPlaces {
  /** The directory of the logs, /var/log. */
  readonly directory: string;
  /** Paths below the directory that are not served, because their content needs another permission. */
  readonly excluded?: readonly string[];
  readonly journalctl?: string;
}

export function hostLogs({ directory, excluded = [], journalctl = 'journalctl' }: HostLogPlaces): HostLogs {
  const place = (path: string): Promise<string | undefined> => servedPlace(directory, excluded, path);
  return {
    async names(path) {
      const found = await place(path);
      if (found === undefined) return undefined;
      const entries = await readdir(found, { withFileTypes: true }).catch(() => undefined);
      return entries
        ?.map((each) => (each.isDirectory() ? `${each.name}/` : each.name))
        .sort()
        .slice(0, MAX_NAMES);
    },
    async open(path) {
      const resolved = await place(path);
      if (resolved === undefined) return undefined;
      // Without O_NONBLOCK, opening a pipe without a writer would block a thread of the pool forever.
      const handle = await open(resolved, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
      if (handle === undefined) return undefined;
      // A link may have replaced the file since the path was resolved.
      const opened = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined);
      const found = await handle.stat().catch(() => undefined);
      if (opened === resolved && found?.isFile() === true) return createReadStream('', { fd: handle });
      await handle.close();
      return undefined;
    },
    journal: (query, signal) => runJournal(journalctl, query, signal),
  };
}

/** Path without links of a file or directory that is served; undefined if it is outside of the logs or excluded. */
async function servedPlace(directory: string, excluded: readonly string[], path: string): Promise<string | undefined> {
  try {
    const root = await realpath(directory);
    const place = await realpath(join(root, path));
    if (!isWithin(place, root)) return undefined;
    for (const each of excluded) if (isWithin(place, await realOf(join(root, each)))) return undefined;
    return place;
  } catch {
    return undefined;
  }
}

const isWithin = (path: string, directory: string): boolean => path === directory || path.startsWith(`${directory}/`);

/** The path itself if it does not exist. Rejects if its links cannot be resolved for another reason. */
const realOf = (path: string): Promise<string> =>
  realpath(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return path;
    throw error;
  });

export function journalArguments(query: JournalQuery): string[] {
  const { units, since, until, boot, tail, pattern, caseSensitive, output = 'short-precise' } = query;
  return [
    '--utc',
    '--no-pager',
    `--output=${output}`,
    ...units.map((unit) => `--unit=${unit}`),
    ...(since === undefined ? [] : [`--since=${journalTime(since)}`]),
    ...(until === undefined ? [] : [`--until=${journalTime(until)}`]),
    ...(boot === undefined ? [] : [`--boot=${boot}`]),
    ...(tail === undefined ? [] : [`--lines=${tail}`]),
    ...(pattern === undefined ? [] : [`--grep=${pattern}`]),
    ...(caseSensitive === false ? ['--case-sensitive=false'] : []),
  ];
}

/** journalctl before systemd 254 does not accept RFC 3339 times. */
function journalTime(text: string): string {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$/.exec(text);
  if (match === null) return text;
  const utc = new Date(text);
  return Number.isNaN(utc.getTime()) ? text : `${utc.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

function runJournal(journalctl: string, query: JournalQuery, signal: AbortSignal): Readable {
  const lines = new PassThrough();
  const { NODE_OPTIONS: _, ...env } = process.env;
  const child = spawn(journalctl, journalArguments(query), { stdio: ['ignore', 'pipe', 'pipe'], env, signal });
  child.on('error', (error) => lines.destroy(new Error(`${journalctl}: ${error.message}`)));
  // A child that could not be started for lack of file descriptors has no streams.
  if (child.pid === undefined) return lines;
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    if (stderr.length < MAX_STDERR) stderr += text;
  });
  child.stdout.pipe(lines, { end: false });
  child.on('close', (code) => {
    // journalctl exits with 1 if a pattern matches no line.
    if (code === 0 || stderr === '') lines.end();
    else lines.destroy(new Error(`${journalctl}: ${stderr.split('\n')[0]}`));
  });
  return lines;
}
