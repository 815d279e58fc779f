import type { Log } from '../../../../base/log.ts';
import { startMonitor } from '../monitor.ts';

export interface AddressWatchOptions {
  readonly ip: string;
  /** Protocol number of this program's own routes, which are not reported. */
  readonly protocol: number;
  readonly changed: () => void;
  /**
   * Called with each line about a deleted address, route or link or a link that is down, including this program's own
   * changes, and with an empty line when lines may have been missed.
   */
  readonly lost?: (line: string) => void;
  readonly log: Log;
  /**
   * util-linux's setpriv, which ends the monitor together with this process. Without it the monitor survives a SIGKILL
   * of this process.
   */
  readonly setpriv?: string;
}

const DELETED = 'Deleted ';
/** Matches a line about a link, with its flags. */
const LINK = /^\d+: \S+: <([^>]*)>/;
/** Matches links of pods, which change often and have no address that matters to other hosts. */
const POD_LINK = /\bve[0-9a-f]{11}\b/;

/** Runs `ip monitor` until the returned function is called; restarts the process when it ends. */
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

/**
 * Whether the line reports a loss: a deletion, or a link that is down. The kernel reports no deletion of the IPv4
 * routes of such a link.
 */
export function isLoss(line: string): boolean {
  if (line.startsWith(DELETED)) return true;
  const flags = LINK.exec(line)?.[1];
  return flags !== undefined && !flags.split(',').includes('UP');
}

/** Whether a line of `ip -oneline monitor` concerns addresses by which other hosts reach this host. */
export function matters(line: string, protocol: number): boolean {
  if (line.trim() === '' || POD_LINK.test(line)) return false;
  // This program's own deletions are not filtered; they only cause a comparison that finds no difference.
  if (line.startsWith(DELETED)) return true;
  return !new RegExp(`\\bproto ${protocol}\\b`).test(line);
}
