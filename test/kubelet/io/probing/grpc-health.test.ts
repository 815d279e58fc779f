import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { probeNetwork } from '../../../../src/kubelet/io/probing/index.ts';
import { Reader } from '../../../../src/wire/protobuf/protobuf.ts';

test('ends a gRPC probe with an endless response', async () => {
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

test('a gRPC probe sends a service name of any length completely', async () => {
  const names: string[] = [];
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => sessions.add(session));
  server.on('stream', async (stream) => {
    const body = Buffer.concat(await stream.toArray());
    assert.equal(body.readUInt32BE(1), body.length - 5);
    const request = new Reader(body.subarray(5));
    names.push(request.field() === 1 ? request.string() : '');
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    stream.end(Buffer.from([0, 0, 0, 0, 2, 0x08, 1]));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const services = ['', 'a', 'b'.repeat(127), 'ü'.repeat(64), 'c'.repeat(20_000)];
  try {
    for (const service of services)
      assert.equal(await probeNetwork.grpcHealth('127.0.0.1', port, service, 5_000), 'SERVING');
    assert.deepEqual(names, services);
  } finally {
    for (const session of sessions) session.destroy();
    server.close();
  }
});
