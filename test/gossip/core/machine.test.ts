import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Gossip, type GossipConfig, lanConfig, metadataOf, tagsOf, type Work } from '../../../src/gossip/core/index.ts';
import { type GossipMessage, MAX_INCARNATION, type PeerAddress } from '../../../src/gossip/core/port.ts';
import { decodeMessage, encodeMessage } from '../../../src/gossip/memberlist/messages.ts';
import { seeded } from '../../sim/gossip/simulation.ts';

const address = (port: number): PeerAddress => ({ ip: '10.0.0.1', port });
const none = new Uint8Array();
const alive = (node: string, port: number, incarnation = 1, meta = none): GossipMessage => ({
  kind: 'alive',
  incarnation,
  node,
  address: address(port),
  meta,
  versions: lanConfig.versions,
});

class Bench {
  readonly random = seeded(1);
  readonly gossip: Gossip;
  now = 1000;

  constructor(config: Partial<GossipConfig> = {}, name = 'me', port = 1) {
    this.gossip = new Gossip({
      config: { ...lanConfig, ...config },
      name,
      address: address(port),
      meta: none,
      encode: encodeMessage,
    });
    this.gossip.start(this.now, this.random);
  }

  hear(from: number, ...messages: GossipMessage[]): Work {
    return this.gossip.step({ kind: 'packet', from: address(from), messages }, this.now, this.random);
  }

  /** Ticks until `untilMs` without responding to any work. */
  run(untilMs: number): Work[] {
    const works: Work[] = [];
    while (this.gossip.nextTickMs() <= untilMs) {
      this.now = Math.max(this.now, this.gossip.nextTickMs());
      works.push(this.gossip.tick(this.now, this.random));
    }
    this.now = untilMs;
    return works;
  }
}

const sent = (works: Work[]): GossipMessage[] =>
  works.flatMap((work) =>
    work.packets.flatMap((packet) =>
      packet.parts.map((part) => decodeMessage(part)).filter((each) => each !== undefined),
    ),
  );

test('refutes a spoofed death with a higher incarnation', () => {
  for (const kind of ['suspect', 'dead'] as const)
    for (const incarnation of [1, 7, 1_000_000]) {
      const bench = new Bench();
      bench.hear(2, alive('b', 2));
      const work = bench.hear(2, { kind, incarnation, node: 'me', from: 'b' });
      assert.ok(work.events.some((event) => event.kind === 'refuted'));
      assert.equal(bench.gossip.self.state, 'alive');
      const contradiction = sent(bench.run(bench.now + 500)).find(
        (each) => each.kind === 'alive' && each.node === 'me',
      );
      assert.equal(contradiction?.kind === 'alive' && contradiction.incarnation, incarnation + 1);
    }
});

test('a gossip member ignores a replayed accusation', () => {
  const bench = new Bench();
  bench.hear(2, alive('b', 2));
  const accusation: GossipMessage = { kind: 'dead', incarnation: 1, node: 'me', from: 'b' };
  bench.hear(2, accusation);
  const before = bench.gossip.self.incarnation;
  const work = bench.hear(2, accusation);
  assert.deepEqual(work, { packets: [], streamPings: [], exchanges: [], events: [] });
  assert.equal(bench.gossip.self.incarnation, before);
});

test('ignores an accusation at the maximum incarnation, which a member could not refute', () => {
  const bench = new Bench();
  bench.hear(2, alive('b', 2));
  for (const incarnation of [0xffff_ffff, MAX_INCARNATION])
    bench.hear(2, { kind: 'dead', incarnation, node: 'b', from: 'c' });
  bench.hear(2, { kind: 'suspect', incarnation: 0xffff_ffff, node: 'me', from: 'c' });
  assert.equal(bench.gossip.member('b')?.state, 'alive');
  assert.equal(bench.gossip.self.incarnation, 1);
});

test('a member whose incarnation was forged to the maximum restores its row, also after a restart', () => {
  const textOf = (bench: Bench, name: string): string => Buffer.from(bench.gossip.member(name)?.meta ?? []).toString();
  const forgeries: readonly GossipMessage[] = [
    alive('b', 2, MAX_INCARNATION, Buffer.from('forged')),
    { kind: 'dead', incarnation: MAX_INCARNATION - 1, node: 'b', from: 'c' },
  ];
  for (const forged of forgeries) {
    const victim = new Bench({}, 'b', 2);
    const other = new Bench();
    victim.hear(1, alive('me', 1));
    other.hear(2, alive('b', 2));
    other.hear(3, forged);
    victim.hear(3, forged);
    const pass = (from: Bench): void => {
      const messages = sent(from.run(from.now + 1000)).filter((each) => each.kind === 'alive' && each.node === 'b');
      assert.ok(messages.length > 0);
      other.hear(2, ...messages);
    };
    pass(victim);
    assert.equal(other.gossip.member('b')?.state, 'alive');
    assert.equal(textOf(other, 'b'), '');
    victim.gossip.step({ kind: 'meta', meta: Buffer.from('new') }, victim.now, victim.random);
    pass(victim);
    assert.equal(textOf(other, 'b'), 'new');
    // The member stops, the other member declares it dead, and it starts again.
    other.run(other.now + 200_000);
    assert.equal(other.gossip.member('b')?.state, 'dead');
    const restarted = new Bench({}, 'b', 2);
    const state = other.gossip.state(none, false);
    restarted.gossip.step({ kind: 'state', state }, restarted.now, restarted.random);
    pass(restarted);
    assert.equal(other.gossip.member('b')?.state, 'alive');
    assert.equal(textOf(other, 'b'), '');
  }
});

test('resolves conflicting claims by incarnation and state', () => {
  const cases: readonly (readonly [GossipMessage[], string, number])[] = [
    [[{ kind: 'suspect', incarnation: 5, node: 'b', from: 'c' }], 'suspect', 5],
    [[{ kind: 'suspect', incarnation: 4, node: 'b', from: 'c' }], 'alive', 5],
    [[{ kind: 'dead', incarnation: 5, node: 'b', from: 'c' }], 'dead', 5],
    [[{ kind: 'dead', incarnation: 5, node: 'b', from: 'b' }], 'left', 5],
    [[{ kind: 'dead', incarnation: 4, node: 'b', from: 'c' }], 'alive', 5],
    [[{ kind: 'suspect', incarnation: 5, node: 'b', from: 'c' }, alive('b', 2, 5)], 'suspect', 5],
    [[{ kind: 'suspect', incarnation: 5, node: 'b', from: 'c' }, alive('b', 2, 6)], 'alive', 6],
    [[{ kind: 'dead', incarnation: 5, node: 'b', from: 'c' }, alive('b', 2, 5)], 'dead', 5],
    [[{ kind: 'dead', incarnation: 5, node: 'b', from: 'c' }, alive('b', 2, 6)], 'alive', 6],
    [
      [
        { kind: 'dead', incarnation: 5, node: 'b', from: 'c' },
        { kind: 'suspect', incarnation: 9, node: 'b', from: 'c' },
      ],
      'dead',
      5,
    ],
  ];
  for (const [claims, state, incarnation] of cases) {
    const bench = new Bench();
    bench.hear(2, alive('b', 2, 5), alive('c', 3));
    for (const claim of claims) bench.hear(3, claim);
    const member = bench.gossip.member('b');
    assert.deepEqual([member?.state, member?.incarnation], [state, incarnation], JSON.stringify(claims));
  }
});

test('gossip members reach the same state for the same claims in any order', () => {
  const random = seeded(99);
  for (let round = 0; round < 200; round++) {
    const claims: GossipMessage[] = [];
    for (let i = 0; i < 6; i++) {
      const incarnation = 1 + Math.floor(random() * 3) * 2;
      // A correct member answers an accusation with a higher number, so alive and accusations never tie at the top.
      claims.push(
        random() < 0.5
          ? alive('b', 2, incarnation)
          : { kind: 'dead', incarnation: incarnation + 1, node: 'b', from: 'c' },
      );
    }
    const beliefs = [claims, claims.toReversed(), claims.toSorted(() => random() - 0.5)].map((order) => {
      const bench = new Bench();
      bench.hear(2, alive('b', 2, 0));
      for (const claim of order) bench.hear(3, claim);
      return `${bench.gossip.member('b')?.state}`;
    });
    const top = claims.reduce((max, each) => Math.max(max, 'incarnation' in each ? each.incarnation : 0), 0);
    assert.equal(new Set(beliefs).size, 1, JSON.stringify([beliefs, claims]));
    assert.equal(beliefs[0], top % 2 === 1 ? 'alive' : 'dead');
  }
});

test('probes a silent member indirectly and over a stream, then notifies and suspects the member, then declares it dead', () => {
  const bench = new Bench();
  bench.hear(2, alive('b', 2));
  const works = bench.run(bench.now + 30_000);
  assert.ok(works.some((work) => work.streamPings.some((ping) => ping.node === 'b')));
  const kinds = works.flatMap((work) => work.events.map((event) => event.kind));
  assert.deepEqual(
    kinds.filter((kind) => kind === 'suspected' || kind === 'failed'),
    ['suspected', 'failed'],
  );
  const warned = works.some((work) =>
    work.packets.some((packet) => {
      const messages = sent([{ packets: [packet], streamPings: [], exchanges: [], events: [] }]);
      return messages[0]?.kind === 'ping' && messages.slice(1).some((each) => each.kind === 'suspect');
    }),
  );
  assert.ok(warned, 'a ping to a suspect carries the accusation');
});

test('probes a member that other members suspect out of turn, without starving the probes of other members', () => {
  const bench = new Bench();
  for (const port of [2, 3, 4, 5, 6, 7, 8, 9]) bench.hear(port, alive(`m${port}`, port));
  const probed: string[] = [];
  for (let round = 0; round < 20; round++) {
    // A suspicion that its subject never refutes, refreshed so that it does not expire.
    bench.hear(3, { kind: 'suspect', incarnation: 1, node: 'm2', from: 'm3' });
    for (const work of bench.run(bench.now + lanConfig.probeIntervalMs))
      for (const packet of work.packets) {
        const [first] = sent([{ ...work, packets: [packet] }]);
        if (first?.kind !== 'ping') continue;
        probed.push(first.node);
        if (first.node !== 'm2') bench.hear(Number(first.node.slice(1)), { kind: 'ack', seq: first.seq });
      }
  }
  assert.ok(probed.indexOf('m2') <= 1, probed.join(' '));
  assert.ok(new Set(probed).size === 8, probed.join(' '));
});

test('a ring of one member schedules no wake-up, and a late call reports no stall', () => {
  const bench = new Bench();
  bench.run(bench.now + 1000);
  assert.equal(bench.gossip.nextTickMs(), Number.POSITIVE_INFINITY);
  assert.equal(bench.gossip.waiting, 0);
  bench.now += 3_600_000;
  const works = [bench.hear(2, alive('b', 2)), ...bench.run(bench.now + 1500)];
  assert.ok(!works.some((work) => work.events.some((event) => event.kind === 'stalled')));
  assert.ok(sent(works).some((each) => each.kind === 'ping' && each.node === 'b'));
});

test('sends the first broadcast after a quiet period at once, and batches the following broadcasts', () => {
  const bench = new Bench();
  bench.hear(2, alive('b', 2));
  bench.run(bench.now + 500);
  const tell = (byte: number): void => {
    bench.gossip.step({ kind: 'meta', meta: Uint8Array.of(byte) }, bench.now, bench.random);
  };
  while (bench.gossip.waiting > 0) bench.run(bench.now + 100);
  bench.run(bench.now + 400);
  tell(1);
  assert.equal(bench.gossip.nextTickMs(), bench.now);
  bench.run(bench.now);
  tell(2);
  assert.ok(bench.gossip.nextTickMs() > bench.now);
});

test('an ack over a stream or an indirect ack ends a gossip probe', () => {
  for (const path of ['stream', 'relay'] as const) {
    const bench = new Bench();
    bench.hear(2, alive('b', 2));
    if (path === 'relay') bench.hear(3, alive('c', 3));
    const end = bench.now + 40_000;
    while (bench.gossip.nextTickMs() <= end) {
      bench.now = Math.max(bench.now, bench.gossip.nextTickMs());
      const work = bench.gossip.tick(bench.now, bench.random);
      for (const packet of work.packets)
        for (const part of packet.parts) {
          const message = decodeMessage(part);
          if (message?.kind === 'ping' && message.node === 'c') bench.hear(3, { kind: 'ack', seq: message.seq });
          if (message?.kind === 'indirect-ping' && packet.to.port === 3)
            bench.hear(3, { kind: 'ack', seq: message.seq });
        }
      if (path === 'stream')
        for (const ping of work.streamPings)
          bench.gossip.step({ kind: 'stream-ping', seq: ping.seq, answered: true }, bench.now, bench.random);
    }
    assert.equal(bench.gossip.member('b')?.state, 'alive', path);
  }
});

test('sends no large response to a small request from an unknown address', () => {
  const bench = new Bench();
  bench.hear(2, alive('b', 2, 1, new Uint8Array(400)), alive('c', 3, 1, new Uint8Array(400)));
  const ping: GossipMessage = { kind: 'ping', seq: 9, node: 'me' };
  const work = bench.hear(999, ping, ping, ping, ping);
  assert.equal(work.packets.length, 1);
  assert.equal(work.packets[0]?.parts.length, 1);
  assert.ok((work.packets[0]?.parts[0]?.length ?? 0) <= encodeMessage(ping).length * 1.5);
  const relayed = bench.hear(999, { kind: 'indirect-ping', seq: 1, node: 'victim', target: address(5555), nack: true });
  assert.deepEqual(relayed.packets, [], 'pings go to members only');
});

test('rejects the name of a living member; the names of departed and dead members are free after a delay', () => {
  const bench = new Bench({ deadReclaimMs: 5000, leftReclaimMs: 1000 });
  bench.hear(2, alive('b', 2), alive('c', 3));
  const conflict = bench.hear(9, alive('b', 9, 50));
  assert.deepEqual(conflict.events, [{ kind: 'conflict', name: 'b', address: address(9) }]);
  assert.equal(bench.gossip.member('b')?.address.port, 2);
  bench.hear(3, { kind: 'dead', incarnation: 1, node: 'b', from: 'c' });
  bench.hear(9, alive('b', 9, 1));
  assert.equal(bench.gossip.member('b')?.state, 'dead');
  bench.now += 5000;
  bench.hear(9, alive('b', 9, 1));
  assert.equal(bench.gossip.member('b')?.address.port, 9);
  bench.hear(3, { kind: 'dead', incarnation: 1, node: 'c', from: 'c' });
  bench.hear(8, alive('c', 8, 1));
  assert.deepEqual([bench.gossip.member('c')?.state, bench.gossip.member('c')?.address.port], ['left', 3]);
  bench.now += 1000;
  bench.hear(8, alive('c', 8, 1));
  assert.deepEqual([bench.gossip.member('c')?.state, bench.gossip.member('c')?.address.port], ['alive', 8]);
});

test('a member whose leave was forged refutes it before another address can take its name', () => {
  const bench = new Bench({ maxMembers: 4 });
  const victim = new Bench({}, 'b', 2);
  bench.hear(2, alive('b', 2));
  bench.hear(9, { kind: 'dead', incarnation: 1, node: 'b', from: 'b' });
  const holder = () => [bench.gossip.member('b')?.state, bench.gossip.member('b')?.address.port];
  // The forger claims the name at once, also with a full table, and announces that the victim leaves.
  for (const port of [9, 10, 11, 12]) bench.hear(9, alive(`x${port}`, port), alive('b', 9, 50));
  bench.gossip.step({ kind: 'intent', node: 'b', leaving: true }, bench.now, bench.random);
  bench.hear(9, alive('b', 9, 60));
  assert.deepEqual(holder(), ['left', 2]);
  const works = bench.run(bench.now + 2000);
  const toVictim = works.flatMap((work) =>
    work.packets.filter(({ to }) => to.port === 2).map((packet) => ({ ...work, packets: [packet] })),
  );
  victim.now = bench.now;
  victim.hear(1, alive('me', 1), ...sent(toVictim));
  bench.hear(2, ...sent(victim.run(victim.now + 1000)));
  assert.deepEqual(holder(), ['alive', 2]);
  bench.now += 60_000;
  bench.hear(9, alive('b', 9, 50));
  assert.deepEqual(holder(), ['alive', 2]);
});

test('bounds the member table under a flood of forged members and keeps the living members', () => {
  const bench = new Bench({ maxMembers: 10, maxQueuedBroadcasts: 20 });
  bench.hear(2, alive('b', 2));
  for (let i = 0; i < 500; i++) bench.hear(2, alive(`x${i}`, 100 + i));
  assert.equal(bench.gossip.members().length, 10);
  assert.ok(bench.gossip.waiting <= 20);
  assert.equal(bench.gossip.member('b')?.state, 'alive');
});

test('a full member table replaces one dead member per interval under a flood of forged names', () => {
  const bench = new Bench({ maxMembers: 50 });
  const dead = (node: string): GossipMessage => ({ kind: 'dead', incarnation: 1, node, from: 'x' });
  for (let i = 0; i < 49; i++) bench.hear(2, alive(`old${i}`, 10 + i), dead(`old${i}`));
  let events = 0;
  for (let i = 0; i < 1000; i++)
    events += bench.hear(2, alive(`forged${i}`, 100 + i), dead(`forged${i}`)).events.length;
  assert.ok(events <= 3, `${events} events`);
  bench.now += lanConfig.leftReclaimMs;
  bench.hear(2, alive('new', 5));
  assert.equal(bench.gossip.member('new')?.state, 'alive');
});

test('a gossip member that was paused suspects no other member for the duration of the pause', () => {
  const bench = new Bench();
  bench.hear(2, alive('b', 2), { kind: 'suspect', incarnation: 1, node: 'b', from: 'c' });
  bench.now += 60_000;
  const work = bench.gossip.tick(bench.now, bench.random);
  assert.ok(work.events.some((event) => event.kind === 'stalled'));
  assert.equal(bench.gossip.member('b')?.state, 'suspect');
  assert.equal(bench.gossip.health, 1);
  const again = bench.hear(2, { kind: 'ack', seq: 1 });
  assert.deepEqual(again.events, [], 'one sleep is noticed once');
});

test('a gossip member broadcasts changed metadata with a higher incarnation and ignores an unchanged value', () => {
  const bench = new Bench();
  bench.hear(2, alive('b', 2));
  const meta = Uint8Array.of(1, 2, 3);
  bench.gossip.step({ kind: 'meta', meta }, bench.now, bench.random);
  bench.gossip.step({ kind: 'meta', meta }, bench.now, bench.random);
  assert.equal(bench.gossip.self.incarnation, 2);
  const news = sent(bench.run(bench.now + 300)).filter((each) => each.kind === 'alive' && each.node === 'me');
  assert.ok(news.length > 0 && news.every((each) => each.kind === 'alive' && each.meta.length === 3));
});

test('the metadata of a gossip member is restored from its tags', () => {
  const metadata = {
    roles: ['etcd', 'api'],
    addresses: new Map([['peer', '10.0.0.1:2380']]),
    version: 'v1',
    appliedIndex: 42,
    fsyncMicros: 900,
    clockOffsetMs: -3,
    health: 2,
    sentAtMs: 1_790_000_000_000,
    store: { memberId: '0123456789abcdef', state: 'up', leaderSeen: 'fedcba9876543210' },
  } as const;
  assert.deepEqual(metadataOf(tagsOf(metadata)), metadata);
  assert.deepEqual(
    metadataOf(
      new Map([
        ['applied', '-1'],
        ['fsync', '1e9'],
        ['clock', 'x'],
        ['id', 'ABC'],
        ['store', 'up'],
      ]),
    ),
    {
      roles: [],
      addresses: new Map(),
      version: '',
    },
  );
});
