import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { decode } from '@msgpack/msgpack';
import { lanConfig, SerfIntents, tagsOf } from '../../../src/gossip/core/index.ts';
import { type GossipMessage, MAX_META_BYTES, MAX_NAME_BYTES, type RingState } from '../../../src/gossip/core/port.ts';
import { canonicalIp, ipBytes, ipText } from '../../../src/gossip/memberlist/addresses.ts';
import { Keyring, serfCodec } from '../../../src/gossip/memberlist/index.ts';
import { labelBytes } from '../../../src/gossip/memberlist/label.ts';
import { decompressLzw } from '../../../src/gossip/memberlist/lzw.ts';
import { encodeMessage, messageType, typed } from '../../../src/gossip/memberlist/messages.ts';
import { openPacket, packetOverhead, type Sealing, sealPacket } from '../../../src/gossip/memberlist/packet.ts';
import {
  encodePushPull,
  STREAM_LIMITS,
  StreamError,
  StreamReader,
  sealStream,
} from '../../../src/gossip/memberlist/stream.ts';
import { encodeMsgpack, MsgpackError, msgpackEnd } from '../../../src/wire/msgpack.ts';
import { seeded } from '../../sim/gossip/simulation.ts';
import { compressLzw } from './lzw-writer.ts';

const versions = [1, 5, 2, 2, 5, 4] as const;
const address = { ip: '10.1.2.3', port: 7946 };
const messages: GossipMessage[] = [
  { kind: 'ping', seq: 4_000_000_000, node: 'b' },
  { kind: 'indirect-ping', seq: 7, node: 'b', target: { ip: 'fd00::1', port: 7946 }, nack: true },
  { kind: 'ack', seq: 200 },
  { kind: 'nack', seq: 70_000 },
  { kind: 'alive', incarnation: 3, node: 'n'.repeat(40), address, meta: new Uint8Array(512).fill(7), versions },
  { kind: 'suspect', incarnation: 1, node: 'b', from: 'c' },
  { kind: 'dead', incarnation: 1, node: 'ü', from: 'ü' },
  { kind: 'user', payload: Uint8Array.of(3, 1, 2) },
];
const state: RingState = {
  rows: Array.from({ length: 40 }, (_, i) => ({
    name: `member-${i}`,
    address: { ip: `10.0.0.${i}`, port: 7946 },
    meta: new Uint8Array(i * 12),
    incarnation: i,
    state: (['alive', 'suspect', 'dead', 'left'] as const)[i % 4] ?? 'alive',
    versions,
  })),
  userState: new Uint8Array(randomBytes(700)),
  join: true,
};
const limits = { maxBytes: 1 << 20, maxRows: 1000 };
const plain: Sealing = { keyring: undefined, label: new Uint8Array() };
const key = randomBytes(32);
const sealings: Sealing[] = [
  plain,
  { keyring: new Keyring([key]), label: new Uint8Array() },
  { keyring: new Keyring([randomBytes(16)]), label: labelBytes('ring-1') },
  { keyring: undefined, label: labelBytes('ring-1') },
];

test('decodes gossip messages with every combination of encryption, compression and label', () => {
  for (const sealing of sealings)
    for (const protocol of [0, 5]) {
      const parts = messages.map(encodeMessage);
      const packet = sealPacket(parts, protocol, sealing);
      assert.deepEqual(openPacket(packet, sealing), messages);
      assert.deepEqual(openPacket(sealPacket(parts.slice(0, 1), protocol, sealing), sealing), messages.slice(0, 1));
      const bare = sealPacket(parts, 0, plain).length;
      assert.ok(packet.length <= bare + packetOverhead(sealing));
    }
});

test('writes strings and bytes in the old msgpack format, without str 8 or bin', () => {
  const bytes = encodeMsgpack({ a: 'x'.repeat(100), b: new Uint8Array(3), c: 300, d: true });
  assert.equal(bytes[0], 0x84);
  assert.equal(bytes[3], 0xda);
  assert.deepEqual([...bytes.subarray(4, 6)], [0, 100]);
  assert.equal(bytes[108], 0xa3);
});

test('the msgpack encoder, the msgpack library and the scanner agree on random values', () => {
  const random = seeded(11);
  const value = (depth: number): unknown => {
    const kind = Math.floor(random() * (depth > 3 ? 4 : 6));
    if (kind === 0) return Math.floor(random() * 2 ** Math.floor(random() * 53));
    if (kind === 1) return -Math.floor(random() * 2 ** Math.floor(random() * 53)) - 1;
    if (kind === 2) return 'é'.repeat(Math.floor(random() * 200));
    if (kind === 3) return random() < 0.5;
    const items = Array.from({ length: Math.floor(random() * 20) }, () => value(depth + 1));
    return kind === 4 ? items : Object.fromEntries(items.map((item, index) => [`k${index}`, item]));
  };
  for (let i = 0; i < 300; i++) {
    const original = value(0);
    const bytes = encodeMsgpack(original as Parameters<typeof encodeMsgpack>[0]);
    assert.deepEqual(decode(bytes), original);
    assert.equal(msgpackEnd(bytes, 0), bytes.length);
    for (let cut = 0; cut < bytes.length; cut += 1 + Math.floor(bytes.length / 20))
      assert.equal(msgpackEnd(bytes.subarray(0, cut), 0), undefined);
  }
});

test('drops a truncated, corrupted or random datagram and never throws', () => {
  const random = seeded(5);
  for (const sealing of sealings) {
    const packet = sealPacket(messages.map(encodeMessage), 5, sealing);
    for (let i = 0; i < 400; i++) {
      const damaged = Uint8Array.from(packet.subarray(0, Math.floor(random() * packet.length)));
      if (random() < 0.5 && damaged.length > 0)
        damaged[Math.floor(random() * damaged.length)] = Math.floor(random() * 256);
      const opened = openPacket(damaged, sealing);
      if (sealing.keyring !== undefined) assert.equal(opened, undefined);
    }
    for (let i = 0; i < 400; i++) openPacket(randomBytes(Math.floor(random() * 100)), sealing);
  }
});

test('rejects packets with another key, another label, without encryption or without a label', () => {
  const parts = [encodeMessage({ kind: 'ack', seq: 1 })];
  for (const [i, from] of sealings.entries())
    for (const [j, to] of sealings.entries()) {
      const opened = openPacket(sealPacket(parts, 5, from), to);
      assert.equal(opened !== undefined && opened.length > 0, i === j, `${i} to ${j}`);
    }
});

test('rotates keys without an interruption, and rejects removal of the key in use', () => {
  const [old, fresh] = [randomBytes(16), randomBytes(32)];
  const ring = new Keyring([old]);
  const sealedOld = ring.encrypt(Buffer.from('x'), new Uint8Array());
  ring.install(fresh);
  ring.use(fresh);
  assert.equal(ring.decrypt(sealedOld, new Uint8Array())?.toString(), 'x');
  assert.throws(() => ring.remove(fresh), { code: 'key-in-use' });
  ring.remove(old);
  assert.equal(ring.decrypt(sealedOld, new Uint8Array()), undefined);
  assert.throws(() => ring.use(old), { code: 'key-unknown' });
  assert.throws(() => new Keyring([randomBytes(20)]), { code: 'key-length' });
});

test('reads compressed datagrams and state exchanges of peers', () => {
  const random = seeded(3);
  for (const size of [0, 1, 50, 300, 5000, 40_000]) {
    const data = Uint8Array.from({ length: size }, () => Math.floor(random() * 4));
    assert.deepEqual(decompressLzw(compressLzw(data), 1 << 20), data, `${size} bytes`);
  }
  const packet = sealPacket(messages.map(encodeMessage), 0, plain);
  const compressed = typed(messageType.compress, { Algo: 0, Buf: compressLzw(packet) });
  assert.deepEqual(openPacket(compressed, plain), messages);
  const table = typed(messageType.compress, { Algo: 0, Buf: compressLzw(encodePushPull(state)) });
  const read = new StreamReader(plain, limits).push(table);
  assert.deepEqual(read?.kind === 'push-pull' && read.state.rows, state.rows);
});

test('decoding stops a gossip message with a decompression bomb at the limit', () => {
  const bomb = compressLzw(new Uint8Array(2_000_000));
  assert.ok(bomb.length < 10_000);
  assert.equal(decompressLzw(bomb, 65_536), undefined);
  const datagram = typed(messageType.compress, { Algo: 0, Buf: bomb });
  assert.equal(openPacket(datagram, plain), undefined);
  assert.throws(() => new StreamReader(plain, limits).push(datagram), StreamError);
  const nested = typed(messageType.compress, { Algo: 0, Buf: compressLzw(datagram) });
  assert.equal(openPacket(nested, plain), undefined);
});

test('reads state exchanges split at any position, encrypted or not', () => {
  for (const sealing of sealings) {
    const bytes = sealStream(encodePushPull(state), sealing);
    for (const size of [1, 7, 100, bytes.length]) {
      const reader = new StreamReader(sealing, limits);
      let result: ReturnType<StreamReader['push']>;
      for (let at = 0; at < bytes.length; at += size) {
        assert.equal(result, undefined);
        result = reader.push(bytes.subarray(at, at + size));
      }
      assert.ok(result?.kind === 'push-pull');
      assert.deepEqual(result.state.rows, state.rows);
      assert.deepEqual(result.state.userState, state.userState);
      assert.equal(result.state.join, true);
    }
  }
});

test('the table of a full ring fits into a stream', () => {
  const names = Array.from({ length: lanConfig.maxMembers * 2 }, (_, i) => String(i).padStart(MAX_NAME_BYTES, '0'));
  const intents = new SerfIntents('self', names.length);
  for (const [i, node] of names.entries()) intents.receive({ kind: 'leave', ltime: 0x1_0000 + i, node, prune: false });
  for (let i = 0; i < 100; i++)
    intents.receive({
      kind: 'user-event',
      ltime: 0x1_0000 + i,
      name: 'e'.repeat(MAX_NAME_BYTES),
      payload: new Uint8Array(1024),
      coalesce: false,
    });
  assert.equal(intents.state().leftMembers.length, names.length);
  const rows = names.slice(0, lanConfig.maxMembers).map((name) => ({
    name,
    address: { ip: 'fd00::1234:5678:9abc:def0', port: 7946 },
    meta: new Uint8Array(MAX_META_BYTES),
    incarnation: 0xffff_fff0,
    state: 'alive' as const,
    versions,
  }));
  const table = encodePushPull({ rows, userState: serfCodec.encodeState(intents.state()), join: false });
  const sealing = { keyring: new Keyring([key]), label: labelBytes('ring-1') };
  const read = new StreamReader(sealing, STREAM_LIMITS).push(sealStream(table, sealing));
  assert.equal(read?.kind === 'push-pull' ? read.state.rows.length : 0, lanConfig.maxMembers);
});

test('hostile streams cause an error instead of memory or CPU exhaustion', () => {
  const huge = Buffer.from([messageType.encrypt, 0xff, 0xff, 0xff, 0xff]);
  const hostile: [Sealing, Uint8Array][] = [
    [{ keyring: new Keyring([key]), label: new Uint8Array() }, huge],
    [{ keyring: new Keyring([key]), label: new Uint8Array() }, encodePushPull(state)],
    [plain, typed(messageType.pushPull, { Nodes: 1_000_000, UserStateLen: 0, Join: false })],
    [plain, typed(messageType.pushPull, { Nodes: 1, UserStateLen: 2 ** 40, Join: false })],
    [plain, Buffer.concat([Buffer.from([messageType.pushPull]), Buffer.alloc(1000, 0x91)])],
    [plain, Buffer.concat([Buffer.from([messageType.pushPull, 0xdf]), Buffer.alloc(4, 0xff)])],
    [
      plain,
      Buffer.concat([
        typed(messageType.pushPull, { Nodes: 2, UserStateLen: 0 }),
        Buffer.from([0xdb, 0, 0x10, 0, 0]),
        Buffer.alloc(5000),
      ]),
    ],
    [plain, Buffer.from([99])],
    [plain, Buffer.from([messageType.hasLabel, 1, 65])],
    [plain, typed(messageType.user, { UserMsgLen: 10_000_000 })],
  ];
  for (const [index, [sealing, bytes]] of hostile.entries())
    assert.throws(() => new StreamReader(sealing, limits).push(bytes), StreamError, `case ${index}`);
  const endless = new StreamReader(plain, { maxBytes: 10_000, maxRows: 10 });
  assert.throws(() => {
    for (let i = 0; i < 100; i++)
      endless.push(Buffer.concat([Buffer.from([messageType.pushPull, 0xdb, 0x7f]), Buffer.alloc(500)]));
  }, StreamError);
});

test('keys of a message never become properties of an object', () => {
  const body = Buffer.concat([Buffer.from([0x81]), encodeMsgpack('__proto__'), encodeMsgpack({ polluted: true })]);
  assert.deepEqual(openPacket(Buffer.concat([Buffer.from([messageType.ping]), body]), plain), []);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

test('rejects msgpack values with too deep nesting', () => {
  assert.throws(() => msgpackEnd(Buffer.concat([Buffer.alloc(100, 0x91), Buffer.from([1])]), 0), MsgpackError);
});

test('writes addresses in the shortest form, and IPv4-mapped addresses as IPv4', () => {
  for (const ip of ['1.2.3.4', '::1', 'fd00::1', '2001:db8::1:0:0:1', '::', 'ff02::1:2'])
    assert.equal(ipText(ipBytes(ip)), ip);
  assert.equal(canonicalIp('::ffff:10.0.0.1'), '10.0.0.1');
  assert.equal(canonicalIp('fd00:0:0:0:0:0:0:1'), 'fd00::1');
  assert.equal(canonicalIp('fe80::1%eth0'), 'fe80::1');
  assert.equal(canonicalIp('nonsense'), undefined);
  assert.equal(ipText(new Uint8Array(5)), undefined);
});

test('encoding and decoding preserves serf messages, and limits tags', () => {
  const event = { kind: 'user-event', ltime: 5, name: 'deploy', payload: Uint8Array.of(1), coalesce: true } as const;
  assert.deepEqual(serfCodec.decode(serfCodec.encode(event)), event);
  const leave = { kind: 'leave', ltime: 2 ** 40, node: 'a', prune: false } as const;
  assert.deepEqual(serfCodec.decode(serfCodec.encode(leave)), leave);
  assert.deepEqual(serfCodec.decode(Uint8Array.of(77, 1, 2)), { kind: 'other', type: 77 });
  assert.equal(serfCodec.decode(Uint8Array.of(0, 0xff)), undefined);
  const events = [{ ltime: 4, name: 'deploy', payload: Uint8Array.of(7) }];
  const ours = { ltime: 9, statusTimes: new Map([['a', 3]]), leftMembers: ['a'], eventTime: 5, events, queryTime: 1 };
  assert.deepEqual(serfCodec.decodeState(serfCodec.encodeState(ours)), ours);
  const slot = encodeMsgpack({ LTime: 4, Events: [{ Name: 'deploy', Payload: Uint8Array.of(7) }] });
  // A map of one list of two values, of which the first one is nil.
  const stock = Buffer.concat([Uint8Array.of(2, 0x81), encodeMsgpack('Events'), Uint8Array.of(0x92, 0xc0), slot]);
  assert.deepEqual(serfCodec.decodeState(stock)?.events, events, 'with an unused place, as Serf sends it');
  assert.equal(serfCodec.decodeState(Buffer.concat([Uint8Array.of(2), encodeMsgpack({ Events: [7] })])), undefined);
  const tags = new Map([['role', 'etcd+api']]);
  assert.deepEqual(serfCodec.decodeTags(serfCodec.encodeTags(tags)), tags);
  assert.throws(() => serfCodec.encodeTags(new Map([['a', 'x'.repeat(600)]])), { code: 'metadata-too-large' });
  assert.equal(serfCodec.decodeTags(Uint8Array.of(255, 0xc1)), undefined);
});

test('host facts of maximum size fit into a message', () => {
  const address = '[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535';
  const tags = tagsOf({
    roles: ['master', 'etcd', 'node'],
    addresses: new Map(['api', 'etcd', 'peer'].map((service) => [service, address])),
    version: '10.20.30-rc.40',
    store: { memberId: 'f'.repeat(16), state: 'stopped', leaderSeen: 'f'.repeat(16) },
    appliedIndex: Number.MAX_SAFE_INTEGER,
    fsyncMicros: 9_999_999_999,
    clockOffsetMs: -9_999_999_999,
    health: 7,
    sentAtMs: 9_999_999_999_999,
  });
  const meta = serfCodec.encodeTags(tags);
  assert.ok(meta.length <= 450, `${meta.length} bytes`);
  assert.deepEqual(serfCodec.decodeTags(meta), tags);
});
