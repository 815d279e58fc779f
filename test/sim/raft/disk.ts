import type {
  ConfState,
  Entry,
  HardState,
  SnapshotMeta,
  StoredState,
  TermRun,
} from '../../../src/store/core/raft/types.ts';
import type { KvState } from './kv.ts';
import type { Random } from './random.ts';
import type { Timeline } from './timeline.ts';

/** Stored state machine at `index`. */
export interface Checkpoint {
  readonly index: number;
  readonly term: number;
  readonly conf: ConfState;
  readonly state: KvState;
}

export interface DiskRecord {
  readonly hardState?: HardState | undefined;
  readonly entries?: readonly Entry[];
  readonly snapshot?: { readonly meta: SnapshotMeta; readonly state: KvState } | undefined;
  readonly checkpoint?: Checkpoint;
  readonly compact?: number;
}

/** Contents of a log file. */
export class LogFile {
  hardState: HardState;
  base: { readonly index: number; readonly term: number };
  log: Entry[] = [];
  checkpoint: Checkpoint;

  constructor(first: Checkpoint) {
    const { index, term } = first;
    this.hardState = { term, vote: undefined, commit: index };
    this.base = { index, term };
    this.checkpoint = first;
  }

  term(index: number): number | undefined {
    if (index === this.base.index) return this.base.term;
    return this.log[index - this.base.index - 1]?.term;
  }

  apply(record: DiskRecord): void {
    const { snapshot, entries, hardState, checkpoint, compact } = record;
    if (snapshot !== undefined) {
      const { index, term, conf } = snapshot.meta;
      this.base = { index, term };
      this.log = [];
      this.checkpoint = { index, term, conf, state: snapshot.state };
    }
    const first = entries?.[0];
    if (entries !== undefined && first !== undefined) {
      this.log.length = first.index - this.base.index - 1;
      for (const entry of entries) this.log.push(entry);
    }
    if (hardState !== undefined) this.hardState = hardState;
    if (checkpoint !== undefined && checkpoint.index > this.checkpoint.index) this.checkpoint = checkpoint;
    if (compact !== undefined && compact > this.base.index) {
      const term = this.term(compact) ?? 0;
      this.log.splice(0, compact - this.base.index);
      this.base = { index: compact, term };
    }
  }

  /**
   * State for a restart: all entries after the checkpoint, `extra` entries before it, and the terms of the omitted
   * ones.
   */
  stored(extra: number): StoredState {
    const from = Math.max(this.base.index + 1, this.checkpoint.index + 1 - extra);
    const terms: TermRun[] = this.log
      .filter((entry) => entry.index < from)
      .map((entry) => ({ from: entry.index, term: entry.term }));
    return {
      hardState: this.hardState,
      base: this.base,
      applied: this.checkpoint.index,
      conf: this.checkpoint.conf,
      entries: this.log.filter((entry) => entry.index >= from),
      terms,
    };
  }
}

interface Waiting {
  readonly record: DiskRecord;
  readonly sync: boolean;
  readonly done: () => void;
}

/**
 * Simulated disk. Transactions reach the file in order, and only a flush makes them durable. A flush covers everything
 * written before it started.
 */
export class Disk {
  slowness = 1;
  /** Contents that the operating system would return now. */
  readonly view: LogFile;
  readonly #durable: LogFile;
  #unflushed: DiskRecord[] = [];
  #waiting: Waiting[] = [];
  #flushing = false;
  /** Incremented by every crash, so that operations of earlier lives are ignored. */
  #life = 0;
  readonly #random: Random;
  readonly #timeline: Timeline;
  readonly #lies: boolean;

  constructor(first: Checkpoint, random: Random, timeline: Timeline, lies: boolean) {
    this.view = new LogFile(first);
    this.#durable = new LogFile(first);
    this.#random = random;
    this.#timeline = timeline;
    this.#lies = lies;
  }

  write(record: DiskRecord, sync: boolean, done: () => void): void {
    this.view.apply(record);
    this.#unflushed.push(record);
    if (this.#lies || (!sync && !this.#flushing && this.#waiting.length === 0)) {
      done();
      return;
    }
    this.#waiting.push({ record, sync, done });
    this.#flush();
  }

  #flush(): void {
    if (this.#flushing || this.#waiting.length === 0) return;
    this.#flushing = true;
    const life = this.#life;
    const batch = this.#waiting;
    const records = this.#unflushed.length;
    this.#waiting = [];
    this.#timeline.after(this.#random.between(0.5, 4) * this.slowness, () => {
      if (life !== this.#life) return;
      for (const record of this.#unflushed.splice(0, records)) this.#durable.apply(record);
      for (const { done } of batch) done();
      if (life !== this.#life) return;
      this.#flushing = false;
      this.#flush();
    });
  }

  /** Simulates a power failure: a random prefix of the unflushed transactions survives. */
  crash(): LogFile {
    this.#life++;
    const kept = this.#random.below(this.#unflushed.length + 1);
    for (const record of this.#unflushed.slice(0, kept)) this.#durable.apply(record);
    this.#unflushed = [];
    this.#waiting = [];
    this.#flushing = false;
    return this.#durable;
  }

  /** Returns a new disk with the contents of the file. */
  reopened(): Disk {
    const durable = this.#durable;
    const disk = new Disk(durable.checkpoint, this.#random, this.#timeline, this.#lies);
    for (const file of [disk.view, disk.#durable]) {
      file.hardState = durable.hardState;
      file.base = durable.base;
      file.log = [...durable.log];
    }
    return disk;
  }
}
