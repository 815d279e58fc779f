import type { Log } from '../../base/log.ts';
import { startMonitor } from './monitor.ts';

export interface AddressWatchOptions {
  readonly ip: string;
  /** Protocol number of routes that are not reported: this program's own. */
  readonly protocol: number;
  readonly changed: () => void;
  /**
   * Called with each line about a deleted address, route or link or a link that is down, those of this program
   * included, and with an empty line when lines may have been missed.
   */
  readonly lost?: (line: string) => void;
  readonly log: Log;
  /** util-linux's program that binds the monitor's life to this process; without it a SIGKILL leaves the monitor. */
  readonly setpriv?: string;
}

const DELETED = 'Deleted ';
/** A link line with its flags. */
const LINK = /^\d+: \S+: <([^>]*)>/;
/** Links of pods come and go all the time and have no address that matters to other hosts. */
const POD_LINK = /\bve[0-9a-f]{11}\b/;

/** `ip monitor` for as long as it is wanted; the process is started again when it ends. */
export function watchAddresses({ ip, protocol, changed, lost, log, setpriv }: AddressWatchOptions): () => void {
  const monitor = startMonitor({
    command: [ip, '-oneline', 'monitor', 'address', 'route', 'link'],
    subject: 'address',
    lines: (lines) => {
      if (lost !== undefined) for (const line of lines) if (isLoss(line)) lost(line);
      if (lines.some((line) => matters(line, protocol))) changed();
    },
    missed: () => {
      lost?.('');
      changed();
    },
    log,
    ...(setpriv === undefined ? {} : { setpriv }),
  });
  return monitor.stop;
}

/** True for deletions, and for links that are down: the kernel reports no deletion of their IPv4 routes. */
export function isLoss(line: string): boolean {
  if (line.startsWith(DELETED)) return true;
  const flags = LINK.exec(line)?.[1];
  return flags !== undefined && !flags.split(',').includes('UP');
}

/** Whether a line of `ip -oneline monitor` is about what other hosts reach this host by. */
export function matters(line: string, protocol: number): boolean {
  if (line.trim() === '' || POD_LINK.test(line)) return false;
  // Own deletions are followed by one comparison that finds no difference.
  if (line.startsWith(DELETED)) return true;
  return !new RegExp(`\\bproto ${protocol}\\b`).test(line);
}
