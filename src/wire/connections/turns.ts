/** Scheduling of the gate's work on the event loop. */

export interface Turns {
  nowMs(): number;
  /** Runs `work` every `ms` until cancelled; does not keep the process alive. */
  every(ms: number, work: () => void): () => void;
  /** Runs `work` once after `ms`; does not keep the process alive. */
  after(ms: number, work: () => void): void;
  /** Runs `work` in the next turn. */
  next(work: () => void): void;
  /** Runs `work` after each turn that had I/O until it returns false; causes no additional turns. */
  afterEach(work: () => boolean): void;
}

export const eventLoopTurns: Turns = {
  nowMs: () => performance.now(),
  every: (ms, work) => {
    const timer = setInterval(work, ms).unref();
    return () => clearInterval(timer);
  },
  after: (ms, work) => {
    setTimeout(work, ms).unref();
  },
  next: (work) => {
    setImmediate(work);
  },
  afterEach: (work) => {
    // An unreferenced immediate runs at the end of a turn and does not prevent the loop from waiting for I/O.
    const again = (): void => {
      if (work()) setImmediate(again).unref();
    };
    setImmediate(again).unref();
  },
};
