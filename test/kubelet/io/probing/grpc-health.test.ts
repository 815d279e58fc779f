import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { probeNetwork } from '../../../../src/kubelet/io/probing/index.ts';

test('ends a gRPC probe whose response is endless', async () => {
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    const flood = (): void => {
      while (!stream.destroyed && stream.write(Buffer.alloc(16_384)));
    };
    stream.on('drain', flood);
    flood();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const begun = performance.now();
    await assert.rejects(probeNetwork.grpcHealth('127.0.0.1', port, '', 20_000), {
      message: 'health rpc answered with more than 10240 bytes',
    });
    assert.ok(performance.now() - begun < 5_000);
  } finally {
    for (const session of sessions) session.destroy();
    server.close();
  }
});
