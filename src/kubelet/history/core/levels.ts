/**
 * Time grid of the usage history. Each level has slots of one length, and a block holds `BLOCK_SLOTS` slots of one
 * series. A ring of `periods` blocks covers the retention of the level and the block that is being filled.
 */

export interface Level {
  readonly stepMs: number;
  readonly periods: number;
  /** First entry of the level in the table of a column. */
  readonly firstEntry: number;
  readonly retentionMs: number;
}

export type LevelIndex = 0 | 1 | 2;

export const BLOCK_SLOTS = 120;
const SECOND_MS = 1_000;
const HOUR_MS = 3_600 * SECOND_MS;

/** 15 s for an hour, 1 min for a day, 15 min for 30 days. */
export const LEVELS: readonly [Level, Level, Level] = [
  { stepMs: 15 * SECOND_MS, periods: 3, firstEntry: 0, retentionMs: HOUR_MS },
  { stepMs: 60 * SECOND_MS, periods: 13, firstEntry: 3, retentionMs: 24 * HOUR_MS },
  { stepMs: 900 * SECOND_MS, periods: 25, firstEntry: 16, retentionMs: 30 * 24 * HOUR_MS },
];
export const LONG_LEVEL: LevelIndex = 2;
export const ENTRIES = 41;

/** Number of the slot that contains a time of the timeline. */
export const slotOf = (level: LevelIndex, timeMs: number): number => Math.floor(timeMs / LEVELS[level].stepMs);
export const periodOf = (slot: number): number => Math.floor(slot / BLOCK_SLOTS);
