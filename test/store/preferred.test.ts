/**
 * Client with several endpoints: prefers the first, fails over when it does not respond, and returns without a failed
 * call.
 */

import assert from 'node:assert/strict';
import { mkdtemp } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { storeRevision } from '../../src/base/brand.ts';
import type { Clock } from '../../src/base/time/clock.ts';
import type { Store } from '../../src/store/port.ts';
import { recorder } from '../conformance/store.ts';
import { freePort } from '../support/ports.ts';
import { clock, connect, type Running, remove, startHere, temporaryDirectory } from './harness.ts';

/** Clock that shortens long waits. */
const hasty: Clock = {
  ...clock,
  setTimer: (delayMs, callback) => clock.setTimer(delayMs >= 3000 ? delayMs / 20 : delayMs, callback),
};

let root = '';
before(async () => {
  root = await temporaryDirectory();
});
after(() => remove(root));

/** Separate store that identifies itself by a key. */
async function start(name: string, port = 0): Promise<Running> {
  const running = await startHere(await mkdtemp(join(root, 'data-')), undefined, {}, port);
  const store = connect(running.endpoint, undefined);
  await store.commit({ guards: [], puts: [{ key: 'who', value: Buffer.from(name) }] });
  await store.close();
  return running;
}

const who = async (store: Store): Promise<string> => Buffer.from((await store.get('who')).kv?.value ?? []).toString();

async function until(store: Store, name: string): Promise<void> {
  const begin = performance.now();
  while ((await who(store)) !== name) {
    assert.ok(performance.now() - begin < 20_000, `${name} does not serve`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('returns to the first endpoint when it is available again, without a failed call or a broken watch', {
  timeout: 60_000,
}, async () => {
  const port = await freePort();
  const second = await start('second');
  const store = connect('', undefined, { endpoints: [`http://127.0.0.1:${port}`, second.endpoint], clock: hasty });
  assert.equal(await who(store), 'second');
  const watched = recorder();
  store.watch('later', 'later\0', storeRevision(1), watched.handler);
  const first = await start('first', port);
  await until(store, 'first');
  await store.commit({ guards: [], puts: [{ key: 'later', value: Buffer.from('v') }] });
  await watched.until(() => watched.events.length === 1, 'an event of the first store');
  await first.server.stop();
  await until(store, 'second');
  await store.close();
  await second.server.stop();
});

test('switches from an endpoint that does not respond to another endpoint', { timeout: 60_000 }, async () => {
  const first = await start('first');
  const second = await start('second');
  const sockets: Socket[] = [];
  const proxy = createServer((socket) => {
    const behind = createConnection({ host: '127.0.0.1', port: Number(new URL(first.endpoint).port) });
    sockets.push(socket, behind);
    for (const [from, to] of [
      [socket, behind],
      [behind, socket],
    ] as const)
      from.on('error', () => {}).on('data', (bytes) => to.write(bytes));
  });
  const port = await freePort();
  await new Promise<void>((resolve) => proxy.listen(port, '127.0.0.1', resolve));
  const endpoints = [`http://127.0.0.1:${port}`, second.endpoint];
  const store = connect('', undefined, { endpoints, clock: hasty, requestTimeoutMs: 1000 });
  assert.equal(await who(store), 'first');
  // Simulates an unplugged cable.
  for (const socket of sockets) socket.pause();
  proxy.close();
  const begin = performance.now();
  for (;;) {
    assert.ok(performance.now() - begin < 20_000, 'the silent one is kept');
    if ((await who(store).catch(() => '')) === 'second') break;
  }
  await store.close();
  for (const socket of sockets) socket.destroy();
  await Promise.all([first, second].map(({ server }) => server.stop()));
});
