/**
 * A bounded queue of byte chunks from one producer to one consumer. The producer waits in `push` while more than
 * `highWaterBytes` are queued, so a slow consumer slows the socket down instead of filling memory.
 */
export interface ByteQueue extends AsyncIterable<Uint8Array> {
  /** Resolves when there is room again. Chunks pushed after the end, or after the consumer left, are dropped. */
  push(chunk: Uint8Array): Promise<void>;
  readonly queuedBytes: number;
  /** Ends the queue: the consumer sees the end after the queued chunks. Idempotent. */
  end(): void;
  /** Makes the consumer's next read throw `error`, and drops the queued chunks. Idempotent. */
  fail(error: Error): void;
}

/** `onConsumed` is called with the number of bytes that the consumer took, for flow-control windows. */
export function createByteQueue(highWaterBytes: number, onConsumed: (bytes: number) => void = () => {}): ByteQueue {
  const chunks: Uint8Array[] = [];
  let queuedBytes = 0;
  let ended = false;
  let abandoned = false;
  let failure: Error | undefined;
  let wakeConsumer: (() => void) | undefined;
  let waitingProducers: (() => void)[] = [];

  const releaseProducers = (): void => {
    const waiting = waitingProducers;
    waitingProducers = [];
    for (const resume of waiting) resume();
  };
  const wake = (): void => {
    const resume = wakeConsumer;
    wakeConsumer = undefined;
    resume?.();
  };
  const drop = (): void => {
    const bytes = queuedBytes;
    chunks.length = 0;
    queuedBytes = 0;
    releaseProducers();
    if (bytes > 0) onConsumed(bytes);
  };

  async function* consume(): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      for (;;) {
        if (failure !== undefined) throw failure;
        const chunk = chunks.shift();
        if (chunk !== undefined) {
          queuedBytes -= chunk.length;
          if (queuedBytes < highWaterBytes) releaseProducers();
          onConsumed(chunk.length);
          yield chunk;
        } else if (ended) {
          return;
        } else {
          await new Promise<void>((resolve) => {
            wakeConsumer = resolve;
          });
        }
      }
    } finally {
      abandoned = true;
      drop();
    }
  }

  return {
    get queuedBytes() {
      return queuedBytes;
    },
    push(chunk) {
      if (chunk.length === 0) return Promise.resolve();
      if (ended || abandoned || failure !== undefined) {
        onConsumed(chunk.length);
        return Promise.resolve();
      }
      chunks.push(chunk);
      queuedBytes += chunk.length;
      wake();
      if (queuedBytes < highWaterBytes) return Promise.resolve();
      return new Promise((resolve) => {
        waitingProducers.push(resolve);
      });
    },
    end() {
      ended = true;
      wake();
    },
    fail(error) {
      if (failure !== undefined || (ended && chunks.length === 0)) return;
      failure = error;
      drop();
      wake();
    },
    [Symbol.asyncIterator]: consume,
  };
}
