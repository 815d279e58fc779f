/**
 * Servers on the kubelet's sockets with clients that violate the protocol, and the streaming server of a CRI runtime.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { WebSocketServer } from 'ws';
import { silentLog as log } from '../../../src/base/log.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import { createPluginSockets } from '../../../src/kubelet/io/plugins/plugin-sockets.ts';
import { openStreams } from '../../../src/runtime/cri/streams.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import { callOnSocket } from '../../../src/wire/grpc/unix-calls.ts';
import { encodeHeaders } from '../../../src/wire/http2/hpack.ts';
import { FrameType, frame, headersFrames, PREFACE, settingsFrame } from '../../../src/wire/http2/http2-frames.ts';
import { Writer } from '../../../src/wire/protobuf/protobuf.ts';

const options = { clock, log };

test('repeated window settings in one SETTINGS frame take little CPU time, regardless of the number of open streams', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'client-'));
  const path = join(directory, 's.sock');
  const listener = createRpcListener({ host: '', port: 0, path, log });
  await listener.listen({
    hasService: () => true,
    unary: () => () => {},
    stream: () => undefined,
    http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  });
  const socket = connect(path);
  await once(socket, 'connect');
  socket.on('error', () => {});
  socket.resume();
  const request = encodeHeaders([
    { name: ':method', value: 'POST' },
    { name: ':scheme', value: 'http' },
    { name: ':path', value: '/a.B/C' },
    { name: ':authority', value: 'x' },
    { name: 'content-type', value: 'application/grpc' },
  ]);
  socket.write(Buffer.concat([PREFACE, settingsFrame([])]));
  for (let id = 1; id < 8000; id += 2) socket.write(headersFrames(id, request, { endStream: false }));
  const many = settingsFrame(Array.from({ length: 2700 }, (_, i) => [4, 1000 + (i % 2)] as const));
  const began = process.cpuUsage();
  for (let i = 0; i < 100; i += 1) socket.write(many);
  socket.write(frame(FrameType.ping, 0, 0, Buffer.from('ping-end')));
  await new Promise<void>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      if (chunk.includes('ping-end')) resolve();
    });
  });
  const spent = process.cpuUsage(began);
  assert.ok(spent.user < 1_000_000, `${spent.user / 1000} ms`);
  socket.destroy();
  await listener.close(0);
  await rm(directory, { recursive: true });
});

test('truncates the error message that quotes a long plug-in registration', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'client-'));
  const path = join(directory, 's.sock');
  const served = await createPluginSockets(options).serveRegistration(path, ({ endpoint }) => {
    throw new Error(`endpoint ${endpoint} is invalid`);
  });
  const message = new Writer(1 << 20).string(1, 'v1beta1').string(2, '€'.repeat(300_000)).finish();
  await assert.rejects(
    callOnSocket(path, '/v1beta1.Registration/Register', message, 2_000, options),
    (error: Error) => {
      assert.match(error.message, /^endpoint €/);
      return error.message.length <= 8192;
    },
  );
  // The connection stays open, and the next plug-in is served.
  await assert.rejects(callOnSocket(path, '/v1beta1.Registration/None', message, 2_000, options), /unknown|implement/);
  await served.close();
  await rm(directory, { recursive: true });
});

test('an invalid status from a container runtime fails only the exec that received it', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'v4.channel.k8s.io' });
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const verdicts = ['', 'not JSON', 'null', '[]', '{"details":{"causes":7}}', '{"details":{"causes":[null]}}'];
  server.on('connection', (socket) => {
    socket.on('error', () => {});
    socket.send(Buffer.concat([Buffer.from([1]), Buffer.from('out')]));
    socket.send(Buffer.concat([Buffer.from([3]), Buffer.from(verdicts.shift() ?? '')]));
    socket.send(Buffer.alloc(0));
    socket.send(Buffer.from([9, 9]));
    socket.close();
  });
  for (let left = verdicts.length; left > 0; left -= 1) {
    const streams = await openStreams(`http://127.0.0.1:${port}/exec`, {
      stdin: false,
      stdout: true,
      stderr: true,
      tty: false,
    });
    assert.equal(await streams.exited, 1);
  }
  server.close();
});

test('a broken frame or an oversized message of a container runtime fails only the exec that received it', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'v4.channel.k8s.io' });
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const frames = [
    Buffer.from([0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
    Buffer.from([0x82, 0x7f, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]),
    Buffer.from([0x81, 0x02, 0xc3, 0x28]),
  ];
  server.on('connection', (socket, request) => {
    socket.on('error', () => {});
    request.socket.write(frames.shift() ?? Buffer.alloc(0));
  });
  for (let left = frames.length; left > 0; left -= 1) {
    const streams = await openStreams(`http://127.0.0.1:${port}/exec`, {
      stdin: true,
      stdout: true,
      stderr: false,
      tty: false,
    });
    await streams.exited;
    await assert.rejects(async () => streams.stdin?.write(Buffer.from('x')));
    await assert.rejects(streams.resize(1, 1), /WebSocket is not open/);
  }
  for (const client of server.clients) client.terminate();
  server.close();
});
