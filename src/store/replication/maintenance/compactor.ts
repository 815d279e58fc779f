/**
 * Advances the base of the log and discards rows that compaction has made obsolete, in small steps. Each step is part
 * of a disk write.
 */

import type { Log } from '../../../base/log.ts';
import type { Clock, Timer } from '../../../base/time/clock.ts';
import type { Machine } from '../../core/mvcc/machine.ts';
import type { Discard, LogPosition } from '../../disk/port.ts';
import type { Replica } from '../replica.ts';
import type { WrittenState } from '../replica-deps.ts';

/** Observes how long compaction takes, in milliseconds. */
export interface CompactionTimes {
  /** Called after each step that removes versions from the index. */
  indexed(ms: number): void;
  /** Called after each write that removed rows. `rows`: number of removed rows. */
  removed(rows: number, ms: number): void;
  /** Called when the compaction is complete. */
  finished(ms: number): void;
}

export interface CompactorDeps {
  readonly times: CompactionTimes;
  readonly machine: Machine;
  readonly clock: Clock;
  readonly log: Log;
  /** Entries kept in the log for slow followers. */
  readonly keep: number;
  readonly replica: () => Replica;
  readonly requestWrite: () => void;
}

const STEP = 500;
/** The base advances in steps of this fraction of `keep`. */
const BASE_STEPS = 5;
const RETRY_MS = 1000;

export class Compactor {
  readonly #deps: CompactorDeps;
  #base = 0;
  /** Rows may be discarded only after the log's base has passed this index. */
  #wantedBase = 0;
  #collectable = false;
  #discards: Discard[] = [];
  #writing = false;
  #pauses = 0;
  #timer: Timer | undefined;
  /**
   * Time at which the current compaction was applied. Undefined when there is none or it was applied before this start.
   */
  #compactedMs: number | undefined;
  /** Time at which the rows being discarded were passed to the disk. */
  #handedMs = 0;
  #begun = false;
  #stopped = false;
  #waiters: Array<() => void> = [];
  #quietWaiters: Array<() => void> = [];

  constructor(deps: CompactorDeps) {
    this.#deps = deps;
  }

  /** Called when the store has been loaded and applied up to `applied`. */
  loaded(compacted: number, applied: number): void {
    this.#collectable = compacted > 0;
    this.#compactedMs = undefined;
    this.#wantedBase = applied;
    this.#discards = [];
  }

  begin(): void {
    this.#begun = true;
    this.#base = this.#deps.replica().raft.status().firstIndex - 1;
    this.#goOn();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    for (const wake of this.#quietWaiters.splice(0)) wake();
    this.#wake();
  }

  /** Called when a compaction has been applied as the entry at `index`. */
  compacted(index: number): void {
    this.#collectable = true;
    this.#wantedBase = index;
    this.#compactedMs ??= this.#deps.clock.monotonicMs();
    if (this.#begun) this.#deps.clock.setTimer(0, () => this.#goOn());
  }

  /** Prevents discarding rows between `ready`, which resolves after the write in progress, and `release`. */
  pause(): { readonly ready: Promise<void>; release(): void } {
    this.#pauses += 1;
    let over = false;
    const release = (): void => {
      if (over) return;
      over = true;
      this.#pauses -= 1;
      this.#goOn();
    };
    return { ready: this.#quiet(), release };
  }

  #quiet(): Promise<void> {
    if (this.#stopped || !(this.#writing || this.#discards.length > 0)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#quietWaiters.push(resolve);
    });
  }

  /** Resolves when everything that has been compacted so far is discarded. */
  settled(): Promise<void> {
    if (this.#stopped || !(this.#collectable || this.#writing || this.#discards.length > 0)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
    });
  }

  /** New base of the log once all entries up to `applied` are written. Undefined when it does not change. */
  nextBase(applied: number): LogPosition | undefined {
    const replica = this.#deps.replica();
    let target = Math.max(this.#collectable ? Math.min(this.#wantedBase, applied) : 0, applied - this.#deps.keep);
    if (replica.alone && replica.conf.learners.length === 0) target = Math.max(target, applied);
    if (replica.leads) target = Math.min(target, Math.max(this.#slowestActive(), applied - 2 * this.#deps.keep));
    const worthIt = target - this.#base >= this.#deps.keep / BASE_STEPS || (this.#collectable && target > this.#base);
    if (!worthIt || this.#pauses > 0 || target <= this.#base) return undefined;
    const term = replica.raft.termAt(target);
    return term === undefined ? undefined : { index: target, term };
  }

  /**
   * Lowest match index of the active followers. Later entries are kept for these followers, up to twice `keep` entries.
   */
  #slowestActive(): number {
    let slowest = Number.MAX_SAFE_INTEGER;
    for (const { match, active, state } of this.#deps.replica().raft.status().progress.values()) {
      if (active && state !== 'snapshot') slowest = Math.min(slowest, match);
    }
    return slowest;
  }

  takeDiscards(): readonly Discard[] {
    if (this.#discards.length > 0) this.#writing = true;
    const discards = this.#discards;
    this.#discards = [];
    return discards;
  }

  written(state: WrittenState): void {
    if (state.base !== undefined) {
      this.#base = state.base.index;
      this.#deps.replica().raft.compact(state.base.index);
    }
    if (state.discards.length > 0) {
      this.#writing = false;
      this.#deps.times.removed(state.discards.length, this.#deps.clock.monotonicMs() - this.#handedMs);
      for (const wake of this.#quietWaiters.splice(0)) wake();
    }
    this.#goOn();
  }

  #goOn(): void {
    if (this.#stopped || !this.#begun || this.#pauses > 0 || this.#writing || this.#discards.length > 0) return;
    if (!this.#collectable) {
      this.#finish();
      this.#wake();
      return;
    }
    if (this.#base < this.#wantedBase) {
      this.#moveBase();
      return;
    }
    const began = this.#deps.clock.monotonicMs();
    const step = this.#deps.machine.collect(STEP);
    this.#handedMs = this.#deps.clock.monotonicMs();
    this.#deps.times.indexed(this.#handedMs - began);
    this.#discards.push(...step.discarded);
    if (step.done) this.#collectable = false;
    if (this.#discards.length > 0) this.#deps.requestWrite();
    else this.#deps.clock.setTimer(0, () => this.#goOn());
  }

  #finish(): void {
    if (this.#compactedMs === undefined) return;
    this.#deps.times.finished(this.#deps.clock.monotonicMs() - this.#compactedMs);
    this.#compactedMs = undefined;
  }

  #moveBase(): void {
    const replica = this.#deps.replica();
    if (replica.applied >= this.#wantedBase) this.#deps.requestWrite();
    if (this.#timer !== undefined) return;
    this.#timer = this.#deps.clock.setTimer(RETRY_MS, () => {
      this.#timer = undefined;
      this.#goOn();
    });
  }

  #wake(): void {
    for (const wake of this.#waiters.splice(0)) wake();
  }
}
