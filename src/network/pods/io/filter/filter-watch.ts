import { OWN_MARK } from '../../../../base/linux/nftables-mark.ts';
import type { Log } from '../../../../base/log.ts';
import { type Monitor, startMonitor } from '../monitor.ts';

export interface FilterWatchOptions {
  readonly nft: string;
  /** Names of this program's tables. */
  readonly tables: readonly string[];
  /**
   * Called after each transaction, including this program's own. `foreign` names the tables, as `FAMILY NAME`, that
   * another program has changed; undefined when transactions may have been missed.
   */
  readonly changed: (foreign: ReadonlySet<string> | undefined) => void;
  readonly log: Log;
  readonly setpriv?: string;
}

/** Prefix of nft's output at the end of each transaction. */
const TRANSACTION = '# new generation ';
/** nft's output after an overflow of its receive buffer. */
const LOST = '# ERROR: We lost some netlink events';
/** Matches a change of a table, chain, rule, set or element. */
const CHANGE = /^\w+ (?:table|chain|rule|set|map|element|flowtable|counter|quota|limit) (\w+ (\S+))/;

/** Follows changes of the packet filter with `nft monitor`. */
export function watchFilter({ nft, tables, changed, log, setpriv }: FilterWatchOptions): Monitor {
  const names = new Set(tables);
  let touched = new Set<string>();
  let isOwn = false;
  return startMonitor({
    command: [nft, 'monitor'],
    subject: 'packet filter',
    lines: (lines) => {
      let foreign: Set<string> | undefined;
      let isMissed = false;
      for (const line of lines) {
        if (line.startsWith(LOST)) isMissed = true;
        if (line.startsWith(TRANSACTION)) {
          foreign ??= new Set();
          if (!isOwn) for (const table of touched) foreign.add(table);
          isOwn = false;
          touched = new Set();
          continue;
        }
        const [, table = '', name = ''] = CHANGE.exec(line) ?? [];
        if (table === OWN_MARK) isOwn = true;
        else if (names.has(name)) touched.add(table);
      }
      if (foreign !== undefined) changed(foreign);
      if (isMissed) changed(undefined);
    },
    missed: () => changed(undefined),
    log,
    ...(setpriv === undefined ? {} : { setpriv }),
  });
}
