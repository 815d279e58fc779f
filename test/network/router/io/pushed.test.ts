/** An HTTP/2 server that pushes streams to the router. An error without a listener fails this test. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Backend, Choice } from '../../../../src/network/router/core/port.ts';
import { Upstreams } from '../../../../src/network/router/io/upstream.ts';
import { frame, settingsFrame } from '../../../../src/wire/http2/http2-frames.ts';

/** An HPACK literal without indexing. */
const field = (name: string, value: string): Buffer =>
  Buffer.from(`\0${String.fromCharCode(name.length)}${name}${String.fromCharCode(value.length)}${value}`);
const [PUSH, RESET, END_HEADERS] = [5, 3, 4];

test('an error on a stream pushed by an HTTP/2 server ends at most the session with that server', async () => {
  const pushed = Buffer.concat([
    Buffer.from([0, 0, 0, 2]),
    ...[field(':method', 'GET'), field(':scheme', 'http'), field(':path', '/'), field(':authority', 'x')],
  ]);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(settingsFrame([]));
      // The push is sent after the request's stream has been opened.
      setTimeout(() => {
        socket.write(
          Buffer.concat([frame(PUSH, END_HEADERS, 1, pushed), frame(RESET, 0, 2, Buffer.from([0, 0, 0, 2]))]),
        );
        setTimeout(() => socket.destroy(), 100);
      }, 50);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const upstreams = new Upstreams();
  const backend = { upstream: { tls: false } } as Backend;
  const choice = { key: `127.0.0.1:${port}`, endpoint: { address: '127.0.0.1', port } } as Choice;
  const stream = upstreams.session(backend, choice).request({ ':path': '/' });
  stream.on('error', () => {});
  await once(stream, 'close');
  await sleep(20);
  assert.equal(stream.closed, true);
  upstreams.close();
  server.close();
});
