import type { GossipMessage, PeerAddress, RingState } from '../core/port.ts';

/** Receives the messages for a member of the ring. Its functions are called one after another and must not throw. */
export interface RingHandler {
  /** Handles the messages of one datagram. */
  packet(from: PeerAddress, messages: readonly GossipMessage[]): void;
  /** Handles a table exchange that a peer has started: receives the peer's table and returns this member's table. */
  exchange(theirs: RingState): RingState;
  /** Whether this member responds to a ping over a stream whose target is `node`. */
  answersTo(node: string): boolean;
  /** Handles a message of the upper layer that was received over a stream. */
  user(payload: Uint8Array): void;
}

/** Datagrams and streams between the members of one ring. */
export interface RingTransport {
  /** Number of bytes in a datagram that are available for messages. */
  readonly packetBytes: number;
  /**
   * Starts to listen. Resolves with the address; a port 0 is replaced by the selected port. Rejects with a `CodedError`
   * if the address is in use.
   */
  start(handler: RingHandler): Promise<PeerAddress>;
  /**
   * Sends a datagram. A lost datagram is not reported. `peerProtocol`: highest protocol version of the receiver; 0 if
   * unknown.
   */
  send(to: PeerAddress, parts: readonly Uint8Array[], peerProtocol: number): void;
  /** Exchanges tables with a peer. Rejects with a `CodedError` (`peer-unreachable`, `peer-timeout`, `peer-refused`). */
  exchange(to: PeerAddress, ours: RingState, timeoutMs: number): Promise<RingState>;
  /** Whether `node` responds to a ping over a stream. Never rejects. */
  ping(to: PeerAddress, ping: { readonly seq: number; readonly node: string }, timeoutMs: number): Promise<boolean>;
  /** Closes all sockets, which ends outstanding calls. */
  stop(): Promise<void>;
}

/**
 * Keys of the ring on this host. When a change resolves, the changed keys are in use and on disk. A change rejects with
 * a `CodedError` that contains the reason.
 */
export interface KeyStore {
  /** All keys. The first key encrypts. */
  keys(): readonly Uint8Array[];
  install(key: Uint8Array): Promise<void>;
  use(key: Uint8Array): Promise<void>;
  remove(key: Uint8Array): Promise<void>;
}
