/** Reads the server name of a TLS ClientHello without terminating TLS. Source: RFC 8446 §4.1.2, RFC 6066 §3. */

/** `more`: the message is incomplete; `bad`: it is not a ClientHello. */
export type Hello =
  | { readonly kind: 'more' }
  | { readonly kind: 'bad' }
  | { readonly kind: 'name'; readonly name: string };

const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const HOST_NAME = 0;
const RECORD_HEADER = 5;
/** Maximum size of a ClientHello. Real ones are smaller; post-quantum key shares take a few thousand bytes. */
export const MAX_HELLO_BYTES = 32 * 1024;
const BAD: Hello = { kind: 'bad' };
const MORE: Hello = { kind: 'more' };
const NO_NAME: Hello = { kind: 'name', name: '' };

export function readHello(bytes: Buffer): Hello {
  const message = handshakeOf(bytes);
  if ('kind' in message) return message;
  try {
    return nameOf(message);
  } catch (error) {
    if (error instanceof RangeError) return BAD;
    throw error;
  }
}

/** The handshake message, assembled from its TLS records. */
function handshakeOf(bytes: Buffer): Buffer | Hello {
  const parts: Buffer[] = [];
  let length = 0;
  for (let at = 0; ; ) {
    if (bytes.length < at + RECORD_HEADER) return bytes.length > 0 && bytes[0] !== HANDSHAKE ? BAD : MORE;
    const size = bytes.readUInt16BE(at + 3);
    if (bytes[at] !== HANDSHAKE || bytes[at + 1] !== 3 || size === 0) return BAD;
    if (at + RECORD_HEADER + size > MAX_HELLO_BYTES) return BAD;
    if (bytes.length < at + RECORD_HEADER + size) return MORE;
    parts.push(bytes.subarray(at + RECORD_HEADER, at + RECORD_HEADER + size));
    length += size;
    at += RECORD_HEADER + size;
    const joined = parts.length === 1 ? parts[0] : Buffer.concat(parts, length);
    if (joined === undefined || joined.length < 4) continue;
    if (joined[0] !== CLIENT_HELLO) return BAD;
    const wanted = 4 + joined.readUIntBE(1, 3);
    if (wanted > MAX_HELLO_BYTES) return BAD;
    if (joined.length >= wanted) return joined.subarray(4, wanted);
  }
}

/** Server name in a TLS client hello. Throws a RangeError if a length exceeds the message. */
function nameOf(hello: Buffer): Hello {
  // Skip version and random.
  let at = 34;
  at += 1 + hello.readUInt8(at);
  at += 2 + hello.readUInt16BE(at);
  at += 1 + hello.readUInt8(at);
  if (at === hello.length) return NO_NAME;
  const end = at + 2 + hello.readUInt16BE(at);
  if (end !== hello.length) return BAD;
  at += 2;
  while (at < end) {
    const type = hello.readUInt16BE(at);
    const size = hello.readUInt16BE(at + 2);
    at += 4;
    if (at + size > end) return BAD;
    if (type === SERVER_NAME) return serverName(hello.subarray(at, at + size));
    at += size;
  }
  return NO_NAME;
}

function serverName(extension: Buffer): Hello {
  if (extension.readUInt16BE(0) !== extension.length - 2 || extension.readUInt8(2) !== HOST_NAME) return BAD;
  const size = extension.readUInt16BE(3);
  if (size === 0 || 5 + size > extension.length) return BAD;
  const name = extension.toString('latin1', 5, 5 + size).toLowerCase();
  return /^[a-z0-9_.-]{1,255}$/.test(name) ? { kind: 'name', name: name.replace(/\.$/, '') } : BAD;
}
