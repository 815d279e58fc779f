import { assert } from '../../../base/errors.ts';
import { TermRuns } from './term-runs.ts';
import type { Entry, SnapshotMeta, StoredState } from './types.ts';

/**
 * Bytes that an entry counts for in every limit: its payload plus a constant for its frame, so that empty entries count
 * as well.
 */
export function entryBytes(entry: Entry): number {
  if (entry.kind === 'data') return entry.data.length + 16;
  if (entry.kind === 'conf') return (entry.change.context?.length ?? 0) + 64;
  return 16;
}

/**
 * The log. Its positions in ascending order: `base` (compacted up to here), `applied` (reported by the caller),
 * `emitted` (returned to the caller to be applied), `committed`, `last`. Independent of these positions: `stable` (on
 * this member's disk) and `handed` (returned to the caller to be written). Entries before `memoryFrom` are only on
 * disk.
 */
export class RaftLog {
  #base: { readonly index: number; readonly term: number };
  #entries: Entry[];
  #memoryFrom: number;
  #bytes = 0;
  readonly #terms = new TermRuns();
  committed: number;
  emitted: number;
  applied: number;
  stable: number;
  #handed: number;
  #snapshot: SnapshotMeta | undefined;
  #installing: number | undefined;

  constructor(stored: StoredState) {
    const { base, entries, applied } = stored;
    this.#base = base;
    this.#entries = [...entries];
    this.#memoryFrom = entries[0]?.index ?? Math.max(base.index, applied) + 1;
    for (const run of stored.terms) this.#terms.extend(run.from, run.term);
    for (const entry of entries) {
      this.#terms.extend(entry.index, entry.term);
      this.#bytes += entryBytes(entry);
    }
    this.stable = this.last;
    this.#handed = this.last;
    this.committed = Math.max(stored.hardState.commit, applied);
    this.emitted = applied;
    this.applied = applied;
    assert(
      entries.every((entry, i) => entry.index === this.#memoryFrom + i),
      'stored entries are consecutive',
    );
    assert(applied >= base.index, 'compacted entries have been applied');
    assert(this.#memoryFrom <= applied + 1, 'entries that are not applied are in memory at start');
    assert(this.committed <= this.last, 'a stored commit index lies inside the log');
    // Throws if the terms of entries that are only on disk are missing.
    if (base.index + 1 < this.#memoryFrom) this.#terms.at(base.index + 1);
  }

  get base(): { readonly index: number; readonly term: number } {
    return this.#base;
  }

  get last(): number {
    return this.#memoryFrom + this.#entries.length - 1;
  }

  get lastTerm(): number {
    return this.term(this.last) ?? 0;
  }

  /** Whether a received snapshot is not completely on disk yet. Until then, the state machine must not be used. */
  get installing(): boolean {
    return this.#installing !== undefined;
  }

  /** The term at `index`; undefined outside the log. */
  term(index: number): number | undefined {
    if (index === this.#base.index) return this.#base.term;
    if (index < this.#base.index || index > this.last) return undefined;
    return this.#terms.at(index);
  }

  /** Whether a log that ends with this index and term is at least as up to date as this log (paper §5.4.1). */
  upToDate(lastIndex: number, lastTerm: number): boolean {
    return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.last);
  }

  /** The last index up to `index` whose term is at most `term`: the highest index at which the two logs can agree. */
  agreement(index: number, term: number): { readonly index: number; readonly term: number } {
    let at = Math.min(index, this.last);
    for (; at > this.#base.index; at--) {
      const mine = this.#terms.at(at);
      if (mine <= term) return { index: at, term: mine };
    }
    return at === this.#base.index ? this.#base : { index: at, term: 0 };
  }

  has(index: number): boolean {
    return index >= this.#memoryFrom && index <= this.last;
  }

  /** Entries `from` to `to`, limited to `maxBytes` but at least one. They must be in memory. */
  slice(from: number, to: number, maxBytes: number): Entry[] {
    if (from > to) return [];
    assert(from >= this.#memoryFrom && to <= this.last, 'entries are in memory');
    const selected: Entry[] = [];
    let bytes = 0;
    for (let at = from - this.#memoryFrom; at <= to - this.#memoryFrom; at++) {
      const entry = this.#entries[at] as Entry;
      bytes += entryBytes(entry);
      if (selected.length > 0 && bytes > maxBytes) break;
      selected.push(entry);
    }
    return selected;
  }

  /** Appends entries at a follower after the consistency check. Returns the index up to which the logs now agree. */
  merge(prevIndex: number, entries: readonly Entry[]): number {
    const fresh = entries.findIndex((entry) => this.term(entry.index) !== entry.term);
    if (fresh >= 0) this.append(entries.slice(fresh));
    return prevIndex + entries.length;
  }

  /** Writes `entries` at their index and drops all later entries. */
  append(entries: readonly Entry[]): void {
    const first = entries[0];
    if (first === undefined) return;
    assert(first.index > this.committed, 'committed entries are never replaced');
    assert(first.index <= this.last + 1, 'the log is contiguous');
    if (first.index <= this.last) this.#truncate(first.index);
    for (const entry of entries) {
      this.#terms.extend(entry.index, entry.term);
      this.#entries.push(entry);
      this.#bytes += entryBytes(entry);
    }
  }

  #truncate(index: number): void {
    for (const gone of this.#entries.splice(index - this.#memoryFrom)) this.#bytes -= entryBytes(gone);
    this.#terms.truncate(index);
    this.stable = Math.min(this.stable, index - 1);
    this.#handed = Math.min(this.#handed, index - 1);
  }

  /** Replaces the log with a snapshot. */
  restore(snapshot: SnapshotMeta): void {
    assert(snapshot.index > this.committed, 'a snapshot is not older than the commit index');
    this.#base = { index: snapshot.index, term: snapshot.term };
    this.#entries = [];
    this.#bytes = 0;
    this.#memoryFrom = snapshot.index + 1;
    this.#terms.clear();
    this.committed = snapshot.index;
    this.emitted = snapshot.index;
    this.stable = snapshot.index;
    this.#handed = snapshot.index;
    this.#snapshot = snapshot;
    this.#installing = snapshot.index;
  }

  /** Discards the log up to `index`, which has been applied. */
  compact(index: number): void {
    if (index <= this.#base.index) return;
    assert(index <= this.applied && index <= this.stable, 'only entries that are applied and on disk are compacted');
    this.#base = { index, term: this.#terms.at(index) };
    this.#terms.compact(index);
    if (index >= this.#memoryFrom) this.#forget(index);
  }

  /**
   * Limits the memory of applied entries. A quarter is freed at a time, so that not every new entry triggers an
   * eviction.
   */
  evict(maxBytes: number): void {
    if (this.#bytes <= maxBytes) return;
    const limit = Math.min(this.applied, this.stable);
    let upTo = this.#memoryFrom - 1;
    for (let bytes = this.#bytes; bytes > maxBytes * 0.75 && upTo < limit; upTo++)
      bytes -= entryBytes(this.#entries[upTo + 1 - this.#memoryFrom] as Entry);
    this.#forget(upTo);
  }

  #forget(upTo: number): void {
    for (const gone of this.#entries.splice(0, upTo + 1 - this.#memoryFrom)) this.#bytes -= entryBytes(gone);
    this.#memoryFrom = upTo + 1;
  }

  get hasUnwritten(): boolean {
    return this.#handed < this.last || this.#snapshot !== undefined;
  }

  /** Returns the entries and the snapshot that still have to be written. */
  takeUnwritten(): { readonly entries: Entry[]; readonly snapshot: SnapshotMeta | undefined } {
    const entries = this.slice(this.#handed + 1, this.last, Number.POSITIVE_INFINITY);
    const snapshot = this.#snapshot;
    this.#handed = this.last;
    this.#snapshot = undefined;
    return { entries, snapshot };
  }

  /**
   * Records a completed write. A written entry that was overwritten meanwhile does not count; the write of its
   * successor does.
   */
  written(last: Entry | undefined, snapshot: SnapshotMeta | undefined): void {
    if (snapshot !== undefined && snapshot.index === this.#installing) {
      this.#installing = undefined;
      this.applied = Math.max(this.applied, snapshot.index);
    }
    if (last !== undefined && last.index > this.stable && this.term(last.index) === last.term) this.stable = last.index;
  }

  get hasCommitted(): boolean {
    return !this.installing && this.emitted < Math.min(this.committed, this.stable);
  }

  /**
   * The next entries to apply: committed and on this member's disk, because the rows of the log are also the rows of
   * the store.
   */
  nextCommitted(maxBytes: number): Entry[] {
    if (!this.hasCommitted) return [];
    return this.slice(this.emitted + 1, Math.min(this.committed, this.stable), maxBytes);
  }

  /** Whether a committed change of the configuration waits to be applied. */
  hasCommittedConfChange(): boolean {
    for (let at = this.emitted + 1; at <= this.committed; at++)
      if (this.#entries[at - this.#memoryFrom]?.kind === 'conf') return true;
    return false;
  }
}
