/**
 * Validates DER before it is parsed. Certificates and signing requests are untrusted, and the ASN.1 parser is
 * recursive, so deep or large structures must be rejected first. Source: X.690 (DER).
 */
import forge from 'node-forge';
import { CodedError } from '../base/errors.ts';

const MAX_BYTES = 64 * 1024;
const MAX_DEPTH = 24;
const MAX_ELEMENTS = 4096;
const CONSTRUCTED = 0x20;

/** Parses DER after checking size, depth and element count. Throws CodedError 'bad-der'. */
export function parseDer(der: Uint8Array): forge.asn1.Asn1 {
  checkDer(der);
  try {
    // Bit strings are not decoded, because keys and signatures are passed to node:crypto unchanged.
    const options = { strict: true, decodeBitStrings: false, parseAllBytes: true };
    return forge.asn1.fromDer(forge.util.createBuffer(Buffer.from(der).toString('latin1')), options as never);
  } catch (error) {
    throw new CodedError('bad-der', 'not a valid DER structure', { cause: error });
  }
}

/** Checks tags and lengths without recursion. Throws CodedError 'bad-der'. */
function checkDer(der: Uint8Array): void {
  if (der.length === 0 || der.length > MAX_BYTES) {
    throw new CodedError('bad-der', `DER structure of ${der.length} bytes; at most ${MAX_BYTES} are accepted`);
  }
  /** End offsets of the constructed elements that contain the current offset, outermost first. */
  const open: number[] = [];
  let offset = 0;
  let elements = 0;
  while (offset < der.length) {
    while (open.length > 0 && offset === open[open.length - 1]) open.pop();
    const header = readHeader(der, offset);
    const limit = open[open.length - 1] ?? der.length;
    const end = header.contentStart + header.length;
    if (end > limit) throw new CodedError('bad-der', 'DER element runs past the end of its parent');
    if (++elements > MAX_ELEMENTS) throw new CodedError('bad-der', `more than ${MAX_ELEMENTS} DER elements`);
    if ((header.tag & CONSTRUCTED) !== 0 && header.length > 0) {
      open.push(end);
      if (open.length > MAX_DEPTH) throw new CodedError('bad-der', `DER nested deeper than ${MAX_DEPTH} levels`);
      offset = header.contentStart;
    } else {
      offset = end;
    }
  }
}

/** Raw bytes of the direct children of the constructed element at the start of `der`. */
export function childrenOf(der: Uint8Array): Uint8Array[] {
  const outer = readHeader(der, 0);
  const end = outer.contentStart + outer.length;
  if (end > der.length) throw new CodedError('bad-der', 'DER structure is truncated');
  const children: Uint8Array[] = [];
  for (let offset = outer.contentStart; offset < end; ) {
    const header = readHeader(der, offset);
    const next = header.contentStart + header.length;
    if (next > end) throw new CodedError('bad-der', 'DER element runs past the end of its parent');
    children.push(der.subarray(offset, next));
    offset = next;
  }
  return children;
}

/** Content of the element at the start of `der`, without its tag and length. */
export function contentOf(der: Uint8Array): Uint8Array {
  const header = readHeader(der, 0);
  return der.subarray(header.contentStart, header.contentStart + header.length);
}

function readHeader(der: Uint8Array, offset: number): { tag: number; length: number; contentStart: number } {
  const tag = der[offset];
  const first = der[offset + 1];
  if (tag === undefined || first === undefined) throw new CodedError('bad-der', 'DER structure is truncated');
  if ((tag & 0x1f) === 0x1f) throw new CodedError('bad-der', 'DER tags above 30 are not used in certificates');
  if (first < 0x80) return { tag, length: first, contentStart: offset + 2 };
  const count = first & 0x7f;
  if (count === 0 || count > 4) throw new CodedError('bad-der', 'DER length is indefinite or too long');
  let length = 0;
  for (let index = 0; index < count; index++) {
    const byte = der[offset + 2 + index];
    if (byte === undefined) throw new CodedError('bad-der', 'DER structure is truncated');
    length = length * 256 + byte;
  }
  return { tag, length, contentStart: offset + 2 + count };
}

const { asn1 } = forge;

/** DER of a structure that was built with the functions of `der`. */
export function toDer(value: forge.asn1.Asn1): Buffer {
  return Buffer.from(asn1.toDer(value).getBytes(), 'latin1');
}

export const der = {
  sequence: (children: forge.asn1.Asn1[]): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.UNIVERSAL, asn1.Type.SEQUENCE, true, children),
  set: (children: forge.asn1.Asn1[]): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.UNIVERSAL, asn1.Type.SET, true, children),
  oid: (dotted: string): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.UNIVERSAL, asn1.Type.OID, false, asn1.oidToDer(dotted).getBytes()),
  /** Dotted form of an OID. `content`: the OID's bytes without tag and length. */
  readOid: (content: Uint8Array): string => asn1.derToOid(forge.util.createBuffer(latin1(content))),
  /** A positive integer from big-endian bytes. */
  integer: (bytes: Uint8Array): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.UNIVERSAL, asn1.Type.INTEGER, false, latin1(positive(bytes))),
  null: (): forge.asn1.Asn1 => asn1.create(asn1.Class.UNIVERSAL, asn1.Type.NULL, false, ''),
  boolean: (value: boolean): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.UNIVERSAL, asn1.Type.BOOLEAN, false, value ? '\xff' : '\x00'),
  utf8: (text: string): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.UNIVERSAL, asn1.Type.UTF8, false, latin1(Buffer.from(text, 'utf8'))),
  octets: (bytes: Uint8Array): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.UNIVERSAL, asn1.Type.OCTETSTRING, false, latin1(bytes)),
  bits: (bytes: Uint8Array, unused = 0): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.UNIVERSAL, asn1.Type.BITSTRING, false, String.fromCharCode(unused) + latin1(bytes)),
  /** A constructed element with a context-specific tag: `[tag] EXPLICIT`. */
  explicit: (tag: number, children: forge.asn1.Asn1[]): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.CONTEXT_SPECIFIC, tag as forge.asn1.Type, true, children),
  /** A primitive element with a context-specific tag: `[tag] IMPLICIT`. */
  implicit: (tag: number, bytes: Uint8Array): forge.asn1.Asn1 =>
    asn1.create(asn1.Class.CONTEXT_SPECIFIC, tag as forge.asn1.Type, false, latin1(bytes)),
  /** A time as UTCTime until 2049, as GeneralizedTime from 2050 on (RFC 5280 §4.1.2.5). */
  time: (ms: number): forge.asn1.Asn1 => {
    const date = new Date(Math.floor(ms / 1000) * 1000);
    return date.getUTCFullYear() >= 2050 || date.getUTCFullYear() < 1950
      ? asn1.create(asn1.Class.UNIVERSAL, asn1.Type.GENERALIZEDTIME, false, asn1.dateToGeneralizedTime(date) as string)
      : asn1.create(asn1.Class.UNIVERSAL, asn1.Type.UTCTIME, false, asn1.dateToUtcTime(date) as string);
  },
};

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

function positive(bytes: Uint8Array): Uint8Array {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const trimmed = bytes.subarray(start);
  return (trimmed[0] ?? 0) >= 0x80 ? Buffer.concat([Buffer.of(0), trimmed]) : trimmed;
}
