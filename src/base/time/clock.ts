/**
 * Time and randomness as dependencies. Pure code takes `nowMs` as an argument; code with side effects receives a
 * `Clock`.
 */
export interface Clock {
  /** Wall-clock time in milliseconds since the epoch. It may jump, so do not measure durations with it. */
  nowMs(): number;
  /** Monotonic time in milliseconds from an arbitrary origin. Not affected by clock changes. */
  monotonicMs(): number;
  /** Calls `callback` once after `delayMs`. The timer does not keep the process alive unless `ref` is true. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/** Longest delay of a timer in milliseconds, about 24 days. Node.js fires longer ones immediately. */
export const MAX_TIMER_MS = 0x7fff_ffff;

export interface RandomSource {
  /** Uniform in [0, 1). Not for secrets. */
  random(): number;
  /** Random UUID (RFC 4122 version 4) from a cryptographic source; in tests from a seed. */
  uuid(): string;
  /** `length` cryptographically random bytes. */
  bytes(length: number): Uint8Array;
}
