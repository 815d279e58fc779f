import type { GossipMessage, PeerAddress, RingState } from '../core/port.ts';

/** Receives the messages for a ring member. A handler completes before the next one is called and must not throw. */
export interface RingHandler {
  /** The messages of one datagram from this ring. */
  packet(from: PeerAddress, messages: readonly GossipMessage[]): void;
  /** Handles a table exchange started by a peer: receives its table and returns the response. */
  exchange(theirs: RingState): RingState;
  /** Whether this member responds for `node`, the target of a ping over a stream. */
  answersTo(node: string): boolean;
  /** A message of the upper layer received over a stream. */
  user(payload: Uint8Array): void;
}

/** Datagrams and streams among the members of one ring, in some encoding. */
export interface RingTransport {
  /** Bytes of a datagram available for messages. */
  readonly packetBytes: number;
  /**
   * Starts listening and resolves with the address, in which port 0 is replaced by the selected port. Rejects with a
   * `CodedError` when the address is in use.
   */
  start(handler: RingHandler): Promise<PeerAddress>;
  /**
   * Best effort: a lost message is not reported. `peerProtocol` is the receiver's highest version, or 0 when unknown.
   */
  send(to: PeerAddress, parts: readonly Uint8Array[], peerProtocol: number): void;
  /** Exchanges tables. Rejects with a `CodedError` (`peer-unreachable`, `peer-timeout`, `peer-refused`). */
  exchange(to: PeerAddress, ours: RingState, timeoutMs: number): Promise<RingState>;
  /** Whether `node` responds to a ping over a stream. Never rejects. */
  ping(to: PeerAddress, ping: { readonly seq: number; readonly node: string }, timeoutMs: number): Promise<boolean>;
  /** Closes all sockets. Outstanding calls end. */
  stop(): Promise<void>;
}

/**
 * Keys of the ring on this host. When a change resolves, it is in use and on disk. Errors are `CodedError`s with the
 * reason.
 */
export interface KeyStore {
  /** All keys. The first one encrypts. */
  keys(): readonly Uint8Array[];
  install(key: Uint8Array): Promise<void>;
  use(key: Uint8Array): Promise<void>;
  remove(key: Uint8Array): Promise<void>;
}
