/** DNS clients and servers that are slow, or send names that are expensive to decode. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { encode } from 'dns-packet';
import { createDnsCodec } from '../../../../src/network/dns/io/codec.ts';
import { createDnsSockets } from '../../../../src/network/dns/io/sockets.ts';
import { freePort } from '../../../support/ports.ts';
import { slack } from '../../../support/slack.ts';

test('closes a DNS connection that sends single bytes, and keeps a connection with complete queries', {
  timeout: 20_000,
}, async () => {
  const port = await freePort();
  const listener = await createDnsSockets({ idleMs: 400 }).listen('127.0.0.1', port, (message) => message);
  const query = encode({ type: 'query', id: 1, questions: [{ name: 'a.example', type: 'A' }] });
  const frame = Buffer.concat([Buffer.from([query.length >> 8, query.length & 255]), query]);
  const lifeOf = (every: number, bytes: Buffer): Promise<number> =>
    new Promise((resolve) => {
      const began = performance.now();
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      socket.resume();
      let sent = 0;
      const timer = setInterval(() => {
        socket.write(bytes.subarray(sent % bytes.length, (sent % bytes.length) + every));
        sent += every;
        if (performance.now() - began > 2_000) socket.destroy();
      }, 100);
      socket.on('close', () => {
        clearInterval(timer);
        resolve(performance.now() - began);
      });
    });
  const [slow, honest] = await Promise.all([lifeOf(1, frame), lifeOf(frame.length, frame)]);
  await listener.close();
  assert.ok(slow < 1_900, `a slow one lived ${slow} ms`);
  assert.ok(honest >= 2_000, `an honest one lived ${honest} ms`);
});

test('rejects long chains of compression pointers before following them', () => {
  const codec = createDnsCodec();
  const question = Buffer.from([1, 0x61, 0, 0, 1, 0, 1]);
  const header = Buffer.alloc(12);
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(1, 4);
  const answersWith = (links: number): Buffer => {
    // A TXT record that contains the chain, then records whose owner is the end of the chain.
    const chain = Buffer.alloc(links * 2);
    const dataAt = 12 + question.length + 12;
    for (let index = 0; index < links; index++)
      chain.writeUInt16BE(0xc000 | (index === 0 ? 12 : dataAt + (index - 1) * 2), index * 2);
    const size = Buffer.alloc(2);
    size.writeUInt16BE(chain.length);
    const holder = Buffer.concat([Buffer.from([0xc0, 12, 0xff, 1, 0, 1, 0, 0, 0, 1]), size, chain]);
    const end = 0xc000 | (dataAt + (links - 1) * 2);
    const record = Buffer.from([end >> 8, end & 255, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, 192, 0, 2, 1]);
    const count = 1_000;
    const message = Buffer.concat([header, question, holder, ...Array.from({ length: count }, () => record)]);
    message.writeUInt16BE(count + 1, 6);
    return message;
  };
  assert.equal(codec.answersOf(answersWith(8)).length, 1_001);
  const began = performance.now();
  assert.throws(() => codec.answersOf(answersWith(8_000)), /pointers of a name in a row/);
  assert.throws(() => codec.withoutOpt(answersWith(8_000)), /pointers of a name in a row/);
  assert.ok(performance.now() - began < 2_000 * slack());
});
