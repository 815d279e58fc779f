/**
 * Parser of DNS queries. It accepts only queries as resolvers send them: one question with an uncompressed name and at
 * most one OPT record. Sources: RFC 1035 §4.1, RFC 6891 (EDNS), RFC 9619 (one question).
 */
import { TYPE } from './records.ts';

export const HEADER_BYTES = 12;
/** Maximum size of a UDP response to a client without EDNS. */
export const CLASSIC_UDP_BYTES = 512;

export const FLAG = {
  response: 0x8000,
  opcode: 0x7800,
  authoritative: 0x0400,
  truncated: 0x0200,
  recursionDesired: 0x0100,
  recursionAvailable: 0x0080,
  authenticData: 0x0020,
  checkingDisabled: 0x0010,
  rcode: 0x000f,
} as const;

export interface Edns {
  /** Largest UDP response that the client accepts, in bytes; at least 512. */
  readonly udpBytes: number;
  readonly version: number;
  readonly dnssecOk: boolean;
}

export interface Query {
  readonly id: number;
  readonly flags: number;
  /** Offset of the end of the question, which starts after the header. */
  readonly questionEnd: number;
  readonly type: number;
  readonly class: number;
  readonly edns: Edns | undefined;
}

/**
 * 'ignore': not a query, so no response is sent. 'malformed': the response is FORMERR. 'unsupported': the response is
 * NOTIMP.
 */
export type ParsedQuery = Query | 'ignore' | 'malformed' | 'unsupported';

const u16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);

const MAX_LABEL = 63;
const MAX_NAME = 255;
const OPT_FIXED_BYTES = 11;

export function parseQuery(bytes: Uint8Array): ParsedQuery {
  if (bytes.length < HEADER_BYTES) return 'ignore';
  const flags = u16(bytes, 2);
  if ((flags & FLAG.response) !== 0) return 'ignore';
  if ((flags & FLAG.opcode) !== 0) return 'unsupported';
  const additionals = u16(bytes, 10);
  if (u16(bytes, 4) !== 1 || u16(bytes, 6) !== 0 || u16(bytes, 8) !== 0 || additionals > 2) return 'malformed';
  let at = HEADER_BYTES;
  for (;;) {
    const length = bytes[at];
    if (length === undefined || length > MAX_LABEL) return 'malformed';
    at += length + 1;
    if (at - HEADER_BYTES > MAX_NAME) return 'malformed';
    if (length === 0) break;
  }
  const questionEnd = at + 4;
  if (questionEnd > bytes.length) return 'malformed';
  const edns = additionals === 0 ? undefined : ednsOf(bytes, questionEnd, additionals);
  if (edns === 'malformed') return 'malformed';
  return { id: u16(bytes, 0), flags, questionEnd, type: u16(bytes, at), class: u16(bytes, at + 2), edns };
}

/** Finds the OPT record. Transaction signatures (TSIG) and other records with a name are skipped. */
function ednsOf(bytes: Uint8Array, start: number, count: number): Edns | undefined | 'malformed' {
  let at = start;
  let found: Edns | undefined;
  for (let index = 0; index < count; index++) {
    const end = skipName(bytes, at);
    if (end === undefined || end + OPT_FIXED_BYTES - 1 > bytes.length) return 'malformed';
    if (u16(bytes, end) === TYPE.OPT) {
      if (found !== undefined || end !== at + 1) return 'malformed';
      found = {
        udpBytes: Math.max(CLASSIC_UDP_BYTES, u16(bytes, end + 2)),
        version: bytes[end + 5] ?? 0,
        dnssecOk: ((bytes[end + 6] ?? 0) & 0x80) !== 0,
      };
    }
    at = end + 10 + u16(bytes, end + 8);
    if (at > bytes.length) return 'malformed';
  }
  return found;
}

/** End of a name, compressed or not; undefined if it exceeds the message. */
export function skipName(bytes: Uint8Array, start: number): number | undefined {
  let at = start;
  for (;;) {
    const length = bytes[at];
    if (length === undefined) return undefined;
    if ((length & 0xc0) === 0xc0) return at + 2 <= bytes.length ? at + 2 : undefined;
    if (length > MAX_LABEL) return undefined;
    at += length + 1;
    if (length === 0) return at;
    if (at - start > MAX_NAME) return undefined;
  }
}

/**
 * Name of a question: lower case, without the final dot. Bytes other than letters, digits, "-" and "_" are written as
 * `\DDD`, so that they match no name of the zone.
 */
export function questionName(bytes: Uint8Array): string {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = bytes[at] ?? 0; length > 0; length = bytes[at] ?? 0) {
    let label = '';
    for (let index = at + 1; index <= at + length; index++) label += characterOf(bytes[index] ?? 0);
    labels.push(label);
    at += length + 1;
  }
  return labels.join('.');
}

function characterOf(byte: number): string {
  if (byte >= 0x41 && byte <= 0x5a) return String.fromCharCode(byte + 0x20);
  const plain = (byte >= 0x61 && byte <= 0x7a) || (byte >= 0x30 && byte <= 0x39) || byte === 0x2d || byte === 0x5f;
  return plain ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`;
}
