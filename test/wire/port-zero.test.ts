/**
 * Datagrams with source port 0, which any host of the network can forge: a response is impossible, and Node's `send`
 * throws for such a port.
 */
import assert from 'node:assert/strict';
import { Socket } from 'node:dgram';
import { mock, test } from 'node:test';
import { silentLog } from '../../src/base/log.ts';
import { createMemberlistTransport } from '../../src/gossip/memberlist/index.ts';
import { encodeMessage } from '../../src/gossip/memberlist/messages.ts';
import type { RingHandler } from '../../src/gossip/membership/port.ts';
import { createDnsSockets } from '../../src/network/dns/io/sockets.ts';
import { createStreamForwarder } from '../../src/network/services/io/stream-forwarder.ts';

/** The sockets that `open` binds, and its result. */
async function binding<T>(open: () => Promise<T>): Promise<{ readonly opened: T; readonly sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const { bind } = Socket.prototype;
  const spy = mock.method(Socket.prototype, 'bind', function (this: Socket, ...given: Parameters<Socket['bind']>) {
    sockets.push(this);
    return bind.apply(this, given);
  });
  try {
    return { opened: await open(), sockets };
  } finally {
    spy.mock.restore();
  }
}

function receive(sockets: readonly Socket[], bytes: Uint8Array): void {
  assert.equal(sockets.length, 1);
  const from = { address: '127.0.0.1', family: 'IPv4', port: 0, size: bytes.length };
  sockets[0]?.emit('message', Buffer.from(bytes), from);
}

test('the name server drops a query from port 0', async () => {
  let requested = 0;
  const { opened, sockets } = await binding(() =>
    createDnsSockets().listen('127.0.0.1', 0, (message) => {
      requested++;
      return message;
    }),
  );
  receive(sockets, Uint8Array.of(1, 2, 3));
  assert.equal(requested, 0);
  await opened.close();
});

test('gossip members do not answer a ping from port 0', async () => {
  const transport = createMemberlistTransport({
    bind: { ip: '127.0.0.1', port: 0 },
    keyring: undefined,
    label: '',
    log: silentLog,
  });
  let heard = 0;
  const ack = encodeMessage({ kind: 'ack', seq: 1 });
  const handler: RingHandler = {
    packet: (from) => {
      heard++;
      transport.send(from, [ack], 5);
    },
    exchange: (state) => state,
    answersTo: () => true,
    user: () => {},
  };
  const { sockets } = await binding(() => transport.start(handler));
  receive(sockets, encodeMessage({ kind: 'ping', seq: 1, node: 'x' }));
  assert.equal(heard, 1);
  await transport.stop();
});

test('the service proxy opens no flow for a client at port 0', async () => {
  let picked = 0;
  const forwarder = createStreamForwarder({ dummyLink: 'none', fallbackLink: 'none', log: silentLog });
  const { opened, sockets } = await binding(() =>
    forwarder.listen('UDP', '127.0.0.1', 0, () => {
      picked++;
      return { ip: '127.0.0.1', port: 9 };
    }),
  );
  receive(sockets, Uint8Array.of(1));
  assert.equal(picked, 0);
  await opened.close();
});
