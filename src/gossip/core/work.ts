import type { GossipMessage, MemberState, PeerAddress, ProtocolVersions, RingState } from './port.ts';

/** A datagram to send: encoded messages to be joined into one packet. */
export interface Packet {
  readonly to: PeerAddress;
  readonly parts: readonly Uint8Array[];
  /** Highest protocol version of the receiver; 0 if unknown. It decides whether a checksum is added. */
  readonly peerProtocol: number;
}

/**
 * A ping to send over a stream, for networks that lose only datagrams. The caller reports the result as a `stream-ping`
 * input with the same `seq`.
 */
export interface StreamPing {
  readonly seq: number;
  readonly node: string;
  readonly to: PeerAddress;
  readonly timeoutMs: number;
}

/**
 * A table exchange over a stream. The caller passes the received table as a `state` input. A failure is not reported.
 */
export interface Exchange {
  readonly node: string;
  readonly to: PeerAddress;
}

/** Immutable copy of a member's row. */
export interface MemberView {
  readonly name: string;
  readonly address: PeerAddress;
  readonly state: MemberState;
  readonly incarnation: number;
  readonly meta: Uint8Array;
  readonly versions: ProtocolVersions;
  /** Time of the last change of `state`, on the clock passed to the machine. */
  readonly sinceMs: number;
  /** Smoothed round-trip time of this member's probes. */
  readonly rttMs: number | undefined;
}

export type MembershipEvent =
  /**
   * `failed`: the member died without a leave. `recovered`: a suspected member is alive. `forgotten`: a dead member's
   * row was deleted from the table.
   */
  | {
      readonly kind: 'joined' | 'updated' | 'suspected' | 'recovered' | 'failed' | 'left' | 'forgotten';
      readonly member: MemberView;
    }
  /** Another address claims the name of a living member. */
  | { readonly kind: 'conflict'; readonly name: string; readonly address: PeerAddress }
  | { readonly kind: 'user'; readonly payload: Uint8Array }
  /** This member was accused and has refuted the accusation. */
  | { readonly kind: 'refuted'; readonly incarnation: number }
  /** This member was paused for `byMs` (suspended or overloaded host); all deadlines were extended by that time. */
  | { readonly kind: 'stalled'; readonly byMs: number }
  /**
   * The broadcast with this token was sent as often as required, or it was removed from the queue before that (`sent`
   * false).
   */
  | { readonly kind: 'broadcast-done'; readonly token: number; readonly sent: boolean };

/** Work that the caller performs after a step. */
export interface Work {
  readonly packets: Packet[];
  readonly streamPings: StreamPing[];
  readonly exchanges: Exchange[];
  readonly events: MembershipEvent[];
}

export type GossipInput =
  /** All messages of one datagram. */
  | { readonly kind: 'packet'; readonly from: PeerAddress; readonly messages: readonly GossipMessage[] }
  /** The table of another member, from an exchange that either side has started. */
  | { readonly kind: 'state'; readonly state: RingState }
  | { readonly kind: 'stream-ping'; readonly seq: number; readonly answered: boolean }
  /** The metadata of this member has changed. */
  | { readonly kind: 'meta'; readonly meta: Uint8Array }
  /** A message of the layer above that must be broadcast. It replaces an older message with the same `subject`. */
  | {
      readonly kind: 'broadcast';
      readonly payload: Uint8Array;
      readonly subject?: string;
      readonly token?: number;
    }
  /**
   * The Serf layer received that `node` is about to leave, or that it stays after all. The end of a member that is
   * about to leave counts as `left`, not as `failed`.
   */
  | { readonly kind: 'intent'; readonly node: string; readonly leaving: boolean }
  /**
   * Announces the leave of this member. The event `broadcast-done` with this `token` reports that the announcement was
   * sent often enough.
   */
  | { readonly kind: 'leave'; readonly token: number };

export function emptyWork(): Work {
  return { packets: [], streamPings: [], exchanges: [], events: [] };
}
