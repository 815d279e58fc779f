import type { Timer } from '../../base/clock.ts';
import { assert, CodedError, messageOf } from '../../base/errors.ts';
import {
  type Exchange,
  Gossip,
  type GossipInput,
  type MembershipEvent,
  type MemberView,
  metadataOf,
  SerfIntents,
  type StreamPing,
  tagsOf,
  type Work,
} from '../../core/gossip/index.ts';
import type { PeerAddress, RingState } from '../../core/gossip/port.ts';
import type { Membership, MembershipDeps, RingEvent, RingMember } from './deps.ts';
import { createQueries } from './queries.ts';

/** Exchanges and stream pings under way that we began; more are skipped, the next round tries again. */
const MAX_OUTBOUND = 8;
const CONFLICT_INTERVAL_MS = 60_000;
/** Urgent metadata is published at most this often: it is for changes, not for flapping. */
const URGENT_INTERVAL_MS = 50;

export function createMembership(deps: MembershipDeps): Membership {
  const { clock, random, log, transport, serf, config } = deps;
  const intents = new SerfIntents(config.name, config.gossip.maxMembers * 2);
  const listeners = new Set<(event: RingEvent) => void>();
  const tokens = new Map<number, () => void>();
  let nextToken = 1;
  let gossip: Gossip | undefined;
  let timer: Timer | undefined;
  let outbound = 0;
  let stopped = false;
  let metadata = config.metadata;
  let metaTimer: Timer | undefined;
  let metaUrgent = false;
  let conflictMs = Number.NEGATIVE_INFINITY;
  let metaSentMs = Number.NEGATIVE_INFINITY;

  const draw = (): number => random.random();

  const running = (): Gossip => {
    assert(gossip !== undefined, 'membership is not started');
    return gossip;
  };

  const step = (input: GossipInput): void => {
    if (gossip === undefined || stopped) return;
    perform(gossip.step(input, clock.monotonicMs(), draw));
  };

  const perform = (work: Work): void => {
    for (const packet of work.packets) transport.send(packet.to, packet.parts, packet.peerProtocol);
    for (const ping of work.streamPings) void streamPing(ping);
    for (const exchange of work.exchanges) void routineExchange(exchange);
    for (const event of work.events) onEvent(event);
    schedule();
  };

  const schedule = (): void => {
    timer?.cancel();
    if (gossip === undefined || stopped) return;
    const at = gossip.nextTickMs();
    if (!Number.isFinite(at)) return;
    timer = clock.setTimer(Math.max(0, Math.ceil(at - clock.monotonicMs())), () => {
      if (gossip !== undefined && !stopped) perform(gossip.tick(clock.monotonicMs(), draw));
    });
  };

  const streamPing = async (ping: StreamPing): Promise<void> => {
    if (outbound >= MAX_OUTBOUND) return;
    outbound++;
    try {
      const answered = await transport.ping(ping.to, ping, ping.timeoutMs);
      step({ kind: 'stream-ping', seq: ping.seq, answered });
    } finally {
      outbound--;
    }
  };

  const routineExchange = async (exchange: Exchange): Promise<void> => {
    if (outbound >= MAX_OUTBOUND) return;
    outbound++;
    try {
      merge(await transport.exchange(exchange.to, ourState(false), config.exchangeTimeoutMs));
    } catch (error) {
      log.v(4, 'table exchange failed', { member: exchange.node, error: messageOf(error) });
    } finally {
      outbound--;
    }
  };

  const ourState = (join: boolean): RingState => running().state(serf.encodeState(intents.state()), join);

  const merge = (theirs: RingState): void => {
    step({ kind: 'state', state: theirs });
    const state = theirs.userState.length === 0 ? undefined : serf.decodeState(theirs.userState);
    if (state !== undefined) for (const work of intents.merge(state)) follow(work, undefined);
  };

  const follow = (work: ReturnType<SerfIntents['receive']>, payload: Uint8Array | undefined): void => {
    if (work.rebroadcast && payload !== undefined) {
      const subject = work.intent === undefined ? undefined : subjectOf(work.intent.node);
      step({ kind: 'broadcast', payload, ...(subject === undefined ? {} : { subject }) });
    }
    if (work.intent !== undefined) step({ kind: 'intent', ...work.intent });
    if (work.reply !== undefined) spreadIntent(serf.encode(work.reply));
    if (work.event !== undefined) emit({ kind: 'user-event', name: work.event.name, payload: work.event.payload });
    if (work.query !== undefined) queries.asked(work.query);
    if (work.response !== undefined) queries.answered(work.response);
  };

  const queries = createQueries({
    clock,
    random,
    serf,
    self: config.name,
    address: () => running().self.address,
    answer: deps.answerQuery,
    stamp: (question) => intents.query(question),
    spread: (payload) => step({ kind: 'broadcast', payload }),
    tell: (to, payload) => {
      // The query names the address of the response; an address outside the ring would make the ring an amplifier.
      const member = gossip?.at(to);
      if (member === undefined || stopped) return;
      transport.send(member.address, [deps.encode({ kind: 'user', payload })], member.versions[1]);
    },
  });

  const spreadIntent = (payload: Uint8Array, token?: number): void =>
    step({ kind: 'broadcast', payload, subject: subjectOf(config.name), ...(token === undefined ? {} : { token }) });

  const onUser = (payload: Uint8Array): void => {
    const message = serf.decode(payload);
    if (message !== undefined) follow(intents.receive(message), payload);
  };

  const onEvent = (event: MembershipEvent): void => {
    switch (event.kind) {
      case 'user':
        onUser(event.payload);
        break;
      case 'broadcast-done':
        tokens.get(event.token)?.();
        tokens.delete(event.token);
        break;
      case 'refuted':
        log.v(2, 'contradicted somebody who took this member for dead', { incarnation: event.incarnation });
        break;
      case 'stalled':
        log.warn('this process stood still; other members get as much more time', { ms: Math.round(event.byMs) });
        break;
      case 'conflict': {
        // The other one goes on claiming it with everything it says.
        const nowMs = clock.monotonicMs();
        if (nowMs - conflictMs < CONFLICT_INTERVAL_MS) break;
        conflictMs = nowMs;
        log.warn('two members claim one name', { name: event.name, address: text(event.address) });
        break;
      }
      default:
        if (event.kind === 'forgotten') intents.forget(event.member.name);
        if (event.kind !== 'updated')
          log.info(`member ${event.kind}`, { name: event.member.name, address: text(event.member.address) });
        emit({ kind: event.kind, member: memberOf(event.member) });
    }
  };

  const emit = (event: RingEvent): void => {
    for (const listener of listeners) {
      try {
        listener(event);
      } catch (error) {
        log.error('a listener to membership failed', { error: messageOf(error) });
      }
    }
  };

  const memberOf = (view: MemberView): RingMember => {
    const { name, address, state, incarnation, sinceMs, rttMs } = view;
    const tags = serf.decodeTags(view.meta) ?? new Map<string, string>();
    return { name, address, state, incarnation, metadata: metadataOf(tags), tags, sinceMs, rttMs };
  };

  /** Runs `begin` with a token and waits until the ring has heard that broadcast, or for the farewell time. */
  const spreadAndWait = async (begin: (token: number) => void): Promise<void> => {
    const token = nextToken++;
    let limit: Timer | undefined;
    await new Promise<void>((resolve) => {
      tokens.set(token, resolve);
      limit = clock.setTimer(config.farewellTimeoutMs, resolve);
      begin(token);
    });
    limit?.cancel();
    tokens.delete(token);
  };

  const alone = (): boolean =>
    !running()
      .members()
      .some((member) => member.name !== config.name && (member.state === 'alive' || member.state === 'suspect'));

  /** Stamped at publication, not when it was set: other members derive clock offsets from it. */
  const metaNow = (): Uint8Array => serf.encodeTags(tagsOf({ ...metadata, toldAtMs: clock.nowMs() }));

  const tellMeta = (): void => {
    metaUrgent = false;
    metaSentMs = clock.monotonicMs();
    step({ kind: 'meta', meta: metaNow() });
  };

  return {
    async start() {
      assert(gossip === undefined, 'membership is started twice');
      const bound = await transport.start({
        packet: (from, messages) => step({ kind: 'packet', from, messages }),
        exchange: (theirs) => {
          // Ours as it was before: theirs would only tell them what they know.
          const ours = ourState(false);
          merge(theirs);
          return ours;
        },
        answersTo: (node) => node === config.name,
        user: onUser,
      });
      const address = { ip: config.advertiseIp ?? bound.ip, port: bound.port };
      gossip = new Gossip({
        config: { ...config.gossip, packetBytes: transport.packetBytes },
        name: config.name,
        address,
        meta: metaNow(),
        encode: deps.encode,
      });
      perform(gossip.start(clock.monotonicMs(), draw));
      spreadIntent(serf.encode(intents.join()));
      return address;
    },

    async join(peers) {
      running();
      const results = await Promise.allSettled(
        peers.map(async (peer) => merge(await transport.exchange(peer, ourState(true), config.exchangeTimeoutMs))),
      );
      const failures = results.flatMap((result) => (result.status === 'rejected' ? [messageOf(result.reason)] : []));
      if (peers.length > 0 && failures.length === peers.length)
        throw new CodedError('join-failed', `no member of the ring could be joined: ${failures.join('; ')}`);
      // Again, with a Lamport time after everything just learned: members that remember our last leave intent discard it.
      if (peers.length > 0) spreadIntent(serf.encode(intents.join()));
      return peers.length - failures.length;
    },

    async leave() {
      metaTimer?.cancel();
      if (alone()) {
        step({ kind: 'leave', token: nextToken++ });
        return;
      }
      await spreadAndWait((token) => spreadIntent(serf.encode(intents.leave()), token));
      await spreadAndWait((token) => step({ kind: 'leave', token }));
    },

    async stop() {
      stopped = true;
      timer?.cancel();
      metaTimer?.cancel();
      queries.stop();
      for (const resolve of tokens.values()) resolve();
      tokens.clear();
      await transport.stop();
    },

    members: () => running().members().map(memberOf),
    member(name) {
      const view = running().member(name);
      return view === undefined ? undefined : memberOf(view);
    },
    health: () => running().health,

    setMetadata(given, urgent = false) {
      serf.encodeTags(tagsOf({ ...given, toldAtMs: clock.nowMs() }));
      metadata = given;
      if (gossip === undefined || stopped) return;
      metaTimer?.cancel();
      metaUrgent ||= urgent;
      const interval = metaUrgent ? URGENT_INTERVAL_MS : config.metadataIntervalMs;
      const waitMs = metaSentMs + interval - clock.monotonicMs();
      if (waitMs <= 0) tellMeta();
      else metaTimer = clock.setTimer(Math.ceil(waitMs), tellMeta);
    },

    ask: (name, payload, nodes) => queries.ask(name, payload, nodes, config.queryTimeoutMs),

    sendEvent(name, payload) {
      const limit = running().maxUserPayloadBytes;
      const encoded = serf.encode(intents.userEvent(name, payload, false));
      if (encoded.length > limit)
        throw new CodedError(
          'event-too-large',
          `event "${name}" comes to ${encoded.length} bytes, and ${limit} fit a datagram`,
        );
      step({ kind: 'broadcast', payload: encoded });
    },

    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function subjectOf(node: string): string {
  return `intent ${node}`;
}

function text(address: PeerAddress): string {
  return address.ip.includes(':') ? `[${address.ip}]:${address.port}` : `${address.ip}:${address.port}`;
}
