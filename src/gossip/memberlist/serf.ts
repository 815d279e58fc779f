/**
 * Encodes and decodes Serf's messages, which the ring transports as user messages, user state and metadata
 * (serf/messages.go).
 */
import { CodedError } from '../../base/errors.ts';
import { decodeFields, decodeTexts, fieldsOf, MsgpackError, textOf } from '../../wire/msgpack.ts';
import {
  type KeyAnswer,
  MAX_META_BYTES,
  MAX_NAME_BYTES,
  type RecentEvent,
  type SerfCodec,
  type SerfMessage,
  type SerfQuery,
  type SerfState,
} from '../core/port.ts';
import { ipBytes, ipText } from './addresses.ts';
import { typed } from './messages.ts';

const serfType = {
  leave: 0,
  join: 1,
  pushPull: 2,
  userEvent: 3,
  query: 4,
  queryResponse: 5,
  keyRequest: 7,
  keyResponse: 8,
} as const;
const queryFlag = { ack: 1, noBroadcast: 2 } as const;
const responseFlag = { ack: 1 } as const;
const filterType = { node: 0 } as const;
/** First byte of metadata that contains a map of tags. */
const TAG_MAGIC = 255;
const LTIME_LIMIT = Number.MAX_SAFE_INTEGER;
const EVENT_BYTES = 9 * 1024;
const UINT32 = 0xffff_ffff;
/** Nanoseconds per millisecond. Serf's time-outs are in nanoseconds. */
const NANOSECONDS = 1_000_000;
const KEY_BYTES = 64;

export const serfCodec: SerfCodec = {
  encode(message) {
    switch (message.kind) {
      case 'leave':
        return typed(serfType.leave, { LTime: message.ltime, Node: message.node, Prune: message.prune });
      case 'join':
        return typed(serfType.join, { LTime: message.ltime, Node: message.node });
      case 'user-event': {
        const { ltime, name, payload, coalesce } = message;
        return typed(serfType.userEvent, { LTime: ltime, Name: name, Payload: payload, CC: coalesce });
      }
      case 'query':
        return encodeQuery(message);
      case 'query-response': {
        const { ltime, id, node, ack, payload } = message;
        return typed(serfType.queryResponse, {
          LTime: ltime,
          ID: id,
          From: node,
          Flags: ack ? responseFlag.ack : 0,
          Payload: payload,
        });
      }
    }
  },
  decode: (payload) => guarded(() => decode(payload)),
  encodeState(state) {
    return typed(serfType.pushPull, {
      LTime: state.ltime,
      StatusLTimes: state.statusTimes,
      LeftMembers: state.leftMembers,
      EventLTime: state.eventTime,
      Events: state.events.map(({ ltime, name, payload }) => ({
        LTime: ltime,
        Events: [{ Name: name, Payload: payload }],
      })),
      QueryLTime: state.queryTime,
    });
  },
  decodeState: (payload) => guarded(() => decodeState(payload)),
  encodeTags(tags) {
    const meta = typed(TAG_MAGIC, tags);
    if (meta.length > MAX_META_BYTES)
      throw new CodedError(
        'metadata-too-large',
        `member metadata has ${meta.length} bytes, more than the ${MAX_META_BYTES} of the ring; use fewer or shorter addresses`,
      );
    return meta;
  },
  decodeTags: (meta) => guarded(() => decodeTags(meta)),
  encodeKey: (key) => typed(serfType.keyRequest, { Key: key }),
  decodeKey: (payload) =>
    guarded(() =>
      payload[0] === serfType.keyRequest ? decodeFields(payload.subarray(1)).bytes('Key', KEY_BYTES) : undefined,
    ),
  encodeKeyAnswer: ({ done, message, keys, primary }) =>
    typed(serfType.keyResponse, { Result: done, Message: message, Keys: keys, PrimaryKey: primary }),
  decodeKeyAnswer: (payload) => guarded(() => decodeKeyAnswer(payload)),
};

function encodeQuery(query: SerfQuery): Uint8Array {
  const { ltime, id, from, nodes, ack, noBroadcast, timeoutMs, name, payload } = query;
  return typed(serfType.query, {
    LTime: ltime,
    ID: id,
    Addr: from === undefined ? new Uint8Array() : ipBytes(from.ip),
    Port: from?.port ?? 0,
    Filters: nodes === undefined ? [] : [typed(filterType.node, nodes)],
    Flags: (ack ? queryFlag.ack : 0) | (noBroadcast ? queryFlag.noBroadcast : 0),
    RelayFactor: 0,
    Timeout: Math.round(timeoutMs) * NANOSECONDS,
    Name: name,
    Payload: payload,
  });
}

function decodeQuery(body: Uint8Array): SerfQuery {
  const fields = decodeFields(body);
  const flags = fields.uint('Flags', UINT32);
  const ip = ipText(fields.bytes('Addr', 16));
  const port = fields.uint('Port', 0xffff);
  let nodes: string[] | undefined;
  let otherFilters = false;
  for (const filter of fields.list('Filters')) {
    if (!(filter instanceof Uint8Array) || filter[0] !== filterType.node) otherFilters = true;
    else nodes = [...(nodes ?? []), ...decodeTexts(filter.subarray(1))];
  }
  return {
    kind: 'query',
    ltime: fields.uint('LTime', LTIME_LIMIT),
    id: fields.uint('ID', UINT32),
    from: ip === undefined || port === 0 ? undefined : { ip, port },
    nodes,
    otherFilters,
    ack: (flags & queryFlag.ack) !== 0,
    noBroadcast: (flags & queryFlag.noBroadcast) !== 0,
    timeoutMs: Math.round(fields.uint('Timeout', LTIME_LIMIT) / NANOSECONDS),
    name: fields.text('Name', MAX_NAME_BYTES),
    payload: fields.bytes('Payload', EVENT_BYTES),
  };
}

function decodeKeyAnswer(payload: Uint8Array): KeyAnswer | undefined {
  if (payload[0] !== serfType.keyResponse) return undefined;
  const fields = decodeFields(payload.subarray(1));
  return {
    done: fields.bool('Result'),
    message: fields.text('Message', EVENT_BYTES),
    keys: fields.list('Keys').map(textOf),
    primary: fields.text('PrimaryKey', MAX_NAME_BYTES),
  };
}

function decode(payload: Uint8Array): SerfMessage | undefined {
  const type = payload[0];
  if (type === undefined) return undefined;
  const body = payload.subarray(1);
  switch (type) {
    case serfType.leave: {
      const fields = decodeFields(body);
      const node = fields.text('Node', MAX_NAME_BYTES);
      return { kind: 'leave', ltime: fields.uint('LTime', LTIME_LIMIT), node, prune: fields.bool('Prune') };
    }
    case serfType.join: {
      const fields = decodeFields(body);
      return { kind: 'join', ltime: fields.uint('LTime', LTIME_LIMIT), node: fields.text('Node', MAX_NAME_BYTES) };
    }
    case serfType.userEvent: {
      const fields = decodeFields(body);
      return {
        kind: 'user-event',
        ltime: fields.uint('LTime', LTIME_LIMIT),
        name: fields.text('Name', MAX_NAME_BYTES),
        payload: fields.bytes('Payload', EVENT_BYTES),
        coalesce: fields.bool('CC'),
      };
    }
    case serfType.query:
      return decodeQuery(body);
    case serfType.queryResponse: {
      const fields = decodeFields(body);
      return {
        kind: 'query-response',
        ltime: fields.uint('LTime', LTIME_LIMIT),
        id: fields.uint('ID', UINT32),
        node: fields.text('From', MAX_NAME_BYTES),
        ack: (fields.uint('Flags', UINT32) & responseFlag.ack) !== 0,
        payload: fields.bytes('Payload', EVENT_BYTES),
      };
    }
    default:
      return { kind: 'other', type };
  }
}

function decodeState(payload: Uint8Array): SerfState | undefined {
  if (payload[0] !== serfType.pushPull) return undefined;
  const fields = decodeFields(payload.subarray(1));
  const statusTimes = new Map<string, number>();
  for (const [name, ltime] of fields.entries('StatusLTimes'))
    if (typeof ltime === 'number' && isName(name)) statusTimes.set(name, ltime);
  return {
    ltime: fields.uint('LTime', LTIME_LIMIT),
    statusTimes,
    leftMembers: fields.list('LeftMembers').map(textOf).filter(isName),
    eventTime: fields.uint('EventLTime', LTIME_LIMIT),
    events: fields.list('Events').flatMap(decodeEvents),
    queryTime: fields.uint('QueryLTime', LTIME_LIMIT),
  };
}

const isName = (text: string): boolean => Buffer.byteLength(text) <= MAX_NAME_BYTES;

/** Decodes the events of one Lamport time. Serf sends its whole buffer, in which unused entries are nil. */
function decodeEvents(slot: unknown): RecentEvent[] {
  if (slot === null || slot === undefined) return [];
  const fields = fieldsOf(slot);
  const ltime = fields.uint('LTime', LTIME_LIMIT);
  return fields.list('Events').map((event) => {
    const body = fieldsOf(event);
    return { ltime, name: body.text('Name', MAX_NAME_BYTES), payload: body.bytes('Payload', EVENT_BYTES) };
  });
}

function decodeTags(meta: Uint8Array): ReadonlyMap<string, string> | undefined {
  if (meta.length === 0) return new Map();
  if (meta[0] !== TAG_MAGIC) {
    // In Serf versions without tags, the whole metadata is the role.
    return new Map([['role', textOf(meta)]]);
  }
  return new Map(
    decodeFields(meta.subarray(1))
      .all()
      .map(([key, value]) => [key, textOf(value)]),
  );
}

function guarded<T>(read: () => T | undefined): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof MsgpackError) return undefined;
    throw error;
  }
}
