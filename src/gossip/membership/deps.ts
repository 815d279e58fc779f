import type { Clock, RandomSource } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { GossipConfig, MemberMetadata } from '../core/index.ts';
import type { EncodeMessage, MemberState, PeerAddress, SerfCodec } from '../core/port.ts';
import type { RingTransport } from './port.ts';
import type { AnswerQuery } from './queries.ts';

export interface MembershipConfig {
  /** Unique in the ring. It is the node's name. */
  readonly name: string;
  /** Address that other members connect to, if it differs from the listen address (`0.0.0.0`, address translation). */
  readonly advertiseIp?: string;
  /** `sentAtMs` is set when the metadata is published. */
  readonly metadata: MemberMetadata;
  /** Timing and limits. The transport sets `packetBytes`. */
  readonly gossip: GossipConfig;
  /**
   * Minimum interval between publications of frequently changing metadata, because every change is broadcast to the
   * whole ring.
   */
  readonly metadataIntervalMs: number;
  /** How long `leave` waits for each of its two broadcasts to spread. */
  readonly farewellTimeoutMs: number;
  /** Timeout of one table exchange. */
  readonly exchangeTimeoutMs: number;
  /** Time to wait for responses to a query. */
  readonly queryTimeoutMs: number;
}

export interface MembershipDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly transport: RingTransport;
  readonly encode: EncodeMessage;
  readonly serf: SerfCodec;
  /** Handles queries of the ring. Without it, queries are ignored. Must not reject. */
  readonly answerQuery?: AnswerQuery;
  readonly config: MembershipConfig;
}

/** Snapshot of a member of the ring as this host sees it. */
export interface RingMember {
  readonly name: string;
  readonly address: PeerAddress;
  readonly state: MemberState;
  readonly incarnation: number;
  readonly metadata: MemberMetadata;
  /** All tags, including foreign ones, as Serf shows them. */
  readonly tags: ReadonlyMap<string, string>;
  /** Monotonic time at which the member entered this state. */
  readonly sinceMs: number;
  /** Smoothed round-trip time, once measured. */
  readonly rttMs: number | undefined;
}

export type RingEvent =
  | {
      readonly kind: 'joined' | 'updated' | 'suspected' | 'recovered' | 'failed' | 'left' | 'forgotten';
      readonly member: RingMember;
    }
  /** User event of Serf, sent by any agent of the ring with `serf event`. */
  | { readonly kind: 'user-event'; readonly name: string; readonly payload: Uint8Array };

/** Membership of this host in a gossip ring. It only informs and never determines the quorum. */
export interface Membership {
  /** Starts listening as a ring with one member. Resolves with the advertised address. */
  start(): Promise<PeerAddress>;
  /**
   * Exchanges tables with each of `peers` and resolves with the number of responses. Rejects with a `CodedError`
   * `join-failed` when there was none. An empty list succeeds without joining.
   */
  join(peers: readonly PeerAddress[]): Promise<number>;
  /** Broadcasts the departure and stops taking part. Must be followed by `stop`. */
  leave(): Promise<void>;
  /** Stops immediately. Without `leave` before, other members detect this one as failed. */
  stop(): Promise<void>;
  /** All known members, including this host and dead members. */
  members(): readonly RingMember[];
  member(name: string): RingMember | undefined;
  /** Local health from 0 (healthy) to 7 (this member may be too slow to judge other members). */
  health(): number;
  /**
   * Publishes metadata at the next opportunity. `urgent` changes ignore `metadataIntervalMs`. Throws a `CodedError`
   * `metadata-too-large`.
   */
  setMetadata(metadata: MemberMetadata, urgent?: boolean): void;
  /** Sends a Serf query to `nodes`. Resolves with the responses that arrived in time, by member. */
  query(name: string, payload: Uint8Array, nodes: readonly string[]): Promise<ReadonlyMap<string, Uint8Array>>;
  /** Broadcasts an event to the whole ring, best effort. Throws a `CodedError` `event-too-large`. */
  sendEvent(name: string, payload: Uint8Array): void;
  /** Calls `listener` for every following event, in order. Returns an unsubscribe function. */
  subscribe(listener: (event: RingEvent) => void): () => void;
}
