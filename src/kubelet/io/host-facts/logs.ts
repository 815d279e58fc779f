/** Logs of this host: files below a directory, without following links out of it, and journald's journal. */
import { spawn } from 'node:child_process';
import { constants, createReadStream } from 'node:fs';
import { open, readdir, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, type Readable } from 'node:stream';
import type { HostLogs, JournalQuery } from '../../host-logs-port.ts';

const MAX_NAMES = 10_000;
const MAX_STDERR = 4096;

/** `directory`: /var/log. */
export function hostLogs(directory: string, journalctl = 'journalctl'): HostLogs {
  return {
    async names(path) {
      const place = await inside(directory, path);
      if (place === undefined) return undefined;
      const entries = await readdir(place, { withFileTypes: true }).catch(() => undefined);
      return entries
        ?.map((each) => (each.isDirectory() ? `${each.name}/` : each.name))
        .sort()
        .slice(0, MAX_NAMES);
    },
    async open(path) {
      const place = await inside(directory, path);
      if (place === undefined) return undefined;
      // Without O_NONBLOCK, opening a pipe without a writer would block a thread of the pool forever.
      const handle = await open(place, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
      if (handle === undefined) return undefined;
      // A link may have replaced the file since the path was resolved.
      const opened = await readlink(`/proc/self/fd/${handle.fd}`).catch(() => undefined);
      const found = await handle.stat().catch(() => undefined);
      if (opened === place && found?.isFile() === true) return createReadStream('', { fd: handle });
      await handle.close();
      return undefined;
    },
    journal: (query, signal) => runJournal(journalctl, query, signal),
  };
}

async function inside(directory: string, path: string): Promise<string | undefined> {
  try {
    const root = await realpath(directory);
    const place = await realpath(join(root, path));
    return place === root || place.startsWith(`${root}/`) ? place : undefined;
  } catch {
    return undefined;
  }
}

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
