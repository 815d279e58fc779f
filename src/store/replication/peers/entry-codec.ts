/**
 * Encoding of log entries. A revision or lease revocation is encoded as kind, revision, lease and the encoded events; a
 * command as kind and a message. Configuration changes belong to raft and are encoded separately.
 */
import { Reader, varintWidth, WireError, Writer } from '../../../wire/protobuf/protobuf.ts';
import type { DecidedRevision } from '../../core/mvcc/machine.ts';
import type { ConfChange, ConfOperation, Entry } from '../../core/raft/types.ts';
import { EntryKind, type StoredEntry } from '../../disk/port.ts';

/** Changes to state other than keys. Member IDs are hex, as in raft. */
export type Command =
  | { readonly type: 'grant'; readonly id: bigint; readonly ttlSeconds: number }
  /** Revokes a lease without keys. Revoking a lease with keys creates a revision. */
  | { readonly type: 'revoke'; readonly id: bigint }
  | {
      readonly type: 'checkpoint';
      readonly leases: ReadonlyArray<{ readonly id: bigint; readonly remainingSeconds: number }>;
    }
  | { readonly type: 'compact'; readonly revision: number }
  | { readonly type: 'alarm'; readonly raised: boolean; readonly member: string; readonly alarm: number }
  | { readonly type: 'auth'; readonly command: Uint8Array }
  | {
      readonly type: 'attributes';
      readonly member: string;
      readonly name: string;
      readonly clientUrls: readonly string[];
    }
  | { readonly type: 'peerUrls'; readonly member: string; readonly peerUrls: readonly string[] }
  | { readonly type: 'version'; readonly version: string };

const TYPES = [
  'grant',
  'revoke',
  'checkpoint',
  'compact',
  'alarm',
  'auth',
  'attributes',
  'peerUrls',
  'version',
] as const;

const writer = new Writer(1024);

export function encodeCommand(command: Command): Uint8Array {
  writer
    .reset()
    .varint(EntryKind.command)
    .int(1, TYPES.indexOf(command.type) + 1);
  switch (command.type) {
    case 'grant':
      writer.big(2, command.id).int(3, command.ttlSeconds);
      break;
    case 'revoke':
      writer.big(2, command.id);
      break;
    case 'checkpoint':
      for (const { id, remainingSeconds } of command.leases) {
        const mark = writer.begin(4);
        writer.big(1, id).int(2, remainingSeconds).end(mark);
      }
      break;
    case 'compact':
      writer.int(3, command.revision);
      break;
    case 'alarm':
      writer.bool(2, command.raised).string(5, command.member).int(3, command.alarm);
      break;
    case 'auth':
      writer.bytes(8, command.command);
      break;
    case 'attributes':
      writer.string(5, command.member).string(6, command.name);
      for (const url of command.clientUrls) writer.string(7, url);
      break;
    case 'peerUrls':
      writer.string(5, command.member);
      for (const url of command.peerUrls) writer.string(7, url);
      break;
    case 'version':
      writer.string(6, command.version);
      break;
  }
  return writer.finish();
}

/** Decodes a stored command without its kind. Throws WireError. */
export function decodeCommand(body: Uint8Array): Command {
  const reader = new Reader(body);
  let type = 0;
  let big = 0n;
  let number = 0;
  const leases: Array<{ id: bigint; remainingSeconds: number }> = [];
  let member = '';
  let name = '';
  const urls: string[] = [];
  let bytes: Uint8Array = new Uint8Array();
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) type = reader.int();
    else if (field === 2) big = reader.big();
    else if (field === 3) number = reader.int();
    else if (field === 4) leases.push(decodeRemaining(reader.bytes()));
    else if (field === 5) member = reader.string();
    else if (field === 6) name = reader.string();
    else if (field === 7) urls.push(reader.string());
    else if (field === 8) bytes = reader.bytes();
    else reader.skip();
  }
  switch (TYPES[type - 1]) {
    case 'grant':
      return { type: 'grant', id: big, ttlSeconds: number };
    case 'revoke':
      return { type: 'revoke', id: big };
    case 'checkpoint':
      return { type: 'checkpoint', leases };
    case 'compact':
      return { type: 'compact', revision: number };
    case 'alarm':
      return { type: 'alarm', raised: big !== 0n, member, alarm: number };
    case 'auth':
      return { type: 'auth', command: bytes };
    case 'attributes':
      return { type: 'attributes', member, name, clientUrls: urls };
    case 'peerUrls':
      return { type: 'peerUrls', member, peerUrls: urls };
    case 'version':
      return { type: 'version', version: name };
    default:
      throw new WireError(`command ${type} is of a newer version of this program`);
  }
}

function decodeRemaining(body: Uint8Array): { id: bigint; remainingSeconds: number } {
  const reader = new Reader(body);
  let id = 0n;
  let remainingSeconds = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) id = reader.big();
    else if (field === 2) remainingSeconds = reader.int();
    else reader.skip();
  }
  return { id, remainingSeconds };
}

/** Encodes a revision and copies its events once. `lease`: the revoked lease, or 0n. */
export function encodeRevision({ revision, changes }: DecidedRevision, lease: bigint): Uint8Array {
  writer.reset();
  if (lease !== 0n) writer.big(1, lease);
  const leaseBytes = lease === 0n ? undefined : writer.finish();
  let length = 1 + varintWidth(revision) + (leaseBytes?.length ?? 0);
  for (const { field } of changes) length += field.length;
  const out = Buffer.allocUnsafeSlow(length);
  out[0] = leaseBytes === undefined ? EntryKind.revision : EntryKind.revoke;
  let position = putVarint(out, 1, revision);
  if (leaseBytes !== undefined) {
    out.set(leaseBytes, position);
    position += leaseBytes.length;
  }
  for (const { field } of changes) {
    out.set(field, position);
    position += field.length;
  }
  return out;
}

function putVarint(out: Buffer, at: number, value: number): number {
  let position = at;
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 128)) out[position++] = (rest % 128) | 0x80;
  out[position++] = rest;
  return position;
}

/** Converts raft's entry to its stored form, which shares the bytes. Throws WireError. */
export function toStored(entry: Entry): StoredEntry {
  const { index, term } = entry;
  if (entry.kind === 'noop') return { index, term, kind: EntryKind.noop, revision: 0, lease: 0n, body: NOTHING };
  if (entry.kind === 'conf') {
    return { index, term, kind: EntryKind.conf, revision: 0, lease: 0n, body: encodeConfChange(entry.change) };
  }
  const { data } = entry;
  const kind = data[0];
  if (kind === EntryKind.command) return { index, term, kind, revision: 0, lease: 0n, body: data.subarray(1) };
  if (kind !== EntryKind.revision && kind !== EntryKind.revoke) throw new WireError(`unknown kind of entry ${kind}`);
  const reader = new Reader(data.subarray(1));
  const revision = reader.varint();
  let lease = 0n;
  if (kind === EntryKind.revoke) {
    reader.field();
    lease = reader.big();
  }
  if (revision <= 0) throw new WireError('a revision has no number');
  return { index, term, kind, revision, lease, body: data.subarray(1 + reader.position) };
}

/** Converts a stored entry to raft's form. Throws WireError. */
export function fromStored({ index, term, kind, revision, lease, body }: StoredEntry): Entry {
  if (kind === EntryKind.noop) return { index, term, kind: 'noop' };
  if (kind === EntryKind.conf) return { index, term, kind: 'conf', change: decodeConfChange(body) };
  if (kind === EntryKind.command) return { index, term, kind: 'data', data: Buffer.concat([COMMAND, body]) };
  writer.reset().varint(kind).varint(revision);
  if (kind === EntryKind.revoke) writer.big(1, lease);
  return { index, term, kind: 'data', data: Buffer.concat([writer.finish(), body]) };
}

const NOTHING = new Uint8Array();
const COMMAND = Buffer.of(EntryKind.command);
const OPERATIONS: readonly ConfOperation[] = ['addVoter', 'addLearner', 'remove'];

export function encodeConfChange(change: ConfChange): Uint8Array {
  const out = new Writer(64);
  for (const { op, id } of change.steps) {
    const mark = out.begin(1);
    out
      .int(1, OPERATIONS.indexOf(op) + 1)
      .string(2, id)
      .end(mark);
  }
  if (change.context !== undefined) out.message(2, change.context);
  return out.finish();
}

/** Throws WireError. */
export function decodeConfChange(body: Uint8Array): ConfChange {
  const reader = new Reader(body);
  const steps: Array<ConfChange['steps'][number]> = [];
  let context: Uint8Array | undefined;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) steps.push(decodeStep(reader.bytes()));
    else if (field === 2) context = reader.bytes();
    else reader.skip();
  }
  return { steps, ...(context === undefined ? {} : { context }) };
}

function decodeStep(body: Uint8Array): ConfChange['steps'][number] {
  const reader = new Reader(body);
  let op: ConfOperation | undefined;
  let id = '';
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) op = OPERATIONS[reader.int() - 1];
    else if (field === 2) id = reader.string();
    else reader.skip();
  }
  if (op === undefined) throw new WireError('unknown change of the configuration');
  return { op, id };
}
