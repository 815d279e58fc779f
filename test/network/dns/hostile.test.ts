import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decode, encode } from 'dns-packet';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock, systemRandom } from '../../../src/host/process/process.ts';
import { ClusterZone } from '../../../src/network/dns/core/index.ts';
import { Forwarder } from '../../../src/network/dns/forwarder.ts';
import { createDnsCodec } from '../../../src/network/dns/io/codec.ts';
import { Responder } from '../../../src/network/dns/responder.ts';
import { generator } from '../../support/random.ts';

const SEED = Number(process.env['SEED'] ?? 20_260_102);
const ROUNDS = 20_000;

const SERVER = { address: '192.0.2.1', port: 53 };

function forwarderWith(exchange: (name: string, query: Uint8Array) => Promise<Uint8Array>): Forwarder {
  const codec = createDnsCodec();
  const forwarder = new Forwarder({
    exchange: { exchange: (_server, query) => exchange(decode(Buffer.from(query)).questions?.[0]?.name ?? '', query) },
    codec,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  forwarder.setTable({ servers: [SERVER], stubDomains: new Map() });
  return forwarder;
}

function question(name: string, source: string) {
  const bytes = encode({ type: 'query', questions: [{ name, type: 'A' }] }).subarray(12);
  return { question: bytes, name, dnssecOk: false, checkingDisabled: false, source };
}

function addressFor(query: Uint8Array): Uint8Array {
  const { id = 0, questions = [] } = decode(Buffer.from(query));
  const name = questions[0]?.name ?? '';
  return encode({ type: 'response', id, questions, answers: [{ name, type: 'A', ttl: 1, data: '192.0.2.9' }] });
}

test('resolves names for other clients while some upstream servers do not respond', async () => {
  const silent = Promise.withResolvers<Uint8Array>();
  let silence: () => Promise<Uint8Array> = () => Promise.reject(new Error('no answer in 1500 ms'));
  const forwarder = forwarderWith((name, query) =>
    name.endsWith('silent.example') ? silence() : Promise.resolve(addressFor(query)),
  );
  const outcome = async (name: string, source: string) => {
    const found = await forwarder.resolve(question(name, source));
    return typeof found === 'string' ? found : found.shape.counts.answers;
  };
  for (const name of ['a', 'd', 'e']) assert.equal(await outcome(`${name}.silent.example`, '10.128.0.2'), 'failed');
  silence = () => silent.promise;
  const held = outcome('b.silent.example', '10.128.0.2');
  assert.equal(await outcome('c.silent.example', '10.128.0.2'), 'failed');
  assert.equal(await outcome('www.example.com', '10.128.0.3'), 1);
  silent.reject(new Error('no answer in 1500 ms'));
  assert.equal(await held, 'failed');
  // The server has answered since that query was sent, so it is not down.
  assert.equal(await outcome('other.example.com', '10.128.0.2'), 1);
});

test('resolves names for a client while other clients have many queries in progress', async () => {
  const forwarder = forwarderWith((name, query) =>
    name.endsWith('silent.example') ? new Promise<Uint8Array>(() => {}) : Promise.resolve(addressFor(query)),
  );
  let refused = 0;
  for (let pod = 2; pod < 10; pod++)
    for (let index = 0; index < 300; index++)
      if (forwarder.resolve(question(`${pod}-${index}.silent.example`, `10.128.0.${pod}`)) === 'failed') refused++;
  assert.ok(refused > 1_000, String(refused));
  const found = await forwarder.resolve(question('www.example.com', '10.128.1.1'));
  assert.ok(typeof found !== 'string');
});

test('fails an ExternalName immediately if it resolves to thousands of records', async () => {
  const server = responder((query) => {
    const { id = 0, questions = [] } = decode(Buffer.from(query));
    const header = encode({ type: 'response', id, questions });
    const record = Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
    const message = Buffer.concat([header, ...Array.from({ length: 3_900 }, () => record)]);
    message.writeUInt16BE(3_900, 6);
    return message;
  });
  const requested = encode({ type: 'query', id: 7, flags: 0x0100, questions: [{ name: NAMES[1] ?? '', type: 'A' }] });
  const response = await server.answer(requested, '10.128.0.2', 'udp');
  assert.equal((response?.[3] ?? 0) & 15, 2);
});

/** Responder whose upstream servers answer with `respond`. */
function responder(respond: (query: Uint8Array) => Uint8Array): Responder {
  const zone = new ClusterZone(
    { zone: 'cluster.local', ttl: 5, serverAddresses: ['172.30.0.10'], ranges: ['172.30.0.0/16'] },
    1,
  );
  const metadata = (name: string) => ({ name, namespace: 'default' });
  zone.setService({ metadata: metadata('web'), spec: { clusterIP: '172.30.1.1', clusterIPs: ['172.30.1.1'] } }, []);
  zone.setService({ metadata: metadata('www'), spec: { type: 'ExternalName', externalName: 'www.example.com' } }, []);
  const codec = createDnsCodec();
  const forwarder = new Forwarder({
    exchange: {
      exchange: async (_server, query, { accept }) => {
        const response = respond(query);
        if (!accept(response)) throw new Error('no answer');
        return response;
      },
    },
    codec,
    clock: systemClock,
    random: systemRandom,
    log: silentLog,
  });
  forwarder.setTable({ servers: [{ address: '192.0.2.1', port: 53 }], stubDomains: new Map() });
  return new Responder({ zone, forwarder, codec, clock: systemClock, ready: () => true });
}

function damage(message: Uint8Array, random: () => number): Buffer {
  const copy = Buffer.from(
    message.subarray(0, random() < 0.2 ? Math.floor(random() * message.length) : message.length),
  );
  const count = Math.floor(random() * 4);
  for (let index = 0; index < count && copy.length > 0; index++) {
    const special = [0, 0xc0, 0x0c, 0xff, 0x3f, 0x40, 41, 252];
    const at = Math.floor(random() * copy.length);
    copy[at] = random() < 0.5 ? Math.floor(random() * 256) : (special[Math.floor(random() * special.length)] ?? 0);
  }
  return random() < 0.1 ? Buffer.concat([copy, Buffer.alloc(Math.floor(random() * 50), 0xc0)]) : copy;
}

const NAMES = [
  'web.default.svc.cluster.local',
  'www.default.svc.cluster.local',
  'www.example.com',
  '10.in-addr.arpa',
  '',
];

test('damaged and random DNS messages cause neither an exception nor an amplified response', async () => {
  const random = generator(SEED);
  const server = responder((query) => {
    const { id = 0, questions = [] } = decode(Buffer.from(query));
    return encode({
      type: 'response',
      id,
      questions,
      answers: [{ name: 'www.example.com', type: 'A', ttl: 1, data: '192.0.2.1' }],
    });
  });
  for (let round = 0; round < ROUNDS; round++) {
    const opt = {
      name: '.',
      type: 'OPT' as const,
      udpPayloadSize: 4096,
      extendedRcode: 0,
      ednsVersion: 0,
      flags: 0,
      flag_do: true,
      options: [],
    };
    const base = encode({
      type: 'query',
      id: round & 0xffff,
      questions: [{ name: NAMES[round % NAMES.length] ?? '', type: round % 3 === 0 ? 'A' : 'SRV' }],
      additionals: round % 2 === 0 ? [opt] : [],
    });
    const message =
      random() < 0.1
        ? Buffer.from(Array.from({ length: Math.floor(random() * 100) }, () => Math.floor(random() * 256)))
        : damage(base, random);
    const response = await server.answer(message, '10.128.0.2', 'udp');
    if (response === undefined) continue;
    const context = `seed ${SEED} round ${round}: ${message.toString('hex')}`;
    assert.ok(response.length <= message.length + 250, context);
    assert.equal(response[0], message[0], context);
    assert.equal(response[1], message[1], context);
    assert.ok(((response[2] ?? 0) & 0x80) !== 0, context);
    // Another program receives this response, so the response must be valid.
    if (response.length > 12) decode(Buffer.from(response));
  }
});

test('damaged upstream responses cause no exception, and a response to another question is rejected', async () => {
  const random = generator(SEED + 1);
  const server = responder((query) => {
    const { id = 0, questions = [] } = decode(Buffer.from(query));
    const name = questions[0]?.name ?? '';
    const good = encode({
      type: 'response',
      id,
      flags: 0x0180,
      questions,
      answers: [
        { name, type: 'CNAME', ttl: 30, data: 'other.example.com' },
        { name: 'other.example.com', type: 'A', ttl: 30, data: '192.0.2.1' },
        { name: 'other.example.com', type: 'TXT', ttl: 30, data: ['some', 'text'] },
      ],
      additionals: [
        {
          name: '.',
          type: 'OPT',
          udpPayloadSize: 1232,
          extendedRcode: 0,
          ednsVersion: 0,
          flags: 0,
          flag_do: false,
          options: [],
        },
      ],
    });
    return damage(good, random);
  });
  let answered = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const name = round % 5 === 0 ? 'www.default.svc.cluster.local' : `h${round}.example.com`;
    const message = encode({ type: 'query', id: 7, flags: 0x0100, questions: [{ name, type: 'A' }] });
    const response = await server.answer(message, '10.128.0.2', 'udp');
    assert.ok(response !== undefined && response.length <= 512, `seed ${SEED} round ${round}`);
    const { questions } = decode(Buffer.concat([response.subarray(0, 6), Buffer.alloc(6), response.subarray(12)]));
    assert.equal(questions?.[0]?.name, name);
    if (((response[3] ?? 0) & 15) === 0) answered++;
  }
  assert.ok(answered > ROUNDS / 20, String(answered));
});
