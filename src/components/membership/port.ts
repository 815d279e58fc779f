import type { GossipMessage, PeerAddress, RingState } from '../../core/gossip/port.ts';

/** What a ring member hears. Handlers run to completion before the next is called and must not throw. */
export interface RingHandler {
  /** The messages of one datagram from this ring. */
  packet(from: PeerAddress, messages: readonly GossipMessage[]): void;
  /** Somebody opened a table exchange: what it sent; returns what it is to get. */
  exchange(theirs: RingState): RingState;
  /** Whether this member answers to `node`, which a ping over a stream asked for. */
  answersTo(node: string): boolean;
  /** A message of the layer above that came over a stream. */
  user(payload: Uint8Array): void;
}

/** Datagrams and streams among the members of one ring, in some encoding. */
export interface RingTransport {
  /** Bytes in a datagram that are left for messages. */
  readonly packetBytes: number;
  /**
   * Listens, and resolves to where: a port of 0 has become a real one. Rejects with a `CodedError` when the address is
   * taken.
   */
  start(handler: RingHandler): Promise<PeerAddress>;
  /**
   * Best effort: nothing is reported when it does not arrive. `peerProtocol` is the receiver's highest version, 0 when
   * unknown.
   */
  send(to: PeerAddress, parts: readonly Uint8Array[], peerProtocol: number): void;
  /** Exchanges tables. Rejects with a `CodedError` (`peer-unreachable`, `peer-timeout`, `peer-refused`). */
  exchange(to: PeerAddress, ours: RingState, timeoutMs: number): Promise<RingState>;
  /** Whether `node` answers a ping over a stream. Never rejects. */
  ping(to: PeerAddress, ping: { readonly seq: number; readonly node: string }, timeoutMs: number): Promise<boolean>;
  /** Closes everything; outstanding calls end. */
  stop(): Promise<void>;
}

/**
 * The ring's keys on this host: in use, and on disk as soon as a change resolves. Errors are `CodedError`s that say why
 * not.
 */
export interface KeyStore {
  /** The first one encrypts. */
  keys(): readonly Uint8Array[];
  install(key: Uint8Array): Promise<void>;
  use(key: Uint8Array): Promise<void>;
  remove(key: Uint8Array): Promise<void>;
}
