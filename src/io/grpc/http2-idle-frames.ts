import { ConnectionError, ErrorCode } from './http2-frames.ts';

const WINDOW_MS = 10_000;

/** Of a client: it opens streams, and each may cost frames. */
export const IDLE_FRAMES_OF_CLIENT = 2_000;
/** Of a server: it may ping, and reset what we do not need any more, for each call that we make. */
export const IDLE_FRAMES_OF_SERVER = 50_000;

/**
 * Counts frames that cost us something and the peer nothing (pings, settings, resets, empty data, frames of closed
 * streams), in a window of time.
 */
export class IdleFrames {
  readonly #most: number;
  #count = 0;
  #since = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Throws when there are too many. */
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
