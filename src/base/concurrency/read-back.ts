/**
 * Detects that another program changed an applied state: the result is read shortly after each application and compared
 * later.
 */
import type { Clock, Timer } from '../clock.ts';

export interface ReadBackOptions {
  /** Reads the current state as texts; undefined for a missing part. */
  readonly read: () => Promise<readonly (string | undefined)[]>;
  /** Called if the result could not be read after an application. */
  readonly onError: (error: unknown) => void;
  readonly clock: Clock;
}

export interface ReadBack {
  /** Call before an application of the desired state starts. */
  applying(): void;
  /** Call after a successful application of the desired state. */
  applied(): void;
  /** Whether the state is incomplete or differs from the last result. Rejects if it cannot be read. */
  differs(): Promise<boolean>;
  stop(): void;
}

/** Delay before reading, so that applications in quick succession cause one read. */
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
      // There is no expected state before the first application.
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
