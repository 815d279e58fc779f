import assert from 'node:assert/strict';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { connectInNamespace } from '../../../../src/runtime/oci/streams/port-connect.ts';

test('a port forward ends its output when the pod closes the connection, and the client may still write', {
  timeout: 20_000,
}, async () => {
  let heard = '';
  const ended = Promise.withResolvers<void>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('data', (chunk) => {
      heard += String(chunk);
    });
    socket.on('end', () => ended.resolve());
    socket.end('bye');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const stream = await connectInNamespace('socat', '/proc/self/ns/net', port, () => {});
    let received = '';
    for await (const chunk of stream.readable) received += Buffer.from(chunk).toString();
    assert.equal(received, 'bye');
    await stream.write(Buffer.from('late'));
    stream.end();
    await ended.promise;
    assert.equal(heard, 'late');
    stream.destroy();
  } finally {
    server.close();
  }
});
