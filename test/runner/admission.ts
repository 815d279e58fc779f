/** Decides which waiting test file starts next, so that the load of the machine stays near its number of cores. */

export interface Candidate {
  /** Cores that the file uses on average. */
  readonly cores: number;
  /** Resources that only one file may use at a time. */
  readonly locks: readonly string[];
  readonly waitsSinceMs: number;
}

export interface Load {
  /** Share of the processors' time that was in use recently, from 0 to 1. */
  readonly busy: number;
  readonly nowMs: number;
}

export interface Limits {
  readonly cores: number;
  readonly filesAtOnce: number;
}

/**
 * Factor by which the sum of the averages may exceed the number of cores, because files also wait for timers and
 * processes.
 */
const OVERSUBSCRIPTION = 1.25;
/** Above this share of busy processors, a file starts only if a core has no running file. */
const BUSY = 0.9;
/** After this time, no other file starts before the waiting file. */
const PATIENCE_MS = 60_000;

/** Returns the file that starts now, or undefined. `waiting`: in order of arrival. */
export function nextFile<T extends Candidate>(
  waiting: Iterable<T>,
  running: readonly Candidate[],
  { busy, nowMs }: Load,
  { cores, filesAtOnce }: Limits,
): T | undefined {
  if (running.length >= filesAtOnce || (busy > BUSY && running.length >= cores)) return undefined;
  const held = new Set(running.flatMap(({ locks }) => locks));
  let left = OVERSUBSCRIPTION * cores - running.reduce((sum, each) => sum + each.cores, 0);
  for (const each of waiting) {
    if (each.locks.some((lock) => held.has(lock))) continue;
    if (running.length === 0 || each.cores <= left) return each;
    if (nowMs - each.waitsSinceMs > PATIENCE_MS) left = 0;
  }
  return undefined;
}
