/**
 * Invalid HTTP: malformed requests, frames out of order, floods. The server must respond or close the connection,
 * without affecting others.
 */
import type { TLSSocket } from 'node:tls';
import type { Choices } from '../../apiserver/core/patch/choices.ts';
import { type Identity, open, type Peer } from './wire.ts';

const LINE = 'GET /api/v1/namespaces/default HTTP/1.1\r\nHost: x\r\n';
const POST = 'POST /api/v1/namespaces/fuzz-a/configmaps HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n';

const MALFORMED: readonly string[] = [
  `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  `${POST}Content-Length: 4\r\nContent-Length: 5\r\n\r\n{}{}x`,
  `${POST}Content-Length: +4\r\n\r\n{}{}`,
  `${POST}Content-Length: 4,4\r\n\r\n{}{}`,
  `${POST}Content-Length: 99999999999999999999\r\n\r\n{}`,
  `${POST}Content-Length: -1\r\n\r\n{}`,
  `${POST}Transfer-Encoding: xchunked\r\n\r\n{}`,
  `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n2;${'x'.repeat(70_000)}\r\n{}\r\n0\r\n\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n${'x: y\r\n'.repeat(5000)}\r\n`,
  `${POST}Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n`,
  `${LINE}\r\n`.replaceAll('\r\n', '\n'),
  `${LINE}\r\n`.replaceAll('\r\n', '\r'),
  `${LINE}X-A: b\r\n continued\r\n\r\n`,
  `${LINE}X-A: b\r\n\tcontinued\r\n\r\n`,
  `${LINE} X-A: b\r\n\r\n`,
  `${LINE}X A: b\r\n\r\n`,
  `${LINE}X-A\r\n\r\n`,
  `${LINE}: b\r\n\r\n`,
  `${LINE}X-A: b\u0000c\r\n\r\n`,
  `${LINE}Host: y\r\n\r\n`,
  'GET /api/v1 HTTP/1.1\r\n\r\n',
  'GET /api/v1 HTTP/1.0\r\n\r\n',
  'GET /api/v1 HTTP/0.9\r\n\r\n',
  'GET /api/v1 HTTP/2.0\r\nHost: x\r\n\r\n',
  'GET /api/v1\r\n\r\n',
  'GET  /api/v1 HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /a b HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET /\u0000 HTTP/1.1\r\nHost: x\r\n\r\n',
  'CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n',
  'GET http://127.0.0.1:1/api/v1/namespaces HTTP/1.1\r\nHost: x\r\n\r\n',
  `${'G'.repeat(70_000)}`,
  `GET /${'x'.repeat(70_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
  `${LINE}${'X-A: b\r\n'.repeat(9000)}\r\n`,
  `${LINE}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n`,
  `${LINE}Expect: nonsense\r\n\r\n`,
  `${LINE}Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n`,
  `${LINE}Connection: upgrade\r\nUpgrade: websocket\r\n\r\n`,
  `${LINE}Connection: close, keep-alive, x, \u0001\r\n\r\n`,
  `${`${LINE}\r\n`.repeat(200)}`,
  `${`${POST}Content-Length: 2\r\n\r\n{}`.repeat(50)}GARBAGE\r\n\r\n`,
  `${LINE}Content-Length: 30\r\n\r\nGET /metrics HTTP/1.1\r\nX: y\r\n\r\n`,
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  '\r\n\r\n\r\n\r\n',
  '\u0016\u0003\u0001\u0002\u0000',
  '',
];

const UPGRADES = [
  '/api/v1/namespaces/default/pods/x/exec?command=sh',
  '/api/v1/namespaces/default/pods/x/portforward?ports=1',
  '/api/v1/namespaces/default/pods/x/attach',
  '/api/v1/nodes/x/proxy/',
  '/api/v1/namespaces/default/services/http:x:1/proxy/a',
  '/api/v1/pods?watch=true',
  '/api/v1/namespaces/default/pods/%2e%2e/exec',
  '/nothing',
  '/api/v1/namespaces/default/pods/none/exec?command=x',
];

function upgradeRequest(choices: Choices): string {
  const kind = choices.one(['websocket', 'SPDY/3.1', 'h2c', '', 'websocket, SPDY/3.1', 'x'.repeat(5000)]);
  const headers = choices.some(
    [
      `Sec-WebSocket-Key: ${choices.one(['dGhlIHNhbXBsZSBub25jZQ==', 'x', ''])}`,
      `Sec-WebSocket-Version: ${choices.one(['13', '8', 'x'])}`,
      `Sec-WebSocket-Protocol: ${choices.one(['v5.channel.k8s.io', 'v4.channel.k8s.io', 'x', 'base64url.bearer.authorization.k8s.io.eA, v4.channel.k8s.io'])}`,
      'X-Stream-Protocol-Version: v4.channel.k8s.io',
      'X-Stream-Protocol-Version: nonsense',
      'Content-Length: 5',
    ],
    0,
    5,
  );
  const tail = choices.one(['', '\u0080\u0003\u0000\u0001', '\u0081\u00fe\u00ff\u00ff', 'x'.repeat(3000)]);
  return `${choices.one(['GET', 'POST'])} ${choices.one(UPGRADES)} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: ${kind}\r\n${headers.map((each) => `${each}\r\n`).join('')}\r\n${tail}`;
}

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const DATA = 0;
const HEADERS = 1;
const PRIORITY = 2;
const RST = 3;
const SETTINGS = 4;
const PUSH = 5;
const PING = 6;
const GOAWAY = 7;
const WINDOW = 8;
const CONTINUATION = 9;
const END_STREAM = 1;
const END_HEADERS = 4;

function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Buffer = Buffer.alloc(0),
  length = payload.length,
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
};

const setting = (id: number, value: number): Buffer => Buffer.concat([Buffer.from([id >> 8, id & 255]), number(value)]);

/** An HPACK literal header without indexing. */
const literal = (name: string, value: string): Buffer =>
  Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([Math.min(value.length, 126)]),
    Buffer.from(value.slice(0, 126)),
  ]);
/** HPACK encoding of a GET request with scheme https and a path. */
const request = (path: string): Buffer =>
  Buffer.concat([
    Buffer.from([0x82, 0x87, 0x04, Math.min(path.length, 126)]),
    Buffer.from(path.slice(0, 126)),
    Buffer.from([0x01, 1, 0x78]),
  ]);

const GOOD = request('/api/v1/namespaces/default');
const WATCH = request('/api/v1/pods?watch=1');
const repeat = (count: number, make: (at: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, at) => make(at)));

type Attack = (choices: Choices) => Buffer;

const ATTACKS: readonly Attack[] = [
  // Rapid reset, with requests that get a response and with endless watches.
  (choices) =>
    repeat(choices.one([50, 2000]), (at) =>
      Buffer.concat([frame(HEADERS, END_HEADERS | END_STREAM, at * 2 + 1, GOOD), frame(RST, 0, at * 2 + 1, number(8))]),
    ),
  () =>
    repeat(300, (at) =>
      Buffer.concat([
        frame(HEADERS, END_HEADERS | END_STREAM, at * 2 + 1, WATCH),
        frame(RST, 0, at * 2 + 1, number(8)),
      ]),
    ),
  // Opens more streams than the server allows.
  () => repeat(400, (at) => frame(HEADERS, END_HEADERS | END_STREAM, at * 2 + 1, WATCH)),
  // An endless header list.
  (choices) =>
    Buffer.concat([
      frame(HEADERS, 0, 1, GOOD),
      repeat(choices.one([10, 3000]), () => frame(CONTINUATION, 0, 1, literal('x', 'y'))),
    ]),
  () => Buffer.concat([frame(HEADERS, 0, 1, GOOD), repeat(5000, () => frame(CONTINUATION, 0, 1))]),
  // A header bomb: one large table entry that is referenced repeatedly.
  () =>
    Buffer.concat([
      frame(HEADERS, 0, 1, Buffer.concat([GOOD, Buffer.from([0x40, 1, 0x61, 126]), Buffer.alloc(126, 0x62)])),
      frame(CONTINUATION, END_HEADERS, 1, Buffer.alloc(16_000, 0xbe)),
    ]),
  // Invalid HPACK.
  (choices) =>
    frame(HEADERS, END_HEADERS | END_STREAM, 1, Buffer.from(Array.from({ length: 50 }, () => choices.below(256)))),
  () => frame(HEADERS, END_HEADERS | END_STREAM, 1, Buffer.from([0x3f, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f])),
  // Floods of frames that require a response.
  (choices) => repeat(choices.one([100, 20_000]), () => frame(PING, 0, 0, Buffer.alloc(8))),
  (choices) => repeat(choices.one([100, 10_000]), () => frame(SETTINGS, 0, 0, setting(4, 65_535))),
  () => repeat(3000, () => frame(SETTINGS, 0, 0, setting(1, 0))),
  () => repeat(5000, (at) => frame(PRIORITY, 0, at * 2 + 1, Buffer.from([0, 0, 0, 0, 1]))),
  () => Buffer.concat([frame(HEADERS, END_HEADERS, 1, GOOD), repeat(5000, () => frame(DATA, 0, 1))]),
  // Invalid flow-control windows.
  () =>
    Buffer.concat([
      frame(SETTINGS, 0, 0, setting(4, 0)),
      repeat(100, (at) => frame(HEADERS, END_HEADERS | END_STREAM, at * 2 + 1, request('/openapi/v2'))),
    ]),
  () => frame(WINDOW, 0, 0, number(0)),
  () => Buffer.concat([frame(WINDOW, 0, 0, number(0x7fffffff)), frame(WINDOW, 0, 0, number(0x7fffffff))]),
  () => frame(SETTINGS, 0, 0, setting(4, 0xffffffff)),
  () => frame(SETTINGS, 0, 0, setting(5, 1)),
  // A window of one byte at a time.
  () =>
    Buffer.concat([
      frame(SETTINGS, 0, 0, setting(4, 1)),
      frame(HEADERS, END_HEADERS | END_STREAM, 1, request('/api/v1/namespaces')),
      repeat(500, () => frame(WINDOW, 0, 1, number(1))),
    ]),
  // Frames in invalid states.
  () => frame(HEADERS, END_HEADERS | END_STREAM, 0, GOOD),
  () => frame(HEADERS, END_HEADERS | END_STREAM, 2, GOOD),
  () => frame(DATA, END_STREAM, 5, Buffer.from('x')),
  () => frame(PUSH, END_HEADERS, 1, Buffer.concat([number(2), GOOD])),
  () => frame(CONTINUATION, END_HEADERS, 1, GOOD),
  () => frame(RST, 0, 99, number(0)),
  () => frame(PING, 0, 0, Buffer.alloc(3)),
  () => frame(SETTINGS, 1, 0, setting(1, 1)),
  () => frame(GOAWAY, 0, 0, Buffer.concat([number(0x7fffffff), number(0)])),
  () => frame(0xfe, 0xff, 0x7fffffff, Buffer.alloc(100)),
  () => frame(DATA, 0, 1, Buffer.alloc(10), 0xffffff),
  () => Buffer.concat([frame(HEADERS, END_HEADERS, 1, GOOD), frame(HEADERS, END_HEADERS, 1, GOOD)]),
  () => Buffer.concat([frame(HEADERS, 0, 1, GOOD), frame(PING, 0, 0, Buffer.alloc(8))]),
  // Contradicting pseudo-headers.
  () =>
    frame(
      HEADERS,
      END_HEADERS | END_STREAM,
      1,
      Buffer.concat([GOOD, literal(':path', '/x'), literal(':method', 'PUT')]),
    ),
  () => frame(HEADERS, END_HEADERS | END_STREAM, 1, Buffer.concat([literal('x', 'y'), GOOD])),
  () =>
    frame(
      HEADERS,
      END_HEADERS | END_STREAM,
      1,
      Buffer.concat([GOOD, literal('connection', 'upgrade'), literal('transfer-encoding', 'chunked')]),
    ),
  () => frame(HEADERS, END_HEADERS | END_STREAM, 1, Buffer.concat([GOOD, literal('content-length', '5')])),
  () => frame(HEADERS, END_HEADERS | END_STREAM, 1, Buffer.from([0x82])),
  () =>
    frame(
      HEADERS,
      END_HEADERS | END_STREAM,
      1,
      Buffer.concat([GOOD, literal('X-Upper', 'x'), literal('a b', 'c\u0000d')]),
    ),
  () => frame(HEADERS, END_HEADERS | END_STREAM, 1, request('x')),
  () => frame(HEADERS, END_HEADERS | END_STREAM, 1, request('')),
  () => frame(HEADERS, END_HEADERS | END_STREAM, 1, request('*')),
  (choices) => Buffer.from(Array.from({ length: 500 }, () => choices.below(256))),
];

/** Waits until the server sends nothing for 100 ms or closes the connection. */
function settle(socket: TLSSocket): Promise<number> {
  return new Promise((resolve) => {
    let received = 0;
    let quiet: NodeJS.Timeout | undefined;
    const done = (): void => {
      clearTimeout(quiet);
      clearTimeout(latest);
      socket.destroy();
      resolve(received);
    };
    const latest = setTimeout(done, 100);
    quiet = setTimeout(done, 30);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      clearTimeout(quiet);
      quiet = setTimeout(done, 20);
    });
    socket.on('close', done);
    socket.on('end', done);
  });
}

/** Opens one misbehaving connection. Resolves with a description. */
export async function abuse(choices: Choices, peer: Peer, identity: Identity): Promise<string> {
  const who = choices.chance(0.7) ? identity : undefined;
  const roll = choices.below(10);
  const socket = await open(peer, who, roll < 5 ? 'http/1.1' : 'h2');
  const settled = settle(socket);
  let what: string;
  if (roll < 5) {
    what = roll === 0 ? 'upgrade' : 'malformed';
    const bytes = Buffer.from(roll === 0 ? upgradeRequest(choices) : choices.one(MALFORMED), 'latin1');
    if (roll === 1) await drip(socket, bytes);
    else socket.write(bytes);
    if (choices.chance(0.3)) socket.end();
  } else {
    const attacks = choices.some([...ATTACKS.keys()], 1, 2);
    what = `frames ${attacks.join(' ')}`;
    if (!choices.chance(0.05)) socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]));
    for (const attack of attacks) socket.write((ATTACKS[attack] as Attack)(choices));
  }
  await settled;
  return what;
}

/** Sends a byte or two at a time for a while. */
async function drip(socket: TLSSocket, bytes: Buffer): Promise<void> {
  for (let at = 0; at < Math.min(bytes.length, 40) && !socket.destroyed; at += 2) {
    socket.write(bytes.subarray(at, at + 2));
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (!socket.destroyed) socket.write(bytes.subarray(40));
}
