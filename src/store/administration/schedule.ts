/** Saves snapshots of the store at intervals with one timer. */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { StoreFiles } from './port.ts';
import { listSnapshots } from './snapshots.ts';

export interface SnapshotSchedule {
  readonly enabled: boolean;
  /** Interval such as 30m, 6h or 7d. */
  readonly every: string;
  readonly keep: number;
  readonly directory: string;
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const MIN_MS = 60_000;
const MAX_MS = 365 * 86_400_000;
export const EVERY_FORMAT = 'give minutes, hours or days such as 30m, 6h or 7d';

/** Milliseconds, or undefined when the text is not an interval from 1m to 365d. */
export function parseEvery(text: string): number | undefined {
  const [, digits = '', unit = ''] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const ms = Number(digits) * (UNITS[unit] ?? 0);
  return ms >= MIN_MS && ms <= MAX_MS ? ms : undefined;
}

/** Delay after start, so that a host process that restarts repeatedly does not save a snapshot each time. */
const FIRST_MS = 60_000;
const RETRY_MS = 3_600_000;

export interface ScheduledSnapshots {
  /** Reads the schedule again. */
  reload(): Promise<void>;
  /** Stops the schedule and aborts a snapshot that is being saved. */
  stop(): Promise<void>;
}

export interface ScheduleOptions {
  /** Reads the schedule. Throws CodedErrors. */
  read(): Promise<SnapshotSchedule>;
  readonly files: StoreFiles;
  readonly clock: Clock;
  readonly log: Log;
  /** Saves one snapshot. `signal` aborts the save. Resolves with its outcome; rejects with the reason. */
  take(schedule: SnapshotSchedule, signal: AbortSignal): Promise<string>;
  /** Delay of the first snapshot after the start. */
  readonly firstMs?: number;
}

/**
 * Saves snapshots on schedule. A snapshot that is overdue at the start is saved after `firstMs`. If the schedule cannot
 * be read, the error is logged and no snapshot is saved.
 */
export function scheduleSnapshots(options: ScheduleOptions): ScheduledSnapshots {
  const { read, files, clock, log, take, firstMs = FIRST_MS } = options;
  const notBefore = clock.monotonicMs() + firstMs;
  const stopping = new AbortController();
  let timer: Timer | undefined;
  let work: Promise<unknown> = Promise.resolve();
  let retryAt = 0;
  const arm = (ms: number): void => {
    timer?.cancel();
    if (stopping.signal.aborted) return;
    timer = clock.setTimer(Math.max(ms, notBefore - clock.monotonicMs()), () => {
      // A save that is still running after a reload is awaited as well.
      work = Promise.all([work, saveWhenDue()]);
    });
  };
  const saveWhenDue = async (): Promise<void> => {
    try {
      const schedule = await read();
      if (!schedule.enabled || stopping.signal.aborted) return;
      const everyMs = parseEvery(schedule.every) ?? RETRY_MS;
      const [newest] = await listSnapshots(schedule.directory, { verify: false }, files);
      const now = clock.nowMs();
      // A clock that was set back must not delay the next snapshot.
      const last = Math.min(newest?.takenMs ?? 0, now);
      const due = Math.max(last + everyMs, retryAt);
      if (due > now || notBefore > clock.monotonicMs()) {
        arm(due - now);
        return;
      }
      retryAt = now + Math.min(everyMs, RETRY_MS);
      const outcome = await take(schedule, stopping.signal);
      // If the store is unchanged, no newer snapshot file is written, so the next interval starts now.
      retryAt = now + everyMs;
      log.v(2, 'snapshot', { outcome });
      arm(everyMs);
    } catch (error) {
      if (stopping.signal.aborted) return;
      log.warn('snapshot not saved', { cause: messageOf(error) });
      arm(Math.max(0, retryAt - clock.nowMs()) || RETRY_MS);
    }
  };
  work = saveWhenDue();
  return {
    reload: async () => {
      await read();
      retryAt = 0;
      arm(0);
    },
    stop: async () => {
      stopping.abort();
      timer?.cancel();
      await work;
    },
  };
}
