/**
 * Parser of responses from other servers, limited to the facts that a cache needs. Sources: RFC 1035 §4.1, RFC 2308 §5.
 */
import { FLAG, HEADER_BYTES, skipName } from './query.ts';
import { RCODE, TYPE } from './records.ts';

export interface ResponseShape {
  readonly rcode: number;
  readonly truncated: boolean;
  readonly questionEnd: number;
  /** Offsets of the TTL and the end of each record, without the OPT record. */
  readonly ttlOffsets: readonly number[];
  readonly recordEnds: readonly number[];
  /** Seconds for which the response may be cached; 0 if it must not be cached. */
  readonly ttl: number;
  /** Start of the OPT record if it is the last record, otherwise the end of the message. */
  readonly end: number;
  readonly optBeforeEnd: boolean;
  readonly counts: { readonly answers: number; readonly authorities: number; readonly additionals: number };
}

const MAX_RECORDS = 4_096;
/** The limits of CoreDNS's cache: an hour, and half an hour for names that do not exist. */
const MAX_POSITIVE_SECONDS = 3_600;
const MAX_NEGATIVE_SECONDS = 1_800;

const u16 = (bytes: Uint8Array, at: number): number => ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0);
const u32 = (bytes: Uint8Array, at: number): number => u16(bytes, at) * 65_536 + u16(bytes, at + 2);

/** Parses a response. Undefined if the message is malformed or not a response to exactly one question. */
export function parseResponse(bytes: Uint8Array): ResponseShape | undefined {
  if (bytes.length < HEADER_BYTES || u16(bytes, 4) !== 1) return undefined;
  const flags = u16(bytes, 2);
  const nameEnd = skipName(bytes, HEADER_BYTES);
  if ((flags & FLAG.response) === 0 || nameEnd === undefined || nameEnd + 4 > bytes.length) return undefined;
  const counts = { answers: u16(bytes, 6), authorities: u16(bytes, 8), additionals: u16(bytes, 10) };
  const total = counts.answers + counts.authorities + counts.additionals;
  if (total > MAX_RECORDS) return undefined;
  const ttlOffsets: number[] = [];
  const recordEnds: number[] = [];
  let at = nameEnd + 4;
  let end = bytes.length;
  let optBeforeEnd = false;
  let least = MAX_POSITIVE_SECONDS;
  let negative: number | undefined;
  for (let index = 0; index < total; index++) {
    const begin = at;
    const fixed = skipName(bytes, at);
    if (fixed === undefined || fixed + 10 > bytes.length) return undefined;
    const type = u16(bytes, fixed);
    const next = fixed + 10 + u16(bytes, fixed + 8);
    if (next > bytes.length) return undefined;
    if (type === TYPE.OPT) {
      if (index === total - 1) end = begin;
      else optBeforeEnd = true;
    } else {
      // A TTL with the highest bit set counts as 0 (RFC 2181 §8).
      const ttl = u32(bytes, fixed + 4) & 0x7fffffff;
      ttlOffsets.push(fixed + 4);
      recordEnds.push(next);
      least = Math.min(least, u32(bytes, fixed + 4) > 0x7fffffff ? 0 : ttl);
      if (type === TYPE.SOA && index >= counts.answers) negative = Math.min(ttl, u32(bytes, next - 4));
    }
    at = next;
  }
  const rcode = flags & FLAG.rcode;
  const isNegative = rcode === RCODE.nxDomain || (rcode === RCODE.noError && counts.answers === 0);
  // Without an SOA record a negative answer is not cached (RFC 2308 §5).
  const ttl = isNegative ? Math.min(negative ?? 0, MAX_NEGATIVE_SECONDS) : rcode === RCODE.noError ? least : 0;
  const truncated = (flags & FLAG.truncated) !== 0;
  return { rcode, truncated, questionEnd: nameEnd + 4, ttlOffsets, recordEnds, ttl, end, optBeforeEnd, counts };
}
