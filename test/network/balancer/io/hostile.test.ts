/** Clients of a forwarded service that open as many connections as possible. */
import assert from 'node:assert/strict';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { silentLog as log } from '../../../../src/base/log.ts';
import { createStreamForwarder } from '../../../../src/network/services/io/stream-forwarder.ts';
import { freePort } from '../../../support/ports.ts';

const forwarder = createStreamForwarder({
  dummyLink: 'none',
  fallbackLink: 'none',
  log,
  limits: { tcp: 10, udp: 10, perClient: 6 },
});
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test('limits the connections of one client without affecting other clients', { timeout: 20_000 }, async () => {
  const server = createServer((socket) => socket.on('error', () => {}).end('hello'));
  server.on('connection', (socket) => socket.pause());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: target } = server.address() as AddressInfo;
  const port = await freePort();
  const listener = await forwarder.listen('TCP', '127.0.0.1', port, () => ({ ip: '127.0.0.1', port: target }));
  const open: Socket[] = [];
  /** Whether the server responded. */
  const greeted = (localAddress: string): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = connect({ host: '127.0.0.1', port, localAddress, allowHalfOpen: true });
      open.push(socket);
      socket.on('error', () => resolve(false));
      socket.on('close', () => resolve(false));
      socket.once('data', () => resolve(true));
    });
  try {
    const first = await Promise.all(Array.from({ length: 12 }, () => greeted('127.0.0.1')));
    assert.equal(first.filter(Boolean).length, 6);
    const others = await Promise.all(Array.from({ length: 6 }, () => greeted('127.0.0.2')));
    assert.equal(others.filter(Boolean).length, 4);
    for (const socket of open) socket.destroy();
    await pause(200);
    assert.equal(await greeted('127.0.0.1'), true);
  } finally {
    for (const socket of open) socket.destroy();
    await listener.close();
    server.close();
  }
});

test('limits the UDP flows of one client without affecting other clients', { timeout: 20_000 }, async () => {
  const echo = createSocket('udp4');
  echo.on('message', (message, { port, address }) => echo.send(message, port, address));
  await new Promise<void>((resolve) => echo.bind(0, '127.0.0.1', resolve));
  const port = await freePort();
  const listener = await forwarder.listen('UDP', '127.0.0.1', port, () => ({
    ip: '127.0.0.1',
    port: echo.address().port,
  }));
  const open: UdpSocket[] = [];
  const answered = async (address: string): Promise<boolean> => {
    const socket = createSocket('udp4');
    open.push(socket);
    await new Promise<void>((resolve) => socket.bind(0, address, resolve));
    const answer = new Promise<boolean>((resolve) => socket.once('message', () => resolve(true)));
    socket.send('x', port, '127.0.0.1');
    return Promise.race([answer, pause(500).then(() => false)]);
  };
  try {
    const first = await Promise.all(Array.from({ length: 12 }, () => answered('127.0.0.1')));
    assert.equal(first.filter(Boolean).length, 6);
    assert.equal(await answered('127.0.0.2'), true);
  } finally {
    for (const socket of open) socket.close();
    await listener.close();
    echo.close();
  }
});
