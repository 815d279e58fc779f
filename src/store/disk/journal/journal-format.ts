/**
 * Format of the journal in front of the database, which holds commits that the database does not have yet. A header
 * page with the journal's id is followed by two halves, which are filled alternately. Records are identified by
 * sequence number and may be at any position; records that the database already contains may be overwritten.
 */
import { deserialize, serialize } from 'node:v8';
import { crc32 } from 'node:zlib';
import type { CommitBody } from '../packed-entries.ts';
import { NUMBERS, putNumbers } from '../packed-entries.ts';
import type { LogBatch } from '../port.ts';

export interface JournalShape {
  /** Random id of the journal, stored in its database and included in every checksum. */
  readonly id: number;
  readonly halfBytes: number;
}

/** A whole file-system page, so that the header shares no page with a record. */
export const HEADER_BYTES = 4096;
const HEADER_USED = 24;
const HEADER_MAGIC = Buffer.from('hejrnl01');

const RECORD_HEADER = 32;
const RECORD_MAGIC = Buffer.from('\x93hej', 'latin1');
const ALIGNMENT = 8;
const LEASE_BYTES = 12;

export function encodeHeader({ id, halfBytes }: JournalShape): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.set(HEADER_MAGIC);
  header.writeUInt32LE(id, 8);
  header.writeUInt32LE(halfBytes, 12);
  header.writeUInt32LE(crc32(header.subarray(0, 16)), 16);
  return header;
}

/** Returns undefined if `bytes` is not a journal header. */
export function decodeHeader(bytes: Buffer): JournalShape | undefined {
  if (bytes.length < HEADER_USED || bytes.compare(HEADER_MAGIC, 0, 8, 0, 8) !== 0) return undefined;
  if (bytes.readUInt32LE(16) !== crc32(bytes.subarray(0, 16))) return undefined;
  return { id: bytes.readUInt32LE(8), halfBytes: bytes.readUInt32LE(12) };
}

/**
 * Encodes a batch as a record. Sequence numbers of records are consecutive, apart from the numbers of batches that were
 * committed directly to the database.
 */
export function encodeRecord(id: number, sequence: number, { entries, ...others }: LogBatch): Buffer {
  const rest = isEmpty(others) ? NOTHING : serialize(others);
  let bytes = 0;
  let leases = 0;
  for (const { body, lease } of entries) {
    bytes += body.length;
    if (lease !== 0n) leases += 1;
  }
  const numbersAt = RECORD_HEADER;
  const leasesAt = numbersAt + entries.length * NUMBERS * 8;
  const restAt = leasesAt + leases * LEASE_BYTES;
  const dataAt = restAt + rest.length;
  const record = Buffer.allocUnsafe(aligned(dataAt + bytes));
  record.set(RECORD_MAGIC);
  record.writeDoubleLE(sequence, 8);
  record.writeUInt32LE(dataAt + bytes, 16);
  record.writeUInt32LE(entries.length, 20);
  record.writeUInt32LE(leases, 24);
  record.writeUInt32LE(rest.length, 28);
  record.set(rest, restAt);
  let lease = leasesAt;
  let at = dataAt;
  const numbers = new Float64Array(NUMBERS);
  const numberBytes = new Uint8Array(numbers.buffer);
  for (const [i, entry] of entries.entries()) {
    putNumbers(numbers, 0, entry);
    record.set(numberBytes, numbersAt + i * NUMBERS * 8);
    if (entry.lease !== 0n) {
      record.writeUInt32LE(i, lease);
      record.writeBigInt64LE(BigInt.asIntN(64, entry.lease), lease + 4);
      lease += LEASE_BYTES;
    }
    record.set(entry.body, at);
    at += entry.body.length;
  }
  record.fill(0, at);
  record.writeUInt32LE(crc32(record.subarray(8), id), 4);
  return record;
}

export interface JournalRecord {
  readonly sequence: number;
  /** Position at which the next record may start. */
  readonly end: number;
  readonly body: CommitBody;
}

/** Decodes the record at `at`; undefined if there is no intact record. */
export function decodeRecord(bytes: Buffer, at: number, id: number): JournalRecord | undefined {
  if (bytes.length - at < RECORD_HEADER || bytes.compare(RECORD_MAGIC, 0, 4, at, at + 4) !== 0) return undefined;
  const length = bytes.readUInt32LE(at + 16);
  const end = at + aligned(length);
  if (length < RECORD_HEADER || end > bytes.length) return undefined;
  if (bytes.readUInt32LE(at + 4) !== crc32(bytes.subarray(at + 8, end), id)) return undefined;
  const count = bytes.readUInt32LE(at + 20);
  const leaseCount = bytes.readUInt32LE(at + 24);
  const leasesAt = at + RECORD_HEADER + count * NUMBERS * 8;
  const restAt = leasesAt + leaseCount * LEASE_BYTES;
  const dataAt = restAt + bytes.readUInt32LE(at + 28);
  const numbers = new Float64Array(count * NUMBERS);
  new Uint8Array(numbers.buffer).set(bytes.subarray(at + RECORD_HEADER, leasesAt));
  const leases: Array<readonly [number, bigint]> = [];
  for (let lease = leasesAt; lease < restAt; lease += LEASE_BYTES)
    leases.push([bytes.readUInt32LE(lease), bytes.readBigInt64LE(lease + 4)]);
  const data = new Uint8Array(bytes.subarray(dataAt, at + length));
  const rest: Omit<LogBatch, 'entries'> =
    dataAt === restAt ? { discards: [] } : deserialize(bytes.subarray(restAt, dataAt));
  return { sequence: bytes.readDoubleLE(at + 8), end, body: { ...rest, entries: { numbers, leases, data } } };
}

/** All intact records with sequence numbers above `after`, at any position, sorted by number. */
export function findRecords(bytes: Buffer, id: number, after: number): JournalRecord[] {
  const found: JournalRecord[] = [];
  for (let at = bytes.indexOf(RECORD_MAGIC, HEADER_BYTES); at >= 0; ) {
    const record = at % ALIGNMENT === 0 ? decodeRecord(bytes, at, id) : undefined;
    if (record !== undefined && record.sequence > after) found.push(record);
    at = bytes.indexOf(RECORD_MAGIC, record?.end ?? at + 1);
  }
  return found.sort((left, right) => left.sequence - right.sequence);
}

/** The bodies of a record's entries, as views into the record. */
export function bodiesIn(record: Buffer, { entries }: LogBatch): Uint8Array[] {
  let at = record.readUInt32LE(16);
  for (const { body } of entries) at -= body.length;
  return entries.map(({ body }) => {
    at += body.length;
    return record.subarray(at - body.length, at);
  });
}

const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;

function isEmpty({ discards, hardState, applied, base, reserved }: Omit<LogBatch, 'entries'>): boolean {
  const none = hardState === undefined && applied === undefined && base === undefined && reserved === undefined;
  return none && discards.length === 0;
}

const NOTHING = Buffer.alloc(0);
