import type { GossipMessage, MemberState, PeerAddress, ProtocolVersions, RingState } from './port.ts';

/** A datagram to send: messages already encoded, to be joined into one packet. */
export interface Packet {
  readonly to: PeerAddress;
  readonly parts: readonly Uint8Array[];
  /** Highest protocol version of the receiver, 0 when unknown: decides whether it understands checksums. */
  readonly peerProtocol: number;
}

/**
 * A ping to try over a stream, for networks that lose datagrams only. Answered by a `stream-ping` step with the same
 * `seq`.
 */
export interface StreamPing {
  readonly seq: number;
  readonly node: string;
  readonly to: PeerAddress;
  readonly timeoutMs: number;
}

/** A table exchange to make over a stream. A success comes back as a `state` step; a failure needs no answer. */
export interface Exchange {
  readonly node: string;
  readonly to: PeerAddress;
}

/** A member as others see it. A snapshot: it does not change later. */
export interface MemberView {
  readonly name: string;
  readonly address: PeerAddress;
  readonly state: MemberState;
  readonly incarnation: number;
  readonly meta: Uint8Array;
  readonly versions: ProtocolVersions;
  /** When it came into this state, on the clock given to the machine. */
  readonly sinceMs: number;
  /** Smoothed round-trip time of our own probes. */
  readonly rttMs: number | undefined;
}

export type MembershipEvent =
  /**
   * `failed` is death without farewell; `recovered` is a suspect found alive; `forgotten` is a dead row leaving the
   * table.
   */
  | {
      readonly kind: 'joined' | 'updated' | 'suspected' | 'recovered' | 'failed' | 'left' | 'forgotten';
      readonly member: MemberView;
    }
  /** Somebody claims the name of a living member from another address. */
  | { readonly kind: 'conflict'; readonly name: string; readonly address: PeerAddress }
  | { readonly kind: 'user'; readonly payload: Uint8Array }
  /** Somebody accused us, and was contradicted. */
  | { readonly kind: 'refuted'; readonly incarnation: number }
  /** This member stood still for `byMs` (a pause, an overloaded host) and gave everybody that much more time. */
  | { readonly kind: 'stalled'; readonly byMs: number }
  /** A broadcast with this token is out as often as it should be, or was pushed out of the queue (`sent` false). */
  | { readonly kind: 'broadcast-done'; readonly token: number; readonly sent: boolean };

/** What a step asks its caller to do. The machine itself does nothing. */
export interface Work {
  readonly packets: Packet[];
  readonly streamPings: StreamPing[];
  readonly exchanges: Exchange[];
  readonly events: MembershipEvent[];
}

export type GossipInput =
  /** All messages of one datagram. */
  | { readonly kind: 'packet'; readonly from: PeerAddress; readonly messages: readonly GossipMessage[] }
  /** The other side's table, from an exchange that either side began. */
  | { readonly kind: 'state'; readonly state: RingState }
  | { readonly kind: 'stream-ping'; readonly seq: number; readonly answered: boolean }
  /** Our own metadata changed. */
  | { readonly kind: 'meta'; readonly meta: Uint8Array }
  /** A message of the layer above to spread; newer ones of the same `subject` replace older ones. */
  | {
      readonly kind: 'broadcast';
      readonly payload: Uint8Array;
      readonly subject?: string;
      readonly token?: number;
    }
  /**
   * The layer above heard that `node` means to leave (or no longer does): its end will count as `left`, not `failed`.
   */
  | { readonly kind: 'intent'; readonly node: string; readonly leaving: boolean }
  /** Say farewell; `broadcast-done` with `token` says that enough members heard. */
  | { readonly kind: 'leave'; readonly token: number };

export function emptyWork(): Work {
  return { packets: [], streamPings: [], exchanges: [], events: [] };
}
