/** Encodes and decodes DNS messages with the dns-packet library. */
import { type Answer, decode, encode, type Packet } from 'dns-packet';
import type { DnsCodec, DnsRecord } from '../port.ts';

const HEADER_BYTES = 12;
/**
 * Owner name with which a record is encoded. The root domain takes one byte, which is then removed, so that another
 * owner name can precede the record.
 */
const ROOT = '.';

/**
 * Maximum length of a chain of compression pointers (RFC 1035 §4.1.4). The library follows pointers without a limit and
 * again for each name, so a small message could take long to decode.
 */
const MAX_CHAIN = 16;

function decodedPacket(message: Uint8Array): Packet {
  const bytes = asBuffer(message);
  const depths = new Uint8Array(bytes.length);
  for (let at = HEADER_BYTES; at + 1 < bytes.length; at++) {
    if ((bytes[at] ?? 0) < 0xc0) continue;
    const to = bytes.readUInt16BE(at) & 0x3fff;
    const depth = to < at ? (depths[to] ?? 0) + 1 : 1;
    if (depth > MAX_CHAIN) throw new Error(`more than ${MAX_CHAIN} pointers of a name in a row`);
    depths[at] = depth;
  }
  return decode(bytes);
}

const encoded = (answer: Answer, skip: number): Uint8Array =>
  encode({ type: 'response', answers: [answer] }).subarray(HEADER_BYTES + skip);

function answerOf(record: DnsRecord): Answer {
  return { ...record, name: ROOT, class: 'IN' } as Answer;
}

export function createDnsCodec(): DnsCodec {
  return {
    encodeRecord: (record) => encoded(answerOf(record), 1),
    encodeName: (name) => {
      // Encodes the name as the question of a message, and removes the header, type and class.
      const question = encode({ type: 'query', questions: [{ name, type: 'A', class: 'IN' }] });
      return question.subarray(HEADER_BYTES, question.length - 4);
    },
    answersOf: (message) => (decodedPacket(message).answers ?? []).map((answer) => encoded(answer, 0)),
    withoutOpt: (message) => {
      const packet = decodedPacket(message);
      const { flags = 0 } = packet;
      // The library encodes the response code from a name, so the original code is written into the header.
      const plain = encode({ ...packet, additionals: (packet.additionals ?? []).filter(({ type }) => type !== 'OPT') });
      plain.writeUInt16BE((flags & 0xfff0) | 0x8000 | (asBuffer(message).readUInt16BE(2) & 0x000f), 2);
      return plain;
    },
  };
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
