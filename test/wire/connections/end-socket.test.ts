import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { endSocket } from '../../../src/wire/connections/end-socket.ts';

async function pair(): Promise<{ server: Socket; client: Socket; close(): void }> {
  const listener = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const accepted = once(listener, 'connection') as Promise<[Socket]>;
  const client = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
  client.on('error', () => {});
  const [server] = await accepted;
  const close = (): void => {
    client.destroy();
    server.destroy();
    listener.close();
  };
  return { server, client, close };
}

it('closes the connection although the peer keeps its side open and continues to send', async () => {
  const { server, client, close } = await pair();
  try {
    const answer = text(client);
    const closed = once(server, 'close', { signal: AbortSignal.timeout(5_000) });
    endSocket(server, 'refused');
    client.write('more');
    assert.equal(await answer, 'refused');
    await closed;
  } finally {
    close();
  }
});

it('closes the connection when the peer closes its side', async () => {
  const { server, client, close } = await pair();
  try {
    const closed = once(server, 'close', { signal: AbortSignal.timeout(500) });
    endSocket(server, 'refused');
    client.end();
    await closed;
  } finally {
    close();
  }
});

it('sends all bytes to a peer that reads them slowly', async () => {
  const { server, client, close } = await pair();
  try {
    const bytes = Buffer.alloc(16 << 20, 'x');
    const closed = once(server, 'close', { signal: AbortSignal.timeout(10_000) });
    endSocket(server, bytes);
    await sleep(1_500);
    assert.equal((await text(client)).length, bytes.length);
    await closed;
  } finally {
    close();
  }
});
