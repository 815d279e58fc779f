/**
 * The time by which certificates are issued and renewed, on hosts whose clock may be wrong. Without a battery, a clock
 * starts in 1970, and a broken clock may show 2040.
 */

export interface TimeSources {
  /** Time of the host's clock. */
  readonly nowMs: number;
  /** Latest time that is known to have passed (the floor); 0 if unknown. */
  readonly floorMs: number;
  /** Milliseconds by which the host's clock is ahead of the median clock of its peers; undefined without peers. */
  readonly offsetMs: number | undefined;
}

const DAY_MS = 24 * 3600 * 1000;
/**
 * Maximum offset at which the clocks of peers confirm the host's clock. It allows for the inaccuracy of the comparison
 * through gossip.
 */
const AGREEMENT_MS = 60_000;
/**
 * Maximum time by which an unconfirmed clock may raise the floor, because a host may have been off for a year. A clock
 * that is further ahead is used, but does not raise the floor.
 */
const PLAUSIBLE_JUMP_MS = 400 * DAY_MS;
/**
 * Offset above which a problem is reported: a token or certificate that one host issues is not yet valid on the other.
 */
const SKEW_MS = 30_000;

/** The host's time, but never earlier than the floor or the release date of this program. */
export function certificateTimeMs({ nowMs, floorMs }: TimeSources, releasedMs: number): number {
  return Math.max(nowMs, floorMs, releasedMs);
}

/** The new floor for the current clock. The floor never decreases. */
export function raisedFloorMs({ nowMs, floorMs, offsetMs }: TimeSources, releasedMs: number): number {
  if (nowMs <= Math.max(floorMs, releasedMs)) return floorMs;
  const isConfirmed = offsetMs !== undefined && Math.abs(offsetMs) <= AGREEMENT_MS;
  const isContradicted = offsetMs !== undefined && !isConfirmed;
  if (isContradicted) return floorMs;
  return isConfirmed || nowMs - Math.max(floorMs, releasedMs) <= PLAUSIBLE_JUMP_MS ? nowMs : floorMs;
}

/** Description of a problem with the clock; undefined if none is known. */
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
