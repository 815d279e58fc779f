import type { Clock } from '../time/clock.ts';
import type { Steps } from './steps.ts';

/** Time after which the event loop runs other work. */
const TURN_MS = 10;

/** Runs all steps. In between, the event loop repeatedly runs other work. */
export async function inTurns<T>(steps: Steps<T>, clock: Pick<Clock, 'monotonicMs' | 'setTimer'>): Promise<T> {
  let sinceMs = clock.monotonicMs();
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (clock.monotonicMs() - sinceMs < TURN_MS) continue;
    await new Promise<void>((resolve) => void clock.setTimer(0, resolve));
    sinceMs = clock.monotonicMs();
  }
}
