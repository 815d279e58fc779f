import { isApiError } from '../api/meta/status.ts';
import { messageOf } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import type { Clock, RandomSource, Timer } from '../base/time/clock.ts';
import { isConnectionError } from './errors.ts';
import type { Reconcile, WorkQueue } from './types.ts';

export interface WorkQueueOptions {
  /** Name of the queue in log lines. */
  readonly name: string;
  readonly reconcile: Reconcile;
  /** Number of keys that are processed concurrently. Default: 1. */
  readonly workers?: number;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  /** First retry delay of a failed key. Default: 5 ms, as in client-go. `maxDelayMs`: longest delay; default 1000 s. */
  readonly baseDelayMs?: number;
  readonly maxDelayMs?: number;
}

/** Retry delay while the server is unreachable. It does not grow, because the failure is not specific to the key. */
const UNREACHABLE_DELAY_MS = 500;

/**
 * Time after which the next key is processed in a later turn of the event loop. A reconcile without requests never
 * leaves the turn, so thousands of them would block it.
 */
const TURN_MS = 5;

/**
 * Creates a queue of keys and its workers. Its memory is limited by the number of distinct keys. Work starts after the
 * first `add`. Source of the semantics: client-go's util/workqueue.
 */
export function createWorkQueue(options: WorkQueueOptions): WorkQueue {
  const { clock, random, log, name } = options;
  const workers = options.workers ?? 1;
  const baseDelayMs = options.baseDelayMs ?? 5;
  const maxDelayMs = options.maxDelayMs ?? 1_000_000;
  /** Keys that wait for a worker, in the order in which they were added. */
  const ready = new Set<string>();
  const working = new Set<string>();
  /** Keys that were added while they were processed. */
  const again = new Set<string>();
  const delayed = new Map<string, { readonly dueMs: number; readonly timer: Timer }>();
  const failures = new Map<string, number>();
  let dispatching = false;
  let stopped = false;
  let onIdle: (() => void) | undefined;

  const add = (key: string): void => {
    if (stopped) return;
    if (working.has(key)) again.add(key);
    else ready.add(key);
    if (dispatching) return;
    // The dispatch is deferred, so that a burst of changes of a key causes one run, and so that reconcilers do not run
    // inside watch handlers.
    dispatching = true;
    queueMicrotask(() => {
      dispatching = false;
      dispatch();
    });
  };

  const addAfter = (key: string, delayMs: number): void => {
    if (stopped) return;
    if (delayMs <= 0) {
      add(key);
      return;
    }
    const dueMs = clock.monotonicMs() + delayMs;
    const known = delayed.get(key);
    if (known !== undefined) {
      if (known.dueMs <= dueMs) return;
      known.timer.cancel();
    }
    const timer = clock.setTimer(delayMs, () => {
      delayed.delete(key);
      add(key);
    });
    delayed.set(key, { dueMs, timer });
  };

  const mayContinue = turnLimit(clock, () => dispatch());
  const dispatch = (): void => {
    while (!stopped && working.size < workers && ready.size > 0 && mayContinue()) {
      const next = ready.values().next();
      if (next.done === true) return;
      ready.delete(next.value);
      working.add(next.value);
      void work(next.value);
    }
  };

  const work = async (key: string): Promise<void> => {
    try {
      await options.reconcile(key);
      failures.delete(key);
    } catch (error) {
      if (!stopped) retry(key, error);
    }
    working.delete(key);
    if (again.delete(key)) ready.add(key);
    if (stopped && working.size === 0) onIdle?.();
    else dispatch();
  };

  const retry = (key: string, error: unknown): void => {
    if (isConnectionError(error)) {
      log.v(3, `${name}: API server unreachable, retrying`, { key, error: error.message });
      addAfter(key, UNREACHABLE_DELAY_MS * (1 + random.random()));
      return;
    }
    const count = failures.get(key) ?? 0;
    failures.set(key, count + 1);
    const retryAfterMs = isApiError(error) ? (error.details?.retryAfterSeconds ?? 0) * 1000 : 0;
    const delayMs = Math.max(Math.min(baseDelayMs * 2 ** Math.min(count, 40), maxDelayMs), retryAfterMs);
    const fields = { key, failures: count + 1, retryMs: delayMs, error: messageOf(error) };
    // The first conflicts of a key are not logged as warnings, because they are expected with optimistic locking.
    if (isApiError(error, 'Conflict') && count < 5) log.v(4, `${name}: conflict`, fields);
    else log.warn(`${name}: reconcile failed`, fields);
    if (!isApiError(error) && error instanceof Error) log.v(4, `${name}: stack`, { key, stack: error.stack });
    addAfter(key, delayMs);
  };

  return {
    add,
    addAfter,
    get length() {
      return ready.size + again.size;
    },
    async stop() {
      stopped = true;
      for (const { timer } of delayed.values()) timer.cancel();
      delayed.clear();
      ready.clear();
      again.clear();
      if (working.size === 0) return;
      await new Promise<void>((resolve) => {
        const previous = onIdle;
        onIdle = () => {
          previous?.();
          resolve();
        };
      });
    },
  };
}

/**
 * Returns a function that reports whether work may continue in the current turn of the event loop. After its first call
 * in a turn, `resume` is called in the next one.
 */
function turnLimit(clock: Clock, resume: () => void): () => boolean {
  /** Time of the first call in the current turn; undefined before it. */
  let startedMs: number | undefined;
  return () => {
    const nowMs = clock.monotonicMs();
    if (startedMs !== undefined) return nowMs - startedMs < TURN_MS;
    startedMs = nowMs;
    clock.setTimer(0, () => {
      startedMs = undefined;
      resume();
    });
    return true;
  };
}
