/** Records as bytes, by the dns-packet library. */
import { type Answer, decode, encode, type Packet } from 'dns-packet';
import type { DnsCodec, DnsRecord } from '../../components/dns/port.ts';

const HEADER_BYTES = 12;
/** The root as owner is one byte, which is cut off. */
const ROOT = '.';

const encoded = (answer: Answer, skip: number): Uint8Array =>
  encode({ type: 'response', answers: [answer] }).subarray(HEADER_BYTES + skip);

function answerOf(record: DnsRecord): Answer {
  return { ...record, name: ROOT, class: 'IN' } as Answer;
}

export function createDnsCodec(): DnsCodec {
  return {
    encodeRecord: (record) => encoded(answerOf(record), 1),
    encodeName: (name) => {
      // A question is its name, type and class.
      const question = encode({ type: 'query', questions: [{ name, type: 'A', class: 'IN' }] });
      return question.subarray(HEADER_BYTES, question.length - 4);
    },
    answersOf: (message) => (decode(asBuffer(message)).answers ?? []).map((answer) => encoded(answer, 0)),
    withoutOpt: (message) => {
      const packet: Packet = decode(asBuffer(message));
      const { flags = 0 } = packet;
      // The library takes the response code from a name: it is put back into the header.
      const plain = encode({ ...packet, additionals: (packet.additionals ?? []).filter(({ type }) => type !== 'OPT') });
      plain.writeUInt16BE((flags & 0xfff0) | 0x8000 | (asBuffer(message).readUInt16BE(2) & 0x000f), 2);
      return plain;
    },
  };
}

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
