import assert from 'node:assert/strict';
import { type ClientHttp2Session, connect as connectHttp2, createServer } from 'node:http2';
import { type AddressInfo, connect as connectNet, type Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { Channel } from '../../../src/wire/grpc/channel.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import { MessageReader, messagePrefix, RpcError } from '../../../src/wire/grpc/messages.ts';
import type { RpcListener, RpcService, StreamCall, StreamHandler } from '../../../src/wire/grpc/port.ts';
import { encodeHeaders, HpackDecoder, HpackError } from '../../../src/wire/http2/hpack.ts';
import { Http2Connection } from '../../../src/wire/http2/http2-connection.ts';
import {
  Flag,
  FrameType,
  frame,
  headersFrames,
  PREFACE,
  resetFrame,
  settingsFrame,
  windowUpdateFrame,
} from '../../../src/wire/http2/http2-frames.ts';
import { clock } from '../../store/harness.ts';

const GRPC = { ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers' };

/** `length` bytes in pieces of many sizes. */
function piecesOf(length: number): Buffer[] {
  const all = Buffer.from(Array.from({ length }, (_, i) => i % 251));
  const pieces: Buffer[] = [];
  for (let at = 0, size = 0; at < length; size = (size * 7 + 1) % 70_001) {
    pieces.push(all.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

/** Number of ended calls of /stuck. */
let endedCalls = 0;
/** Starts the handlers of /held, which pause after each message. */
let started = Promise.withResolvers<void>();
const STUCK = [
  { name: ':method', value: 'POST' },
  { name: ':path', value: '/stuck' },
];

/**
 * Test service: echoes unary calls on /echo, messages on /chat and the header `x-mirror` on /mirror; returns the
 * requested number of bytes on /pieces, and the first bytes of each message on /held.
 */
const service: RpcService = {
  hasService: () => false,
  unary: (path) => {
    if (path === '/echo') return (message, call) => call.reply(Buffer.from(message));
    if (path === '/mirror')
      return (_message, call) => call.reply(Buffer.from(call.metadata('x-mirror') ?? '', 'latin1'));
    if (path === '/pieces') return (message, call) => call.reply(piecesOf(Buffer.from(message).readUInt32BE()));
    if (path === '/fail') return (_message, call) => call.fail(9, 'no: 100 % ü');
    return undefined;
  },
  stream: (path) => {
    if (path === '/stuck')
      return (): StreamHandler => ({
        message: () => {},
        ended: () => {},
        closed: () => {
          endedCalls += 1;
        },
        drained: () => {},
      });
    if (path === '/held')
      return (call: StreamCall): StreamHandler => ({
        message: (message) => {
          call.pause();
          void started.promise.then(() => {
            call.send(Buffer.from(message).subarray(0, 4));
            call.resume();
          });
        },
        ended: () => call.end(),
        closed: () => {},
        drained: () => {},
      });
    if (path !== '/chat') return undefined;
    return (call: StreamCall): StreamHandler => ({
      message: (message) => void call.send(Buffer.from(message)),
      ended: () => call.end(),
      closed: () => {},
      drained: () => {},
    });
  },
  http: async ({ method, path }) => ({ status: 200, contentType: 'text/plain', body: `${method} ${path}` }),
};

interface Answer {
  readonly messages: Buffer[];
  readonly status: string;
  readonly message: string;
}

function call(
  session: ClientHttp2Session,
  path: string,
  messages: readonly Buffer[],
  headers: Record<string, string> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = session.request({ ...GRPC, ':path': path, ...headers });
    const reader = new MessageReader(1 << 30);
    const received: Buffer[] = [];
    let fields: Record<string, unknown> = {};
    request.on('response', (head) => Object.assign(fields, head));
    request.on('trailers', (trailers) => {
      fields = { ...fields, ...trailers };
    });
    request.on('data', (data: Buffer) => reader.push(data, (message) => received.push(message)));
    request.on('end', () =>
      resolve({
        messages: received,
        status: String(fields['grpc-status']),
        message: String(fields['grpc-message'] ?? ''),
      }),
    );
    request.on('error', reject);
    for (const message of messages) request.write(Buffer.concat([messagePrefix(message.length), message]));
    request.end();
  });
}

describe('interoperability with node:http2', () => {
  let listener: RpcListener;
  let port = 0;
  let session: ClientHttp2Session;
  before(async () => {
    listener = createRpcListener({ host: '127.0.0.1', port: 0, log: silentLog });
    ({ port } = await listener.listen(service));
    session = connectHttp2(`http://127.0.0.1:${port}`);
  });
  after(async () => {
    session.close();
    await listener.close(100);
  });

  it('serves concurrent unary calls with messages of every size to a node:http2 client', async () => {
    const sizes = [0, 1, 100, 16_378, 16_379, 16_384, 70_000, 1_900_000];
    const answers = await Promise.all(sizes.map((size) => call(session, '/echo', [Buffer.alloc(size, 'x')])));
    assert.deepEqual(
      answers.map((a) => [a.status, a.messages[0]?.length]),
      sizes.map((size) => ['0', size]),
    );
    const many = await Promise.all(
      Array.from({ length: 500 }, (_, i) => call(session, '/echo', [Buffer.from(`${i}`)])),
    );
    assert.ok(many.every((a, i) => a.messages[0]?.toString() === `${i}`));
  });

  it('reads no more than the window of a paused stream, and then continues in order', async () => {
    started = Promise.withResolvers();
    const size = 10_000;
    const numbers = Array.from({ length: 1_200 }, (_, i) => i);
    const messages = numbers.map((number) => {
      const message = Buffer.alloc(size, 'x');
      message.writeUInt32BE(number);
      return message;
    });
    const other = connectHttp2(`http://127.0.0.1:${port}`);
    const answer = call(other, '/held', messages);
    const sent = (): number => (other.socket as unknown as Socket).bytesWritten;
    for (let before = -1; sent() > before; await new Promise((resolve) => setTimeout(resolve, 300))) before = sent();
    assert.ok(sent() < 6 << 20, `${sent()} bytes were read`);
    // Other streams of the connection continue.
    assert.equal((await call(other, '/echo', [Buffer.from('other')])).messages.toString(), 'other');
    started.resolve();
    const { messages: received, status } = await answer;
    assert.equal(status, '0');
    assert.deepEqual(
      received.map((message) => message.readUInt32BE()),
      numbers,
    );
    other.close();
  });

  it('sends responses completely and in order for any window size', async () => {
    const sizes = [0, 1, 16_379, 300_000, 3_000_000, 20, 1_000_000];
    const length = (size: number): Buffer => {
      const requested = Buffer.alloc(4);
      requested.writeUInt32BE(size);
      return requested;
    };
    // The windows of Node are small, and those of this implementation are large.
    const channel = new Channel({ endpoints: [`http://127.0.0.1:${port}`], log: silentLog, clock });
    const theirs = await Promise.all(sizes.map((size) => call(session, '/pieces', [length(size)])));
    const own = await Promise.all(sizes.map((size) => channel.unary('/pieces', length(size), 10_000)));
    channel.close();
    sizes.forEach((size, i) => {
      const expected = Buffer.concat(piecesOf(size));
      assert.ok(theirs[i]?.messages[0]?.equals(expected), `${size} bytes to Node`);
      assert.ok(own[i]?.equals(expected), `${size} bytes to our own client`);
    });
  });

  it('serves bidirectional streams to a node:http2 client', async () => {
    const messages = Array.from({ length: 200 }, (_, i) => Buffer.alloc(i * 37, i));
    const answer = await call(session, '/chat', messages);
    assert.equal(answer.status, '0');
    assert.deepEqual(answer.messages, messages);
  });

  it('decodes headers of an encoder that uses Huffman codes and a dynamic table', async () => {
    let visible = '';
    for (let code = 0x20; code < 0x7f; code += 1) visible += String.fromCharCode(code);
    for (const value of ['', 'short', visible.trim(), visible.repeat(5).trim(), 'ABCXYZ{}~^|<>\\', visible.trim()]) {
      const answer = await call(session, '/mirror', [Buffer.alloc(0)], { 'x-mirror': value });
      assert.equal(answer.messages[0]?.toString('latin1'), value);
    }
    // More entries than the table holds, so that entries must be evicted in the right order.
    for (let i = 0; i < 200; i += 1) {
      const value = `${i}-${'v'.repeat(100)}`;
      const answer = await call(session, '/mirror', [Buffer.alloc(0)], { 'x-mirror': value, [`x-${i % 50}`]: value });
      assert.equal(answer.messages[0]?.toString('latin1'), value);
    }
  });

  it('responds with a gRPC status to failures, unknown methods, and messages that are too large or compressed', async () => {
    const failed = await call(session, '/fail', [Buffer.alloc(0)]);
    assert.deepEqual([failed.status, decodeURIComponent(failed.message)], ['9', 'no: 100 % ü']);
    assert.equal((await call(session, '/nothing', [])).status, '12');
    assert.equal((await call(session, '/echo', [])).status, '13');
    assert.equal((await call(session, '/echo', [Buffer.alloc(3 << 20)]).catch(() => ({ status: '8' }))).status, '8');
    const answer = await new Promise<string>((resolve) => {
      const request = session.request({ ...GRPC, ':path': '/echo' });
      request.on('response', (head) => resolve(String(head['grpc-status'])));
      request.on('error', () => {});
      request.end(Buffer.from([1, 0, 0, 0, 0]));
    });
    assert.equal(answer, '12');
  });

  it('calls a gRPC server based on node:http2', async () => {
    const server = createServer();
    server.on('stream', (stream, headers) => {
      const pieces: Buffer[] = [];
      stream.on('data', (piece: Buffer) => pieces.push(piece));
      stream.on('error', () => {});
      stream.on('end', () => {
        if (headers[':path'] === '/deny') {
          stream.respond({ ':status': 200, 'grpc-status': '5', 'grpc-message': 'not%20here' }, { endStream: true });
          return;
        }
        stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
        stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
        stream.end(Buffer.concat(pieces));
      });
    });
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const channel = new Channel({
      endpoints: [`http://127.0.0.1:${(server.address() as AddressInfo).port}`],
      log: silentLog,
      clock,
    });
    for (const size of [0, 10, 16_384, 300_000]) {
      assert.equal((await channel.unary('/echo', Buffer.alloc(size), 5000)).length, size);
    }
    await assert.rejects(channel.unary('/deny', Buffer.alloc(0), 5000), (error) => {
      return error instanceof RpcError && error.code === 5 && error.message === 'not here';
    });
    channel.close();
    server.close();
  });
});

describe('input split into pieces', () => {
  const message = Buffer.from('how are you');
  const body = Buffer.concat([messagePrefix(message.length), message]);
  const padded = Buffer.concat([Buffer.from([4]), body.subarray(7), Buffer.alloc(4)]);
  const bytes = Buffer.concat([
    PREFACE,
    settingsFrame([]),
    headersFrames(1, encodeHeaders([{ name: ':path', value: '/' }]), { endStream: false }),
    frame(FrameType.data, 0, 1, body.subarray(0, 7)),
    frame(FrameType.data, 0, 1, Buffer.alloc(0)),
    frame(FrameType.data, Flag.padded | Flag.endStream, 1, padded),
    headersFrames(3, encodeHeaders([{ name: ':path', value: '/' }]), { endStream: false }),
    frame(FrameType.data, Flag.endStream, 3, body),
  ]);

  /** Events of each stream when the bytes arrive in these pieces. */
  function heard(pieces: readonly Buffer[]): string[] {
    const socket = new Duplex({ read: () => {}, write: (_chunk, _encoding, done) => done() });
    const reported: string[] = [];
    const connection = new Http2Connection(socket, {
      client: false,
      events: {
        opened: ({ id }) => {
          let text = '';
          return {
            data: (data, endStream) => {
              text += data.toString('latin1');
              if (endStream) reported.push(`${id} ${text}`);
            },
            lost: (reason) => reported.push(`${id} lost: ${reason}`),
          };
        },
        goingAway: () => {},
        closed: (reason) => reported.push(reason),
      },
    });
    connection.start();
    for (const piece of pieces) socket.emit('data', piece);
    const result = [...reported];
    connection.destroy('done');
    return result;
  }

  it('parses input split at any position with the same result as unsplit input', () => {
    const expected = [1, 3].map((id) => `${id} ${body.toString('latin1')}`);
    for (let cut = 0; cut <= bytes.length; cut += 1)
      assert.deepEqual(heard([bytes.subarray(0, cut), bytes.subarray(cut)]), expected, `cut at ${cut}`);
    const single = Array.from({ length: bytes.length }, (_, i) => bytes.subarray(i, i + 1));
    assert.deepEqual(heard(single), expected);
  });
});

describe('requests of one event loop turn', () => {
  const path = encodeHeaders([{ name: ':path', value: '/' }]);
  const message = Buffer.from('how are you');

  it('sends requests together at the end of an event loop turn, or earlier if there are many, always in order', async () => {
    const written: Buffer[] = [];
    const socket = new Duplex({
      read: () => {},
      write(chunk: Buffer, _encoding, done) {
        written.push(Buffer.from(chunk));
        // A write completes after the turn, as on TLS sockets.
        setImmediate(done);
      },
    });
    const connection = new Http2Connection(socket, { client: true, events: { goingAway: () => {}, closed: () => {} } });
    connection.start();
    // The connection's first frames are written at the end of a turn.
    for (let turns = 0; written.length === 0 || socket.writableLength > 0; turns += 1) {
      assert.ok(turns < 1000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    written.length = 0;
    const ids = Array.from({ length: 20 }, () => {
      const stream = connection.open({ data: () => {}, lost: () => {} });
      stream.sendAll(path, messagePrefix(message.length), message, undefined);
      return stream.id;
    });
    const sizes = [written.length];
    await new Promise((resolve) => setTimeout(resolve, 5));
    sizes.push(written.length);
    connection.destroy('done');
    const sent = Buffer.concat(written);
    const request = (id: number): Buffer =>
      Buffer.concat([
        headersFrames(id, path, { endStream: false }),
        frame(FrameType.data, Flag.endStream, id, Buffer.concat([messagePrefix(message.length), message])),
      ]);
    assert.deepEqual(sent, Buffer.concat(ids.map(request)));
    assert.deepEqual(sizes, [1, 2]);
    assert.equal(written[0]?.length, 8 * request(1).length);
  });
});

describe('hostile HTTP/2 client', () => {
  let listener: RpcListener;
  let port = 0;
  let honest: Channel;
  before(async () => {
    listener = createRpcListener({ host: '127.0.0.1', port: 0, log: silentLog });
    ({ port } = await listener.listen(service));
    honest = new Channel({ endpoints: [`http://127.0.0.1:${port}`], log: silentLog, clock });
  });
  after(async () => {
    honest.close();
    await listener.close(100);
  });

  const HEADERS = encodeHeaders([
    { name: ':method', value: 'POST' },
    { name: ':path', value: '/chat' },
    { name: 'content-type', value: 'application/grpc' },
  ]);

  /** Sends bytes after a valid handshake; resolves with the GOAWAY code, or undefined if the connection only ends. */
  function attack(
    bytes: Buffer | ((socket: Socket) => void),
    greeting = Buffer.concat([PREFACE, settingsFrame([])]),
  ): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const socket = connectNet(port, '127.0.0.1');
      const timer = setTimeout(() => {
        socket.destroy();
        reject(new Error('the connection was not closed'));
      }, 5000);
      const received: Buffer[] = [];
      socket.on('data', (data) => received.push(data));
      socket.on('error', () => {});
      socket.on('close', () => {
        clearTimeout(timer);
        const all = Buffer.concat(received);
        for (let at = 0; at + 9 <= all.length; at += 9 + all.readUIntBE(at, 3)) {
          if (all[at + 3] === FrameType.goAway) return resolve(all.readUInt32BE(at + 13));
        }
        return resolve(undefined);
      });
      socket.write(greeting);
      if (typeof bytes === 'function') bytes(socket);
      else socket.write(bytes);
    });
  }

  async function others(): Promise<void> {
    assert.equal((await honest.unary('/echo', Buffer.from('well'), 1000)).toString(), 'well');
  }

  const cases: ReadonlyArray<readonly [what: string, bytes: Buffer, code: number]> = [
    ['a frame larger than allowed', Buffer.concat([Buffer.from([0x00, 0x40, 0x01, 0, 0, 0, 0, 0, 1])]), 6],
    [
      'headers that are not HPACK',
      headersFrames(1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), { endStream: false }),
      9,
    ],
    ['a header index outside of the HPACK table', headersFrames(1, Buffer.from([0xc5]), { endStream: false }), 9],
    [
      'a Huffman-coded string with invalid padding',
      headersFrames(1, Buffer.from([0x00, 0x81, 0x00, 0x81, 0x00]), { endStream: false }),
      9,
    ],
    ['data on a stream that was never opened', frame(FrameType.data, 0, 7, Buffer.alloc(1)), 1],
    ['a request with an even stream ID', headersFrames(2, HEADERS, { endStream: false }), 1],
    [
      'a header block interrupted by another frame',
      Buffer.concat([frame(FrameType.headers, 0, 1, HEADERS), frame(FrameType.ping, 0, 0, Buffer.alloc(8))]),
      1,
    ],
    [
      'padding longer than its frame',
      frame(FrameType.headers, Flag.padded | Flag.endHeaders, 1, Buffer.from([9, 0x82])),
      1,
    ],
    [
      'a WINDOW_UPDATE frame of zero',
      Buffer.concat([headersFrames(1, HEADERS, { endStream: false }), Buffer.from(windowUpdateFrame(1, 0))]),
      1,
    ],
    ['a WINDOW_UPDATE frame that overflows the window', Buffer.from(windowUpdateFrame(0, 0x7fff_ffff)), 3],
    ['a SETTINGS frame of a wrong size', frame(FrameType.settings, 0, 0, Buffer.alloc(5)), 6],
    ['a PUSH_PROMISE frame', frame(FrameType.pushPromise, 0, 1, Buffer.alloc(4)), 1],
  ];
  for (const [what, bytes, code] of cases) {
    it(`disconnects an HTTP/2 client that sends ${what}`, async () => {
      assert.equal(await attack(bytes), code);
      await others();
    });
  }

  it('disconnects an HTTP/2 client that opens and resets streams endlessly', async () => {
    const code = await attack((socket) => {
      const frames: Buffer[] = [];
      for (let i = 0; i < 5000; i += 1)
        frames.push(headersFrames(2 * i + 1, HEADERS, { endStream: false }), resetFrame(2 * i + 1, 8));
      socket.write(Buffer.concat(frames));
    });
    assert.equal(code, 11);
    await others();
  });

  it('disconnects an HTTP/2 client that floods PING, SETTINGS or CONTINUATION frames', async () => {
    const flood = (one: Buffer): Buffer => Buffer.concat(Array.from({ length: 5000 }, () => one));
    assert.equal(await attack(flood(frame(FrameType.ping, 0, 0, Buffer.alloc(8)))), 11);
    assert.equal(await attack(flood(settingsFrame([]))), 11);
    const endless = flood(frame(FrameType.continuation, 0, 1, Buffer.alloc(100)));
    assert.equal(await attack(Buffer.concat([frame(FrameType.headers, 0, 1, HEADERS), endless])), 11);
    await others();
  });

  it('disconnects an HTTP/2 client that floods WINDOW_UPDATE frames, repeated headers or frames of reset streams', async () => {
    const flood = (make: (at: number) => Buffer): Buffer =>
      Buffer.concat(Array.from({ length: 5000 }, (_, at) => make(at)));
    assert.equal(await attack(flood(() => Buffer.from(windowUpdateFrame(0, 1)))), 11);
    const open = headersFrames(1, HEADERS, { endStream: false });
    assert.equal(await attack(flood(() => open)), 11);
    const done = headersFrames(1, HEADERS, { endStream: true });
    assert.equal(
      await attack(Buffer.concat([done, frame(FrameType.resetStream, 0, 1, Buffer.alloc(4)), flood(() => done)])),
      11,
    );
    // Provokes the server to reset the stream (CVE-2025-8671).
    const provoke = (at: number): Buffer => {
      const id = 2 * at + 1;
      return Buffer.concat([
        headersFrames(id, HEADERS, { endStream: false }),
        headersFrames(id, HEADERS, { endStream: false }),
      ]);
    };
    assert.equal(await attack(flood(provoke)), 11);
    await others();
  });

  it('cancels only the stream on which an HTTP/2 client sends data after END_STREAM', async () => {
    const before = endedCalls;
    const id = 1;
    await attack((socket) => {
      socket.write(
        Buffer.concat([
          headersFrames(id, encodeHeaders([...STUCK, { name: 'content-type', value: 'application/grpc' }]), {
            endStream: true,
          }),
          frame(FrameType.data, 0, id, Buffer.alloc(1)),
        ]),
      );
      setTimeout(() => socket.destroy(), 300);
      setTimeout(() => assert.equal(endedCalls, before + 1), 150);
    });
    assert.equal(endedCalls, before + 1);
  });

  it('disconnects an HTTP/2 client that does not send the connection preface', async () => {
    assert.equal(await attack(headersFrames(1, HEADERS, { endStream: false }), PREFACE), 1);
    assert.equal(await attack(Buffer.alloc(0), Buffer.from('PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n')), undefined);
    await others();
  });
});

describe('HPACK', () => {
  it('HPACK decodes the headers that it has encoded', () => {
    const fields = [
      { name: ':method', value: 'POST' },
      { name: ':path', value: `/${'p'.repeat(300)}` },
      { name: 'x-custom', value: 'v' },
      { name: 'content-type', value: '' },
    ];
    assert.deepEqual(new HpackDecoder().decode(encodeHeaders(fields)), fields);
  });

  it('HPACK rejects header blocks that expand beyond the limit', () => {
    const decoder = new HpackDecoder();
    const big = Buffer.concat([Buffer.from([0x40, 1, 0x61, 0x7f, 0xa1, 0x1e]), Buffer.alloc(4000, 'x')]);
    decoder.decode(big);
    assert.throws(() => decoder.decode(Buffer.alloc(100, 0xbe)), HpackError);
    assert.throws(() => new HpackDecoder().decode(Buffer.from([0x3f, 0xe2, 0x1f])), HpackError);
  });
});
