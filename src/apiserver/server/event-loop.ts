/**
 * Yields to the event loop between the steps of a large write. Each step is one pass over the object and takes up to
 * tens of milliseconds; without pauses all other requests would wait.
 */
import { setImmediate } from 'node:timers/promises';

const LARGE = 128 * 1024;

/** Reports whether an object of this size is processed with pauses. */
export const isLarge = (bytes = 0): boolean => bytes >= LARGE;

/**
 * Resolves after a full round of the event loop. One setImmediate is not sufficient: it may run within the current
 * round.
 */
export async function yieldEventLoop(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** Maximum duration of uninterrupted work in milliseconds. */
const SLICE_MS = 8;

/** Runs all steps and yields after every slice. Uses the real clock; results do not depend on it. */
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
