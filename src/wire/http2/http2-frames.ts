/** HTTP/2 frames (RFC 9113, section 6). */

export const FrameType = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const Flag = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

export const Setting = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const ErrorCode = {
  none: 0,
  protocol: 1,
  internal: 2,
  flowControl: 3,
  streamClosed: 5,
  frameSize: 6,
  refusedStream: 7,
  cancel: 8,
  compression: 9,
  enhanceYourCalm: 11,
} as const;

export const FRAME_HEADER = 9;
/** Maximum size of a frame that is accepted or sent. Larger frames are not sent even if the peer allows them. */
export const MAX_FRAME = 16384;
export const DEFAULT_WINDOW = 65535;
export const MAX_WINDOW = 0x7fff_ffff;
export const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 'latin1');

/** Writes a frame header into `into`; returns the position after it. */
export function putFrameHeader(
  into: Buffer,
  at: number,
  length: number,
  type: number,
  flags: number,
  id: number,
): number {
  into[at] = length >>> 16;
  into[at + 1] = length >>> 8;
  into[at + 2] = length;
  into[at + 3] = type;
  into[at + 4] = flags;
  into[at + 5] = id >>> 24;
  into[at + 6] = id >>> 16;
  into[at + 7] = id >>> 8;
  into[at + 8] = id;
  return at + FRAME_HEADER;
}

export function frame(type: number, flags: number, id: number, payload: Uint8Array): Buffer {
  const out = Buffer.allocUnsafe(FRAME_HEADER + payload.length);
  out.set(payload, putFrameHeader(out, 0, payload.length, type, flags, id));
  return out;
}

/** HEADERS, followed by CONTINUATION frames if the block does not fit into one frame. */
export function headersFrames(id: number, block: Buffer, { endStream }: { readonly endStream: boolean }): Buffer {
  const end = endStream ? Flag.endStream : 0;
  if (block.length <= MAX_FRAME) return frame(FrameType.headers, Flag.endHeaders | end, id, block);
  const frames = [frame(FrameType.headers, end, id, block.subarray(0, MAX_FRAME))];
  for (let at = MAX_FRAME; at < block.length; at += MAX_FRAME) {
    const last = at + MAX_FRAME >= block.length;
    frames.push(frame(FrameType.continuation, last ? Flag.endHeaders : 0, id, block.subarray(at, at + MAX_FRAME)));
  }
  return Buffer.concat(frames);
}

export function windowUpdateFrame(id: number, increment: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(increment);
  return frame(FrameType.windowUpdate, 0, id, payload);
}

export function resetFrame(id: number, code: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(code);
  return frame(FrameType.resetStream, 0, id, payload);
}

export function goAwayFrame(lastId: number, code: number, reason: string): Buffer {
  const text = Buffer.from(reason, 'latin1');
  const payload = Buffer.allocUnsafe(8 + text.length);
  payload.writeUInt32BE(lastId);
  payload.writeUInt32BE(code, 4);
  payload.set(text, 8);
  return frame(FrameType.goAway, 0, 0, payload);
}

export function settingsFrame(settings: ReadonlyArray<readonly [id: number, value: number]>): Buffer {
  const payload = Buffer.allocUnsafe(settings.length * 6);
  settings.forEach(([id, value], i) => {
    payload.writeUInt16BE(id, i * 6);
    payload.writeUInt32BE(value, i * 6 + 2);
  });
  return frame(FrameType.settings, 0, 0, payload);
}

/** A protocol violation that ends the connection. `code` is sent to the peer (RFC 9113 §5.4.1). */
export class ConnectionError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}
