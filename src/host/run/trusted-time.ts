/** The time for decisions about certificates: the host's clock, but never before a persisted minimum. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { certificateTimeMs, clockProblem, raisedFloorMs } from '../../base/trusted-time.ts';
import type { KubeletDeps } from '../../kubelet/index.ts';
import { RELEASED_MS, readIfPresent, writeWhole } from '../../pki/index.ts';
import { systemClock as clock } from '../process/process.ts';

export interface TrustedTime {
  nowMs(): number;
  /** Compares the clock with that of peers, raises the minimum and reports a wrong clock. */
  check(): Promise<void>;
  /** `clockOffset`: the host's clock minus the median clock of its peers. */
  comparedBy(clockOffset: () => number | undefined): void;
  /** Condition `ClockWrong` of the Node; reported after the first problem. */
  readonly conditions: NonNullable<KubeletDeps['conditions']>;
}

const CONDITION = 'ClockWrong';
/** A shorter interval would wear out SD cards. */
const PERSIST_MS = 3_600_000;

/** Throws CodedError 'unreadable'. */
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
      if (now === undefined && logged !== undefined) log.info('clock is right again');
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

/** Latest known time in the text of the floor file. A damaged file is ignored. */
function floorOf(text: string | undefined): number {
  const ms = Date.parse((text ?? '').trim());
  return Number.isNaN(ms) ? 0 : ms;
}
