/**
 * What is said on `agent.sock`: one JSON document a line. `{"id":1,"method":"members","params":{…}}` is answered by
 * `{"id":1,"result":…}` or `{"id":1,"error":{"code":…,"message":…}}`; after `subscribe` further lines
 * `{"id":1,"event":{…}}` come with the same id.
 */
export interface AgentMember {
  readonly name: string;
  /** `10.0.0.1:7946`, `[fd00::1]:7946` */
  readonly address: string;
  readonly state: 'alive' | 'suspect' | 'dead' | 'left';
  /** The host that is being asked. */
  readonly self: boolean;
  /** How long it has been in this state. */
  readonly forMs: number;
  /** Of our own probes, once measured. */
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
  /** Everything it tells, as Serf shows it. */
  readonly tags: Readonly<Record<string, string>>;
}

export type AgentEvent =
  /** The first one after `subscribe`: everybody known. */
  | { readonly kind: 'members'; readonly members: readonly AgentMember[] }
  | {
      readonly kind: 'joined' | 'updated' | 'suspected' | 'recovered' | 'failed' | 'left' | 'forgotten';
      readonly member: AgentMember;
    }
  /** An event in Serf's sense; `payload` in base64. */
  | { readonly kind: 'user-event'; readonly name: string; readonly payload: string };

/** What the store of this host tells of itself. */
export interface StoreFacts {
  /** 16 hexadecimal digits. */
  readonly memberId: string;
  /** The leader it hears from at present; absent when there is none. */
  readonly leader?: string;
  readonly appliedIndex: number;
  readonly fsyncMs: number;
}

export type KeyAction = 'list' | 'install' | 'use' | 'remove';

export interface KeyReport {
  /** How many were asked. */
  readonly members: number;
  readonly done: number;
  readonly failures: readonly { readonly member: string; readonly message: string }[];
  /** Base64; how many have it, and how many said that they encrypt with it. Only after `list`. */
  readonly keys: readonly { readonly key: string; readonly members: number; readonly primaryOn: number }[];
  /** The key that the asked host encrypts with. */
  readonly primary: string;
}

/** One open connection to the agent. */
export interface AgentSession {
  /**
   * Answers a request, or rejects with a `CodedError`; `emit` sends further lines under its id for as long as the
   * session lasts. `params` are whatever the other side sent.
   */
  request(method: string, params: unknown, emit: (event: AgentEvent) => void): Promise<unknown>;
  closed(): void;
}

/** What stands behind the socket. */
export interface AgentService {
  open(): AgentSession;
}
