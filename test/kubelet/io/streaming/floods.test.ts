/** Clients of exec, attach and port forwarding that flood the kubelet or send damaged data. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { silentLog } from '../../../../src/base/log.ts';
import { createStreamingServer } from '../../../../src/kubelet/io/streaming/server.ts';
import {
  createStoredDeflate,
  encodeControlFrame,
  encodeDataHeader,
  encodeHeaderBlock,
  encodeWords,
  FLAG_FIN,
  FrameType,
} from '../../../../src/wire/spdy/spdy-frames.ts';
import { eventually } from '../../../e2e/harness.ts';
import { generator } from '../../../support/random.ts';
import { realClock } from './pod-server.ts';

const WEBSOCKET =
  'Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
  'Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n\r\n';
const SPDY = 'Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n';

const greeting = (path: string, rest: string): Buffer =>
  Buffer.from(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n${rest}`);

/** SYN_STREAM frames of a SPDY client, in wire order. */
function synStreams(...types: readonly Readonly<Record<string, string>>[]): Buffer {
  const deflate = createStoredDeflate();
  return Buffer.concat(
    types.map((headers, i) => {
      const start = Buffer.alloc(10);
      start.writeUInt32BE(i * 2 + 1);
      const block = deflate(encodeHeaderBlock(new Map(Object.entries(headers))));
      return encodeControlFrame(FrameType.synStream, 0, Buffer.concat([start, block]));
    }),
  );
}

function masked(opcode: number, payload: Buffer): Buffer {
  const length =
    payload.length < 126
      ? Buffer.from([0x80 | payload.length])
      : Buffer.from([
          0xff,
          0,
          0,
          0,
          0,
          payload.length >>> 24,
          payload.length >>> 16,
          payload.length >>> 8,
          payload.length,
        ]);
  return Buffer.concat([Buffer.from([0x80 | opcode]), length, Buffer.alloc(4), payload]);
}

describe('floods of streaming clients', { timeout: 60_000 }, () => {
  let directory: string;
  let server: Server;
  const sizes: number[] = [];
  let changes = 0;
  let resized = Promise.resolve();
  const accepted: Socket[] = [];
  const streaming = createStreamingServer({ clock: realClock, log: silentLog });

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'streams-'));
    server = createServer();
    server.on('upgrade', (request, socket, head) => {
      accepted.push(socket as Socket);
      if (request.url === '/portForward') {
        void streaming.handlePortForward(request, socket, head, () => Promise.reject(new Error('closed')));
        return;
      }
      const tty = request.url === '/tty';
      void streaming.handleRemoteCommand(request, socket, head, { stdin: true, stdout: true, stderr: false, tty }, () =>
        Promise.resolve({
          stdin: { write: async () => {}, end: () => {} },
          stdout: Readable.from([]),
          stderr: undefined,
          resize: async (columns: number) => {
            changes += 1;
            await resized;
            sizes.push(columns);
          },
          exited: new Promise<number>(() => {}),
          close: () => {},
        }),
      );
    });
    await new Promise<void>((resolve) => server.listen(join(directory, 's'), resolve));
  });
  after(async () => {
    for (const socket of accepted) socket.destroy();
    await streaming.stop();
    await new Promise<void>((resolve) => server.close(() => resolve()));
    await rm(directory, { recursive: true });
  });

  /** A client that reads nothing after the handshake. */
  async function client(path: string, rest: string): Promise<{ readonly socket: Socket; readonly served: Socket }> {
    const before = accepted.length;
    const socket = connect(join(directory, 's'));
    socket.on('error', () => {});
    socket.write(greeting(path, rest));
    await new Promise((resolve) => socket.once('data', resolve));
    socket.pause();
    const served = accepted[before];
    assert.ok(served !== undefined);
    return { socket, served };
  }

  /** Writes until the server stops reading, closes, or has read everything. */
  async function flood(socket: Socket, bytes: Buffer, times: number): Promise<number> {
    for (let i = 0; i < times; i += 1) {
      if (socket.destroyed || !socket.writable) return i;
      if (socket.write(bytes)) continue;
      const stuck = await Promise.race([
        new Promise<boolean>((resolve) =>
          socket.once('drain', () => resolve(false)).once('close', () => resolve(false)),
        ),
        new Promise<boolean>((resolve) => setTimeout(() => resolve(true), 400)),
      ]);
      if (stuck) return i;
    }
    return times;
  }

  it('limits unread replies to SPDY data of unknown streams', async () => {
    const { socket, served } = await client('/exec', SPDY);
    const frames = Buffer.concat(Array.from({ length: 5000 }, () => encodeDataHeader(0x7fff, 0, 0)));
    const used = await flood(socket, frames, 1000);
    assert.ok(served.writableLength < 4 << 20, `${served.writableLength} bytes wait`);
    assert.ok(used < 1000, 'the flood was taken as a whole');
    socket.destroy();
  });

  it('applies a SETTINGS frame with many repeated settings to open streams once', async () => {
    const { socket } = await client('/portForward', SPDY.replace(/X-Stream.*\r\n(?=\r\n)/, ''));
    socket.resume();
    const streams = Array.from({ length: 1000 }, (_, i) => ({ streamtype: 'data', port: '80', requestid: String(i) }));
    socket.write(synStreams(...streams));
    const entries = Buffer.alloc(4 + 8000 * 8);
    entries.writeUInt32BE(8000);
    for (let i = 0; i < 8000; i += 1) {
      entries.writeUInt32BE(7, 4 + i * 8);
      entries.writeUInt32BE(1000 + (i % 2), 8 + i * 8);
    }
    const began = process.cpuUsage();
    socket.write(Buffer.concat(Array.from({ length: 20 }, () => encodeControlFrame(FrameType.settings, 0, entries))));
    socket.write(encodeWords(FrameType.ping, 0x1357_9bdf));
    await new Promise<void>((resolve) =>
      socket.on('data', (chunk: Buffer) => {
        if (chunk.includes(Buffer.from([0x13, 0x57, 0x9b, 0xdf]))) resolve();
      }),
    );
    const spent = process.cpuUsage(began).user / 1000;
    assert.ok(spent < 800, `${spent} ms`);
    socket.destroy();
  });

  it('parses only the last of many terminal sizes', async () => {
    const { socket } = await client('/tty', WEBSOCKET);
    const began = process.cpuUsage();
    socket.write(masked(2, Buffer.concat([Buffer.from([4]), Buffer.alloc(900_000, '}')])));
    socket.write(masked(2, Buffer.from('\u0004{"Width":1,"Height":1}{"Width":77,"Height":2}{"Wi')));
    socket.write(masked(2, Buffer.from('\u0004dth":78,"Height":2}')));
    await eventually('the last size', 20_000, () => (sizes.at(-1) === 78 ? true : undefined));
    assert.deepEqual(sizes.slice(-2), [77, 78]);
    const spent = process.cpuUsage(began).user / 1000;
    assert.ok(spent < 800, `${spent} ms`);
    socket.destroy();
  });

  it('sets one terminal size at a time, and of the sizes that arrive meanwhile only the newest', async () => {
    const { socket } = await client('/tty', WEBSOCKET);
    const { promise, resolve } = Promise.withResolvers<void>();
    resized = promise;
    changes = 0;
    for (let columns = 1; columns <= 10_000; columns += 1)
      socket.write(masked(2, Buffer.from(`\u0004{"Width":${columns},"Height":1}`)));
    await eventually('the first size', 20_000, () => (changes > 0 ? true : undefined));
    await new Promise((done) => setTimeout(done, 300));
    assert.equal(changes, 1);
    resolve();
    await eventually('the last size', 20_000, () => (sizes.at(-1) === 10_000 ? true : undefined));
    socket.destroy();
  });

  it('the streaming server survives any corruption of a session', async () => {
    const next = generator(20_2612);
    const below = (most: number): number => Math.floor(next() * most);
    const session = Buffer.concat([
      synStreams({ streamtype: 'error' }, { streamtype: 'stdin' }, { streamtype: 'stdout' }, { streamtype: 'resize' }),
      encodeDataHeader(3, 0, 4),
      Buffer.from('text'),
      encodeWords(FrameType.windowUpdate, 5, 100),
      encodeWords(FrameType.ping, 1),
      encodeControlFrame(FrameType.settings, 0, Buffer.from([0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 4, 0])),
      encodeDataHeader(3, FLAG_FIN, 0),
      encodeWords(FrameType.rstStream, 5, 5),
      encodeWords(FrameType.goAway, 0, 0),
    ]);
    const messages = Buffer.concat([
      masked(2, Buffer.from([0, 65, 66])),
      masked(2, Buffer.from([255, 0])),
      masked(1, Buffer.from('0QUJD')),
      masked(9, Buffer.from('ping')),
      masked(2, Buffer.concat([Buffer.from([4]), Buffer.from('{"Width":80,"Height":24}')])),
      masked(8, Buffer.from([3, 232])),
    ]);
    const mutated = (bytes: Buffer): Buffer => {
      const out = Buffer.from(bytes);
      for (let n = below(5); n >= 0; n -= 1) out[below(out.length)] = below(256);
      return below(4) === 0 ? out.subarray(0, below(out.length)) : out;
    };
    const one = (path: string, rest: string, bytes: Buffer): Promise<void> =>
      new Promise((resolve) => {
        const socket = connect(join(directory, 's'));
        socket.on('error', () => {});
        socket.on('close', () => resolve());
        socket.resume();
        const cut = below(bytes.length);
        socket.write(Buffer.concat([greeting(path, rest), bytes.subarray(0, cut)]));
        socket.write(bytes.subarray(cut), () => {
          if (below(2) === 0) socket.destroy();
          else socket.end();
        });
        setTimeout(() => socket.destroy(), 200);
      });
    for (let i = 0; i < 300; i += 10)
      await Promise.all(
        Array.from({ length: 10 }, (_, k) => {
          const spdy = mutated(session);
          if (k % 5 === 0) return one('/portForward', SPDY.replace(/X-Stream.*\r\n(?=\r\n)/, ''), spdy);
          return k % 2 === 0 ? one('/tty', SPDY, spdy) : one('/tty', WEBSOCKET, mutated(messages));
        }),
      );
  });
});
