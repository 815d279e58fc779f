import { assert, CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource, Timer } from '../../base/time/clock.ts';
import {
  type Exchange,
  Gossip,
  type GossipInput,
  type MemberMetadata,
  type MembershipEvent,
  type MemberView,
  metadataOf,
  SerfIntents,
  type StreamPing,
  tagsOf,
  type Work,
} from '../core/index.ts';
import type { PeerAddress, RingState, SerfCodec } from '../core/port.ts';
import type { Membership, MembershipConfig, MembershipDeps, RingEvent, RingMember } from './deps.ts';
import type { RingTransport } from './port.ts';
import { createQueries, type Queries } from './queries.ts';

/**
 * Maximum number of outgoing exchanges and stream pings. Further ones are skipped, because the next round repeats them.
 */
const MAX_OUTBOUND = 8;
const CONFLICT_INTERVAL_MS = 60_000;
/** Number of changes of members that are logged per interval. A member with the key can forge any number of them. */
const LOGGED_CHANGES = 100;
const LOG_INTERVAL_MS = 10_000;
/**
 * Minimum interval between publications of urgent metadata. Urgent changes are rare, so the limit only stops values
 * that change back and forth.
 */
const URGENT_INTERVAL_MS = 50;

export function createMembership(deps: MembershipDeps): Membership {
  return new GossipMembership(deps);
}

class GossipMembership implements Membership {
  readonly #deps: MembershipDeps;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #log: Log;
  readonly #transport: RingTransport;
  readonly #serf: SerfCodec;
  readonly #config: MembershipConfig;
  readonly #intents: SerfIntents;
  readonly #listeners = new Set<(event: RingEvent) => void>();
  readonly #tokens = new Map<number, () => void>();
  #nextToken = 1;
  #gossip: Gossip | undefined;
  #timer: Timer | undefined;
  #outbound = 0;
  #stopped = false;
  #metadata: MemberMetadata;
  #metaTimer: Timer | undefined;
  #metaUrgent = false;
  #conflictMs = Number.NEGATIVE_INFINITY;
  #logged = { sinceMs: Number.NEGATIVE_INFINITY, count: 0 };
  #metaSentMs = Number.NEGATIVE_INFINITY;
  readonly #queries: Queries;

  constructor(deps: MembershipDeps) {
    this.#deps = deps;
    this.#clock = deps.clock;
    this.#random = deps.random;
    this.#log = deps.log;
    this.#transport = deps.transport;
    this.#serf = deps.serf;
    this.#config = deps.config;
    this.#intents = new SerfIntents(this.#config.name, this.#config.gossip.maxMembers * 2);
    this.#metadata = this.#config.metadata;
    this.#queries = createQueries({
      clock: this.#clock,
      random: this.#random,
      serf: this.#serf,
      self: this.#config.name,
      address: () => this.#running().self.address,
      answer: deps.answerQuery,
      stamp: (question) => this.#intents.query(question),
      spread: (payload) => this.#step({ kind: 'broadcast', payload }),
      send: (to, payload) => {
        // The query contains the address for responses. Responses are sent only to members, because otherwise the ring
        // could amplify the traffic of an attacker.
        const member = this.#gossip?.at(to);
        if (member === undefined || this.#stopped) return;
        this.#transport.send(member.address, [deps.encode({ kind: 'user', payload })], member.versions[1]);
      },
    });
  }

  async start(): Promise<PeerAddress> {
    assert(this.#gossip === undefined, 'membership is started twice');
    const bound = await this.#transport.start({
      packet: (from, messages) => this.#step({ kind: 'packet', from, messages }),
      exchange: (theirs) => {
        // This member's state is read before the merge, because the merged state would repeat what the peer has sent.
        const ours = this.#ourState({ join: false });
        this.#merge(theirs, { joining: false });
        return ours;
      },
      answersTo: (node) => node === this.#config.name,
      user: this.#onUser,
    });
    const address = { ip: this.#config.advertiseIp ?? bound.ip, port: bound.port };
    this.#gossip = new Gossip({
      config: { ...this.#config.gossip, packetBytes: this.#transport.packetBytes },
      name: this.#config.name,
      address,
      meta: this.#metaNow(),
      encode: this.#deps.encode,
    });
    this.#perform(this.#gossip.start(this.#clock.monotonicMs(), this.#draw));
    this.#spreadIntent(this.#serf.encode(this.#intents.join()));
    return address;
  }

  async join(peers: readonly PeerAddress[]): Promise<number> {
    this.#running();
    const results = await Promise.allSettled(
      peers.map(async (peer) =>
        this.#merge(
          await this.#transport.exchange(peer, this.#ourState({ join: true }), this.#config.exchangeTimeoutMs),
          { joining: true },
        ),
      ),
    );
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [messageOf(result.reason)] : []));
    if (peers.length > 0 && failures.length === peers.length)
      throw new CodedError('join-failed', `no member of the ring could be joined: ${failures.join('; ')}`);
    // The join intent is broadcast with a newer Lamport time. Members that have stored a leave intent of this host
    // would ignore an older join intent.
    if (peers.length > 0) this.#spreadIntent(this.#serf.encode(this.#intents.join()));
    return peers.length - failures.length;
  }

  async leave(): Promise<void> {
    this.#metaTimer?.cancel();
    if (this.#alone()) {
      this.#step({ kind: 'leave', token: this.#nextToken++ });
      return;
    }
    await this.#spreadAndWait((token) => this.#spreadIntent(this.#serf.encode(this.#intents.leave()), token));
    await this.#spreadAndWait((token) => this.#step({ kind: 'leave', token }));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#metaTimer?.cancel();
    this.#queries.stop();
    for (const resolve of this.#tokens.values()) resolve();
    this.#tokens.clear();
    await this.#transport.stop();
  }

  members(): RingMember[] {
    return this.#running().members().map(this.#memberOf);
  }

  member(name: string): RingMember | undefined {
    const view = this.#running().member(name);
    return view === undefined ? undefined : this.#memberOf(view);
  }

  health(): number {
    return this.#running().health;
  }

  setMetadata(given: MemberMetadata, urgent = false): void {
    this.#serf.encodeTags(tagsOf({ ...given, sentAtMs: this.#clock.nowMs() }));
    this.#metadata = given;
    if (this.#gossip === undefined || this.#stopped) return;
    this.#metaTimer?.cancel();
    this.#metaUrgent ||= urgent;
    const interval = this.#metaUrgent ? URGENT_INTERVAL_MS : this.#config.metadataIntervalMs;
    const waitMs = this.#metaSentMs + interval - this.#clock.monotonicMs();
    if (waitMs <= 0) this.#publishMetadata();
    else this.#metaTimer = this.#clock.setTimer(Math.ceil(waitMs), this.#publishMetadata);
  }

  query(name: string, payload: Uint8Array, nodes: readonly string[]): Promise<Map<string, Uint8Array>> {
    return this.#queries.query(name, payload, nodes, this.#config.queryTimeoutMs);
  }

  sendEvent(name: string, payload: Uint8Array): void {
    const limit = this.#running().maxUserPayloadBytes;
    const encoded = this.#serf.encode(this.#intents.userEvent(name, payload, false));
    if (encoded.length > limit)
      throw new CodedError(
        'event-too-large',
        `event "${name}" has ${encoded.length} bytes; at most ${limit} fit into a datagram`,
      );
    this.#step({ kind: 'broadcast', payload: encoded });
  }

  subscribe(listener: (event: RingEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  readonly #draw = (): number => this.#random.random();

  #running(): Gossip {
    assert(this.#gossip !== undefined, 'membership is not started');
    return this.#gossip;
  }

  #step(input: GossipInput): void {
    if (this.#gossip === undefined || this.#stopped) return;
    this.#perform(this.#gossip.step(input, this.#clock.monotonicMs(), this.#draw));
  }

  #perform(work: Work): void {
    for (const packet of work.packets) this.#transport.send(packet.to, packet.parts, packet.peerProtocol);
    for (const ping of work.streamPings) void this.#streamPing(ping);
    for (const exchange of work.exchanges) void this.#routineExchange(exchange);
    for (const event of work.events) this.#onEvent(event);
    this.#schedule();
  }

  #schedule(): void {
    this.#timer?.cancel();
    if (this.#gossip === undefined || this.#stopped) return;
    const at = this.#gossip.nextTickMs();
    if (!Number.isFinite(at)) return;
    this.#timer = this.#clock.setTimer(Math.max(0, Math.ceil(at - this.#clock.monotonicMs())), () => {
      if (this.#gossip !== undefined && !this.#stopped)
        this.#perform(this.#gossip.tick(this.#clock.monotonicMs(), this.#draw));
    });
  }

  async #streamPing(ping: StreamPing): Promise<void> {
    if (this.#outbound >= MAX_OUTBOUND) return;
    this.#outbound++;
    try {
      const answered = await this.#transport.ping(ping.to, ping, ping.timeoutMs);
      this.#step({ kind: 'stream-ping', seq: ping.seq, answered });
    } finally {
      this.#outbound--;
    }
  }

  async #routineExchange(exchange: Exchange): Promise<void> {
    if (this.#outbound >= MAX_OUTBOUND) return;
    this.#outbound++;
    try {
      const ours = this.#ourState({ join: false });
      this.#merge(await this.#transport.exchange(exchange.to, ours, this.#config.exchangeTimeoutMs), {
        joining: false,
      });
    } catch (error) {
      this.#log.v(4, 'table exchange failed', { member: exchange.node, error: messageOf(error) });
    } finally {
      this.#outbound--;
    }
  }

  #ourState({ join }: { readonly join: boolean }): RingState {
    return this.#running().state(this.#serf.encodeState(this.#intents.state()), join);
  }

  #merge(theirs: RingState, { joining }: { readonly joining: boolean }): void {
    this.#step({ kind: 'state', state: theirs });
    const state = theirs.userState.length === 0 ? undefined : this.#serf.decodeState(theirs.userState);
    if (state !== undefined) for (const work of this.#intents.merge(state, joining)) this.#follow(work, undefined);
  }

  #follow(work: ReturnType<SerfIntents['receive']>, payload: Uint8Array | undefined): void {
    if (work.rebroadcast && payload !== undefined) {
      const subject = work.intent === undefined ? undefined : subjectOf(work.intent.node);
      this.#step({ kind: 'broadcast', payload, ...(subject === undefined ? {} : { subject }) });
    }
    if (work.intent !== undefined) this.#step({ kind: 'intent', ...work.intent });
    if (work.reply !== undefined) this.#spreadIntent(this.#serf.encode(work.reply));
    if (work.event !== undefined)
      this.#emit({ kind: 'user-event', name: work.event.name, payload: work.event.payload });
    if (work.query !== undefined) this.#queries.onQuery(work.query);
    if (work.response !== undefined) this.#queries.answered(work.response);
  }

  #spreadIntent(payload: Uint8Array, token?: number): void {
    this.#step({
      kind: 'broadcast',
      payload,
      subject: subjectOf(this.#config.name),
      ...(token === undefined ? {} : { token }),
    });
  }

  readonly #onUser = (payload: Uint8Array): void => {
    const message = this.#serf.decode(payload);
    if (message !== undefined) this.#follow(this.#intents.receive(message), payload);
  };

  #onEvent(event: MembershipEvent): void {
    switch (event.kind) {
      case 'user':
        this.#onUser(event.payload);
        break;
      case 'broadcast-done':
        this.#tokens.get(event.token)?.();
        this.#tokens.delete(event.token);
        break;
      case 'refuted':
        this.#log.v(2, 'refuted a suspicion of this member', { incarnation: event.incarnation });
        break;
      case 'stalled':
        this.#log.warn('this process stalled; timers of other members are extended', { ms: Math.round(event.byMs) });
        break;
      case 'conflict': {
        // The other member repeats its claim in every message, so the warning is limited in frequency.
        const nowMs = this.#clock.monotonicMs();
        if (nowMs - this.#conflictMs < CONFLICT_INTERVAL_MS) break;
        this.#conflictMs = nowMs;
        this.#log.warn('two members have the same name', { name: event.name, address: text(event.address) });
        break;
      }
      default:
        if (event.kind === 'forgotten') this.#intents.forget(event.member.name);
        if (event.kind !== 'updated') this.#logChange(event.kind, event.member);
        this.#emit({ kind: event.kind, member: this.#memberOf(event.member) });
    }
  }

  #logChange(kind: string, { name, address }: MemberView): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#logged.sinceMs >= LOG_INTERVAL_MS) this.#logged = { sinceMs: nowMs, count: 0 };
    this.#logged.count++;
    if (this.#logged.count <= LOGGED_CHANGES) this.#log.info(`member ${kind}`, { name, address: text(address) });
    else if (this.#logged.count === LOGGED_CHANGES + 1)
      this.#log.warn('too many changes of members; the next ones are not logged', { seconds: LOG_INTERVAL_MS / 1000 });
  }

  #emit(event: RingEvent): void {
    for (const listener of this.#listeners) {
      try {
        listener(event);
      } catch (error) {
        this.#log.error('membership listener failed', { error: messageOf(error) });
      }
    }
  }

  readonly #memberOf = (view: MemberView): RingMember => {
    const { name, address, state, incarnation, sinceMs, rttMs } = view;
    const tags = this.#serf.decodeTags(view.meta) ?? new Map<string, string>();
    return { name, address, state, incarnation, metadata: metadataOf(tags), tags, sinceMs, rttMs };
  };

  /**
   * Calls `begin` with a token. Waits until the broadcast with this token has spread, at most for the farewell timeout.
   */
  async #spreadAndWait(begin: (token: number) => void): Promise<void> {
    const token = this.#nextToken++;
    let limit: Timer | undefined;
    await new Promise<void>((resolve) => {
      this.#tokens.set(token, resolve);
      limit = this.#clock.setTimer(this.#config.farewellTimeoutMs, resolve);
      begin(token);
    });
    limit?.cancel();
    this.#tokens.delete(token);
  }

  #alone(): boolean {
    return !this.#running()
      .members()
      .some((member) => member.name !== this.#config.name && (member.state === 'alive' || member.state === 'suspect'));
  }

  /**
   * Metadata with the current time. The time is set at each publication, because other members compute clock offsets
   * from it.
   */
  #metaNow(): Uint8Array {
    return this.#serf.encodeTags(tagsOf({ ...this.#metadata, sentAtMs: this.#clock.nowMs() }));
  }

  readonly #publishMetadata = (): void => {
    this.#metaUrgent = false;
    this.#metaSentMs = this.#clock.monotonicMs();
    this.#step({ kind: 'meta', meta: this.#metaNow() });
  };
}

function subjectOf(node: string): string {
  return `intent ${node}`;
}

function text(address: PeerAddress): string {
  return address.ip.includes(':') ? `[${address.ip}]:${address.port}` : `${address.ip}:${address.port}`;
}
