import type { Log } from '../../../../base/log.ts';
import { type Monitor, startMonitor } from '../monitor.ts';

export interface FilterWatchOptions {
  readonly nft: string;
  /** Called after each transaction, including this program's own, and when transactions may have been missed. */
  readonly changed: () => void;
  readonly log: Log;
  readonly setpriv?: string;
}

/** Prefix of nft's output at the end of each transaction. */
const TRANSACTION = '# new generation ';

/** Follows changes of the packet filter by `nft monitor`. */
export function watchFilter({ nft, changed, log, setpriv }: FilterWatchOptions): Monitor {
  return startMonitor({
    command: [nft, 'monitor'],
    subject: 'packet filter',
    lines: (lines) => {
      if (lines.some((line) => line.startsWith(TRANSACTION))) changed();
    },
    missed: changed,
    log,
    ...(setpriv === undefined ? {} : { setpriv }),
  });
}
