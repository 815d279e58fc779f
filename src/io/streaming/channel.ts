/** What both protocols offer to the layers above: byte channels that close in each direction on their own. */

export interface WritableChannel {
  /** Resolves when the peer can take more; rejects with CodedError 'closed' when it is gone. */
  write(chunk: Uint8Array): Promise<void>;
  /** Half-closes our direction. Idempotent. */
  end(): void;
}

export interface Channel extends WritableChannel {
  /** The peer's bytes; ends at its half-close, throws CodedError 'closed' when the connection is lost. One consumer. */
  readonly readable: AsyncIterable<Uint8Array>;
}

/** Bytes a channel queues before the socket is no longer read. */
export const CHANNEL_HIGH_WATER_BYTES = 256 * 1024;
