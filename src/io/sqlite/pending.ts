import type { LogBatch, StoredEntry } from '../../components/etcd/port.ts';
import { bodiesIn } from './journal-format.ts';

interface Batch {
  readonly sequence: number;
  readonly revisions: readonly number[];
}

/** What is in the journal and not in the database yet, as far as it may be asked for one by one. */
export class Pending {
  #batches: Batch[] = [];
  readonly #bodies = new Map<number, { readonly sequence: number; readonly body: Uint8Array }>();

  readonly #discards = new Map<number, number>();

  /** The number of the first record; infinity: there is none. */
  get first(): number {
    return this.#batches[0]?.sequence ?? Number.POSITIVE_INFINITY;
  }

  /** Keeps `record` and nothing of `batch`, which may be part of something larger. */
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

  /** Whether something is to be discarded of a row. */
  changes(revision: number): boolean {
    return this.#discards.has(revision);
  }

  /** The events of a row. */
  read(revision: number): Uint8Array | undefined {
    return this.#bodies.get(revision)?.body;
  }

  absorbed(upTo: number): void {
    let count = 0;
    for (const { sequence, revisions } of this.#batches) {
      if (sequence > upTo) break;
      count += 1;
      // Another leader's may have come in its place.
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
