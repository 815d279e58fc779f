import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import type { GossipConfig, MemberMetadata } from '../core/index.ts';
import type { EncodeMessage, MemberState, PeerAddress, SerfCodec } from '../core/port.ts';
import type { RingTransport } from './port.ts';
import type { AnswerQuery } from './queries.ts';

export interface MembershipConfig {
  /** Unique in the ring. It is the node's name. */
  readonly name: string;
  /**
   * Address to which other members connect, if it differs from the listen address, for example `0.0.0.0` or with
   * address translation.
   */
  readonly advertiseIp?: string;
  /** Metadata of this member. `sentAtMs` is set at each publication. */
  readonly metadata: MemberMetadata;
  /** Timing and limits. The transport sets `packetBytes`. */
  readonly gossip: GossipConfig;
  /**
   * Minimum interval between publications of frequently changing metadata, because every change is broadcast to the
   * whole ring.
   */
  readonly metadataIntervalMs: number;
  /** Time for which `leave` waits until each of its two broadcasts has spread. */
  readonly farewellTimeoutMs: number;
  /** Timeout of one table exchange. */
  readonly exchangeTimeoutMs: number;
  /** Time to wait for the responses to a query. */
  readonly queryTimeoutMs: number;
}

export interface MembershipDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly transport: RingTransport;
  readonly encode: EncodeMessage;
  readonly serf: SerfCodec;
  /** Handles queries of the ring and must not reject. If it is absent, queries are ignored. */
  readonly answerQuery?: AnswerQuery;
  readonly config: MembershipConfig;
}

/** Member of the ring as this host knows it. */
export interface RingMember {
  readonly name: string;
  readonly address: PeerAddress;
  readonly state: MemberState;
  readonly incarnation: number;
  readonly metadata: MemberMetadata;
  /** All tags as Serf shows them, including tags of other software. */
  readonly tags: ReadonlyMap<string, string>;
  /** Monotonic time at which the member entered this state. */
  readonly sinceMs: number;
  /** Smoothed round-trip time; undefined until it is measured. */
  readonly rttMs: number | undefined;
}

export type RingEvent =
  | {
      readonly kind: 'joined' | 'updated' | 'suspected' | 'recovered' | 'failed' | 'left' | 'forgotten';
      readonly member: RingMember;
    }
  /** User event of Serf, sent by any agent of the ring with `serf event`. */
  | { readonly kind: 'user-event'; readonly name: string; readonly payload: Uint8Array };

/**
 * Membership of this host in a gossip ring. It only provides information; the quorum of the store does not depend on
 * it.
 */
export interface Membership {
  /** Starts to listen as a ring with one member. Resolves with the advertised address. */
  start(): Promise<PeerAddress>;
  /**
   * Exchanges tables with each of `peers` and resolves with the number of peers that responded. Rejects with a
   * `CodedError` `join-failed` if none responded. Resolves with 0 if the list is empty.
   */
  join(peers: readonly PeerAddress[]): Promise<number>;
  /** Broadcasts the departure and stops participating. The caller must call `stop` afterwards. */
  leave(): Promise<void>;
  /** Stops immediately. Without a preceding `leave`, other members detect this member as failed. */
  stop(): Promise<void>;
  /** All known members, including this host and dead members. */
  members(): readonly RingMember[];
  member(name: string): RingMember | undefined;
  /** Local health from 0 (healthy) to 7. With a high value, this member may be too slow to judge other members. */
  health(): number;
  /**
   * Publishes metadata as soon as permitted. `urgent`: ignores `metadataIntervalMs`. Throws a `CodedError`
   * `metadata-too-large`.
   */
  setMetadata(metadata: MemberMetadata, urgent?: boolean): void;
  /** Sends a Serf query to `nodes`. Resolves with the responses that arrived in time, by the name of the member. */
  query(name: string, payload: Uint8Array, nodes: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>>;
  /** Broadcasts an event to the ring. Loss is possible and is not reported. Throws a `CodedError` `event-too-large`. */
  sendEvent(name: string, payload: Uint8Array): void;
  /** Calls `listener` for every event from now on, in order. Returns a function that unsubscribes. */
  subscribe(listener: (event: RingEvent) => void): () => void;
}
