/**
 * Yields to the event loop between the steps of a large write. Each step is one pass over the object and takes up to a
 * few tens of milliseconds; without a pause between them all other requests would wait.
 */
import { setImmediate } from 'node:timers/promises';

const LARGE = 128 * 1024;

/** Whether an object of so many bytes is processed with pauses. */
export const isLarge = (bytes = 0): boolean => bytes >= LARGE;

/** Resolves after a whole round of the event loop: one immediate alone may run within the current round. */
export async function yieldEventLoop(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** Milliseconds of uninterrupted work. */
const SLICE_MS = 8;

/**
 * Runs all steps and yields whenever they took longer than a slice. Uses the real clock, as the event loop is real:
 * results never depend on it.
 */
export function runSteps<T>(steps: Iterator<undefined, T>): T | Promise<T> {
  const begunMs = performance.now();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() - begunMs > SLICE_MS) return runRemainingSteps(steps);
  }
}

async function runRemainingSteps<T>(steps: Iterator<undefined, T>): Promise<T> {
  await yieldEventLoop();
  for (let begunMs = performance.now(); ; ) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (performance.now() - begunMs <= SLICE_MS) continue;
    await yieldEventLoop();
    begunMs = performance.now();
  }
}
