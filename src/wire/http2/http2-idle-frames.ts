import { ConnectionError, ErrorCode } from './http2-frames.ts';

const WINDOW_MS = 10_000;

/** Limit for frames from a client, which may need some of these frames for each stream that it opens. */
export const IDLE_FRAMES_OF_CLIENT = 2_000;
/** Limit for frames from a server, which may send pings and resets for each call of this client. */
export const IDLE_FRAMES_OF_SERVER = 50_000;

/**
 * Counts, in a time window, frames that cost the receiver work and the peer nothing: pings, settings, resets, empty
 * DATA, frames of closed streams. Protects against floods such as CVE-2019-9512.
 */
export class IdleFrames {
  readonly #most: number;
  #count = 0;
  #since = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Counts one frame. Throws ConnectionError when the limit is exceeded. */
  add(): void {
    const now = performance.now();
    if (now - this.#since > WINDOW_MS) {
      this.#since = now;
      this.#count = 0;
    }
    this.#count += 1;
    if (this.#count > this.#most) throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many frames without work');
  }
}
