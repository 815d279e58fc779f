/**
 * Messages of memberlist (memberlist/net.go). A message is a type byte, followed by a map whose keys are the names of
 * Go's fields.
 */

import { decodeFields, encodeMsgpack, type Fields, MsgpackError, type MsgpackValue } from '../../wire/msgpack.ts';
import {
  type AccusationMessage,
  type GossipMessage,
  MAX_META_BYTES,
  MAX_NAME_BYTES,
  type MemberState,
  type PeerAddress,
  type ProtocolVersions,
  type StateRow,
} from '../core/port.ts';
import { ipBytes, ipText } from './addresses.ts';

export const messageType = {
  ping: 0,
  indirectPing: 1,
  ackResponse: 2,
  suspect: 3,
  alive: 4,
  dead: 5,
  pushPull: 6,
  compound: 7,
  user: 8,
  compress: 9,
  encrypt: 10,
  nackResponse: 11,
  hasCrc: 12,
  error: 13,
  hasLabel: 244,
} as const;

const UINT32 = 0xffff_ffff;
/** Maximum number of bytes of a valid name in UTF-8. */
const STATES: readonly MemberState[] = ['alive', 'suspect', 'dead', 'left'];

/** Encodes a message to its type byte and body. */
export function encodeMessage(message: GossipMessage): Uint8Array {
  switch (message.kind) {
    case 'ping':
      return typed(messageType.ping, { SeqNo: message.seq, Node: message.node, ...source(message.from) });
    case 'indirect-ping':
      return typed(messageType.indirectPing, {
        SeqNo: message.seq,
        Target: ipBytes(message.target.ip),
        Port: message.target.port,
        Node: message.node,
        Nack: message.nack,
        ...source(message.from),
      });
    case 'ack':
      return typed(messageType.ackResponse, { SeqNo: message.seq, Payload: new Uint8Array() });
    case 'nack':
      return typed(messageType.nackResponse, { SeqNo: message.seq });
    case 'alive':
      return typed(messageType.alive, {
        Incarnation: message.incarnation,
        Node: message.node,
        Addr: ipBytes(message.address.ip),
        Port: message.address.port,
        Meta: message.meta,
        Vsn: Uint8Array.from(message.versions),
      });
    case 'suspect':
    case 'dead':
      return typed(message.kind === 'suspect' ? messageType.suspect : messageType.dead, {
        Incarnation: message.incarnation,
        Node: message.node,
        From: message.from,
      });
    case 'user': {
      const bytes = new Uint8Array(1 + message.payload.length);
      bytes[0] = messageType.user;
      bytes.set(message.payload, 1);
      return bytes;
    }
  }
}

/**
 * Decodes one message; undefined for message types that are not used. Throws {@link MsgpackError} for a malformed
 * message.
 */
export function decodeMessage(bytes: Uint8Array): GossipMessage | undefined {
  const body = bytes.subarray(1);
  switch (bytes[0]) {
    case messageType.ping: {
      const fields = decodeFields(body);
      return { kind: 'ping', seq: fields.uint('SeqNo', UINT32), node: fields.text('Node', MAX_NAME_BYTES) };
    }
    case messageType.indirectPing: {
      const fields = decodeFields(body);
      return {
        kind: 'indirect-ping',
        seq: fields.uint('SeqNo', UINT32),
        node: fields.text('Node', MAX_NAME_BYTES),
        target: address(fields, 'Target'),
        nack: fields.bool('Nack'),
      };
    }
    case messageType.ackResponse:
      return { kind: 'ack', seq: decodeFields(body).uint('SeqNo', UINT32) };
    case messageType.nackResponse:
      return { kind: 'nack', seq: decodeFields(body).uint('SeqNo', UINT32) };
    case messageType.alive: {
      const fields = decodeFields(body);
      return {
        kind: 'alive',
        incarnation: fields.uint('Incarnation', UINT32),
        node: name(fields, 'Node'),
        address: address(fields, 'Addr'),
        meta: fields.bytes('Meta', MAX_META_BYTES),
        versions: versions(fields),
      };
    }
    case messageType.suspect:
    case messageType.dead:
      return accusation(bytes[0] === messageType.suspect ? 'suspect' : 'dead', decodeFields(body));
    case messageType.user:
      return { kind: 'user', payload: new Uint8Array(body) };
    default:
      return undefined;
  }
}

export function encodeRow(row: StateRow): Uint8Array {
  return encodeMsgpack({
    Name: row.name,
    Addr: ipBytes(row.address.ip),
    Port: row.address.port,
    Meta: row.meta,
    Incarnation: row.incarnation,
    State: STATES.indexOf(row.state),
    Vsn: Uint8Array.from(row.versions),
  });
}

export function decodeRow(fields: Fields): StateRow {
  const state = STATES[fields.uint('State', STATES.length - 1)];
  if (state === undefined) throw new MsgpackError('unknown state');
  return {
    name: name(fields, 'Name'),
    address: address(fields, 'Addr'),
    meta: fields.bytes('Meta', MAX_META_BYTES),
    incarnation: fields.uint('Incarnation', UINT32),
    state,
    versions: versions(fields),
  };
}

export function typed(type: number, body: MsgpackValue): Uint8Array {
  const encoded = encodeMsgpack(body);
  const bytes = new Uint8Array(1 + encoded.length);
  bytes[0] = type;
  bytes.set(encoded, 1);
  return bytes;
}

function source(
  from: { readonly name: string; readonly address: PeerAddress } | undefined,
): Record<string, MsgpackValue> {
  if (from === undefined) return {};
  return { SourceAddr: ipBytes(from.address.ip), SourcePort: from.address.port, SourceNode: from.name };
}

function accusation(kind: 'suspect' | 'dead', fields: Fields): AccusationMessage {
  return {
    kind,
    incarnation: fields.uint('Incarnation', UINT32),
    node: name(fields, 'Node'),
    from: fields.text('From', MAX_NAME_BYTES),
  };
}

function name(fields: Fields, key: string): string {
  const text = fields.text(key, MAX_NAME_BYTES);
  if (text === '') throw new MsgpackError(`${key} is not a valid name`);
  return text;
}

function address(fields: Fields, key: string): PeerAddress {
  const ip = ipText(fields.bytes(key, 16));
  const port = fields.uint('Port', 0xffff);
  if (ip === undefined || port === 0) throw new MsgpackError(`${key} is not a valid address`);
  return { ip, port };
}

function versions(fields: Fields): ProtocolVersions {
  const [a, b, c, d, e, f] = fields.bytes('Vsn', 64);
  if (a === undefined || b === undefined || c === undefined || d === undefined || e === undefined || f === undefined)
    throw new MsgpackError('Vsn has fewer than six versions');
  return [a, b, c, d, e, f];
}
