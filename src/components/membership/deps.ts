import type { Clock, RandomSource } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { GossipConfig, MemberMetadata } from '../../core/gossip/index.ts';
import type { EncodeMessage, MemberState, PeerAddress, SerfCodec } from '../../core/gossip/port.ts';
import type { RingTransport } from './port.ts';
import type { AnswerQuery } from './queries.ts';

export interface MembershipConfig {
  /** Unique in the ring; the node's name. */
  readonly name: string;
  /** The address that others reach us at, where it is not the one listened on (`0.0.0.0`, address translation). */
  readonly advertiseIp?: string;
  /** `toldAtMs` is set when the metadata is published. */
  readonly metadata: MemberMetadata;
  /** Timing and bounds; the transport decides `packetBytes`. */
  readonly gossip: GossipConfig;
  /**
   * Metadata that changes all the time is published at most this often: every change is broadcast to the whole ring.
   */
  readonly metadataIntervalMs: number;
  /** How long `leave` waits for each of its two announcements to get around. */
  readonly farewellTimeoutMs: number;
  /** Of one table exchange. */
  readonly exchangeTimeoutMs: number;
  /** How long answers to a question of ours are waited for. */
  readonly queryTimeoutMs: number;
}

export interface MembershipDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly transport: RingTransport;
  readonly encode: EncodeMessage;
  readonly serf: SerfCodec;
  /** Answers questions of the ring; without it none is answered. Must not reject. */
  readonly answerQuery?: AnswerQuery;
  readonly config: MembershipConfig;
}

/** A member of the ring as this one sees it now. A snapshot. */
export interface RingMember {
  readonly name: string;
  readonly address: PeerAddress;
  readonly state: MemberState;
  readonly incarnation: number;
  readonly metadata: MemberMetadata;
  /** All tags, also those that are not ours, as Serf shows them. */
  readonly tags: ReadonlyMap<string, string>;
  /** When it came into this state, on the monotonic clock. */
  readonly sinceMs: number;
  /** Smoothed round-trip time, once measured. */
  readonly rttMs: number | undefined;
}

export type RingEvent =
  | {
      readonly kind: 'joined' | 'updated' | 'suspected' | 'recovered' | 'failed' | 'left' | 'forgotten';
      readonly member: RingMember;
    }
  /** An event in Serf's sense, sent by any agent of the ring with `serf event`. */
  | { readonly kind: 'user-event'; readonly name: string; readonly payload: Uint8Array };

/** This host's membership of a gossip ring. It informs; it never decides who may commit. */
export interface Membership {
  /** Listens and begins as a ring of one. Resolves to the advertised address. */
  start(): Promise<PeerAddress>;
  /**
   * Exchanges tables with each of `peers`; resolves to how many answered. Rejects with a `CodedError` `join-failed`
   * when none did (an empty list joins no member and succeeds).
   */
  join(peers: readonly PeerAddress[]): Promise<number>;
  /** Tells everybody, then stops taking part. Follow it with `stop`. */
  leave(): Promise<void>;
  /** Stops at once; without `leave` before, others will find this member failed. */
  stop(): Promise<void>;
  /** Everybody known, ourselves and the dead included. */
  members(): readonly RingMember[];
  member(name: string): RingMember | undefined;
  /** 0 is well; up to 7 the more this member doubts its own timeliness. */
  health(): number;
  /**
   * Tells the ring at the next opportunity; `urgent` changes do not wait for `metadataIntervalMs`. Throws a
   * `CodedError` `metadata-too-large`.
   */
  setMetadata(metadata: MemberMetadata, urgent?: boolean): void;
  /** Asks `nodes` a question in Serf's sense. Resolves to the answers by member, of those that answered in time. */
  ask(name: string, payload: Uint8Array, nodes: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>>;
  /** Spreads an event to the whole ring, best effort. Throws a `CodedError` `event-too-large`. */
  sendEvent(name: string, payload: Uint8Array): void;
  /** Calls `listener` for every event from now on, in order; returns how to stop that. */
  subscribe(listener: (event: RingEvent) => void): () => void;
}
