import { ApiError } from '../api/meta/status.ts';
import type { Clock } from '../base/clock.ts';

/** Lets writes pass only while a lease is surely held. */
export interface WriteFence {
  /** Throws ApiError 'ServiceUnavailable' when the lease is not held, or was not renewed in time. */
  check(): void;
  /** Aborts when the lease is lost: writes under way end with its reason. Undefined while it is not held. */
  readonly lost: AbortSignal | undefined;
}

/**
 * The fence of one candidate. A renewal counts from the moment its request was sent: what the API server dates later
 * can only make the lease last longer. A process that was stopped (SIGSTOP, a suspended host) finds its fence closed
 * when it continues, before any timer has fired: the check reads both clocks, since the monotonic one may stand still
 * while a host sleeps.
 */
export class LeaseFence implements WriteFence {
  readonly #clock: Clock;
  readonly #lock: string;
  #renewed: { readonly monotonicMs: number; readonly wallMs: number; readonly holdMs: number } | undefined;
  #lost: AbortController | undefined;

  constructor(clock: Clock, lock: string) {
    this.#clock = clock;
    this.#lock = lock;
  }

  get lost(): AbortSignal | undefined {
    return this.#lost?.signal;
  }

  /** Milliseconds that are left of the last renewal, by the monotonic clock alone: a stepped clock loses no lease. */
  get leftMs(): number {
    if (this.#renewed === undefined) return 0;
    return this.#renewed.monotonicMs + this.#renewed.holdMs - this.#clock.monotonicMs();
  }

  check(): void {
    if (this.#renewed !== undefined) {
      const wallMs = this.#clock.nowMs() - this.#renewed.wallMs;
      if (this.leftMs > 0 && wallMs < this.#renewed.holdMs) return;
    }
    const state = this.#renewed === undefined ? 'is not held' : 'was not renewed in time';
    throw new ApiError('ServiceUnavailable', `lease ${this.#lock} ${state}; the write was not sent`);
  }

  /** The instant to pass to `renewed`, taken before the request is sent. */
  now(): { readonly monotonicMs: number; readonly wallMs: number } {
    return { monotonicMs: this.#clock.monotonicMs(), wallMs: this.#clock.nowMs() };
  }

  /** `holdMs`: how long after it writes pass; shorter than the lease. */
  renewed(sent: { readonly monotonicMs: number; readonly wallMs: number }, holdMs: number): void {
    // An answer that comes late must not shorten what a newer one has given.
    if (this.#renewed !== undefined && sent.monotonicMs < this.#renewed.monotonicMs) return;
    this.#renewed = { ...sent, holdMs };
    this.#lost ??= new AbortController();
  }

  /** After an orderly end: later writes are refused, none is under way. */
  close(): void {
    this.#renewed = undefined;
    this.#lost = undefined;
  }

  /** Ends the writes under way too. */
  cut(): void {
    const lost = this.#lost;
    this.close();
    lost?.abort(new ApiError('ServiceUnavailable', `lease ${this.#lock} is lost; the write was aborted`));
  }
}
