import type { Change, DecidedRevision } from './machine.ts';
import { isDelete } from './version.ts';

export interface WatchTarget {
  readonly start: string;
  /** Exclusive end; undefined if unbounded. */
  readonly end: string | undefined;
  /** True if the watch is for exactly one key. */
  readonly single: boolean;
  /** First revision to deliver. */
  readonly next: number;
  readonly noPut: boolean;
  readonly noDelete: boolean;
}

/** Watches of the same range. Changes are matched once for all of them. */
interface Group<W> {
  readonly start: string;
  readonly end: string | undefined;
  readonly watchers: Set<W>;
}

/** Synchronized watches, indexed so that a published change finds its watches. */
export class Watchers<W extends WatchTarget> {
  readonly #byKey = new Map<string, Set<W>>();
  readonly #byRange = new Map<string, Group<W>>();

  add(watcher: W): void {
    const { start, end, single } = watcher;
    if (single) {
      const same = this.#byKey.get(start);
      if (same === undefined) this.#byKey.set(start, new Set([watcher]));
      else same.add(watcher);
      return;
    }
    const name = rangeName(watcher);
    const group = this.#byRange.get(name);
    if (group === undefined) this.#byRange.set(name, { start, end, watchers: new Set([watcher]) });
    else group.watchers.add(watcher);
  }

  remove(watcher: W): void {
    if (watcher.single) {
      const same = this.#byKey.get(watcher.start);
      if (same?.delete(watcher) && same.size === 0) this.#byKey.delete(watcher.start);
      return;
    }
    const name = rangeName(watcher);
    const group = this.#byRange.get(name);
    if (group?.watchers.delete(watcher) && group.watchers.size === 0) this.#byRange.delete(name);
  }

  /** Changes to deliver per watch, in order. Watches with the same changes share one list. */
  match(revisions: readonly DecidedRevision[]): Map<W, readonly Change[]> {
    const matched = new Map<W, readonly Change[]>();
    if (this.#byKey.size > 0) this.#matchKeys(revisions, matched);
    for (const { start, end, watchers } of this.#byRange.values()) {
      const inRange: Change[] = [];
      for (const { changes } of revisions) {
        for (const change of changes) {
          const { key } = change.version;
          if (key >= start && (end === undefined || key < end)) inRange.push(change);
        }
      }
      note(watchers, inRange, matched);
    }
    return matched;
  }

  #matchKeys(revisions: readonly DecidedRevision[], matched: Map<W, readonly Change[]>): void {
    const ofKeys = new Map<string, Change[]>();
    for (const { changes } of revisions) {
      for (const change of changes) {
        const { key } = change.version;
        if (!this.#byKey.has(key)) continue;
        const known = ofKeys.get(key);
        if (known === undefined) ofKeys.set(key, [change]);
        else known.push(change);
      }
    }
    for (const [key, changes] of ofKeys) note(this.#byKey.get(key) ?? [], changes, matched);
  }
}

function rangeName({ start, end }: WatchTarget): string {
  return end === undefined ? `-${start}` : `${start.length} ${start}${end}`;
}

function note<W extends WatchTarget>(
  watchers: Iterable<W>,
  changes: readonly Change[],
  matched: Map<W, readonly Change[]>,
): void {
  const first = changes[0]?.version.revision;
  if (first === undefined) return;
  for (const watcher of watchers) {
    if (watcher.next <= first && !watcher.noPut && !watcher.noDelete) {
      matched.set(watcher, changes);
      continue;
    }
    const matching = changes.filter(
      ({ version }) => version.revision >= watcher.next && !(isDelete(version) ? watcher.noDelete : watcher.noPut),
    );
    if (matching.length > 0) matched.set(watcher, matching);
  }
}
