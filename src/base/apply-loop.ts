/**
 * Brings something outside to a desired state, again and again: the first change is applied at once, those that arrive
 * until shortly after it together. A failed application is tried again with back-off, and with the next change.
 */
import type { Clock } from './clock.ts';
import { messageOf } from './errors.ts';
import type { Log } from './log.ts';

export interface ApplyLoopOptions {
  /** Reads the desired state and applies it. */
  readonly apply: () => Promise<void>;
  /** The log's phrase for a failure, which is tried again. */
  readonly failure: string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ApplyLoop {
  /** The desired state has changed. */
  touch(): void;
  /** Resolves when everything until now has been applied; never when the loop is stopped before. */
  settled(): Promise<void>;
  /** Resolves when no application is under way. */
  stop(): Promise<void>;
}

const COALESCE_MS = 10;
const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 30_000;

/** Begins with an application when `touch` is called for the first time. */
export function startApplyLoop({ apply, failure, clock, log }: ApplyLoopOptions): ApplyLoop {
  let running = true;
  let touched = 0;
  let applied = 0;
  let wake: (() => void) | undefined;
  let endPause: (() => void) | undefined;
  let waiters: { readonly until: number; readonly resolve: () => void }[] = [];

  const pause = (delayMs: number): Promise<void> =>
    new Promise((resolve) => {
      if (!running) return resolve();
      const timer = clock.setTimer(delayMs, resolve);
      endPause = () => {
        timer.cancel();
        resolve();
      };
    });
  const touch = (): void => {
    touched++;
    wake?.();
  };
  const run = async (): Promise<void> => {
    let retryMs = RETRY_MIN_MS;
    while (running) {
      if (applied === touched) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = undefined;
        continue;
      }
      const present = touched;
      try {
        await apply();
        applied = present;
        retryMs = RETRY_MIN_MS;
        const ready = waiters.filter(({ until }) => until <= applied);
        waiters = waiters.filter(({ until }) => until > applied);
        for (const { resolve } of ready) resolve();
        await pause(COALESCE_MS);
      } catch (error) {
        log.warn(failure, { error: messageOf(error), retryMs });
        await pause(RETRY_MIN_MS);
        // A change does not wait for the retry of what failed before it.
        if (touched === present) {
          wake = () => endPause?.();
          await pause(retryMs - RETRY_MIN_MS);
          wake = undefined;
        }
        retryMs = Math.min(retryMs * 2, RETRY_MAX_MS);
      }
    }
  };
  const ended = run();
  return {
    touch,
    settled: () =>
      applied === touched
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiters.push({ until: touched, resolve });
          }),
    async stop() {
      running = false;
      wake?.();
      endPause?.();
      await ended;
    },
  };
}
