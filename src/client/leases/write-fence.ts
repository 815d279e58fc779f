import { ApiError } from '../../api/meta/status.ts';
import type { Clock } from '../../base/time/clock.ts';

/** Permits writes only while it is certain that a lease is held. */
export interface WriteFence {
  /** Permits a write: throws ApiError 'ServiceUnavailable' if the lease is not held or was not renewed in time. */
  check(): void;
  /** Aborts writes in progress when the lease is lost. Undefined while the lease is not held. */
  readonly lost: AbortSignal | undefined;
}

/**
 * Fence of one candidate. A renewal counts from the time at which its request was sent. The API server handles the
 * request later, so the lease never ends earlier than this count. When a suspended process (SIGSTOP, suspended host)
 * continues, the fence is closed before any timer fires. The check reads both clocks, because the monotonic clock may
 * stand still while the host is suspended.
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

  /**
   * Milliseconds left of the last renewal, by the monotonic clock, so that a change of the wall clock does not end the
   * lease.
   */
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

  /** Current time for `renewed`. The caller reads it before it sends the request. */
  now(): { readonly monotonicMs: number; readonly wallMs: number } {
    return { monotonicMs: this.#clock.monotonicMs(), wallMs: this.#clock.nowMs() };
  }

  /**
   * Records a renewal. `sent`: time at which the request was sent. `holdMs`: time for which writes are permitted; it is
   * shorter than the lease.
   */
  renewed(sent: { readonly monotonicMs: number; readonly wallMs: number }, holdMs: number): void {
    // A response that arrives late must not replace a newer renewal.
    if (this.#renewed !== undefined && sent.monotonicMs < this.#renewed.monotonicMs) return;
    this.#renewed = { ...sent, holdMs };
    this.#lost ??= new AbortController();
  }

  /** Rejects later writes. Used at an orderly end, when no writes are in progress. */
  close(): void {
    this.#renewed = undefined;
    this.#lost = undefined;
  }

  /** Rejects later writes and aborts writes in progress. */
  cut(): void {
    const lost = this.#lost;
    this.close();
    lost?.abort(new ApiError('ServiceUnavailable', `lease ${this.#lock} is lost; the write was aborted`));
  }
}
