/**
 * The words members of a gossip ring say to each other, free of any encoding. The vocabulary is that of HashiCorp's
 * memberlist (protocol 1–5), which is SWIM (Das, Gupta, Motivala 2002) with Lifeguard (Dadgar, Phillips, Currey 2018).
 */

/** Where a member listens, for datagrams and streams alike. `ip` is a literal in its shortest text form. */
export interface PeerAddress {
  readonly ip: string;
  readonly port: number;
}

/**
 * Which protocol versions a member speaks: lowest, highest and current, of the ring's protocol and of the layer above
 * it (memberlist's `Vsn`, in that order).
 */
export type ProtocolVersions = readonly [number, number, number, number, number, number];

/** Asks the receiver for an `ack`. `node` names who is meant: another at that address stays silent. */
export interface PingMessage {
  readonly kind: 'ping';
  readonly seq: number;
  readonly node: string;
  readonly from?: { readonly name: string; readonly address: PeerAddress };
}

/**
 * Asks the receiver to ping `target` on the sender's behalf and to forward the answer; `nack` asks to hear of silence,
 * too.
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

/** The intermediary is well, but heard nothing from the target (Lifeguard, "local health aware probe"). */
export interface NackMessage {
  readonly kind: 'nack';
  readonly seq: number;
}

export interface AliveMessage {
  readonly kind: 'alive';
  readonly incarnation: number;
  readonly node: string;
  readonly address: PeerAddress;
  /** Opaque here, at most {@link MAX_META_BYTES}. */
  readonly meta: Uint8Array;
  readonly versions: ProtocolVersions;
}

/** `from` is the accuser. A `dead` whose accuser is the node itself is its farewell. */
export interface AccusationMessage {
  readonly kind: 'suspect' | 'dead';
  readonly incarnation: number;
  readonly node: string;
  readonly from: string;
}

/** A message of the layer above, opaque to the ring. */
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

/** Everything one member knows, as sent in a push/pull exchange. */
export interface RingState {
  readonly rows: readonly StateRow[];
  /** State of the layer above; empty when there is none. */
  readonly userState: Uint8Array;
  readonly join: boolean;
}

/**
 * Turns a message into the bytes that travel in a datagram. Pure; the machine asks once per message, however often it
 * is sent.
 */
export type EncodeMessage = (message: GossipMessage) => Uint8Array;

/** memberlist's `MetaMaxSize`. */
export const MAX_META_BYTES = 512;

/**
 * Incarnations above this are refused from the wire. They count up by one per refutation, so a correct member never
 * reaches it, and the ceiling keeps a forged accusation at the end of the number range from being one that cannot be
 * answered with a higher number.
 */
export const MAX_INCARNATION = 0xffff_fff0;

/** Longest member name accepted, in UTF-16 units. Host names end at 253. */
export const MAX_NAME_LENGTH = 255;

/**
 * Messages of the layer above as Serf has them (serf/messages.go); only those that matter to membership, events and
 * queries.
 */
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

/** A query to the whole ring, broadcast like an event; each member responds to the requester by datagram. */
export interface SerfQuery {
  readonly kind: 'query';
  readonly ltime: number;
  readonly id: number;
  /** Who asked; undefined when what was said is no address. */
  readonly from: PeerAddress | undefined;
  /** Only these members are meant; undefined: all. */
  readonly nodes: readonly string[] | undefined;
  /** It carries a filter of an unknown kind, so this member does not match. */
  readonly otherFilters: boolean;
  /** Each recipient acknowledges at once, whether or not it responds. */
  readonly ack: boolean;
  /** Not to be passed on. */
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
  /** It heard; the answer, if there is one, comes by itself. */
  readonly ack: boolean;
  readonly payload: Uint8Array;
}

/** One member's answer to a question about keys (Serf's `nodeKeyResponse`). Keys are in base64. */
export interface KeyAnswer {
  readonly done: boolean;
  /** Why not, or a remark. */
  readonly message: string;
  readonly keys: readonly string[];
  /** The one that encrypts; empty where the member does not say. */
  readonly primary: string;
}

/** Serf's part of a push/pull exchange: Lamport times of joins and leaves, and who left. */
export interface SerfState {
  readonly ltime: number;
  readonly statusTimes: ReadonlyMap<string, number>;
  readonly leftMembers: readonly string[];
  readonly eventTime: number;
  readonly queryTime: number;
}

/** Encodes and decodes the layer above. Decoding returns undefined for anything malformed and never throws. */
export interface SerfCodec {
  encode(message: Exclude<SerfMessage, { kind: 'other' }>): Uint8Array;
  decode(payload: Uint8Array): SerfMessage | undefined;
  encodeState(state: SerfState): Uint8Array;
  decodeState(payload: Uint8Array): SerfState | undefined;
  /** Member tags in Serf's encoding, at most {@link MAX_META_BYTES} bytes or a `CodedError` `metadata-too-large`. */
  encodeTags(tags: ReadonlyMap<string, string>): Uint8Array;
  decodeTags(meta: Uint8Array): ReadonlyMap<string, string> | undefined;
  /** Questions about keys carry the key that they are about. */
  encodeKey(key: Uint8Array): Uint8Array;
  decodeKey(payload: Uint8Array): Uint8Array | undefined;
  encodeKeyAnswer(answer: KeyAnswer): Uint8Array;
  decodeKeyAnswer(payload: Uint8Array): KeyAnswer | undefined;
}
