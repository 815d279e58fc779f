/** Audit webhook: batches, retries and limits. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import { after, before, it } from 'node:test';
import { createAuditWebhook } from '../../../src/apiserver/index.ts';
import { createHttp } from '../../../src/apiserver/io/http/index.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';

const lists: { kind: string; apiVersion: string; items: { at: number }[] }[] = [];
let failing = 0;
let server: Server;
let url = '';
before(async () => {
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (failing > 0) {
        failing -= 1;
        response.writeHead(503).end();
        return;
      }
      lists.push(JSON.parse(Buffer.concat(chunks).toString()));
      response.writeHead(200).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as { port: number }).port}/events`;
});
after(() => {
  server.close();
  server.closeAllConnections();
});

const open = (bufferEvents: number, more: Partial<Parameters<typeof createAuditWebhook>[0]> = {}) =>
  createAuditWebhook(
    { endpoint: { url }, mode: 'batch', bufferEvents, batchEvents: 10, batchWaitMs: 50, backoffMs: 20, ...more },
    { backends: createHttp().backends, clock: systemClock, log: silentLog },
  );

it('delivers every event once to an audit webhook that fails temporarily', async () => {
  failing = 2;
  const sink = open(1000);
  for (let at = 0; at < 35; at++) sink.accept(JSON.stringify({ at }));
  for (let wait = 0; wait < 200 && lists.flatMap(({ items }) => items).length < 35; wait++) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  await sink.close();
  assert.deepEqual(
    lists.flatMap(({ items }) => items.map(({ at }) => at)).sort((a, b) => a - b),
    Array.from({ length: 35 }, (_, at) => at),
  );
  assert.ok(
    lists.every(
      ({ kind, apiVersion, items }) => kind === 'EventList' && apiVersion === 'audit.k8s.io/v1' && items.length <= 10,
    ),
  );
});

it('drops audit events beyond the limit, and delivers waiting events on close', async () => {
  lists.length = 0;
  const sink = open(25, { throttle: { perSecond: 0.001, burst: 1 } });
  for (let at = 0; at < 100; at++) sink.accept(JSON.stringify({ at }));
  await sink.close();
  const delivered = lists.flatMap(({ items }) => items.map(({ at }) => at));
  // One batch is being sent, and the maximum number of events waits.
  assert.deepEqual(
    delivered.sort((a, b) => a - b),
    Array.from({ length: 35 }, (_, at) => at),
  );
});

it('limits the bytes of a batch of audit events if configured', async () => {
  lists.length = 0;
  const sink = open(1000, { truncate: { maxBatchBytes: 30, maxEventBytes: 20 } });
  assert.equal(sink.maxEventBytes, 20);
  for (let at = 10; at < 20; at++) sink.accept(JSON.stringify({ at }));
  while (lists.flatMap(({ items }) => items).length < 10) await new Promise((resolve) => setTimeout(resolve, 5));
  await sink.close();
  // Each event has nine bytes.
  assert.deepEqual(
    lists.map(({ items }) => items.length).sort((a, b) => b - a),
    [3, 3, 3, 1],
  );
});

it('an audit webhook in a blocking mode delivers each event separately before the request continues', async () => {
  lists.length = 0;
  failing = 1;
  const sink = open(1000, { mode: 'blocking' });
  assert.equal(sink.blocks, true);
  assert.equal(await sink.accept('{"at":1}'), true);
  assert.deepEqual(
    lists.map(({ items }) => items),
    [[{ at: 1 }]],
  );
  failing = 5;
  assert.equal(await sink.accept('{"at":2}'), true, 'a request is served though nobody knows of it');
  const strict = open(1000, { mode: 'blocking-strict' });
  failing = 5;
  assert.equal(await strict.accept('{"at":3}'), false);
  assert.equal(await strict.accept('{"at":4}'), true);
  assert.equal(lists.length, 2);
  await Promise.all([sink.close(), strict.close()]);
});
