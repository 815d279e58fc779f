/**
 * Protocol of `agent.sock`: one JSON document per line. The response to `{"id":1,"method":"members","params":{…}}` is
 * `{"id":1,"result":…}` or `{"id":1,"error":{"code":…,"message":…}}`. After a `subscribe` request, lines
 * `{"id":1,"event":{…}}` with the same ID follow.
 */
export interface AgentMember {
  readonly name: string;
  /** Address and port, such as `10.0.0.1:7946` or `[fd00::1]:7946`. */
  readonly address: string;
  readonly state: 'alive' | 'suspect' | 'dead' | 'left';
  /** Whether the member is the host of this agent. */
  readonly self: boolean;
  /** Milliseconds for which the member has been in this state. */
  readonly forMs: number;
  /** Round-trip time of this host's probes in milliseconds; absent until it is measured. */
  readonly rttMs?: number;
  readonly roles: readonly string[];
  readonly version: string;
  readonly addresses: Readonly<Record<string, string>>;
  readonly store?: {
    readonly memberId: string;
    readonly state: 'up' | 'down' | 'stopped';
    readonly leaderSeen?: string;
  };
  readonly appliedIndex?: number;
  readonly fsyncMicros?: number;
  readonly clockOffsetMs?: number;
  readonly health?: number;
  /** All tags of the member, as Serf shows them. */
  readonly tags: Readonly<Record<string, string>>;
}

export type AgentEvent =
  /** First event after `subscribe`: all known members. */
  | { readonly kind: 'members'; readonly members: readonly AgentMember[] }
  | {
      readonly kind: 'joined' | 'updated' | 'suspected' | 'recovered' | 'failed' | 'left' | 'forgotten';
      readonly member: AgentMember;
    }
  /** User event of Serf. `payload` is in base64. */
  | { readonly kind: 'user-event'; readonly name: string; readonly payload: string };

/** State that the store of this host reports. */
export interface StoreFacts {
  /** ID of the store member: 16 hexadecimal digits. */
  readonly memberId: string;
  /** Member ID of the leader as this member knows it; absent if there is none. */
  readonly leader?: string;
  readonly appliedIndex: number;
  readonly fsyncMs: number;
}

export type KeyAction = 'list' | 'install' | 'use' | 'remove';

export interface KeyReport {
  /** Number of members that were queried. */
  readonly members: number;
  readonly done: number;
  readonly failures: readonly { readonly member: string; readonly message: string }[];
  /**
   * Keys in base64. `members`: number of members that have the key. `primaryOn`: number of members that encrypt with
   * it. Empty except after `list`.
   */
  readonly keys: readonly { readonly key: string; readonly members: number; readonly primaryOn: number }[];
  /** Key with which this host encrypts. */
  readonly primary: string;
}

/** One open connection to the agent. */
export interface AgentSession {
  /**
   * Handles a request, or rejects with a `CodedError`. `params`: unvalidated input. `emit`: sends events with the ID of
   * the request while the session lasts.
   */
  request(method: string, params: unknown, emit: (event: AgentEvent) => void): Promise<unknown>;
  closed(): void;
}

/** Service that the agent's socket provides. */
export interface AgentService {
  open(): AgentSession;
}
