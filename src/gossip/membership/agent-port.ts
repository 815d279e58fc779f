/**
 * Protocol of `agent.sock`: one JSON document per line. The response to `{"id":1,"method":"members","params":{…}}` is
 * `{"id":1,"result":…}` or `{"id":1,"error":{"code":…,"message":…}}`. After `subscribe`, further lines
 * `{"id":1,"event":{…}}` follow with the same ID.
 */
export interface AgentMember {
  readonly name: string;
  /** Address and port, such as `10.0.0.1:7946` or `[fd00::1]:7946`. */
  readonly address: string;
  readonly state: 'alive' | 'suspect' | 'dead' | 'left';
  /** Whether this is the host of the agent. */
  readonly self: boolean;
  /** Milliseconds in the current state. */
  readonly forMs: number;
  /** Round-trip time of this host's probes, once measured. */
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
  /** User event of Serf. `payload` is base64. */
  | { readonly kind: 'user-event'; readonly name: string; readonly payload: string };

/** State that the store of this host reports. */
export interface StoreFacts {
  /** 16 hexadecimal digits. */
  readonly memberId: string;
  /** Current leader from the view of this member. Absent when there is none. */
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
  /** Keys in base64, with the number of members that have the key and that encrypt with it. Only after `list`. */
  readonly keys: readonly { readonly key: string; readonly members: number; readonly primaryOn: number }[];
  /** Key with which the queried host encrypts. */
  readonly primary: string;
}

/** One open connection to the agent. */
export interface AgentSession {
  /**
   * Handles a request, or rejects with a `CodedError`. `emit` sends further lines under its ID while the session lasts.
   * `params` are unvalidated.
   */
  request(method: string, params: unknown, emit: (event: AgentEvent) => void): Promise<unknown>;
  closed(): void;
}

/** Service behind the socket. */
export interface AgentService {
  open(): AgentSession;
}
