/**
 * The time that decisions about certificates are made by, on hosts whose clock may be wrong: without a battery it
 * starts in 1970, and a broken one may show 2040. Pure.
 */

export interface TimeSources {
  /** The host's clock. */
  readonly nowMs: number;
  /** The latest time that was known to be right; 0: none. */
  readonly floorMs: number;
  /** The host's clock minus the median clock of its peers; undefined: no peer to compare with. */
  readonly offsetMs: number | undefined;
}

const DAY_MS = 24 * 3600 * 1000;
/** Peers' clocks are compared through gossip, which takes some seconds. */
const AGREEMENT_MS = 60_000;
/** A host may have been off for a year. A clock further ahead is used, but never becomes the floor by itself. */
const PLAUSIBLE_JUMP_MS = 400 * DAY_MS;
/** Larger offsets are reported: tokens and certificates of one host are not valid yet on the other. */
const SKEW_MS = 30_000;

/** Never earlier than the floor, nor than the release of this program. */
export function certificateTimeMs({ nowMs, floorMs }: TimeSources, releasedMs: number): number {
  return Math.max(nowMs, floorMs, releasedMs);
}

/** The floor after looking at the clock. It never decreases. */
export function raisedFloorMs({ nowMs, floorMs, offsetMs }: TimeSources, releasedMs: number): number {
  if (nowMs <= Math.max(floorMs, releasedMs)) return floorMs;
  const isConfirmed = offsetMs !== undefined && Math.abs(offsetMs) <= AGREEMENT_MS;
  const isContradicted = offsetMs !== undefined && !isConfirmed;
  if (isContradicted) return floorMs;
  return isConfirmed || nowMs - Math.max(floorMs, releasedMs) <= PLAUSIBLE_JUMP_MS ? nowMs : floorMs;
}

/** What is wrong with the clock, in one sentence; undefined: nothing is known to be. */
export function clockProblem({ nowMs, floorMs, offsetMs }: TimeSources, releasedMs: number): string | undefined {
  const at = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
  if (offsetMs !== undefined && Math.abs(offsetMs) > SKEW_MS) {
    const side = offsetMs > 0 ? 'ahead of' : 'behind';
    const seconds = Math.round(Math.abs(offsetMs) / 1000);
    return `the clock shows ${at(nowMs)} UTC, ${seconds} s ${side} its peers; set it: date -u -s "${at(nowMs - offsetMs)}"`;
  }
  const known = Math.max(floorMs, releasedMs);
  if (nowMs + SKEW_MS >= known) return undefined;
  return `the clock shows ${at(nowMs)} UTC, but it has been ${at(known)} UTC before; set it with date -u -s`;
}
