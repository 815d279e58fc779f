/**
 * Agent of a host. It keeps the host's membership in the ring while the host process runs, and serves the processes of
 * the host over `agent.sock`.
 */

import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource, Timer } from '../../base/time/clock.ts';
import { lanConfig, type MemberMetadata } from '../core/index.ts';
import type { PeerAddress, SerfCodec } from '../core/port.ts';
import type { AgentEvent, AgentMember, AgentService, AgentSession, StoreFacts } from './agent-port.ts';
import { keyRequest, peersOf, storeFactsOf } from './agent-requests.ts';
import { ClockOffsets } from './clock-offset.ts';
import type { Membership, RingEvent, RingMember } from './deps.ts';
import { type Joining, keepJoined } from './joining.ts';
import { rotateKeys } from './keys.ts';
import type { KeyStore } from './port.ts';

export interface AgentDeps {
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
  readonly name: string;
  /** Roles, addresses and version of this host. */
  readonly about: Pick<MemberMetadata, 'roles' | 'addresses' | 'version'>;
  /** Members to join as `host:port`, at start and whenever they are missing in the ring. */
  readonly peers: readonly string[];
  readonly resolve: (peer: string) => Promise<PeerAddress>;
  /**
   * Creates a membership that is not started. Called at the start, and after each `leave` when the host joins again.
   */
  readonly newMembership: (metadata: MemberMetadata) => Membership;
  readonly keys: KeyStore | undefined;
  readonly serf: SerfCodec;
}

export interface Agent extends AgentService {
  /** Starts to listen and to join. Resolves with the advertised address. Rejects like `Membership.start`. */
  start(): Promise<PeerAddress>;
  /**
   * Sets more members to join, as `host:port`, and replaces those of the last call. `others` are tried only while no
   * other member is alive.
   */
  setPeers(peers: readonly string[], others?: readonly string[]): void;
  /** Leaves and rejoins the ring with changed facts about this host, such as a new address. */
  readvertise(about: AgentDeps['about']): Promise<void>;
  /** Leaves the ring and stops. */
  stop(): Promise<void>;
  /** Milliseconds by which this host's clock is ahead of the ring's median clock; undefined without other members. */
  readonly clockOffsetMs: number | undefined;
}

/**
 * Interval at which unchanged metadata is published again. Other members compute clock offsets from its time of
 * publication.
 */
const REFRESH_MS = 60_000;
/** Time after which all members have received the report of a leave. */
const SPREAD_MS = 1_000;

interface Store {
  readonly owner: AgentSession;
  readonly facts: StoreFacts;
  readonly state: 'up' | 'down' | 'stopped';
}

export function createAgent(deps: AgentDeps): Agent {
  return new RingAgent(deps);
}

class RingAgent implements Agent {
  readonly #deps: AgentDeps;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Number of calls of `stop`, after which a change of the address must not start the agent again. */
  #stops = 0;
  #about: AgentDeps['about'];
  readonly #listeners = new Set<(event: AgentEvent) => void>();
  readonly #clocks = new ClockOffsets();
  #membership: Membership | undefined;
  #peers: readonly string[] = [];
  #fallbackPeers: readonly string[] = [];
  /** Members of the ring before this host left it because of a new address. */
  #former: readonly string[] = [];
  #joining: Joining | undefined;
  #refresh: Timer | undefined;
  #store: Store | undefined;
  #entering: Promise<PeerAddress> | undefined;
  #ending: Promise<void> = Promise.resolve();

  constructor(deps: AgentDeps) {
    this.#deps = deps;
    this.#about = deps.about;
    this.#clock = deps.clock;
    this.#log = deps.log;
  }

  async start(): Promise<PeerAddress> {
    await this.#ending;
    const entered = this.#deps.newMembership(this.#metadata());
    const address = await entered.start();
    this.#membership = entered;
    entered.subscribe(this.#onEvent);
    this.#joining = keepJoined({
      clock: this.#clock,
      random: this.#deps.random,
      log: this.#log,
      membership: entered,
      self: this.#deps.name,
      peers: [...new Set([...this.#deps.peers, ...this.#former])],
      resolve: this.#deps.resolve,
    });
    if (this.#peers.length > 0 || this.#fallbackPeers.length > 0)
      this.#joining.setPeers(this.#peers, this.#fallbackPeers);
    this.#announce({ urgent: false });
    return address;
  }

  setPeers(peers: readonly string[], others: readonly string[] = []): void {
    this.#peers = peers;
    this.#fallbackPeers = others;
    if (this.#membership !== undefined) this.#joining?.setPeers(peers, others);
  }

  async readvertise(about: AgentDeps['about']): Promise<void> {
    this.#about = about;
    if (this.#membership === undefined) return;
    this.#former = this.#membership
      .members()
      .filter(({ name, state }) => name !== this.#deps.name && (state === 'alive' || state === 'suspect'))
      .map(({ address: { ip, port } }) => (ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`));
    // This host leaves first, because another address may soon use the name of a member that has left, but not that of
    // a member that failed. A host that returns before that is ignored, and its next announcement follows late.
    const stops = this.#stops;
    await this.#leave();
    await new Promise<void>((resolve) => {
      this.#clock.setTimer(lanConfig.leftReclaimMs + SPREAD_MS, resolve);
    });
    if (stops === this.#stops) await this.start();
  }

  stop(): Promise<void> {
    this.#stops++;
    return this.#leave();
  }

  #leave(): Promise<void> {
    const left = this.#membership;
    this.#membership = undefined;
    this.#joining?.stop();
    this.#refresh?.cancel();
    if (left !== undefined) this.#ending = left.leave().finally(() => left.stop());
    return this.#ending;
  }

  open(): AgentSession {
    let unsubscribe: (() => void) | undefined;
    const session: AgentSession = {
      request: async (method, params, emitHere) => {
        switch (method) {
          case 'members':
            return this.#running().members().map(this.#show);
          case 'subscribe':
            if (unsubscribe !== undefined)
              throw new CodedError('bad-request', 'subscribe: allowed once per connection');
            emitHere({ kind: 'members', members: this.#membership?.members().map(this.#show) ?? [] });
            this.#listeners.add(emitHere);
            unsubscribe = () => this.#listeners.delete(emitHere);
            return {};
          case 'publish':
            this.#publish(session, storeFactsOf(params));
            return {};
          case 'retract':
            this.#ended(session, 'stopped');
            return {};
          case 'join':
            return { joined: await this.#join(peersOf(params)) };
          case 'leave':
            this.#running();
            await this.stop();
            return {};
          case 'keys':
            return this.#keys(params);
          default:
            throw new CodedError(
              'unknown-method',
              `"${method}" is unknown; use members, subscribe, publish, retract, join, leave or keys`,
            );
        }
      },
      closed: () => {
        unsubscribe?.();
        this.#ended(session, 'down');
      },
    };
    return session;
  }

  #running(): Membership {
    if (this.#membership === undefined)
      throw new CodedError('not-a-member', 'this host has left the ring; run hyperedge gossip join to return');
    return this.#membership;
  }

  get clockOffsetMs(): number | undefined {
    return this.#clocks.own();
  }

  #metadata(): MemberMetadata {
    const offset = this.#clocks.own();
    const health = this.#membership?.health() ?? 0;
    return {
      ...this.#about,
      ...(this.#store === undefined ? {} : storeMetadata(this.#store)),
      ...(offset === undefined ? {} : { clockOffsetMs: offset }),
      ...(health === 0 ? {} : { health }),
    };
  }

  #announce({ urgent }: { readonly urgent: boolean }): void {
    this.#refresh?.cancel();
    if (this.#membership === undefined) return;
    this.#membership.setMetadata(this.#metadata(), urgent);
    this.#refresh = this.#clock.setTimer(REFRESH_MS, () => this.#announce({ urgent: false }));
  }

  readonly #onEvent = (event: RingEvent): void => {
    if (event.kind === 'user-event') {
      this.#emit({ kind: 'user-event', name: event.name, payload: Buffer.from(event.payload).toString('base64') });
      return;
    }
    const { name, metadata: theirs } = event.member;
    if (event.kind === 'forgotten' || event.kind === 'failed' || event.kind === 'left') this.#clocks.forget(name);
    else if (event.kind === 'updated' && theirs.sentAtMs !== undefined)
      this.#clocks.observe(name, theirs.sentAtMs, this.#clock.nowMs());
    this.#emit({ kind: event.kind, member: this.#show(event.member) });
  };

  #emit(event: AgentEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  readonly #show = (member: RingMember): AgentMember => {
    const { addresses, sentAtMs: _, ...rest } = member.metadata;
    return {
      name: member.name,
      address: textOf(member.address),
      state: member.state,
      self: member.name === this.#deps.name,
      forMs: Math.max(0, Math.round(this.#clock.monotonicMs() - member.sinceMs)),
      ...(member.rttMs === undefined ? {} : { rttMs: Math.round(member.rttMs * 1000) / 1000 }),
      ...rest,
      addresses: Object.fromEntries(addresses),
      tags: Object.fromEntries(member.tags),
    };
  };

  async #join(peers: readonly string[]): Promise<number> {
    // Concurrent requests cause only one rejoin.
    if (this.#membership === undefined) {
      this.#entering ??= this.start().finally(() => {
        this.#entering = undefined;
      });
      await this.#entering;
    }
    return this.#running().join(await Promise.all(peers.map((peer) => this.#deps.resolve(peer))));
  }

  #publish(owner: AgentSession, facts: StoreFacts): void {
    const before = this.#store;
    this.#store = { owner, facts, state: 'up' };
    const news =
      before?.state !== 'up' || before.facts.memberId !== facts.memberId || before.facts.leader !== facts.leader;
    if (news || before.facts.appliedIndex !== facts.appliedIndex || before.facts.fsyncMs !== facts.fsyncMs)
      this.#announce({ urgent: news });
  }

  /** Called when the process of the store has ended or has announced its end. */
  #ended(owner: AgentSession, state: 'down' | 'stopped'): void {
    if (this.#store?.owner !== owner || this.#store.state !== 'up') return;
    const { leader: _, ...facts } = this.#store.facts;
    this.#store = { owner, facts, state };
    if (state === 'down')
      this.#log.info('store of this host stopped; announcing it to the ring', { member: facts.memberId });
    this.#announce({ urgent: true });
  }

  #keys(params: unknown): Promise<unknown> {
    const { action, key } = keyRequest(params);
    return rotateKeys(
      { membership: this.#running(), self: this.#deps.name, keys: this.#deps.keys, serf: this.#deps.serf },
      action,
      key,
    );
  }
}

function storeMetadata({ facts, state }: Store): Partial<MemberMetadata> {
  const { memberId, leader, appliedIndex, fsyncMs } = facts;
  return {
    store: { memberId, state, ...(leader === undefined ? {} : { leaderSeen: leader }) },
    appliedIndex,
    fsyncMicros: fsyncMs * 1000,
  };
}

function textOf({ ip, port }: PeerAddress): string {
  return ip.includes(':') ? `[${ip}]:${port}` : `${ip}:${port}`;
}
