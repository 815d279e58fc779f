/**
 * Detects that another program has changed what was applied outside: the outcome is read back shortly after each
 * application and compared later.
 */
import type { Clock, Timer } from './clock.ts';

export interface ReadBackOptions {
  /** Texts of what is there now; undefined: it is missing. */
  readonly read: () => Promise<readonly (string | undefined)[]>;
  /** Called when the outcome could not be read after an application. */
  readonly onError: (error: unknown) => void;
  readonly clock: Clock;
}

export interface ReadBack {
  /** An application begins. */
  applying(): void;
  /** An application has succeeded. */
  applied(): void;
  /** True when something is missing or differs from what was read back. Rejects when it cannot be read. */
  differs(): Promise<boolean>;
  stop(): void;
}

/** Applications that follow each other are read back once. */
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
      // Before the first application nothing is expected to be there.
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
