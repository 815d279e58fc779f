/**
 * The agent of a host: its membership of the ring for as long as the host process lives, and what the host's own processes ask and tell
 * about it over `agent.sock`.
 */
import type { Clock, RandomSource, Timer } from '../../base/clock.ts';
import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { MemberMetadata } from '../../core/gossip/index.ts';
import type { PeerAddress, SerfCodec } from '../../core/gossip/port.ts';
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
  /** `host:port` of others to join, now and whenever they have gone. */
  readonly peers: readonly string[];
  readonly resolve: (peer: string) => Promise<PeerAddress>;
  /** A membership that is not started: one at first, and one more for each return after `leave`. */
  readonly newMembership: (metadata: MemberMetadata) => Membership;
  readonly keys: KeyStore | undefined;
  readonly serf: SerfCodec;
}

export interface Agent extends AgentService {
  /** Listens and begins to join. Resolves to the advertised address. Rejects as `Membership.start` does. */
  start(): Promise<PeerAddress>;
  /** Says farewell and ends. */
  stop(): Promise<void>;
}

/** Metadata is republished this often when nothing else has changed: clock offsets are derived from it. */
const REFRESH_MS = 60_000;

interface Store {
  readonly owner: AgentSession;
  readonly facts: StoreFacts;
  readonly state: 'up' | 'down' | 'stopped';
}

export function createAgent(deps: AgentDeps): Agent {
  const { clock, log } = deps;
  const listeners = new Set<(event: AgentEvent) => void>();
  const clocks = new ClockOffsets();
  let membership: Membership | undefined;
  let joining: Joining | undefined;
  let refresh: Timer | undefined;
  let store: Store | undefined;
  let entering: Promise<PeerAddress> | undefined;
  let ending: Promise<void> = Promise.resolve();

  const running = (): Membership => {
    if (membership === undefined)
      throw new CodedError('not-a-member', 'this host has left the ring: hyperedge gossip join brings it back');
    return membership;
  };

  const metadata = (): MemberMetadata => {
    const offset = clocks.own();
    const health = membership?.health() ?? 0;
    return {
      ...deps.about,
      ...(store === undefined ? {} : storeMetadata(store)),
      ...(offset === undefined ? {} : { clockOffsetMs: offset }),
      ...(health === 0 ? {} : { health }),
    };
  };

  const tell = (urgent: boolean): void => {
    refresh?.cancel();
    if (membership === undefined) return;
    membership.setMetadata(metadata(), urgent);
    refresh = clock.setTimer(REFRESH_MS, () => tell(false));
  };

  const onEvent = (event: RingEvent): void => {
    if (event.kind === 'user-event') {
      emit({ kind: 'user-event', name: event.name, payload: Buffer.from(event.payload).toString('base64') });
      return;
    }
    const { name, metadata: theirs } = event.member;
    if (event.kind === 'forgotten' || event.kind === 'failed' || event.kind === 'left') clocks.forget(name);
    else if (event.kind === 'updated' && theirs.toldAtMs !== undefined)
      clocks.heard(name, theirs.toldAtMs, clock.nowMs());
    emit({ kind: event.kind, member: show(event.member) });
  };

  const emit = (event: AgentEvent): void => {
    for (const listener of listeners) listener(event);
  };

  const show = (member: RingMember): AgentMember => {
    const { addresses, toldAtMs: _, ...rest } = member.metadata;
    return {
      name: member.name,
      address: textOf(member.address),
      state: member.state,
      self: member.name === deps.name,
      forMs: Math.max(0, Math.round(clock.monotonicMs() - member.sinceMs)),
      ...(member.rttMs === undefined ? {} : { rttMs: Math.round(member.rttMs * 1000) / 1000 }),
      ...rest,
      addresses: Object.fromEntries(addresses),
      tags: Object.fromEntries(member.tags),
    };
  };

  const enter = async (): Promise<PeerAddress> => {
    await ending;
    const entered = deps.newMembership(metadata());
    const address = await entered.start();
    membership = entered;
    entered.subscribe(onEvent);
    joining = keepJoined({
      clock,
      random: deps.random,
      log,
      membership: entered,
      self: deps.name,
      peers: deps.peers,
      resolve: deps.resolve,
    });
    tell(false);
    return address;
  };

  const leave = (): Promise<void> => {
    const left = membership;
    membership = undefined;
    joining?.stop();
    refresh?.cancel();
    if (left !== undefined) ending = left.leave().finally(() => left.stop());
    return ending;
  };

  const join = async (peers: readonly string[]): Promise<number> => {
    // Two who ask at once come back once.
    if (membership === undefined) {
      entering ??= enter().finally(() => {
        entering = undefined;
      });
      await entering;
    }
    return running().join(await Promise.all(peers.map((peer) => deps.resolve(peer))));
  };

  const publish = (owner: AgentSession, facts: StoreFacts): void => {
    const before = store;
    store = { owner, facts, state: 'up' };
    const news =
      before?.state !== 'up' || before.facts.memberId !== facts.memberId || before.facts.leader !== facts.leader;
    if (news || before.facts.appliedIndex !== facts.appliedIndex || before.facts.fsyncMs !== facts.fsyncMs) tell(news);
  };

  /** The store's process has ended, or has said that it will. */
  const ended = (owner: AgentSession, state: 'down' | 'stopped'): void => {
    if (store?.owner !== owner || store.state !== 'up') return;
    const { leader: _, ...facts } = store.facts;
    store = { owner, facts, state };
    if (state === 'down') log.warn('store of this host stopped, announced to the ring', { member: facts.memberId });
    tell(true);
  };

  const keys = (params: unknown): Promise<unknown> => {
    const { action, key } = keyRequest(params);
    return rotateKeys({ membership: running(), self: deps.name, keys: deps.keys, serf: deps.serf }, action, key);
  };

  const open = (): AgentSession => {
    let unsubscribe: (() => void) | undefined;
    const session: AgentSession = {
      async request(method, params, emitHere) {
        switch (method) {
          case 'members':
            return running().members().map(show);
          case 'subscribe':
            if (unsubscribe !== undefined) throw new CodedError('bad-request', 'subscribe: once per connection');
            emitHere({ kind: 'members', members: membership?.members().map(show) ?? [] });
            listeners.add(emitHere);
            unsubscribe = () => listeners.delete(emitHere);
            return {};
          case 'publish':
            publish(session, storeFactsOf(params));
            return {};
          case 'retract':
            ended(session, 'stopped');
            return {};
          case 'join':
            return { joined: await join(peersOf(params)) };
          case 'leave':
            running();
            await leave();
            return {};
          case 'keys':
            return keys(params);
          default:
            throw new CodedError(
              'unknown-method',
              `"${method}" is none of members, subscribe, publish, retract, join, leave, keys`,
            );
        }
      },
      closed() {
        unsubscribe?.();
        ended(session, 'down');
      },
    };
    return session;
  };

  return { start: enter, stop: leave, open };
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
