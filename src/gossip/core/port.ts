/**
 * Messages that members of a gossip ring exchange, independent of their encoding. They are those of HashiCorp's
 * memberlist (protocol 1–5), which is SWIM (Das, Gupta, Motivala 2002) with Lifeguard (Dadgar, Phillips, Currey 2018).
 */

/** Address at which a member listens for datagrams and streams. `ip` is a literal in its shortest text form. */
export interface PeerAddress {
  readonly ip: string;
  readonly port: number;
}

/**
 * Lowest, highest and current protocol version that a member supports: first three for the ring's protocol, then three
 * for the layer above it (memberlist's `Vsn`).
 */
export type ProtocolVersions = readonly [number, number, number, number, number, number];

/** Requests an `ack`. Only the member named `node` responds, so another member at that address stays silent. */
export interface PingMessage {
  readonly kind: 'ping';
  readonly seq: number;
  readonly node: string;
  readonly from?: { readonly name: string; readonly address: PeerAddress };
}

/**
 * Requests that the receiver pings `target` and forwards the response. With `nack`, the receiver also reports if the
 * target does not respond.
 */
export interface IndirectPingMessage {
  readonly kind: 'indirect-ping';
  readonly seq: number;
  readonly node: string;
  readonly target: PeerAddress;
  readonly nack: boolean;
  readonly from?: { readonly name: string; readonly address: PeerAddress };
}

export interface AckMessage {
  readonly kind: 'ack';
  readonly seq: number;
}

/**
 * Report of an intermediary that the target did not respond (Lifeguard, "local health aware probe"). It proves that the
 * intermediary is reachable.
 */
export interface NackMessage {
  readonly kind: 'nack';
  readonly seq: number;
}

export interface AliveMessage {
  readonly kind: 'alive';
  readonly incarnation: number;
  readonly node: string;
  readonly address: PeerAddress;
  /** Metadata of at most {@link MAX_META_BYTES} bytes. The ring does not interpret it. */
  readonly meta: Uint8Array;
  readonly versions: ProtocolVersions;
}

/**
 * Accusation of the member `node` by the member `from`. A `dead` message in which both are the same member announces
 * its leave.
 */
export interface AccusationMessage {
  readonly kind: 'suspect' | 'dead';
  readonly incarnation: number;
  readonly node: string;
  readonly from: string;
}

/** A message of the layer above. The ring does not interpret it. */
export interface UserMessage {
  readonly kind: 'user';
  readonly payload: Uint8Array;
}

export type GossipMessage =
  | PingMessage
  | IndirectPingMessage
  | AckMessage
  | NackMessage
  | AliveMessage
  | AccusationMessage
  | UserMessage;

export type MemberState = 'alive' | 'suspect' | 'dead' | 'left';

/** One row of the table that two members exchange over a stream. */
export interface StateRow {
  readonly name: string;
  readonly address: PeerAddress;
  readonly meta: Uint8Array;
  readonly incarnation: number;
  readonly state: MemberState;
  readonly versions: ProtocolVersions;
}

/** The full table of one member, as sent in a push/pull exchange. */
export interface RingState {
  readonly rows: readonly StateRow[];
  /** State of the layer above; empty if there is none. */
  readonly userState: Uint8Array;
  readonly join: boolean;
}

/**
 * Encodes a message for a datagram. It must not have side effects. The machine calls it once per message, even if the
 * message is sent several times.
 */
export type EncodeMessage = (message: GossipMessage) => Uint8Array;

/** Maximum length of a member's metadata in bytes. Source: memberlist's `MetaMaxSize`. */
export const MAX_META_BYTES = 512;

/**
 * Highest incarnation that is accepted from other members. Incarnations grow by one per refutation or change of the
 * metadata, so a correct member never reaches it. Accusations with this incarnation are ignored, because they could not
 * be refuted; of alive messages with this incarnation, the last one counts.
 */
export const MAX_INCARNATION = 0xffff_fff0;

/**
 * Longest accepted member name, in bytes of UTF-8. Host names have at most 253. With this limit, the table of a full
 * ring fits into a stream.
 */
export const MAX_NAME_BYTES = 255;

/** Messages of the Serf layer (serf/messages.go). Only messages for membership, events and queries are decoded. */
export type SerfMessage =
  | { readonly kind: 'leave'; readonly ltime: number; readonly node: string; readonly prune: boolean }
  | { readonly kind: 'join'; readonly ltime: number; readonly node: string }
  | {
      readonly kind: 'user-event';
      readonly ltime: number;
      readonly name: string;
      readonly payload: Uint8Array;
      readonly coalesce: boolean;
    }
  | SerfQuery
  | SerfResponse
  | { readonly kind: 'other'; readonly type: number };

/** A query to the whole ring, broadcast like an event. Each member responds to the requester by datagram. */
export interface SerfQuery {
  readonly kind: 'query';
  readonly ltime: number;
  readonly id: number;
  /** Address of the requester; undefined if the message contains no valid address. */
  readonly from: PeerAddress | undefined;
  /** Names of the members that should respond; undefined means all. */
  readonly nodes: readonly string[] | undefined;
  /** Whether the query has a filter of an unknown type. Then this member must not respond. */
  readonly otherFilters: boolean;
  /** Whether each recipient must acknowledge the query immediately. */
  readonly ack: boolean;
  /** Whether the query must not be forwarded. */
  readonly noBroadcast: boolean;
  readonly timeoutMs: number;
  readonly name: string;
  readonly payload: Uint8Array;
}

export interface SerfResponse {
  readonly kind: 'query-response';
  readonly ltime: number;
  readonly id: number;
  readonly node: string;
  /** Whether this is an acknowledgement. A response may follow separately. */
  readonly ack: boolean;
  readonly payload: Uint8Array;
}

/** One member's response to a key query (Serf's `nodeKeyResponse`). Keys are in base64. */
export interface KeyAnswer {
  readonly done: boolean;
  /** Reason for a failure, or a remark. */
  readonly message: string;
  readonly keys: readonly string[];
  /** Key that encrypts; empty if the member does not report it. */
  readonly primary: string;
}

/** An event that a table exchange repeats, because its datagrams may have been lost. */
export interface RecentEvent {
  readonly ltime: number;
  readonly name: string;
  readonly payload: Uint8Array;
}

/** Serf's part of a push/pull exchange: Lamport times of joins and leaves, departed members and recent events. */
export interface SerfState {
  readonly ltime: number;
  readonly statusTimes: ReadonlyMap<string, number>;
  readonly leftMembers: readonly string[];
  readonly eventTime: number;
  readonly events: readonly RecentEvent[];
  readonly queryTime: number;
}

/** Encodes and decodes messages of the Serf layer. Decoding returns undefined for malformed input and never throws. */
export interface SerfCodec {
  encode(message: Exclude<SerfMessage, { kind: 'other' }>): Uint8Array;
  decode(payload: Uint8Array): SerfMessage | undefined;
  encodeState(state: SerfState): Uint8Array;
  decodeState(payload: Uint8Array): SerfState | undefined;
  /**
   * Encodes member tags as Serf does. Throws a `CodedError` `metadata-too-large` if the result exceeds {@link
   * MAX_META_BYTES} bytes.
   */
  encodeTags(tags: ReadonlyMap<string, string>): Uint8Array;
  decodeTags(meta: Uint8Array): ReadonlyMap<string, string> | undefined;
  /** Payload of key queries: the key to install, use or remove. */
  encodeKey(key: Uint8Array): Uint8Array;
  decodeKey(payload: Uint8Array): Uint8Array | undefined;
  encodeKeyAnswer(answer: KeyAnswer): Uint8Array;
  decodeKeyAnswer(payload: Uint8Array): KeyAnswer | undefined;
}
