/** Pods with invalid responses to probes. An error without a listener fails these tests. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { probeNetwork } from '../../../../src/kubelet/io/probing/index.ts';
import { frame, settingsFrame } from '../../../../src/wire/http2/http2-frames.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A pod that sends `bytes` once it has received data, and closes after `ms`. */
async function podThatSays(bytes: Buffer, ms = 200): Promise<number> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(bytes);
      setTimeout(() => socket.destroy(), ms);
    });
  });
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

/** An HPACK literal without indexing. */
const field = (name: string, value: string): Buffer =>
  Buffer.from(`\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`);
const [RESET, GOAWAY, WINDOW, PUSH, CONTINUATION, END_HEADERS] = [3, 7, 8, 5, 9, 4];
const pushed = frame(
  PUSH,
  END_HEADERS,
  1,
  Buffer.concat([
    Buffer.from([0, 0, 0, 2]),
    ...[field(':method', 'GET'), field(':scheme', 'http'), field(':path', '/'), field(':authority', 'x')],
  ]),
);

test('pushed or reset streams of a pod fail only the gRPC probe', async () => {
  const ends = [
    frame(RESET, 0, 2, Buffer.from([0, 0, 0, 2])),
    frame(GOAWAY, 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 2])),
    frame(CONTINUATION, 0, 2, Buffer.from('zz')),
    frame(WINDOW, 0, 2, Buffer.alloc(4)),
  ];
  for (const end of ends) {
    const port = await podThatSays(Buffer.concat([settingsFrame([]), pushed, end]));
    const answer = await probeNetwork.grpcHealth('127.0.0.1', port, '', 2_000).catch(() => 'failed');
    assert.notEqual(answer, 'SERVING');
    await sleep(20);
  }
});

test('an unrequested response 101 ends the probe with status 101', async () => {
  for (const headers of ['', 'Connection: upgrade\r\nUpgrade: x\r\n']) {
    const port = await podThatSays(Buffer.from(`HTTP/1.1 101 S\r\n${headers}\r\nbytes`), 5_000);
    const got = await probeNetwork.httpGet(new URL(`http://127.0.0.1:${port}/`), {}, AbortSignal.timeout(3_000));
    assert.equal(got.code, 101);
  }
});
