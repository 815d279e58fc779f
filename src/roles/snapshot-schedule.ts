/**
 * Snapshots at intervals, taken by the host process. Each is a process of its own for a second or two: it may write and hash as it likes, and
 * its memory is given back. Nothing runs in between but one timer.
 */
import { execFile } from 'node:child_process';
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { constants, setPriority } from 'node:os';
import { dirname } from 'node:path';
import { stringify } from 'yaml';
import type { Clock, Timer } from '../base/clock.ts';
import { CodedError, messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { parseEvery, readSchedule, type SnapshotSchedule } from './config/snapshot-schedule.ts';
import { listSnapshots } from './etcd-snapshots.ts';

/** The host has other things to do in its first minute, and whoever is restarted again and again should not write each time. */
const FIRST_MS = 60_000;
const RETRY_MS = 3_600_000;
const CHILD_MS = 600_000;

export interface ScheduledSnapshots {
  /** Looks at the schedule again. */
  reload(): Promise<void>;
  stop(): void;
}

export interface ScheduleOptions {
  readonly file: string;
  readonly directory: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Takes one; rejects with why it could not. */
  take(schedule: SnapshotSchedule): Promise<string>;
  /** How long after its start the first may be taken. */
  readonly firstMs?: number;
}

/** Those that are overdue, because the machine was off, are made up for. An unreadable schedule is said and nothing is taken. */
export function scheduleSnapshots(options: ScheduleOptions): ScheduledSnapshots {
  const { file, directory, clock, log, take, firstMs = FIRST_MS } = options;
  const notBefore = clock.monotonicMs() + firstMs;
  let timer: Timer | undefined;
  let stopped = false;
  let retryAt = 0;
  const arm = (ms: number): void => {
    timer?.cancel();
    if (!stopped) timer = clock.setTimer(Math.max(ms, notBefore - clock.monotonicMs()), () => void look());
  };
  const look = async (): Promise<void> => {
    try {
      const schedule = await readSchedule(file, directory);
      if (!schedule.enabled || stopped) return;
      const everyMs = parseEvery(schedule.every) ?? RETRY_MS;
      const [newest] = await listSnapshots(schedule.directory, false);
      const now = clock.nowMs();
      // A clock that was set back must not put the next one off for as long.
      const last = Math.min(newest?.takenMs ?? 0, now);
      const due = Math.max(last + everyMs, retryAt);
      if (due > now || notBefore > clock.monotonicMs()) {
        arm(due - now);
        return;
      }
      retryAt = now + Math.min(everyMs, RETRY_MS);
      const said = await take(schedule);
      // Where nothing has changed there is no newer file to count from.
      retryAt = now + everyMs;
      log.v(2, 'snapshot', { outcome: said });
      arm(everyMs);
    } catch (error) {
      log.warn('no snapshot was taken', { cause: messageOf(error) });
      arm(Math.max(0, retryAt - clock.nowMs()) || RETRY_MS);
    }
  };
  void look();
  return {
    reload: async () => {
      await readSchedule(file, directory);
      retryAt = 0;
      arm(0);
    },
    stop: () => {
      stopped = true;
      timer?.cancel();
    },
  };
}

/** Has `command snapshot save` do it. */
export function takeInChild(command: readonly string[], root: string): (schedule: SnapshotSchedule) => Promise<string> {
  const [file = '', ...before] = command;
  return ({ keep, directory }) =>
    new Promise((resolve, reject) => {
      const args = [
        'snapshot',
        'save',
        '--root',
        root,
        '--directory',
        directory,
        '--keep',
        String(keep),
        '--if-changed',
      ];
      const child = execFile(file, [...before, ...args], { timeout: CHILD_MS }, (error, stdout, stderr) => {
        if (error === null) resolve(stdout.trim());
        else reject(new CodedError('failed', stderr.trim().replace(/^hyperedge: /, '') || error.message));
      });
      if (child.pid !== undefined) setPriority(child.pid, constants.priority.PRIORITY_LOW);
    });
}

/** Throws CodedError 'unwritable'. */
export async function writeSchedule(file: string, schedule: SnapshotSchedule): Promise<void> {
  const document = { apiVersion: 'hyperedge.dev/v1', kind: 'SnapshotSchedule', ...schedule };
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(`${file}.new`, stringify(document), { mode: 0o644, flush: true });
    await rename(`${file}.new`, file);
  } catch (error) {
    throw new CodedError('unwritable', `cannot write ${file}: ${messageOf(error)}`, { cause: error });
  }
}
