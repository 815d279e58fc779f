/**
 * Applies a desired state to an external system repeatedly. The first change is applied immediately. Changes within a
 * short time after an application are applied together. A failed application is retried with back-off, and also after
 * the next change.
 */

import { messageOf } from '../errors.ts';
import type { Log } from '../log.ts';
import type { Clock } from '../time/clock.ts';

export interface ApplyLoopOptions {
  /** Reads the desired state and applies it. */
  readonly apply: () => Promise<void>;
  /** Log message for a failure. The application is retried. */
  readonly failure: string;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ApplyLoop {
  /** Reports a change of the desired state. */
  touch(): void;
  /** Resolves when all changes so far are applied. Never resolves if the loop is stopped before that. */
  settled(): Promise<void>;
  /** Stops the loop. Resolves when no application is in progress. */
  stop(): Promise<void>;
}

const COALESCE_MS = 10;
const RETRY_MIN_MS = 100;
const RETRY_MAX_MS = 30_000;

/** Starts the loop. The first call of `touch` causes the first application. */
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
        // A new change ends the back-off of an earlier failure.
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
