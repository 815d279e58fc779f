import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { createConnection } from 'node:net';
import { test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { promptConfig } from '../../../src/gossip/core/index.ts';
import type { GossipMessage } from '../../../src/gossip/core/port.ts';
import { encodeMessage } from '../../../src/gossip/memberlist/index.ts';
import { sealPacket } from '../../../src/gossip/memberlist/packet.ts';
import type { Membership, RingEvent } from '../../../src/gossip/membership/deps.ts';
import { eventually, type RingOptions, ringMember, stateOf } from './ring.ts';

async function ring(
  names: readonly string[],
  options: RingOptions,
  use: (members: Membership[]) => Promise<void>,
): Promise<void> {
  const members = names.map((name) => ringMember(name, options));
  try {
    const addresses = await Promise.all(members.map((member) => member.start()));
    const [first] = addresses;
    assert.ok(first !== undefined);
    for (const member of members.slice(1)) await member.join([first]);
    for (const member of members)
      for (const name of names) await eventually(`${name} is seen`, () => stateOf(member, name) === 'alive');
    await use(members);
  } finally {
    await Promise.all(members.map((member) => member.stop()));
  }
}

for (const [label, options] of [
  ['without encryption', {}],
  ['with encryption and label', { key: randomBytes(32), label: 'edge' }],
] as const)
  test(`gossip members join, update metadata, send events, leave and detect failures ${label}`, async () => {
    await ring(['a', 'b', 'c'], options, async ([a, b, c]) => {
      assert.ok(a !== undefined && b !== undefined && c !== undefined);
      const seen: RingEvent[] = [];
      a.subscribe((event) => seen.push(event));
      assert.deepEqual(a.member('b')?.metadata.roles, ['etcd', 'api']);
      b.setMetadata({ roles: ['etcd'], addresses: new Map(), version: 'v2', appliedIndex: 77, fsyncMicros: 400 });
      await eventually('metadata arrives', () => a.member('b')?.metadata.appliedIndex === 77);
      c.sendEvent('deploy', Buffer.from('payload'));
      await eventually('the event arrives', () =>
        seen.some((event) => event.kind === 'user-event' && event.name === 'deploy'),
      );
      await c.leave();
      await c.stop();
      await eventually('the leave message arrives', () => stateOf(a, 'c') === 'left');
      const begin = performance.now();
      await b.stop();
      await eventually('the failure is found', () => stateOf(a, 'b') === 'dead');
      assert.ok(performance.now() - begin < 8000);
      assert.deepEqual(
        seen.flatMap((event) =>
          event.kind === 'left' || event.kind === 'failed' ? [`${event.kind} ${event.member.name}`] : [],
        ),
        ['left c', 'failed b'],
      );
      assert.equal(seen.filter((event) => event.kind === 'user-event').length, 1);
    });
  });

test('a table exchange delivers an event that no datagram has delivered', async () => {
  await ring(['a'], {}, async ([a]) => {
    assert.ok(a !== undefined);
    const seen: RingEvent[] = [];
    a.subscribe((event) => seen.push(event));
    const b = ringMember('b', {});
    try {
      await b.start();
      b.sendEvent('deploy', Buffer.from('payload'));
      const address = a.member('a')?.address;
      assert.ok(address !== undefined);
      await b.join([address]);
      const isDeploy = (event: RingEvent): boolean => event.kind === 'user-event' && event.name === 'deploy';
      await eventually('the event arrives', () => seen.some(isDeploy));
      assert.equal(seen.filter(isDeploy).length, 1);
    } finally {
      await b.stop();
    }
  });
});

test('a member that restarts on another port keeps its name', async () => {
  const options = { gossip: { deadReclaimMs: 0 } };
  await ring(['a', 'b'], options, async ([a, b]) => {
    assert.ok(a !== undefined && b !== undefined);
    const before = a.member('b')?.address.port;
    await b.stop();
    await eventually('b is dead', () => stateOf(a, 'b') === 'dead');
    const again = ringMember('b', options);
    try {
      await again.start();
      const address = a.member('a')?.address;
      assert.ok(address !== undefined);
      await again.join([address]);
      await eventually('b is back', () => stateOf(a, 'b') === 'alive');
      assert.notEqual(a.member('b')?.address.port, before);
      await new Promise((resolve) => setTimeout(resolve, 1500));
      assert.deepEqual([stateOf(a, 'b'), stateOf(again, 'a')], ['alive', 'alive']);
    } finally {
      await again.stop();
    }
  });
});

test('a member with a wrong key or without a key cannot join the ring or read its messages', async () => {
  await ring(['a', 'b'], { key: randomBytes(32) }, async ([a]) => {
    assert.ok(a !== undefined);
    const address = a.member('a')?.address;
    assert.ok(address !== undefined);
    for (const options of [{ key: randomBytes(32) }, {}]) {
      const otherMember = ringMember('other', options);
      try {
        await otherMember.start();
        await assert.rejects(otherMember.join([address]), { code: 'join-failed' });
        assert.equal(otherMember.members().length, 1);
      } finally {
        await otherMember.stop();
      }
    }
    assert.equal(a.members().length, 2);
  });
});

test('keeps the ring unchanged after forged deaths and random data', async () => {
  await ring(['a', 'b'], {}, async ([a, b]) => {
    assert.ok(a !== undefined && b !== undefined);
    const target = a.member('a')?.address;
    assert.ok(target !== undefined);
    const failed: string[] = [];
    a.subscribe((event) => event.kind === 'failed' && failed.push(event.member.name));
    const socket = createSocket('udp4');
    const answers: Buffer[] = [];
    socket.on('message', (bytes) => answers.push(bytes));
    try {
      for (let i = 0; i < 200; i++) {
        socket.send(encodeMessage({ kind: 'dead', incarnation: 1 + i, node: 'a', from: 'b' }), target.port, target.ip);
        // Data that begins with 0 could be a valid ping, which receives a response.
        socket.send(Buffer.concat([Buffer.of(1 + (i % 255)), randomBytes(199)]), target.port, target.ip);
      }
      const stream = createConnection({ host: target.ip, port: target.port });
      stream.on('error', () => {});
      stream.end(randomBytes(5000));
      await eventually('a refutes the suspicion', () => (b.member('a')?.incarnation ?? 0) > 1);
      await new Promise((resolve) => setTimeout(resolve, 500));
      assert.equal(stateOf(b, 'a'), 'alive');
      assert.equal(stateOf(a, 'b'), 'alive');
      assert.deepEqual(failed, []);
      assert.deepEqual(
        answers.map((bytes) => bytes.toString('hex')),
        [],
        'nothing was sent back',
      );
    } finally {
      await new Promise<void>((resolve) => socket.close(() => resolve()));
    }
  });
});

test('a gossip member logs a duplicate host name once, not for every datagram', async () => {
  const lines: string[] = [];
  const log = createLog({
    component: 'gossip',
    level: 0,
    sink: { write: (line) => lines.push(line) },
    nowMs: Date.now,
  });
  await ring(['a', 'b'], { log }, async ([a]) => {
    const address = a?.member('a')?.address;
    assert.ok(address !== undefined);
    const impostor = ringMember('b');
    try {
      await impostor.start();
      for (let i = 0; i < 5; i++) await impostor.join([address]);
      await eventually('the warning in the log', () =>
        lines.some((line) => line.includes('two members have the same name name=b')),
      );
      await new Promise((resolve) => setTimeout(resolve, 500));
      // Each of the two members logs at most one line.
      assert.ok(lines.filter((line) => line.includes('have the same name')).length <= 2, lines.join('\n'));
      assert.equal(stateOf(a as Membership, 'b'), 'alive');
    } finally {
      await impostor.stop();
    }
  });
});

test('limits the log lines about members that another member invents', async () => {
  const lines: string[] = [];
  const sink = { write: (line: string) => lines.push(line) };
  const log = createLog({ component: 'gossip', level: 0, sink, nowMs: Date.now });
  await ring(['a'], { log }, async ([a]) => {
    const address = a?.member('a')?.address;
    assert.ok(address !== undefined);
    const socket = createSocket('udp4');
    const sealing = { keyring: undefined, label: new Uint8Array() };
    for (let i = 1; i <= 300; i++) {
      const forged: GossipMessage[] = [
        { kind: 'alive', incarnation: i, node: 'x', address, meta: new Uint8Array(), versions: promptConfig.versions },
        { kind: 'dead', incarnation: i, node: 'x', from: 'y' },
      ];
      socket.send(sealPacket(forged.map(encodeMessage), 0, sealing), address.port, address.ip);
      if (i % 20 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await eventually('all are received', () => (a?.member('x')?.incarnation ?? 0) >= 300);
    socket.close();
  });
  assert.ok(lines.some((line) => line.includes('too many changes of members')));
  const logged = lines.filter((line) => line.includes('name=x')).length;
  assert.ok(logged > 50 && logged <= 100, `${logged} lines`);
});
