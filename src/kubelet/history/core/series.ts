/**
 * The samples of one node, slice, pod or container. Values of a block are quantized to 255 steps between the smallest
 * and the largest value of the block, so the error is at most about one percent of the range within the block. A block
 * whose values are equal and without gaps takes no memory of the pool.
 */
import { type BlockPool, FIRST_ID } from './block-pool.ts';
import { BLOCK_SLOTS, ENTRIES, LEVELS, type LevelIndex, periodOf } from './levels.ts';
import { METRICS, type MetricSpec, type Scope } from './metrics.ts';

export interface Identity {
  readonly scope: Scope;
  readonly namespace: string;
  /** Name of the slice or pod; '' for the node. */
  readonly name: string;
  readonly container: string;
}

/**
 * Key of a series in maps. NUL separates the parts, because names of Kubernetes objects and of cgroups contain no NUL.
 */
export const keyOf = ({ scope, namespace, name, container }: Identity): string =>
  `${scope}\0${namespace}\0${name}\0${container}`;

const NONE = 0;
const CONSTANT = 1;
const GAP = 255;
const TOP = 254;
/**
 * Margin, as a share of the new range, that is added when a value lies outside the range of its block. Without the
 * margin, each sample of a rising metric would quantize the block again.
 */
const SLACK = 0.5;
const FLOATS_PER_COLUMN = 2 * ENTRIES + 4;
/** Bytes of the tables of one column. */
const BYTES_PER_COLUMN = 4 * FLOATS_PER_COLUMN + 2 * ENTRIES + 2 * ENTRIES + 2;

/** Part of a block that is saved to a file. */
export interface SavedBlock {
  readonly low: number;
  readonly high: number;
  /** One byte per slot, or first and last slot of a block with equal values. */
  readonly codes: Uint8Array;
}

export class Series {
  readonly identity: Identity;
  readonly metrics: readonly MetricSpec[];
  /** Number of columns: one per metric, and one more for each metric with peaks. */
  readonly columns: number;
  readonly bytes: number;
  /** Counters of the last round, by metric. */
  readonly counters: Float64Array;
  countersAtMs = Number.NEGATIVE_INFINITY;
  /** Instance whose counters were read last: a counter of another instance yields no rate. */
  incarnation = '';
  lastSeenMs = Number.NEGATIVE_INFINITY;
  private readonly pool: BlockPool;
  private readonly peaks: readonly number[];
  private readonly floats: Float32Array;
  private readonly ids: Uint16Array;
  private readonly small: Uint8Array;

  constructor(identity: Identity, pool: BlockPool) {
    this.identity = identity;
    this.pool = pool;
    this.metrics = METRICS[identity.scope];
    let columns = this.metrics.length;
    this.peaks = this.metrics.map(({ peak }) => (peak === true ? columns++ : -1));
    this.columns = columns;
    this.bytes = Series.bytesOf(columns);
    const buffer = new ArrayBuffer(this.bytes);
    this.floats = new Float32Array(buffer, 0, columns * FLOATS_PER_COLUMN);
    this.ids = new Uint16Array(buffer, this.floats.byteLength, columns * ENTRIES);
    this.small = new Uint8Array(buffer, this.floats.byteLength + this.ids.byteLength);
    this.counters = new Float64Array(this.metrics.length).fill(Number.NaN);
  }

  static bytesOf(columns: number): number {
    return columns * BYTES_PER_COLUMN;
  }

  /** Column of the peaks of a metric; -1 if it has none. */
  peakColumn(metric: number): number {
    return this.peaks[metric] ?? -1;
  }

  /** Adds a sample of the finest level. Returns false if there is no memory left. */
  add(metric: number, slot: number, value: number): boolean {
    for (const level of [1, 2] as const) {
      const at = this.accumulator(metric, level);
      const count = this.countIndex(metric, level);
      const known = this.small[count] ?? 0;
      this.floats[at] = known === 0 ? value : (this.floats[at] ?? 0) + value;
      this.floats[at + 1] = known === 0 ? value : Math.max(this.floats[at + 1] ?? 0, value);
      this.small[count] = Math.min(known + 1, 255);
    }
    return this.write(metric, 0, slot, value);
  }

  /** Writes the average and the peak of the samples since the last call to a slot of a coarser level. */
  roll(level: 1 | 2, slot: number): boolean {
    let isWritten = true;
    for (let metric = 0; metric < this.metrics.length; metric++) {
      const count = this.countIndex(metric, level);
      const samples = this.small[count] ?? 0;
      if (samples === 0) continue;
      this.small[count] = 0;
      const at = this.accumulator(metric, level);
      isWritten = this.write(metric, level, slot, (this.floats[at] ?? 0) / samples) && isWritten;
      const peak = this.peakColumn(metric);
      if (peak >= 0) isWritten = this.write(peak, level, slot, this.floats[at + 1] ?? 0) && isWritten;
    }
    return isWritten;
  }

  /** Value of a slot; NaN for a gap. The slot must be within the retention, because newer periods reuse the entries. */
  read(column: number, level: LevelIndex, slot: number): number {
    const entry = entryOf(column, level, periodOf(slot));
    const id = this.ids[entry] ?? NONE;
    if (id === NONE) return Number.NaN;
    const index = slot % BLOCK_SLOTS;
    const low = this.floats[2 * entry] ?? 0;
    if (id === CONSTANT) {
      const first = this.small[2 * entry] ?? 0;
      const last = this.small[2 * entry + 1] ?? 0;
      return index >= first && index <= last ? low : Number.NaN;
    }
    const code = this.pool.byteAt(id, index);
    return code === GAP ? Number.NaN : low + (((this.floats[2 * entry + 1] ?? 0) - low) * code) / TOP;
  }

  /** Whether any sample of a level is known. */
  hasBlocks(level: LevelIndex): boolean {
    const { firstEntry, periods } = LEVELS[level];
    for (let column = 0; column < this.columns; column++) {
      const from = column * ENTRIES + firstEntry;
      for (let entry = from; entry < from + periods; entry++) if ((this.ids[entry] ?? NONE) !== NONE) return true;
    }
    return false;
  }

  /**
   * Removes the block of a period. The result is the number of blocks that were given back to the memory pool, 0 or 1.
   */
  expire(column: number, level: LevelIndex, period: number): number {
    const entry = entryOf(column, level, period);
    const id = this.ids[entry] ?? NONE;
    this.ids[entry] = NONE;
    if (id < FIRST_ID) return 0;
    this.pool.release(id);
    return 1;
  }

  /** Gives all blocks back to the memory pool. */
  dispose(): void {
    for (let entry = 0; entry < this.ids.length; entry++) {
      const id = this.ids[entry] ?? NONE;
      if (id >= FIRST_ID) this.pool.release(id);
      this.ids[entry] = NONE;
    }
  }

  save(column: number, level: LevelIndex, period: number): SavedBlock | undefined {
    const entry = entryOf(column, level, period);
    const id = this.ids[entry] ?? NONE;
    if (id === NONE) return undefined;
    const codes = id === CONSTANT ? this.small.subarray(2 * entry, 2 * entry + 2) : this.pool.block(id);
    return { low: this.floats[2 * entry] ?? 0, high: this.floats[2 * entry + 1] ?? 0, codes };
  }

  /** Returns false if there is no memory left. */
  restore(column: number, level: LevelIndex, period: number, { low, high, codes }: SavedBlock): boolean {
    const entry = entryOf(column, level, period);
    this.expire(column, level, period);
    let id = CONSTANT;
    if (codes.length === BLOCK_SLOTS) {
      id = this.pool.allocate();
      if (id === NONE) return false;
      this.pool.block(id).set(codes);
    } else {
      this.small.set(codes.subarray(0, 2), 2 * entry);
    }
    this.ids[entry] = id;
    this.floats[2 * entry] = low;
    this.floats[2 * entry + 1] = high;
    return true;
  }

  private write(column: number, level: LevelIndex, slot: number, given: number): boolean {
    const entry = entryOf(column, level, periodOf(slot));
    const index = slot % BLOCK_SLOTS;
    const value = Math.fround(given);
    const { floats, small, ids } = this;
    const id = ids[entry] ?? NONE;
    if (id === NONE) {
      ids[entry] = CONSTANT;
      floats[2 * entry] = value;
      floats[2 * entry + 1] = value;
      small[2 * entry] = index;
      small[2 * entry + 1] = index;
      return true;
    }
    if (id === CONSTANT) {
      const last = small[2 * entry + 1] ?? 0;
      if (value === floats[2 * entry] && (index === last + 1 || index === last)) {
        small[2 * entry + 1] = index;
        return true;
      }
      if (!this.expand(entry)) return false;
    }
    const expanded = ids[entry] ?? NONE;
    const known = this.pool.byteAt(expanded, index);
    const low = floats[2 * entry] ?? 0;
    const high = floats[2 * entry + 1] ?? 0;
    // The slot already has a value if the process restarted during it: store the average of the old and the new value.
    const kept = known === GAP ? value : (low + ((high - low) * known) / TOP + value) / 2;
    if (kept < low || kept > high) this.widen(entry, this.pool.block(expanded), kept);
    this.pool.setByte(expanded, index, codeOf(kept, floats[2 * entry] ?? 0, floats[2 * entry + 1] ?? 0));
    return true;
  }

  /** Moves a block of equal values into the memory pool, so that it can hold different values. */
  private expand(entry: number): boolean {
    const id = this.pool.allocate();
    if (id === NONE) return false;
    const first = this.small[2 * entry] ?? 0;
    const last = this.small[2 * entry + 1] ?? 0;
    this.pool
      .block(id)
      .fill(GAP)
      .fill(0, first, last + 1);
    this.ids[entry] = id;
    return true;
  }

  private widen(entry: number, block: Uint8Array, value: number): void {
    const { floats } = this;
    const low = floats[2 * entry] ?? 0;
    const high = floats[2 * entry + 1] ?? 0;
    const slack = low === high ? 0 : SLACK;
    const newLow = Math.fround(value < low ? lowered(value - slack * (high - value), value) : low);
    const newHigh = Math.fround(value > high ? value + slack * (value - low) : high);
    for (let index = 0; index < BLOCK_SLOTS; index++) {
      const code = block[index] ?? GAP;
      if (code !== GAP) block[index] = codeOf(low + ((high - low) * code) / TOP, newLow, newHigh);
    }
    floats[2 * entry] = newLow;
    floats[2 * entry + 1] = newHigh;
  }

  private accumulator(metric: number, level: 1 | 2): number {
    return this.columns * 2 * ENTRIES + metric * 4 + (level - 1) * 2;
  }

  private countIndex(metric: number, level: 1 | 2): number {
    return this.columns * 2 * ENTRIES + metric * 2 + level - 1;
  }
}

/** Lower end of a range: not below 0 if the value that extends the range is not negative. */
const lowered = (low: number, value: number): number => (value >= 0 ? Math.max(0, low) : low);

function codeOf(value: number, low: number, high: number): number {
  if (high <= low) return 0;
  return Math.min(TOP, Math.max(0, Math.round(((value - low) / (high - low)) * TOP)));
}

function entryOf(column: number, level: LevelIndex, period: number): number {
  const { firstEntry, periods } = LEVELS[level];
  return column * ENTRIES + firstEntry + (period % periods);
}
