import { bodiesIn } from './journal/journal-format.ts';
import type { LogBatch, StoredEntry } from './port.ts';

interface Batch {
  readonly sequence: number;
  readonly revisions: readonly number[];
}

/** Records that are in the journal and not in the database yet, readable by revision. */
export class Pending {
  #batches: Batch[] = [];
  readonly #bodies = new Map<number, { readonly sequence: number; readonly body: Uint8Array }>();

  readonly #discards = new Map<number, number>();

  /** Sequence number of the first record; Infinity if there is none. */
  get first(): number {
    return this.#batches[0]?.sequence ?? Number.POSITIVE_INFINITY;
  }

  /** Stores views of `record` and no reference to `batch`, which could keep a larger structure in memory. */
  add(sequence: number, batch: LogBatch, record: Buffer): void {
    const revisions: number[] = [];
    for (const [i, body] of bodiesIn(record, batch).entries()) {
      const { revision } = batch.entries[i] as StoredEntry;
      if (revision === 0) continue;
      revisions.push(revision);
      this.#bodies.set(revision, { sequence, body });
    }
    for (const { revision } of batch.discards) this.#discards.set(revision, sequence);
    this.#batches.push({ sequence, revisions });
  }

  /** Whether a pending record discards events of this revision. */
  changes(revision: number): boolean {
    return this.#discards.has(revision);
  }

  /** Encoded events of a revision. */
  read(revision: number): Uint8Array | undefined {
    return this.#bodies.get(revision)?.body;
  }

  absorbed(upTo: number): void {
    let count = 0;
    for (const { sequence, revisions } of this.#batches) {
      if (sequence > upTo) break;
      count += 1;
      // After a change of the leader, a later record may have replaced this revision.
      for (const revision of revisions)
        if ((this.#bodies.get(revision)?.sequence ?? 0) <= upTo) this.#bodies.delete(revision);
    }
    this.#batches = this.#batches.slice(count);
    for (const [revision, sequence] of this.#discards) if (sequence <= upTo) this.#discards.delete(revision);
  }

  clear(): void {
    this.#batches = [];
    this.#bodies.clear();
    this.#discards.clear();
  }
}
