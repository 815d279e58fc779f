import { type ChildProcess, spawn } from 'node:child_process';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';

export interface AddressWatchOptions {
  readonly ip: string;
  /** Protocol number of routes that are not reported: this program's own. */
  readonly protocol: number;
  readonly changed: () => void;
  /** Called with each line about a deleted address, route or link, those of this program included. */
  readonly lost?: (line: string) => void;
  readonly log: Log;
  /** util-linux's program that binds the monitor's life to this process; without it a SIGKILL leaves the monitor. */
  readonly setpriv?: string;
}

const RESTART_MS = 5_000;
const DELETED = 'Deleted ';
/** Links of pods come and go all the time and have no address that matters to other hosts. */
const POD_LINK = /\bve[0-9a-f]{11}\b/;

/** `ip monitor` for as long as it is wanted; the process is started again when it ends. */
export function watchAddresses(options: AddressWatchOptions): () => void {
  let stopped = false;
  let child: ChildProcess | undefined;
  let timer: NodeJS.Timeout | undefined;
  let setpriv: string | undefined = options.setpriv ?? 'setpriv';
  const start = (): void => {
    const command = [options.ip, '-oneline', 'monitor', 'address', 'route', 'link'];
    const [file = '', ...args] = setpriv === undefined ? command : [setpriv, '--pdeathsig', 'KILL', ...command];
    const monitor = spawn(file, args, { stdio: ['ignore', 'pipe', 'ignore'] });
    child = monitor;
    let rest = '';
    monitor.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = (lines.pop() ?? '').slice(-4096);
      if (options.lost !== undefined) for (const line of lines) if (line.startsWith(DELETED)) options.lost(line);
      if (lines.some((line) => matters(line, options.protocol))) options.changed();
    });
    let ended = false;
    const again = (reason: string): void => {
      if (stopped || ended) return;
      ended = true;
      options.log.warn('address monitor ended; it is started again', { reason });
      timer = setTimeout(start, RESTART_MS);
    };
    monitor.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT' || setpriv === undefined || stopped) return again(messageOf(error));
      ended = true;
      setpriv = undefined;
      start();
    });
    monitor.on('close', (code, signal) => again(`exit ${code ?? signal}`));
  };
  start();
  return () => {
    stopped = true;
    clearTimeout(timer);
    child?.kill();
  };
}

/** Whether a line of `ip -oneline monitor` is about what other hosts reach this host by. */
export function matters(line: string, protocol: number): boolean {
  if (line.trim() === '' || POD_LINK.test(line)) return false;
  // Own deletions are followed by one comparison that finds no difference.
  if (line.startsWith(DELETED)) return true;
  return !new RegExp(`\\bproto ${protocol}\\b`).test(line);
}
