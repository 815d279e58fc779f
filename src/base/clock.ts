/** Time as a capability. Cores take `nowMs` as an argument; shells receive a `Clock`. */
export interface Clock {
  /** Wall-clock time in milliseconds since the epoch. May jump: never use it to measure a duration. */
  nowMs(): number;
  /** Monotonic milliseconds from an arbitrary origin; unaffected by clock steps. */
  monotonicMs(): number;
  /** Runs `callback` once after `delayMs`; does not keep the process alive by itself unless `ref` is true. */
  setTimer(delayMs: number, callback: () => void): Timer;
}

export interface Timer {
  cancel(): void;
}

/** Longest delay of a timer in milliseconds, about 24 days. Node.js fires longer ones at once. */
export const MAX_TIMER_MS = 0x7fff_ffff;

/** Randomness as a capability. */
export interface RandomSource {
  /** Uniform in [0, 1). Not for secrets. */
  random(): number;
  /** RFC 4122 version 4 UUID from a cryptographic source (from a seed in tests). */
  uuid(): string;
  /** `length` cryptographically random bytes. */
  bytes(length: number): Uint8Array;
}
