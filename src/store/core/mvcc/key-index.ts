/** The versions of every key, in key order, with their value cache and the versions that compaction can collect. */
import type { Change } from './decision.ts';
import { type CollectedGarbage, Garbage } from './garbage.ts';
import type { Leases } from './leases.ts';
import { OrderedMap } from './ordered-map.ts';
import { intervalOf } from './txn-check.ts';
import { ValueCache, type ValueCacheLimits } from './value-cache.ts';
import { isDelete, type KeyHistory, liveAt, type Version } from './version.ts';

export class KeyIndex {
  readonly #leases: Leases;
  #keys = new OrderedMap<KeyHistory, Standing>(standing);
  #cache: ValueCache;
  #garbage = new Garbage();
  #liveKeys = 0;

  constructor(limits: ValueCacheLimits, leases: Leases) {
    this.#cache = new ValueCache(limits);
    this.#leases = leases;
  }

  /** Number of existing keys after all decided revisions. */
  get keyCount(): number {
    return this.#liveKeys;
  }

  get cachedBytes(): number {
    return this.#cache.bytes;
  }

  /** Highest revision whose values can be read back from the log. */
  get stored(): number {
    return this.#cache.stored;
  }

  set stored(revision: number) {
    this.#cache.stored = revision;
  }

  /** The live version of a key at a revision. */
  at(key: string, revision: number): Version | undefined {
    return liveAt(this.#keys.get(key), revision);
  }

  /** Visits the histories of a range in key order until `visit` returns false. */
  walk(start: string, end: string | undefined, visit: (history: KeyHistory, key: string) => unknown): void {
    this.#keys.walk(start, end, visit);
  }

  /** The live versions in a range at a revision. */
  live(key: string, rangeEnd: string, at: number): Version[] {
    const found: Version[] = [];
    if (rangeEnd === '') {
      const version = this.at(key, at);
      if (version !== undefined) found.push(version);
      return found;
    }
    const { start, end } = intervalOf(key, rangeEnd);
    this.#keys.walk(start, end, (history) => {
      const version = liveAt(history, at);
      if (version !== undefined) found.push(version);
    });
    return found;
  }

  /**
   * Number of keys in a range at a revision. Every page of a LIST needs this count, so it is added up from sums per
   * block instead of visiting each key.
   */
  count(start: string, end: string | undefined, at: number): number {
    let count = 0;
    this.#keys.skim(
      start,
      end,
      ({ live, newest }) => {
        if (newest > at) return false;
        count += live;
        return true;
      },
      (history) => {
        if (liveAt(history, at) !== undefined) count += 1;
      },
    );
    return count;
  }

  /**
   * Versions in a key range from revision `from` to `to`, in the order of their creation. Returns whole revisions,
   * about `most` versions, each with the previous version of its key.
   */
  changes(
    start: string,
    end: string | undefined,
    from: number,
    to: number,
    most: number,
  ): Array<Omit<Change, 'field'>> {
    const found: Array<Omit<Change, 'field'>> = [];
    this.#keys.walk(start, end, ({ versions }) => {
      for (let i = versions.length - 1; i >= 0; i -= 1) {
        const version = versions[i] as Version;
        if (version.revision < from) break;
        if (version.revision > to) continue;
        let at = i - 1;
        while (versions[at]?.revision === version.revision) at -= 1;
        const before = versions[at];
        found.push({ version, previous: before === undefined || isDelete(before) ? undefined : before });
      }
    });
    found.sort((a, b) => a.version.revision - b.version.revision || a.version.sub - b.version.sub);
    if (found.length <= most) return found;
    let cut = most;
    const last = (found[most - 1] as Change).version.revision;
    while (cut < found.length && (found[cut] as Change).version.revision === last) cut += 1;
    return found.slice(0, cut);
  }

  append(version: Version): void {
    let history = this.#keys.get(version.key);
    const before = history?.versions.at(-1);
    if (history === undefined) {
      // Most keys have one version. Appending to an empty array would make V8 reserve space for seventeen versions.
      history = { key: version.key, versions: [version] };
      this.#keys.set(version.key, history);
    } else {
      history.versions.push(version);
      this.#keys.changed(version.key);
    }
    this.#liveKeys += liveness(version) - liveness(before);
    if (before !== undefined) this.#cache.supersede(before);
    this.#cache.addCurrent(version);
    this.#leases.move(version.key, before?.lease ?? 0n, version.lease);
    if (before !== undefined || isDelete(version)) this.#garbage.add(version.revision, history);
  }

  /** Records that the row of `revision` has `events` events. */
  row(revision: number, events: number): void {
    this.#garbage.row(revision, events);
  }

  /** Removes the versions of `revision`, which must be the newest. */
  takeBack(changes: readonly Change[], revision: number): void {
    for (let i = changes.length - 1; i >= 0; i -= 1) this.#undo((changes[i] as Change).version);
    this.#garbage.takeBack(revision);
  }

  #undo(version: Version): void {
    const history = this.#keys.get(version.key);
    if (history === undefined) return;
    history.versions.pop();
    this.#cache.forget(version);
    const before = history.versions.at(-1);
    this.#liveKeys += liveness(before) - liveness(version);
    if (before === undefined) this.#keys.delete(version.key);
    else {
      this.#keys.changed(version.key);
      this.#cache.reinstate(before);
    }
    this.#leases.move(version.key, version.lease, before?.lease ?? 0n);
  }

  /** Attaches keys to their leases. Called once, after the leases have been recreated. */
  attachLeases(): void {
    if (this.#leases.size === 0) return;
    this.#keys.walk('', undefined, ({ key, versions }) => {
      const lease = versions.at(-1)?.lease ?? 0n;
      if (lease !== 0n) this.#leases.get(lease)?.keys.add(key);
    });
  }

  /** Keeps a value that was read back from the log, if it is still current. */
  refill(version: Version, kv: Buffer): void {
    if (version.kv !== undefined || this.#keys.get(version.key)?.versions.at(-1) !== version) return;
    version.kv = Buffer.from(kv);
    this.#cache.addCurrent(version);
  }

  /** Removes about `most` versions that the compaction at `compacted` has made unreachable. */
  collect(compacted: number, most: number): CollectedGarbage {
    return this.#garbage.collect(compacted, most, (history, upTo, some) => this.#trim(history, upTo, some));
  }

  /** Takes over the content of `other`, which must not be used afterwards. The leases of this index are kept. */
  become(other: KeyIndex): void {
    this.#keys = other.#keys;
    this.#liveKeys = other.#liveKeys;
    this.#cache = other.#cache;
    this.#garbage = other.#garbage;
  }

  /**
   * Removes about `most` versions of a key that are unreachable after compaction at `upTo`, the oldest first, and
   * returns them.
   */
  #trim(history: KeyHistory, upTo: number, most: number): Version[] {
    const { versions } = history;
    let keepFrom = lastUpTo(versions, upTo);
    if (keepFrom > most) {
      let cut = most;
      // If one revision wrote the key several times, its versions are removed together, because their events are in one
      // row.
      while (cut < keepFrom && versions[cut]?.revision === versions[cut - 1]?.revision) cut += 1;
      if (cut < keepFrom) return this.#drop(versions, cut);
    }
    const kept = versions[keepFrom];
    // A delete at the compaction revision itself stays, because a watch may still start there.
    if (kept !== undefined && isDelete(kept) && kept.revision < upTo) keepFrom += 1;
    const removed = this.#drop(versions, keepFrom);
    const [first] = versions;
    if (first === undefined) this.#keys.delete(history.key);
    // If one revision wrote the key several times, its events of this key are discarded from the row together, once all
    // of them are unreachable. Until then, its removed versions are not reported.
    return first === undefined ? removed : removed.filter((version) => version.revision !== first.revision);
  }

  #drop(versions: Version[], count: number): Version[] {
    const removed = versions.splice(0, count);
    for (const version of removed) this.#cache.forget(version);
    return removed;
  }
}

/** Position of the last version at or before a revision; 0 if there is none. */
function lastUpTo(versions: readonly Version[], revision: number): number {
  let [from, to] = [0, versions.length];
  while (from < to) {
    const middle = (from + to) >>> 1;
    if ((versions[middle] as Version).revision <= revision) from = middle + 1;
    else to = middle;
  }
  return Math.max(0, from - 1);
}

/** Summary of the last versions of several keys, valid at `newest` and every later revision. */
interface Standing {
  readonly live: number;
  readonly newest: number;
}

function standing(histories: readonly KeyHistory[]): Standing {
  let live = 0;
  let newest = 0;
  for (const { versions } of histories) {
    const last = versions.at(-1);
    live += liveness(last);
    if (last !== undefined && last.revision > newest) newest = last.revision;
  }
  return { live, newest };
}

/** 1 if a key with this last version exists, otherwise 0. */
function liveness(version: Version | undefined): number {
  return version === undefined || isDelete(version) ? 0 : 1;
}
