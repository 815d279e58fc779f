/**
 * The time by which certificates are issued and renewed. It is the host's clock, but never earlier than a minimum that
 * is stored in a file.
 */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { certificateTimeMs, clockProblem, raisedFloorMs } from '../../base/time/trusted-time.ts';
import type { KubeletDeps } from '../../kubelet/index.ts';
import { RELEASED_MS, readIfPresent, writeWhole } from '../../pki/index.ts';
import { systemClock as clock } from '../process/process.ts';

export interface TrustedTime {
  nowMs(): number;
  /** Compares the clock with the clocks of other hosts, raises the minimum, and logs a wrong clock. */
  check(): Promise<void>;
  /**
   * Sets the source for comparisons. `clockOffset`: milliseconds by which the host's clock is ahead of the median clock
   * of other hosts.
   */
  comparedBy(clockOffset: () => number | undefined): void;
  /** Condition `ClockWrong` of the Node. It is not reported until a problem has occurred. */
  readonly conditions: NonNullable<KubeletDeps['conditions']>;
}

const CONDITION = 'ClockWrong';
/** Interval between writes of the minimum. A shorter interval would wear out SD cards. */
const PERSIST_MS = 3_600_000;

/** Reads the minimum. Throws CodedError 'unreadable'. */
export async function openTrustedTime(file: string, log: Log): Promise<TrustedTime> {
  let floorMs = floorOf(await readIfPresent(file));
  let persistedMs = floorMs;
  let offsetOf: () => number | undefined = () => undefined;
  let logged: string | undefined;
  const sources = () => ({ nowMs: clock.nowMs(), floorMs, offsetMs: offsetOf() });
  const problem = (): string | undefined => clockProblem(sources(), RELEASED_MS);

  async function persist(): Promise<void> {
    try {
      await mkdir(dirname(file), { recursive: true, mode: 0o755 });
      await writeWhole(file, `${new Date(floorMs).toISOString()}\n`, { mode: 0o644, durable: true });
      persistedMs = floorMs;
    } catch (error) {
      log.warn('time floor not written', { file, error: messageOf(error) });
    }
  }

  return {
    nowMs: () => certificateTimeMs(sources(), RELEASED_MS),
    check: async () => {
      const now = problem();
      if (now !== undefined && logged === undefined) log.error('clock is wrong', { problem: now });
      if (now === undefined && logged !== undefined) log.info('clock corrected');
      logged = now;
      floorMs = raisedFloorMs(sources(), RELEASED_MS);
      if (floorMs - persistedMs >= PERSIST_MS) await persist();
    },
    comparedBy: (clockOffset) => {
      offsetOf = clockOffset;
    },
    conditions: async (present) => {
      const message = problem();
      if (message !== undefined) return [{ type: CONDITION, status: 'True', reason: 'ClockDiffers', message }];
      if (!present.has(CONDITION)) return [];
      return [{ type: CONDITION, status: 'False', reason: 'ClockAgrees', message: 'no wrong clock was found' }];
    },
  };
}

/** Time in the file; 0 if the file is missing or damaged. */
function floorOf(text: string | undefined): number {
  const ms = Date.parse((text ?? '').trim());
  return Number.isNaN(ms) ? 0 : ms;
}
