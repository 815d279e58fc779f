/** Protocol between members in addition to raft messages. */
import { Reader, Writer } from '../../../wire/protobuf/protobuf.ts';
import { EntryKind, type LeaseRecord, type SnapshotHead, type StoredEntry } from '../../disk/port.ts';
import { decodeMember, type Member, writeMember } from '../../membership/member-codec.ts';

export const PeerPath = {
  messages: '/hyperedge.Peer/Messages',
  members: '/hyperedge.Peer/Members',
  snapshot: '/hyperedge.Peer/Snapshot',
  replace: '/hyperedge.Peer/Replace',
  join: '/hyperedge.Peer/Join',
  hash: '/hyperedge.Peer/Hash',
} as const;

/** Fields of the messages that follow the hello on the peer stream. */
export const Frame = { messages: 1, leaseUpdates: 2, forward: 3, forwarded: 4 } as const;

export interface Hello {
  readonly clusterId: bigint;
  readonly from: string;
  readonly to: string;
}

export function encodeHello({ clusterId, from, to }: Hello): Buffer {
  return new Writer(64).big(1, clusterId).string(2, from).string(3, to).finish();
}

/** Throws WireError, like all decoders here. */
export function decodeHello(bytes: Uint8Array): Hello {
  const reader = new Reader(bytes);
  let clusterId = 0n;
  let from = '';
  let to = '';
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) clusterId = BigInt.asUintN(64, reader.big());
    else if (field === 2) from = reader.string();
    else if (field === 3) to = reader.string();
    else reader.skip();
  }
  return { clusterId, from, to };
}

/** Client request that only the leader can serve. */
export interface Forward {
  readonly path: string;
  readonly message: Uint8Array;
  readonly metadata: ReadonlyMap<string, string>;
  /** Auth revision at which the sender authorized the call, or 0 when none was required. */
  readonly authRevision: number;
}

export function encodeForward(forward: Forward): Buffer {
  const out = new Writer(forward.message.length + 256);
  out.string(2, forward.path).message(3, forward.message);
  for (const [name, value] of forward.metadata) {
    const mark = out.begin(4);
    out.string(1, name).string(2, value).end(mark);
  }
  return out.int(5, forward.authRevision).finish();
}

export function decodeForward(bytes: Uint8Array): Forward {
  const reader = new Reader(bytes);
  let path = '';
  let message: Uint8Array = new Uint8Array();
  let authRevision = 0;
  const metadata = new Map<string, string>();
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 2) path = reader.string();
    else if (field === 3) message = reader.bytes();
    else if (field === 4) {
      const [name = '', value = ''] = strings(reader.bytes());
      metadata.set(name, value);
    } else if (field === 5) authRevision = reader.int();
    else reader.skip();
  }
  return { path, message, metadata, authRevision };
}

function strings(bytes: Uint8Array): string[] {
  const found: string[] = [];
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) found[field - 1] = reader.string();
  return found;
}

/**
 * `redirect`: the receiving member does not lead. `index`: entry that must be applied before the response is visible.
 */
export interface Forwarded {
  readonly redirect: boolean;
  readonly code: number;
  readonly text: string;
  readonly body: Uint8Array;
  readonly index: number;
}

export function encodeForwarded({ redirect, code, text, body, index }: Forwarded): Buffer {
  return new Writer(body.length + 64)
    .bool(1, redirect)
    .int(2, code)
    .string(3, text)
    .bytes(4, body)
    .int(5, index)
    .finish();
}

export function decodeForwarded(bytes: Uint8Array): Forwarded {
  const reader = new Reader(bytes);
  let redirect = false;
  let code = 0;
  let text = '';
  let body: Uint8Array = new Uint8Array();
  let index = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) redirect = reader.bool();
    else if (field === 2) code = reader.int();
    else if (field === 3) text = reader.string();
    else if (field === 4) body = reader.bytes();
    else if (field === 5) index = reader.int();
    else reader.skip();
  }
  return { redirect, code, text, body, index };
}

/** Encodes a request or a response with a number. A response has the number of its request. */
export function encodeNumbered(frame: number, number: number, body: Uint8Array): Buffer {
  const out = new Writer(body.length + 32);
  const mark = out.begin(frame);
  return out.int(1, number).message(2, body).end(mark).finish();
}

export function decodeNumbered(bytes: Uint8Array): { readonly number: number; readonly body: Uint8Array } {
  const outer = new Reader(bytes);
  outer.field();
  const reader = new Reader(outer.bytes());
  let number = 0;
  let body: Uint8Array = new Uint8Array();
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) number = reader.int();
    else if (field === 2) body = reader.bytes();
    else reader.skip();
  }
  return { number, body };
}

export interface MemberTable {
  readonly clusterId: bigint;
  readonly members: readonly Member[];
  /** The ids of the voters. */
  readonly voters: readonly string[];
  /** Whether this state is on the disk of the reporting member and no change of it is in progress. */
  readonly written: boolean;
  /** `--initial-cluster-token` of the reporting member. Undefined when it was not reported. */
  readonly token?: string;
  /** Supported level, see log-level.ts. Undefined for a build without levels. */
  readonly level?: number;
}

export function encodeMembers({ clusterId, members, voters, written, token = '', level = 0 }: MemberTable): Buffer {
  const out = new Writer(512).big(1, clusterId);
  for (const member of members) writeMember(out, 2, member);
  for (const voter of voters) out.string(3, voter);
  return out.bool(4, written).string(5, token).int(6, level).finish();
}

export function decodeMembers(bytes: Uint8Array): MemberTable {
  const reader = new Reader(bytes);
  let clusterId = 0n;
  const members: Member[] = [];
  const voters: string[] = [];
  let written = false;
  let token = '';
  let level = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) clusterId = BigInt.asUintN(64, reader.big());
    else if (field === 2) members.push(decodeMember(reader.bytes()));
    else if (field === 3) voters.push(reader.string());
    else if (field === 4) written = reader.bool();
    else if (field === 5) token = reader.string();
    else if (field === 6) level = reader.int();
    else reader.skip();
  }
  const optional = { ...(token === '' ? {} : { token }), ...(level === 0 ? {} : { level }) };
  return { clusterId, members, voters, written, ...optional };
}

/** Remaining times of leases, as known to the leader. */
export type LeaseUpdates = ReadonlyArray<{ readonly id: bigint; readonly remainingMs: number }>;

export function writeLeaseUpdates(out: Writer, field: number, updates: LeaseUpdates): Writer {
  for (const { id, remainingMs } of updates) {
    const mark = out.begin(field);
    out.big(1, id).int(2, remainingMs).end(mark);
  }
  return out;
}

export function decodeLeaseUpdate(bytes: Uint8Array): LeaseUpdates[number] {
  const reader = new Reader(bytes);
  let id = 0n;
  let remainingMs = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) id = reader.big();
    else if (field === 2) remainingMs = reader.int();
    else reader.skip();
  }
  return { id, remainingMs };
}

/**
 * Piece of a snapshot: rows or, in the last piece, the rest of the state. An empty piece queries how much is stored.
 */
export interface SnapshotPiece {
  readonly hello: Hello;
  readonly id: string;
  /** Revision up to which the receiver must have stored all rows. */
  readonly after: number;
  readonly rows: readonly StoredEntry[];
  readonly head: SnapshotHead | undefined;
  /** Raft's encoded snapshot message; empty in pieces without `head`. */
  readonly message: Uint8Array;
}

export function encodePiece({ hello, id, after, rows, head, message }: SnapshotPiece): Buffer {
  const out = new Writer(1 << 20).message(1, encodeHello(hello)).string(2, id);
  for (const row of rows) {
    const mark = out.begin(3);
    out
      .int(1, row.index)
      .int(2, row.term)
      .int(3, row.kind)
      .int(4, row.revision)
      .big(5, row.lease)
      .message(6, row.body)
      .end(mark);
  }
  if (head !== undefined) out.message(4, encodeHead(head));
  return out.bytes(5, message).int(6, after).finish();
}

export function decodePiece(bytes: Uint8Array): SnapshotPiece {
  const reader = new Reader(bytes);
  let hello: Hello = { clusterId: 0n, from: '', to: '' };
  let id = '';
  const rows: StoredEntry[] = [];
  let head: SnapshotHead | undefined;
  let message: Uint8Array = new Uint8Array();
  let after = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) hello = decodeHello(reader.bytes());
    else if (field === 2) id = reader.string();
    else if (field === 6) after = reader.int();
    else if (field === 3) rows.push(decodeRow(reader.bytes()));
    else if (field === 4) head = decodeHead(reader.bytes());
    else if (field === 5) message = reader.bytes();
    else reader.skip();
  }
  return { hello, id, after, rows, head, message };
}

function decodeRow(bytes: Uint8Array): StoredEntry {
  const reader = new Reader(bytes);
  const row = {
    index: 0,
    term: 0,
    kind: EntryKind.revision as EntryKind,
    revision: 0,
    lease: 0n,
    body: new Uint8Array() as Uint8Array,
  };
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) row.index = reader.int();
    else if (field === 2) row.term = reader.int();
    else if (field === 3) row.kind = reader.int() as EntryKind;
    else if (field === 4) row.revision = reader.int();
    else if (field === 5) row.lease = reader.big();
    else if (field === 6) row.body = reader.bytes();
    else reader.skip();
  }
  return row;
}

function encodeHead({ position, revision, compacted, clusterId, leases, documents }: SnapshotHead): Buffer {
  const out = new Writer(1024)
    .int(1, position.index)
    .int(2, position.term)
    .int(3, revision)
    .int(4, compacted)
    .big(5, clusterId);
  for (const { id, ttlSeconds, remainingSeconds } of leases) {
    const mark = out.begin(6);
    out
      .big(1, id)
      .int(2, ttlSeconds)
      .int(3, remainingSeconds ?? 0)
      .end(mark);
  }
  for (const [name, value] of documents) {
    const mark = out.begin(7);
    out.string(1, name).message(2, value).end(mark);
  }
  return out.finish();
}

function decodeHead(bytes: Uint8Array): SnapshotHead {
  const reader = new Reader(bytes);
  const position = { index: 0, term: 0 };
  let revision = 0;
  let compacted = 0;
  let clusterId = 0n;
  const leases: LeaseRecord[] = [];
  const documents = new Map<string, Uint8Array>();
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) position.index = reader.int();
    else if (field === 2) position.term = reader.int();
    else if (field === 3) revision = reader.int();
    else if (field === 4) compacted = reader.int();
    else if (field === 5) clusterId = BigInt.asUintN(64, reader.big());
    else if (field === 6) leases.push(decodeLease(reader.bytes()));
    else if (field === 7) {
      const [name, value] = decodeDocument(reader.bytes());
      documents.set(name, value);
    } else reader.skip();
  }
  return { position, revision, compacted, clusterId, leases, documents };
}

function decodeLease(bytes: Uint8Array): LeaseRecord {
  const reader = new Reader(bytes);
  let id = 0n;
  let ttlSeconds = 0;
  let remainingSeconds = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) id = reader.big();
    else if (field === 2) ttlSeconds = reader.int();
    else if (field === 3) remainingSeconds = reader.int();
    else reader.skip();
  }
  return { id, ttlSeconds, ...(remainingSeconds === 0 ? {} : { remainingSeconds }) };
}

function decodeDocument(bytes: Uint8Array): [string, Uint8Array] {
  const reader = new Reader(bytes);
  let name = '';
  let value: Uint8Array = new Uint8Array();
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.string();
    else if (field === 2) value = reader.bytes();
    else reader.skip();
  }
  return [name, value];
}

/**
 * Request to the leader to change the membership for the sender. A member that has lost its data requests that the
 * member at its addresses is replaced by a member with a new ID. A joining host requests to be added.
 */
export interface ReplaceRequest {
  readonly name: string;
  readonly peerUrls: readonly string[];
}

export function encodeReplace({ name, peerUrls }: ReplaceRequest): Buffer {
  const out = new Writer(128).string(1, name);
  for (const url of peerUrls) out.string(2, url);
  return out.finish();
}

export function decodeReplace(bytes: Uint8Array): ReplaceRequest {
  const peerUrls: string[] = [];
  let name = '';
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) name = reader.string();
    else if (field === 2) peerUrls.push(reader.string());
    else reader.skip();
  }
  return { name, peerUrls };
}

/**
 * Checksum of a member's store at a revision. Two checksums are comparable only if both stores are compacted at the
 * same revision.
 */
export interface StoreHash {
  readonly revision: number;
  readonly compacted: number;
  readonly hash: number;
}

export function encodeHashRequest(hello: Hello, revision: number): Buffer {
  return new Writer(64).message(1, encodeHello(hello)).int(2, revision).finish();
}

export function decodeHashRequest(bytes: Uint8Array): { readonly hello: Hello; readonly revision: number } {
  let hello: Hello = { clusterId: 0n, from: '', to: '' };
  let revision = 0;
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) hello = decodeHello(reader.bytes());
    else if (field === 2) revision = reader.int();
    else reader.skip();
  }
  return { hello, revision };
}

export function encodeHash({ revision, compacted, hash }: StoreHash): Buffer {
  return new Writer(32).int(1, revision).int(2, compacted).int(3, hash).finish();
}

export function decodeHash(bytes: Uint8Array): StoreHash {
  const found = { revision: 0, compacted: 0, hash: 0 };
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) found.revision = reader.int();
    else if (field === 2) found.compacted = reader.int();
    else if (field === 3) found.hash = reader.int();
    else reader.skip();
  }
  return found;
}
