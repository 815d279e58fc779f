/** Encoded responses, created once and completed for each query with its ID, question and size. */
import { CLASSIC_UDP_BYTES, type DnsRecord, FLAG, HEADER_BYTES, type Query } from './core/index.ts';
import type { DnsCodec } from './port.ts';

export interface EncodedAnswer {
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly answers: readonly Uint8Array[];
  readonly authorities: readonly Uint8Array[];
  readonly additionals: readonly Uint8Array[];
  /** Records of all sections. */
  readonly body: Uint8Array;
  /**
   * Only for several address records of equal length. `twice` contains all records twice, so that a slice can start
   * with any record. `size` is the length of one record.
   */
  readonly rotation: { readonly twice: Uint8Array; readonly size: number } | undefined;
}

/** Maximum UDP size that this server advertises and sends. Source: DNS flag day 2020. */
export const UDP_BYTES = 1_232;
export const TCP_BYTES = 65_535;
const OPT_BYTES = 11;
const TYPE_AND_CLASS_BYTES = 4;
/** A pointer to the question's name. */
const QUESTION_POINTER = Uint8Array.of(0xc0, HEADER_BYTES);

export interface Sections {
  readonly rcode: number;
  readonly authoritative: boolean;
  readonly answers: readonly DnsRecord[];
  readonly authorities: readonly DnsRecord[];
  readonly additionals: readonly DnsRecord[];
  /** Answers from another server, which are placed after this server's answers. */
  readonly foreign?: readonly Uint8Array[];
}

export interface QueriedName {
  /** Name in lower case, as written by `questionName`. */
  readonly name: string;
  readonly questionEnd: number;
}

/**
 * Encodes the sections of a response. An owner name that is a suffix of the question's name becomes a compression
 * pointer.
 */
export function encodeAnswer(codec: DnsCodec, question: QueriedName, sections: Sections): EncodedAnswer {
  const encode = (record: DnsRecord): Uint8Array =>
    Buffer.concat([ownerOf(codec, question, record.name), codec.encodeRecord(record)]);
  // A response has at most TCP_BYTES. One more record shows that it is truncated.
  const answers: Uint8Array[] = [];
  let bytes = 0;
  for (const record of sections.answers) {
    if (bytes > TCP_BYTES) break;
    const encoded = encode(record);
    bytes += encoded.length;
    answers.push(encoded);
  }
  answers.push(...(sections.foreign ?? []));
  const authorities = sections.authorities.map(encode);
  const additionals = sections.additionals.map(encode);
  const body = Buffer.concat([...answers, ...authorities, ...additionals]);
  const [first] = answers;
  const rotates =
    answers.length > 1 &&
    authorities.length + additionals.length === 0 &&
    sections.answers.length === answers.length &&
    sections.answers.every(({ type, name }) => (type === 'A' || type === 'AAAA') && name === question.name) &&
    answers.every(({ length }) => length === first?.length);
  return {
    rcode: sections.rcode,
    authoritative: sections.authoritative,
    answers,
    authorities,
    additionals,
    body,
    rotation: rotates ? { twice: Buffer.concat([body, body]), size: first?.length ?? 0 } : undefined,
  };
}

function ownerOf(codec: DnsCodec, question: QueriedName, name: string): Uint8Array {
  if (name === question.name) return QUESTION_POINTER;
  if (name !== '' && question.name.endsWith(`.${name}`)) {
    // The offset is computed from the end of the name, because earlier labels may contain bytes that `questionName`
    // writes as several characters.
    const offset = question.questionEnd - TYPE_AND_CLASS_BYTES - (name.length + 2);
    return Uint8Array.of(0xc0 | (offset >> 8), offset & 0xff);
  }
  return codec.encodeName(name);
}

export const udpLimit = (query: Query): number =>
  query.edns === undefined ? CLASSIC_UDP_BYTES : Math.min(query.edns.udpBytes, UDP_BYTES);

export function flagsOf(query: Query, rcode: number, authoritative: boolean, truncated: boolean): number {
  return (
    FLAG.response |
    (authoritative ? FLAG.authoritative : 0) |
    (truncated ? FLAG.truncated : 0) |
    (query.flags & (FLAG.recursionDesired | FLAG.checkingDisabled)) |
    FLAG.recursionAvailable |
    (rcode & FLAG.rcode)
  );
}

/** Response of at most `limit` bytes to a query. `turn` selects the address that comes first if there are several. */
export function completeAnswer(
  message: Uint8Array,
  query: Query,
  answer: EncodedAnswer,
  limit: number,
  turn: number,
): Uint8Array {
  const { rotation } = answer;
  const room = limit - query.questionEnd - (query.edns === undefined ? 0 : OPT_BYTES);
  let body = answer.body;
  if (rotation !== undefined) {
    const start = (turn % answer.answers.length) * rotation.size;
    body = rotation.twice.subarray(start, start + body.length);
  }
  let counts = [answer.answers.length, answer.authorities.length, answer.additionals.length] as const;
  let truncated = false;
  if (body.length > room) {
    const whole =
      rotation === undefined ? Math.max(0, fitting(answer.answers, room)) : Math.floor(room / rotation.size);
    const count = Math.max(0, Math.min(whole, answer.answers.length));
    // Additional records are omitted first, which does not count as truncation (RFC 2181 §9).
    truncated = count < answer.answers.length || answer.answers.length === 0;
    body =
      rotation === undefined ? Buffer.concat(answer.answers.slice(0, count)) : body.subarray(0, count * rotation.size);
    counts = [count, 0, 0];
  }
  const flags = flagsOf(query, answer.rcode, answer.authoritative, truncated);
  return assemble(message, query, flags, counts, body);
}

function fitting(records: readonly Uint8Array[], room: number): number {
  let left = room;
  let count = 0;
  for (const { length } of records) {
    if (length > left) break;
    left -= length;
    count++;
  }
  return count;
}

/** Assembles a response from a header, the original question, `body`, and an OPT record if the client sent one. */
export function assemble(
  message: Uint8Array,
  query: Query,
  flags: number,
  counts: readonly [number, number, number],
  body: Uint8Array,
  extendedRcode = 0,
): Uint8Array {
  const { questionEnd, edns } = query;
  const response = Buffer.allocUnsafe(questionEnd + body.length + (edns === undefined ? 0 : OPT_BYTES));
  response.set(message.subarray(0, questionEnd), 0);
  response[2] = flags >> 8;
  response[3] = flags & 0xff;
  response[6] = counts[0] >> 8;
  response[7] = counts[0] & 0xff;
  response[8] = counts[1] >> 8;
  response[9] = counts[1] & 0xff;
  const additionals = counts[2] + (edns === undefined ? 0 : 1);
  response[10] = additionals >> 8;
  response[11] = additionals & 0xff;
  response.set(body, questionEnd);
  if (edns !== undefined) {
    const at = questionEnd + body.length;
    response.set([0, 0, 41, UDP_BYTES >> 8, UDP_BYTES & 0xff, extendedRcode, 0, edns.dnssecOk ? 0x80 : 0, 0, 0, 0], at);
  }
  return response;
}

const NOTHING = new Uint8Array(0);

/** Response without records. `rcode` may need the extended bits of an OPT record. */
export function emptyAnswer(message: Uint8Array, query: Query, rcode: number): Uint8Array {
  return assemble(message, query, flagsOf(query, rcode, false, false), [0, 0, 0], NOTHING, rcode >> 4);
}

/** Response to a message that cannot be parsed: only a header, which is never larger than the query. */
export function headerOnly(message: Uint8Array, rcode: number): Uint8Array {
  const response = new Uint8Array(HEADER_BYTES);
  response.set(message.subarray(0, 2), 0);
  response[2] = 0x80 | ((message[2] ?? 0) & 0x79);
  response[3] = rcode;
  return response;
}
