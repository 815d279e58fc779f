/**
 * Detects that another program has changed a state that this program applied. The state is read shortly after each
 * application and compared with the current state later.
 */
import type { Clock, Timer } from '../time/clock.ts';

export interface ReadBackOptions {
  /** Reads the current state as texts; undefined for a missing part. */
  readonly read: () => Promise<readonly (string | undefined)[]>;
  /** Called if the state could not be read after an application. */
  readonly onError: (error: unknown) => void;
  readonly clock: Clock;
}

export interface ReadBack {
  /** Called before an application of the desired state starts. */
  applying(): void;
  /** Called after a successful application of the desired state. */
  applied(): void;
  /**
   * Whether a part of the state is missing or differs from the state after the last application. Rejects if the state
   * cannot be read.
   */
  differs(): Promise<boolean>;
  stop(): void;
}

/** Delay before the state is read, so that applications in quick succession cause only one read. */
const READ_MS = 300;

export function createReadBack({ read, onError, clock }: ReadBackOptions): ReadBack {
  let outcome: readonly (string | undefined)[] | undefined;
  let applications = 0;
  let timer: Timer | undefined;
  const remember = async (): Promise<void> => {
    const before = applications;
    const present = await read();
    if (applications === before) outcome ??= present;
  };
  return {
    applying() {
      outcome = undefined;
      applications++;
    },
    applied() {
      timer?.cancel();
      timer = clock.setTimer(READ_MS, () => {
        remember().catch(onError);
      });
    },
    async differs() {
      // Before the first application, there is no state to compare with.
      if (applications === 0) return false;
      const present = await read();
      const before = outcome;
      if (present.some((text, index) => text === undefined || (before !== undefined && text !== before[index]))) {
        outcome = undefined;
        return true;
      }
      outcome = present;
      return false;
    },
    stop: () => timer?.cancel(),
  };
}
