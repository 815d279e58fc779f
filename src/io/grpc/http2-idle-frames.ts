import { ConnectionError, ErrorCode } from './http2-frames.ts';

const MAX_IDLE_FRAMES = 2000;
const WINDOW_MS = 10_000;

/**
 * Counts frames that cost us something and the peer nothing (pings, settings, resets, empty data, frames of closed
 * streams), in a window of time.
 */
export class IdleFrames {
  #count = 0;
  #since = 0;

  /** Throws when there are too many. */
  add(): void {
    const now = performance.now();
    if (now - this.#since > WINDOW_MS) {
      this.#since = now;
      this.#count = 0;
    }
    this.#count += 1;
    if (this.#count > MAX_IDLE_FRAMES)
      throw new ConnectionError(ErrorCode.enhanceYourCalm, 'too many frames without work');
  }
}
