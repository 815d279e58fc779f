import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { probeTcp } from '../../../../../src/openshift/operators/cluster-operators/io/index.ts';

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

test('a TCP probe succeeds if one of several attempts is accepted', async () => {
  const port = await freePort();
  const server = createServer((socket) => socket.destroy());
  const opened = setTimeout(() => server.listen(port, '127.0.0.1'), 120);
  try {
    await probeTcp('127.0.0.1', port)(AbortSignal.timeout(5_000));
  } finally {
    clearTimeout(opened);
    server.close();
  }
});

test('a TCP probe fails soon if every attempt is refused', async () => {
  const beganMs = performance.now();
  const probe = probeTcp('127.0.0.1', await freePort());
  await assert.rejects(probe(AbortSignal.timeout(5_000)), /^Error: connection refused$/);
  assert.ok(performance.now() - beganMs < 3_000);
});
