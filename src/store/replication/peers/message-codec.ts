/** Encoding of raft messages between members. Entries are sent in their stored form. */
import { Reader, WireError, Writer } from '../../../wire/protobuf/protobuf.ts';
import type { ConfState, Entry, Message } from '../../core/raft/types.ts';
import type { EntryKind } from '../../disk/port.ts';
import { fromStored, toStored } from './entry-codec.ts';

const TYPES = [
  'preVote',
  'preVoteResp',
  'vote',
  'voteResp',
  'append',
  'appendResp',
  'heartbeat',
  'heartbeatResp',
  'snapshot',
  'timeoutNow',
  'propose',
  'transfer',
  'readIndex',
  'readIndexResp',
] as const satisfies ReadonlyArray<Message['type']>;

const writer = new Writer(64 << 10);

/** Encodes several messages to one member in one frame. Sender and receiver are known from the connection. */
export function encodeMessages(messages: readonly Message[]): Buffer {
  writer.reset();
  for (const message of messages) {
    const mark = writer.begin(1);
    write(message);
    writer.end(mark);
  }
  return writer.finish();
}

function write(message: Message): void {
  writer.int(1, TYPES.indexOf(message.type) + 1);
  if ('term' in message) writer.int(2, message.term);
  switch (message.type) {
    case 'preVote':
    case 'vote':
      writer.int(3, message.lastIndex).int(4, message.lastTerm).bool(8, message.leaderDead);
      if (message.type === 'vote') writer.bool(9, message.transfer);
      return;
    case 'preVoteResp':
    case 'voteResp':
      writer
        .bool(8, message.granted)
        .int(5, message.commit ?? 0)
        .int(4, message.commitTerm ?? 0);
      return;
    case 'append':
      writer
        .int(3, message.prevIndex)
        .int(4, message.prevTerm)
        .int(5, message.commit)
        .bool(8, message.quiet ?? false);
      for (const entry of message.entries) writeEntry(entry);
      return;
    case 'appendResp':
      writer.int(3, message.index).bool(8, message.rejected).int(5, message.hintIndex).int(4, message.hintTerm);
      return;
    case 'heartbeat':
      writer.int(5, message.commit).int(6, message.round);
      return;
    case 'heartbeatResp':
      writer.int(6, message.round);
      return;
    case 'snapshot': {
      const { index, term, conf } = message.snapshot;
      writer.int(3, index).int(4, term).message(11, encodeConfState(conf));
      return;
    }
    case 'timeoutNow':
      return;
    case 'propose':
      for (const data of message.data) writer.message(12, data);
      return;
    case 'transfer':
      writer.string(13, message.target);
      return;
    case 'readIndex':
      writer.string(13, message.context);
      return;
    case 'readIndexResp':
      writer.string(13, message.context).int(3, message.index);
      return;
  }
}

function writeEntry(entry: Entry): void {
  const { term, kind, revision, lease, body } = toStored(entry);
  const mark = writer.begin(10);
  writer.int(1, term).int(2, kind).int(3, revision).big(4, lease).bytes(5, body).end(mark);
}

/** Throws WireError. Indexes of entries are derived from the message. */
export function decodeMessages(bytes: Uint8Array, from: string, to: string): Message[] {
  const reader = new Reader(bytes);
  const messages: Message[] = [];
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) messages.push(read(reader.bytes(), from, to));
    else reader.skip();
  }
  return messages;
}

interface Fields {
  type: number;
  term: number;
  a: number;
  b: number;
  c: number;
  round: number;
  flag: boolean;
  transfer: boolean;
  entries: Buffer[];
  data: Buffer[];
  conf: ConfState | undefined;
  text: string;
}

function fieldsOf(body: Uint8Array): Fields {
  const fields: Fields = {
    type: 0,
    term: 0,
    a: 0,
    b: 0,
    c: 0,
    round: 0,
    flag: false,
    transfer: false,
    entries: [],
    data: [],
    conf: undefined,
    text: '',
  };
  const reader = new Reader(body);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) fields.type = reader.int();
    else if (field === 2) fields.term = reader.int();
    else if (field === 3) fields.a = reader.int();
    else if (field === 4) fields.b = reader.int();
    else if (field === 5) fields.c = reader.int();
    else if (field === 6) fields.round = reader.int();
    else if (field === 8) fields.flag = reader.bool();
    else if (field === 9) fields.transfer = reader.bool();
    else if (field === 10) fields.entries.push(reader.bytes());
    else if (field === 11) fields.conf = decodeConfState(reader.bytes());
    else if (field === 12) fields.data.push(reader.bytes());
    else if (field === 13) fields.text = reader.string();
    else reader.skip();
  }
  return fields;
}

function read(body: Uint8Array, from: string, to: string): Message {
  const { type, term, a, b, c, round, flag, transfer, entries, data, conf, text } = fieldsOf(body);
  const way = { from, to };
  switch (TYPES[type - 1]) {
    case 'preVote':
      return { ...way, type: 'preVote', term, lastIndex: a, lastTerm: b, leaderDead: flag };
    case 'vote':
      return { ...way, type: 'vote', term, lastIndex: a, lastTerm: b, leaderDead: flag, transfer };
    case 'preVoteResp':
      return { ...way, type: 'preVoteResp', term, granted: flag, ...(c > 0 ? { commit: c, commitTerm: b } : {}) };
    case 'voteResp':
      return { ...way, type: 'voteResp', term, granted: flag, ...(c > 0 ? { commit: c, commitTerm: b } : {}) };
    case 'append': {
      const read = entries.map((entry, i) => readEntry(entry, a + 1 + i));
      const append = { ...way, type: 'append', term, prevIndex: a, prevTerm: b, entries: read, commit: c } as const;
      return flag ? { ...append, quiet: true } : append;
    }
    case 'appendResp':
      return { ...way, type: 'appendResp', term, index: a, rejected: flag, hintIndex: c, hintTerm: b };
    case 'heartbeat':
      return { ...way, type: 'heartbeat', term, commit: c, round };
    case 'heartbeatResp':
      return { ...way, type: 'heartbeatResp', term, round };
    case 'snapshot':
      if (conf === undefined) throw new WireError('a snapshot has no configuration');
      return { ...way, type: 'snapshot', term, snapshot: { index: a, term: b, conf } };
    case 'timeoutNow':
      return { ...way, type: 'timeoutNow', term };
    case 'propose':
      return { ...way, type: 'propose', data };
    case 'transfer':
      return { ...way, type: 'transfer', target: text };
    case 'readIndex':
      return { ...way, type: 'readIndex', context: text };
    case 'readIndexResp':
      return { ...way, type: 'readIndexResp', context: text, index: a };
    default:
      throw new WireError(`message ${type} is of a newer version of this program`);
  }
}

function readEntry(bytes: Uint8Array, index: number): Entry {
  const reader = new Reader(bytes);
  let term = 0;
  let kind = 0;
  let revision = 0;
  let lease = 0n;
  let body: Uint8Array = new Uint8Array();
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) term = reader.int();
    else if (field === 2) kind = reader.int();
    else if (field === 3) revision = reader.int();
    else if (field === 4) lease = reader.big();
    else if (field === 5) body = reader.bytes();
    else reader.skip();
  }
  const entry = fromStored({ index, term, kind: kind as EntryKind, revision, lease, body });
  // Throws for an entry that cannot be stored, so that raft never accepts such an entry.
  toStored(entry);
  return entry;
}

export function encodeConfState({ voters, outgoing, learners, learnersNext }: ConfState): Buffer {
  const out = new Writer(128);
  for (const [i, ids] of [voters, outgoing, learners, learnersNext].entries())
    for (const id of ids) out.string(i + 1, id);
  return out.finish();
}

/** Throws WireError. */
export function decodeConfState(bytes: Uint8Array): ConfState {
  const lists: [string[], string[], string[], string[]] = [[], [], [], []];
  const reader = new Reader(bytes);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    const list = lists[field - 1];
    if (list === undefined) reader.skip();
    else list.push(reader.string());
  }
  const [voters, outgoing, learners, learnersNext] = lists;
  return { voters, outgoing, learners, learnersNext };
}
