/** Clients of plug-ins with servers that violate HTTP/2, gRPC and protocol buffers. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, rm, symlink } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { createKmsPlugin } from '../../../src/apiserver/io/kms-plugin.ts';
import { toUid } from '../../../src/base/brand.ts';
import { silentLog as log } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { systemClock as clock } from '../../../src/host/process/process.ts';
import { createCsiConnector } from '../../../src/kubelet/io/plugins/csi-driver.ts';
import { createRegistrationSockets } from '../../../src/kubelet/io/plugins/plugin-registration.ts';
import { createPluginSockets } from '../../../src/kubelet/io/plugins/plugin-sockets.ts';
import { CriCalls } from '../../../src/runtime/cri/calls.ts';
import * as messages from '../../../src/runtime/cri/messages.ts';
import { Channel } from '../../../src/wire/grpc/channel.ts';
import { MessageReader, RpcError } from '../../../src/wire/grpc/messages.ts';
import { callOnSocket } from '../../../src/wire/grpc/unix-calls.ts';
import {
  Flag,
  FrameType,
  frame,
  goAwayFrame,
  resetFrame,
  settingsFrame,
} from '../../../src/wire/http2/http2-frames.ts';
import { Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { eventually } from '../../e2e/harness.ts';
import { generator } from '../../support/random.ts';
import { answer, data, head, hostilePeer, prefixed, SETTINGS, trailers } from './hostile-peer.ts';

const EMPTY = Buffer.alloc(0);
const options = { clock, log };
const ask = (socket: string, timeoutMs = 2_000): Promise<Buffer> =>
  callOnSocket(socket, '/a.B/C', EMPTY, timeoutMs, options);

/** Writes `bytes` repeatedly until the client closes the connection; returns the number of writes. */
async function flood(socket: Socket, bytes: Buffer, most: number): Promise<number> {
  let written = 0;
  while (!socket.destroyed && socket.writable && written < most) {
    written += 1;
    if (!socket.write(bytes)) {
      await new Promise<void>((resolve) => {
        socket.once('drain', resolve);
        socket.once('close', () => resolve());
      });
    }
  }
  return written;
}

test('closes the connection to a server that sends floods of PING, SETTINGS, GOAWAY or DATA frames or endless headers', async () => {
  const ping = frame(FrameType.ping, 0, 0, Buffer.alloc(8));
  const goodbye = goAwayFrame(0x7fff_ffff, 0, 'x');
  const floods: Readonly<Record<string, (id: number) => readonly [first: Buffer, again: Buffer]>> = {
    pings: () => [EMPTY, ping],
    acknowledgements: () => [EMPTY, frame(FrameType.settings, Flag.ack, 0, EMPTY)],
    settings: () => [EMPTY, SETTINGS],
    goodbyes: () => [EMPTY, goodbye],
    unknown: () => [EMPTY, frame(77, 0, 0, EMPTY)],
    'empty data': (id) => [
      Buffer.concat([head(id), frame(FrameType.data, 0, id, prefixed(Buffer.alloc(9)).subarray(0, 7))]),
      frame(FrameType.data, 0, id, EMPTY),
    ],
    continuations: (id) => [frame(FrameType.headers, 0, id, EMPTY), frame(FrameType.continuation, 0, id, EMPTY)],
  };
  for (const [name, of] of Object.entries(floods)) {
    let written = 0;
    const peer = await hostilePeer({
      onRequest: ({ socket, id }) => {
        const [first, again] = of(id);
        socket.write(first);
        void flood(socket, Buffer.concat(Array.from({ length: 1000 }, () => again)), 1_000).then((count) => {
          written = count;
        });
      },
    });
    await assert.rejects(ask(peer.path), /too many|going away|closed|reset/, name);
    await eventually(`the connection of ${name} is closed`, 3_000, () => (peer.open() === 0 ? true : undefined));
    assert.ok(written < 1_000, `${name}: ${written * 1000} frames were accepted`);
    await peer.close();
  }
});

test('limits the queued replies to a server that does not read', async () => {
  const pings = Buffer.concat(Array.from({ length: 30_000 }, () => frame(FrameType.ping, 0, 0, Buffer.alloc(8))));
  const peer = await hostilePeer({
    onRequest: ({ socket }) => {
      socket.pause();
      socket.write(pings);
    },
  });
  await assert.rejects(ask(peer.path), /too many replies are not read/);
  await peer.close();
});

test('limits the connections to a server that sends GOAWAY without ending calls, and closes all with the client', async () => {
  const peer = await hostilePeer({
    onRequest: ({ socket, id }) => socket.write(Buffer.concat([goAwayFrame(id, 0, 'bye'), head(id)])),
  });
  const channel = new Channel({ endpoints: [`unix://${peer.path}`], ...options });
  const calls = Array.from({ length: 20 }, async () => {
    await channel.unary('/a.B/C', EMPTY, 3_000).catch(() => {});
  });
  for (let i = 0; i < 20; i += 1) {
    calls.push(
      channel.unary('/a.B/C', EMPTY, 3_000).then(
        () => {},
        () => {},
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok(peer.open() <= 12, `${peer.open()} connections`);
  }
  channel.close();
  await eventually('no connection is left', 3_000, () => (peer.open() === 0 ? true : undefined));
  await Promise.all(calls);
  await peer.close();
});

test('limits retries to a server that rejects every call before processing it', async () => {
  let connections = 0;
  const peer = await hostilePeer({
    onRequest: ({ socket, connection }) => {
      connections = connection;
      socket.write(goAwayFrame(0, 0, 'bye'));
    },
  });
  await assert.rejects(ask(peer.path, 400), /unavailable/);
  assert.ok(connections < 60, `${connections} connections`);
  await eventually('no connection is left', 3_000, () => (peer.open() === 0 ? true : undefined));
  await peer.close();
});

test('a call leaves no stream open if the server responds before it has read the request', async () => {
  const peer = await hostilePeer({
    greet: (socket) => socket.write(settingsFrame([[4, 0]])),
    onRequest: ({ socket, id }) => socket.write(Buffer.concat([head(id), trailers(id, '7', 'no')])),
  });
  const resets: number[] = [];
  const channel = new Channel({ endpoints: [`unix://${peer.path}`], ...options });
  // With at most 100 streams at once, leaked streams would block later calls.
  const limited = await hostilePeer({
    greet: (socket) =>
      socket.write(
        settingsFrame([
          [4, 0],
          [3, 2],
        ]),
      ),
    onRequest: ({ socket, id }) => {
      resets.push(id);
      socket.write(Buffer.concat([head(id), trailers(id, '7', 'no')]));
    },
  });
  const bounded = new Channel({ endpoints: [`unix://${limited.path}`], ...options });
  for (let i = 0; i < 8; i += 1) {
    await assert.rejects(channel.unary('/a.B/C', Buffer.alloc(1000), 1_000), /no/);
    await assert.rejects(bounded.unary('/a.B/C', Buffer.alloc(1000), 1_000), /no/);
  }
  assert.equal(resets.length, 8);
  channel.close();
  bounded.close();
  await peer.close();
  await limited.close();
});

test('rejects gRPC responses with an invalid status, several messages, compression or a length of 4 GB', async () => {
  const long = '%'.repeat(20_000) + '%41'.repeat(5_000);
  const big = Buffer.from([0, 0xff, 0xff, 0xff, 0xff, 1]);
  const cases: ReadonlyArray<readonly [(id: number) => Buffer, RegExp, number | undefined]> = [
    [(id) => Buffer.concat([head(id), trailers(id, '999')]), /^$/, 2],
    [(id) => Buffer.concat([head(id), trailers(id, 'NaN', 'broken')]), /broken/, 2],
    [(id) => Buffer.concat([head(id), trailers(id, '', 'blank')]), /blank/, 2],
    [(id) => Buffer.concat([head(id), trailers(id, '00', 'zeros')]), /zeros/, 2],
    [(id) => Buffer.concat([head(id), trailers(id, '5', long)]), /^%{8192}$/, 5],
    [(id) => Buffer.concat([head(id), trailers(id, '5', '%ff%fe%00%0a')]), /^\ufffd\ufffd\0\n$/, 5],
    [(id) => Buffer.concat([head(id), trailers(id, '0')]), /no answer/, 13],
    [
      (id) => Buffer.concat([head(id), data(id, prefixed(Buffer.from('a'))), data(id, prefixed(EMPTY))]),
      /more than/,
      13,
    ],
    [(id) => Buffer.concat([head(id), data(id, big)]), /larger than max/, 8],
    [(id) => Buffer.concat([head(id), data(id, Buffer.from([1, 0, 0, 0, 0]))]), /compressed/, 12],
    [(id) => Buffer.concat([head(id), frame(FrameType.data, Flag.endStream, id, EMPTY)]), /without a status/, 13],
    [(id) => Buffer.concat([head(id), resetFrame(id, 2)]), /reset/, 14],
    [(id) => frame(FrameType.pushPromise, Flag.endHeaders, id, Buffer.from([0, 0, 0, 2])), /push/, 14],
    [(id) => frame(FrameType.headers, Flag.endHeaders, id, Buffer.alloc(70)), /cut short|going|Huffman|index/, 14],
    [() => frame(FrameType.windowUpdate, 0, 0, Buffer.from([0x7f, 0xff, 0xff, 0xff])), /window is too large/, 14],
    [() => answer(9, EMPTY), /never opened/, 14],
    [() => Buffer.concat([Buffer.from([0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1])]), /too large/, 14],
  ];
  for (const [of, message, code] of cases) {
    const peer = await hostilePeer({ onRequest: ({ socket, id }) => socket.write(of(id)) });
    await assert.rejects(ask(peer.path), (error: unknown) => {
      assert.ok(error instanceof RpcError, String(error));
      assert.match(error.message, message);
      if (code !== undefined) assert.equal(error.code, code, error.message);
      return true;
    });
    await peer.close();
  }
});

test('a call fails within its time limit for a silent server, a half-closed connection or a path that is not a socket', async () => {
  const silent = await hostilePeer({ greet: () => {} });
  const closing = await hostilePeer({ greet: (socket) => socket.end() });
  await Promise.all([silent, closing].map(({ path }) => assert.rejects(ask(path, 600), /unavailable|in time/)));
  const { directory } = silent;
  execFileSync('mkfifo', [join(directory, 'fifo')]);
  await mkdir(join(directory, 'directory'));
  await symlink(join(directory, 'nowhere'), join(directory, 'link'));
  const gone = ['fifo', 'directory', 'link', 'x'.repeat(300), 'nul\0'];
  await Promise.all(gone.map((name) => assert.rejects(ask(join(directory, name), 600), /connection error/)));
  await rm(join(directory, 'fifo'));
  // Channels of long-lived clients, which connect by themselves.
  await Promise.all(
    gone.slice(1).map(async (name) => {
      const channel = new Channel({ endpoints: [`unix://${encodeURI(join(directory, name))}`], ...options });
      await assert.rejects(channel.unary('/a.B/C', EMPTY, 500), /unavailable/);
      channel.close();
    }),
  );
  await silent.close();
  await closing.close();
});

test('a message received byte by byte uses no more memory than its size', () => {
  const bytes = 2 << 20;
  const reader = new MessageReader(4 << 20);
  const whole = prefixed(Buffer.alloc(bytes, 7));
  globalThis.gc?.();
  const before = process.memoryUsage();
  let got = 0;
  for (let at = 0; at < whole.length - 1; at += 1) reader.push(whole.subarray(at, at + 1), () => {});
  const after = process.memoryUsage();
  const kept = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers;
  reader.push(whole.subarray(whole.length - 1), (message) => {
    got = message.length;
    assert.ok(message.every((byte) => byte === 7));
  });
  assert.equal(got, bytes);
  assert.ok(kept < 64 << 20, `${kept >> 20} MB are kept for ${bytes >> 20} MB`);
});

test('rejects protobuf messages with millions of fields without blocking the event loop', async () => {
  const many = (field: number, inner: Buffer): Buffer => {
    const one = new Writer(16).message(field, inner).finish();
    return Buffer.alloc(Math.floor((4 << 20) / one.length - 100) * one.length, one);
  };
  const empties = many(1, EMPTY);
  const versions = many(4, EMPTY);
  const nested = new Writer(4 << 20).message(3, many(1, EMPTY)).finish();
  const answers: Readonly<Record<string, Buffer>> = {
    '/v1beta1.DevicePlugin/Allocate': empties,
    '/v1beta1.DevicePlugin/GetPreferredAllocation': empties,
    '/pluginregistration.Registration/GetInfo': versions,
    '/csi.v1.Node/NodeGetInfo': nested,
    '/csi.v1.Node/NodeGetCapabilities': empties,
    '/csi.v1.Node/NodeGetVolumeStats': empties,
    '/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources': empties,
    '/v2.KeyManagementService/Encrypt': many(3, EMPTY),
    '/runtime.v1.ImageService/ListImages': empties,
  };
  const peer = await hostilePeer({
    onRequest: ({ socket, id, path }) => socket.write(answer(id, answers[path] ?? EMPTY)),
  });
  const sockets = createPluginSockets(options);
  const device = sockets.devicePlugin(peer.path);
  const csi = createCsiConnector(options)(peer.path);
  const dra = sockets.draPlugin(peer.path, 'v1.DRAPlugin');
  const kms = createKmsPlugin({ socket: peer.path, timeoutMs: 2_000, ...options });
  const cri = new CriCalls({ endpoint: peer.path, ...options });
  const calls: ReadonlyArray<() => Promise<unknown>> = [
    () => device.allocate(['a']),
    () => device.preferred(['a'], 1),
    () => createRegistrationSockets(options).info(peer.path),
    () => csi.info(),
    () => csi.capabilities(),
    () => csi.stats('v', '/p', '/s'),
    () => dra.prepare({ namespace: 'n', name: 'c', uid: toUid('u') }),
    () => kms.encrypt(Buffer.from('x'), 'u'),
    () => cri.call('ImageService/ListImages', [{}, {}], messages.listImagesResponse),
  ];
  for (const call of calls) await assert.rejects(call(), /more than \d+ fields/, call.toString());
  const listed = await hostilePeer({
    onRequest: ({ socket, id }) => socket.write(Buffer.concat([head(id), data(id, prefixed(empties))])),
  });
  const watched = sockets.devicePlugin(listed.path);
  const ended = await new Promise<Error>((resolve) => {
    watched.watch({ listed: () => resolve(new Error('accepted')), ended: resolve });
  });
  assert.match(ended.message, /more than \d+ fields/);
  for (const each of [device, dra, kms, cri, watched]) each.close();
  await peer.close();
  await listed.close();
});

test('a damaged gRPC response leads to an error or a valid response, never to an exception', async () => {
  const next = generator(20_2611);
  const below = (most: number): number => Math.floor(next() * most);
  const valid = Buffer.concat([
    new Writer(256).string(1, 'CSIPlugin').string(2, 'a.example').string(3, '/run/a.sock').string(4, 'v1.0.0').finish(),
    new Writer(256).message(1, new Writer(64).string(1, 'id').string(2, 'Healthy').finish()).finish(),
    new Writer(256)
      .message(3, new Writer(64).message(1, new Writer(64).string(1, 'k').string(2, 'v').finish()).finish())
      .finish(),
  ]);
  const mutated = (bytes: Buffer): Buffer => {
    const out = Buffer.from(bytes);
    for (let n = below(6); n >= 0; n -= 1) out[below(out.length)] = below(256);
    return below(4) === 0 ? out.subarray(0, below(out.length)) : out;
  };
  let framing = false;
  const peer = await hostilePeer({
    onRequest: ({ socket, id }) => {
      // Damages either the framing or the message inside.
      if (framing) socket.end(mutated(answer(id, valid)));
      else socket.write(answer(id, mutated(valid)));
    },
  });
  const sockets = createPluginSockets(options);
  let longest = 0;
  const outcomes = { answers: 0, errors: 0 };
  const each = async (call: () => Promise<unknown>): Promise<void> => {
    const beganMs = performance.now();
    try {
      await call();
      outcomes.answers += 1;
    } catch (error) {
      assert.ok(error instanceof Error);
      assert.ok(!/is not a function|undefined|Cannot read/.test(error.message), error.stack);
      outcomes.errors += 1;
    }
    longest = Math.max(longest, performance.now() - beganMs);
  };
  const device = sockets.devicePlugin(peer.path);
  const dra = sockets.draPlugin(peer.path, 'v1.DRAPlugin');
  const kms = createKmsPlugin({ socket: peer.path, timeoutMs: 2_000, ...options });
  const cri = new CriCalls({ endpoint: peer.path, ...options });
  for (let i = 0; i < 250; i += 1) {
    await each(() => device.allocate(['a']));
    await each(() => device.preferred(['a'], 1));
    await each(() => device.options());
    await each(() => dra.prepare({ namespace: 'n', name: 'c', uid: toUid('u') }));
    await each(() => kms.encrypt(EMPTY, 'u'));
    await each(() => kms.status());
    await each(() => cri.call('RuntimeService/Status', [{}, {}], messages.statusResponse));
    await each(() => cri.call('RuntimeService/ListContainers', [{}, {}], messages.listResponse));
    await each(() => createCsiConnector(options)(peer.path).info());
    await each(() => createRegistrationSockets(options).info(peer.path));
  }
  framing = true;
  for (let i = 0; i < 400; i += 1) await each(() => ask(peer.path, 1_000));
  assert.ok(outcomes.errors > 500 && outcomes.answers > 50, JSON.stringify(outcomes));
  for (const one of [device, dra, kms, cri]) one.close();
  await peer.close();
});

test('returns to the first endpoint after its earlier connections were accepted but not served', async () => {
  let connections = 0;
  const first = await hostilePeer({
    greet: (socket) => {
      connections += 1;
      // The first endpoint is down, then hangs, then stops, and then serves.
      if (connections === 1) socket.destroy();
      else if (connections === 3) socket.write(Buffer.concat([SETTINGS, goAwayFrame(0, 0, 'stopping')]));
      else if (connections > 3) socket.write(SETTINGS);
    },
    onRequest: ({ socket, id }) => socket.write(answer(id, Buffer.from('first'))),
  });
  const second = await hostilePeer({
    onRequest: ({ socket, id }) => socket.write(answer(id, Buffer.from('second'))),
  });
  const endpoints = [first, second].map(({ path }) => `unix://${path}`);
  // Shortens only the pause before a return and the time limit of a connection attempt.
  const fast: Clock = {
    ...clock,
    setTimer: (delayMs, callback) => clock.setTimer(delayMs === 5_000 ? 100 : delayMs, callback),
  };
  const channel = new Channel({ endpoints, log, clock: fast });
  try {
    const served = new Set<string>();
    await eventually('the first endpoint serves', 5_000, async () => {
      served.add(`${await channel.unary('/a.B/C', EMPTY, 2_000)}`);
      return served.has('first') ? true : undefined;
    });
    assert.deepEqual([...served], ['second', 'first']);
    assert.equal(connections, 4);
  } finally {
    channel.close();
    await first.close();
    await second.close();
  }
});
