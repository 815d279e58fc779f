import type { Clock } from '../../base/time/clock.ts';

interface AppliedWaiter {
  readonly index: number;
  resolve(): void;
}

/** Requests that wait for an index to be applied on this member. */
export class AppliedWaiters {
  readonly #clock: Clock;
  #waiters: AppliedWaiter[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when `index` has been applied, or this member stops. */
  at(index: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push({ index, resolve });
    });
  }

  /** Like `at`, but resolves after `mostMs` at the latest. */
  within(index: number, mostMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.setTimer(mostMs, () => {
        this.#waiters = this.#waiters.filter((each) => each !== waiter);
        resolve();
      });
      const waiter = {
        index,
        resolve: () => {
          timer.cancel();
          resolve();
        },
      };
      this.#waiters.push(waiter);
    });
  }

  applied(index: number): void {
    if (this.#waiters.length === 0) return;
    const left: AppliedWaiter[] = [];
    for (const waiter of this.#waiters) {
      if (waiter.index > index) left.push(waiter);
      else waiter.resolve();
    }
    this.#waiters = left;
  }

  stop(): void {
    for (const waiter of this.#waiters.splice(0)) waiter.resolve();
  }
}

/** Requests that wait for a change of leadership: a leader was elected or lost, or this member is ready to lead. */
export class LeadershipWaiters {
  readonly #clock: Clock;
  readonly #waiters = new Set<() => void>();
  #changes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Number of changes so far. */
  get changes(): number {
    return this.#changes;
  }

  /** Resolves at the next change on this member, or after `mostMs`. */
  change(mostMs: number): Promise<void> {
    return this.changeSince(this.#changes, mostMs);
  }

  /**
   * Like `change`, but resolves immediately if there was a change since `changes` had the value `seen`. A change
   * between an observation and the wait is therefore not missed.
   */
  changeSince(seen: number, mostMs: number): Promise<void> {
    if (seen !== this.#changes) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = (): void => {
        timer.cancel();
        this.#waiters.delete(wake);
        resolve();
      };
      const timer = this.#clock.setTimer(Math.max(1, mostMs), wake);
      this.#waiters.add(wake);
    });
  }

  wake(): void {
    this.#changes += 1;
    for (const wake of [...this.#waiters]) wake();
  }
}

/**
 * Permission changes that this leader has proposed. Followers may apply and acknowledge a change before a leader whose
 * disk is stalled. Without waiting for its changes, such a leader would authorize requests with outdated permissions.
 */
export class PermissionChanges {
  #settled: Promise<void> | undefined;

  /** Settles when no change is in progress. Undefined when there is none. */
  get settled(): Promise<void> | undefined {
    return this.#settled;
  }

  add(change: Promise<void>): void {
    const settled = Promise.allSettled([this.#settled, change]).then(() => {
      if (this.#settled === settled) this.#settled = undefined;
    });
    this.#settled = settled;
  }
}
