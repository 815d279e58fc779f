/** Byte channels with independent half-close in each direction, the common interface of SPDY and WebSocket sessions. */

export interface WritableChannel {
  /** Resolves when the peer can take more; rejects with CodedError 'closed' after the channel has closed. */
  write(chunk: Uint8Array): Promise<void>;
  /** Half-closes the sending direction. Idempotent. */
  end(): void;
}

export interface Channel extends WritableChannel {
  /**
   * Bytes from the peer. Ends at the peer's half-close; throws CodedError 'closed' if the connection is lost. Only one
   * consumer is allowed.
   */
  readonly readable: AsyncIterable<Uint8Array>;
}

/** Queued bytes of a channel at which the socket is no longer read. */
export const CHANNEL_HIGH_WATER_BYTES = 256 * 1024;
