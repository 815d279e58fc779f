/** All series of a host within a fixed memory budget. Times are those of the `Timeline`, not of the wall clock. */
import { BlockPool, SLAB_BYTES } from './block-pool.ts';
import type { HistoryFile } from './history-file.ts';
import { LEVELS, type LevelIndex, LONG_LEVEL, periodOf, slotOf } from './levels.ts';
import { METRICS } from './metrics.ts';
import { type Identity, keyOf, Series } from './series.ts';

/** Bytes of tables and blocks. Objects, names and maps take up to half a megabyte more. */
export const BUDGET_BYTES = 7_340_032;
export const MAX_SERIES = 1_500;
/** Longest time between two readings of a counter from which a rate is computed. After a longer time there is a gap. */
const MAX_RATE_MS = 60_000;
const MIN_RATE_MS = 1_000;
/**
 * Periods that are kept when memory is short: at least 60 hours of samples per 15 minutes, and 4 hours of samples per
 * minute.
 */
const MIN_PERIODS = 3;
/** Number of blocks that one call of `reclaim` tries to free. */
const RECLAIM_BLOCKS = 256;

export interface Reading {
  /**
   * Values in the order of the metrics. For a rate, the value is the counter. A value that is undefined or not finite
   * is unknown.
   */
  readonly values: readonly (number | undefined)[];
  /** Instance to which the counters belong, such as a container ID. Counters of a new instance begin at 0. */
  readonly incarnation: string;
}

export class UsageHistory {
  private readonly budgetBytes: number;
  private readonly maxSeries: number;
  private readonly pool: BlockPool;
  private readonly known = new Map<string, Series>();
  private tableBytes = 0;
  private readonly slots: [number, number, number] = [-1, -1, -1];
  /** Slot of the minute level in which `reclaim` found nothing to free. `reclaim` does nothing until the next slot. */
  private exhaustedIn = -1;

  constructor(options: { readonly budgetBytes?: number; readonly maxSeries?: number } = {}) {
    this.budgetBytes = options.budgetBytes ?? BUDGET_BYTES;
    this.maxSeries = options.maxSeries ?? MAX_SERIES;
    this.pool = new BlockPool(() => this.bytes + SLAB_BYTES <= this.budgetBytes);
  }

  get bytes(): number {
    return this.tableBytes + this.pool.bytes;
  }

  get size(): number {
    return this.known.size;
  }

  all(): IterableIterator<Series> {
    return this.known.values();
  }

  find(identity: Identity): Series | undefined {
    return this.known.get(keyOf(identity));
  }

  /**
   * Completes slots that have ended, and removes samples older than the retention. Must be called before each round.
   */
  advance(timeMs: number): void {
    for (const level of [1, 2] as const) {
      const slot = slotOf(level, timeMs);
      const previous = this.slots[level];
      if (previous >= 0 && slot > previous) this.rollAll(level, previous);
    }
    for (const level of [0, 1, 2] as const) {
      const slot = slotOf(level, timeMs);
      const previous = this.slots[level];
      if (previous >= 0) this.expirePeriods(level, periodOf(previous), periodOf(slot));
      this.slots[level] = Math.max(previous, slot);
    }
    this.removeExpiredSeries(timeMs);
  }

  /** Completes the current slots early. Called before the samples are saved for the last time. */
  finish(): void {
    for (const level of [1, 2] as const) if (this.slots[level] >= 0) this.rollAll(level, this.slots[level]);
  }

  /** Returns the time before which all slots of a level are complete. */
  completeUntil(level: LevelIndex): number {
    return Math.max(0, this.slots[level]) * LEVELS[level].stepMs;
  }

  /** Adds the readings of a round. Returns false if they were not kept for lack of memory. */
  record(identity: Identity, { values, incarnation }: Reading, timeMs: number): boolean {
    const series = this.series(identity);
    if (series === undefined) return false;
    series.lastSeenMs = timeMs;
    const slot = slotOf(0, timeMs);
    const elapsedMs = timeMs - series.countersAtMs;
    if (elapsedMs < MIN_RATE_MS) return true;
    const hasRates = elapsedMs <= MAX_RATE_MS && series.incarnation === incarnation;
    let isKept = true;
    series.metrics.forEach(({ isRate }, metric) => {
      const value = values[metric] ?? Number.NaN;
      if (isRate !== true) {
        if (Number.isFinite(value)) isKept = this.add(series, metric, slot, value) && isKept;
        return;
      }
      const before = series.counters[metric] ?? Number.NaN;
      series.counters[metric] = value;
      if (!hasRates || !Number.isFinite(value) || !Number.isFinite(before)) return;
      // A counter that was reset has counted from zero since then.
      const increase = value >= before ? value - before : value;
      isKept = this.add(series, metric, slot, (increase * 1_000) / elapsedMs) && isKept;
    });
    series.countersAtMs = timeMs;
    series.incarnation = incarnation;
    return isKept;
  }

  /**
   * Returns the series and creates it if there is room. With `mayRemove`, the oldest ended series are removed to make
   * room. Undefined if there is no room.
   */
  private series(identity: Identity, { mayRemove = true }: { readonly mayRemove?: boolean } = {}): Series | undefined {
    const key = keyOf(identity);
    const found = this.known.get(key);
    if (found !== undefined) return found;
    const bytes = Series.bytesOf(columnsOf(identity));
    const isFull = (): boolean => this.known.size >= this.maxSeries || this.bytes + bytes > this.budgetBytes;
    while (isFull() && this.known.size > 0) {
      // Slabs of the pool are never freed. Once the pool has grown to the budget, only removed tables make room.
      if (!mayRemove || !this.removeOldestEnded()) return undefined;
    }
    const series = new Series(identity, this.pool);
    this.tableBytes += series.bytes;
    this.known.set(key, series);
    return series;
  }

  /** Adds the saved samples of a period. Samples for which there is no memory are omitted. */
  restore({ period, series: saved }: HistoryFile): void {
    for (const { identity, lastSeenMs, columns } of saved) {
      const series = this.series(identity, { mayRemove: false });
      if (series === undefined) continue;
      series.lastSeenMs = Math.max(series.lastSeenMs, lastSeenMs);
      for (const { metric, isPeak, ...block } of columns) {
        const index = series.metrics.findIndex(({ name }) => name === metric);
        const column = index >= 0 && isPeak ? series.peakColumn(index) : index;
        if (column >= 0) series.restore(column, LONG_LEVEL, period, block);
      }
    }
  }

  private add(series: Series, metric: number, slot: number, value: number): boolean {
    return series.add(metric, slot, value) || (this.reclaim() && series.add(metric, slot, value));
  }

  private rollAll(level: 1 | 2, slot: number): void {
    for (const series of this.known.values()) if (!series.roll(level, slot)) this.reclaim();
  }

  private expirePeriods(level: LevelIndex, from: number, to: number): void {
    if (to <= from) return;
    const { periods } = LEVELS[level];
    for (let period = Math.max(from + 1, to - periods + 1); period <= to; period++)
      for (const series of this.known.values())
        for (let column = 0; column < series.columns; column++) series.expire(column, level, period);
  }

  private removeExpiredSeries(timeMs: number): void {
    for (const [key, series] of this.known)
      if (timeMs - series.lastSeenMs > LEVELS[LONG_LEVEL].retentionMs) this.remove(key, series);
  }

  /** Removes the series that ended first. Returns false if no series has ended. */
  private removeOldestEnded(): boolean {
    let oldest: [string, Series] | undefined;
    for (const [key, series] of this.known) {
      if (series.lastSeenMs < (oldest?.[1].lastSeenMs ?? Number.POSITIVE_INFINITY)) oldest = [key, series];
    }
    if (oldest === undefined || !this.hasEnded(oldest[1])) return false;
    this.remove(...oldest);
    return true;
  }

  private hasEnded({ lastSeenMs }: Series): boolean {
    return lastSeenMs < (this.slots[0] - 4) * LEVELS[0].stepMs;
  }

  private remove(key: string, series: Series): void {
    series.dispose();
    this.tableBytes -= series.bytes;
    this.known.delete(key);
  }

  /**
   * Frees blocks: first those of ended series, then the oldest ones of secondary metrics, then the oldest ones of all
   * metrics. Returns false if no block was freed.
   */
  private reclaim(): boolean {
    if (this.exhaustedIn === this.slots[1]) return false;
    let freed = 0;
    while (freed < RECLAIM_BLOCKS) {
      const before = this.pool.used;
      if (!this.removeOldestEnded()) break;
      freed += before - this.pool.used;
    }
    for (const isSecondary of [true, false])
      for (const level of [2, 1] as const)
        for (let age = LEVELS[level].periods - 1; age >= MIN_PERIODS; age--) {
          if (freed >= RECLAIM_BLOCKS) return true;
          freed += this.expireAge(level, age, isSecondary);
        }
    if (freed === 0) this.exhaustedIn = this.slots[1];
    return freed > 0;
  }

  private expireAge(level: LevelIndex, age: number, isSecondary: boolean): number {
    const period = periodOf(this.slots[level]) - age;
    if (period < 0) return 0;
    let freed = 0;
    for (const series of this.known.values())
      for (let column = 0; column < series.columns; column++)
        if ((series.metrics[column]?.isSecondary === true) === isSecondary)
          freed += series.expire(column, level, period);
    return freed;
  }
}

const columnsOf = ({ scope }: Identity): number => {
  const metrics = METRICS[scope];
  return metrics.length + metrics.filter(({ peak }) => peak === true).length;
};
