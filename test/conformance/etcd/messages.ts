/**
 * Descriptions of etcd's messages with a Protocol Buffers codec, written for the tests from etcd's .proto files,
 * independently of `src/store/core/messages`, so that they do not share its errors. Byte fields are latin1 strings.
 */

const MESSAGES = {
  Empty: {},
  Header: { cluster_id: [1, 'big'], member_id: [2, 'big'], revision: [3, 'int'], raft_term: [4, 'int'] },
  KeyValue: {
    key: [1, 'bytes'],
    create_revision: [2, 'int'],
    mod_revision: [3, 'int'],
    version: [4, 'int'],
    value: [5, 'bytes'],
    lease: [6, 'big'],
  },
  RangeRequest: {
    key: [1, 'bytes'],
    range_end: [2, 'bytes'],
    limit: [3, 'int'],
    revision: [4, 'int'],
    sort_order: [5, 'int'],
    sort_target: [6, 'int'],
    serializable: [7, 'bool'],
    keys_only: [8, 'bool'],
    count_only: [9, 'bool'],
    min_mod_revision: [10, 'int'],
    max_mod_revision: [11, 'int'],
    min_create_revision: [12, 'int'],
    max_create_revision: [13, 'int'],
  },
  RangeResponse: { header: [1, 'Header'], kvs: [2, 'KeyValue[]'], more: [3, 'bool'], count: [4, 'int'] },
  PutRequest: {
    key: [1, 'bytes'],
    value: [2, 'bytes'],
    lease: [3, 'big'],
    prev_kv: [4, 'bool'],
    ignore_value: [5, 'bool'],
    ignore_lease: [6, 'bool'],
  },
  PutResponse: { header: [1, 'Header'], prev_kv: [2, 'KeyValue'] },
  DeleteRangeRequest: { key: [1, 'bytes'], range_end: [2, 'bytes'], prev_kv: [3, 'bool'] },
  DeleteRangeResponse: { header: [1, 'Header'], deleted: [2, 'int'], prev_kvs: [3, 'KeyValue[]'] },
  RequestOp: {
    request_range: [1, 'RangeRequest'],
    request_put: [2, 'PutRequest'],
    request_delete_range: [3, 'DeleteRangeRequest'],
    request_txn: [4, 'TxnRequest'],
  },
  ResponseOp: {
    response_range: [1, 'RangeResponse'],
    response_put: [2, 'PutResponse'],
    response_delete_range: [3, 'DeleteRangeResponse'],
    response_txn: [4, 'TxnResponse'],
  },
  Compare: {
    result: [1, 'int'],
    target: [2, 'int'],
    key: [3, 'bytes'],
    version: [4, 'int'],
    create_revision: [5, 'int'],
    mod_revision: [6, 'int'],
    value: [7, 'bytes'],
    lease: [8, 'big'],
    range_end: [64, 'bytes'],
  },
  TxnRequest: { compare: [1, 'Compare[]'], success: [2, 'RequestOp[]'], failure: [3, 'RequestOp[]'] },
  TxnResponse: { header: [1, 'Header'], succeeded: [2, 'bool'], responses: [3, 'ResponseOp[]'] },
  CompactionRequest: { revision: [1, 'int'], physical: [2, 'bool'] },
  HeaderOnly: { header: [1, 'Header'] },
  WatchRequest: {
    create_request: [1, 'WatchCreateRequest'],
    cancel_request: [2, 'WatchCancelRequest'],
    progress_request: [3, 'Empty'],
  },
  WatchCreateRequest: {
    key: [1, 'bytes'],
    range_end: [2, 'bytes'],
    start_revision: [3, 'int'],
    progress_notify: [4, 'bool'],
    filters: [5, 'int[]'],
    prev_kv: [6, 'bool'],
    watch_id: [7, 'int'],
    fragment: [8, 'bool'],
  },
  WatchCancelRequest: { watch_id: [1, 'int'] },
  WatchResponse: {
    header: [1, 'Header'],
    watch_id: [2, 'int'],
    created: [3, 'bool'],
    canceled: [4, 'bool'],
    compact_revision: [5, 'int'],
    cancel_reason: [6, 'string'],
    fragment: [7, 'bool'],
    events: [11, 'Event[]'],
  },
  Event: { type: [1, 'int'], kv: [2, 'KeyValue'], prev_kv: [3, 'KeyValue'] },
  LeaseGrantRequest: { TTL: [1, 'int'], ID: [2, 'big'] },
  LeaseGrantResponse: { header: [1, 'Header'], ID: [2, 'big'], TTL: [3, 'int'], error: [4, 'string'] },
  LeaseID: { ID: [1, 'big'] },
  LeaseKeepAliveResponse: { header: [1, 'Header'], ID: [2, 'big'], TTL: [3, 'int'] },
  LeaseTimeToLiveRequest: { ID: [1, 'big'], keys: [2, 'bool'] },
  LeaseTimeToLiveResponse: {
    header: [1, 'Header'],
    ID: [2, 'big'],
    TTL: [3, 'int'],
    grantedTTL: [4, 'int'],
    keys: [5, 'bytes[]'],
  },
  LeaseLeasesResponse: { header: [1, 'Header'], leases: [2, 'LeaseID[]'] },
  Member: {
    ID: [1, 'big'],
    name: [2, 'string'],
    peerURLs: [3, 'string[]'],
    clientURLs: [4, 'string[]'],
    isLearner: [5, 'bool'],
  },
  MemberListResponse: { header: [1, 'Header'], members: [2, 'Member[]'] },
  StatusResponse: {
    header: [1, 'Header'],
    version: [2, 'string'],
    dbSize: [3, 'int'],
    leader: [4, 'big'],
    raftIndex: [5, 'int'],
    raftTerm: [6, 'int'],
    raftAppliedIndex: [7, 'int'],
    errors: [8, 'string[]'],
    dbSizeInUse: [9, 'int'],
    isLearner: [10, 'bool'],
  },
  AlarmRequest: { action: [1, 'int'], memberID: [2, 'big'], alarm: [3, 'int'] },
  AlarmMember: { memberID: [1, 'big'], alarm: [2, 'int'] },
  AlarmResponse: { header: [1, 'Header'], alarms: [2, 'AlarmMember[]'] },
  HashResponse: { header: [1, 'Header'], hash: [2, 'int'] },
  HashKVRequest: { revision: [1, 'int'] },
  HashKVResponse: { header: [1, 'Header'], hash: [2, 'int'], compact_revision: [3, 'int'], hash_revision: [4, 'int'] },
  LockRequest: { name: [1, 'bytes'], lease: [2, 'big'] },
  LockResponse: { header: [1, 'Header'], key: [2, 'bytes'] },
  UnlockRequest: { key: [1, 'bytes'] },
  LeaderKey: { name: [1, 'bytes'], key: [2, 'bytes'], rev: [3, 'int'], lease: [4, 'big'] },
  CampaignRequest: { name: [1, 'bytes'], lease: [2, 'big'], value: [3, 'bytes'] },
  CampaignResponse: { header: [1, 'Header'], leader: [2, 'LeaderKey'] },
  LeaderRequest: { name: [1, 'bytes'] },
  LeaderResponse: { header: [1, 'Header'], kv: [2, 'KeyValue'] },
  ResignRequest: { leader: [1, 'LeaderKey'] },
  ProclaimRequest: { leader: [1, 'LeaderKey'], value: [2, 'bytes'] },
  NamedRequest: { name: [1, 'string'], second: [2, 'string'] },
  AuthenticateRequest: { name: [1, 'string'], password: [2, 'string'] },
  AuthenticateResponse: { header: [1, 'Header'], token: [2, 'string'] },
} as const;

/** Full method names without the leading slash, with their request and response messages. */
export const METHODS = {
  'etcdserverpb.KV/Range': ['RangeRequest', 'RangeResponse'],
  'etcdserverpb.KV/Put': ['PutRequest', 'PutResponse'],
  'etcdserverpb.KV/DeleteRange': ['DeleteRangeRequest', 'DeleteRangeResponse'],
  'etcdserverpb.KV/Txn': ['TxnRequest', 'TxnResponse'],
  'etcdserverpb.KV/Compact': ['CompactionRequest', 'HeaderOnly'],
  'etcdserverpb.Watch/Watch': ['WatchRequest', 'WatchResponse'],
  'etcdserverpb.Lease/LeaseGrant': ['LeaseGrantRequest', 'LeaseGrantResponse'],
  'etcdserverpb.Lease/LeaseRevoke': ['LeaseID', 'HeaderOnly'],
  'etcdserverpb.Lease/LeaseKeepAlive': ['LeaseID', 'LeaseKeepAliveResponse'],
  'etcdserverpb.Lease/LeaseTimeToLive': ['LeaseTimeToLiveRequest', 'LeaseTimeToLiveResponse'],
  'etcdserverpb.Lease/LeaseLeases': ['Empty', 'LeaseLeasesResponse'],
  'etcdserverpb.Cluster/MemberList': ['Empty', 'MemberListResponse'],
  'etcdserverpb.Maintenance/Status': ['Empty', 'StatusResponse'],
  'etcdserverpb.Maintenance/Alarm': ['AlarmRequest', 'AlarmResponse'],
  'etcdserverpb.Maintenance/Defragment': ['Empty', 'HeaderOnly'],
  'etcdserverpb.Maintenance/Hash': ['Empty', 'HashResponse'],
  'etcdserverpb.Maintenance/HashKV': ['HashKVRequest', 'HashKVResponse'],
  'etcdserverpb.Auth/UserAdd': ['NamedRequest', 'HeaderOnly'],
  'etcdserverpb.Auth/UserGrantRole': ['NamedRequest', 'HeaderOnly'],
  'etcdserverpb.Auth/AuthEnable': ['Empty', 'HeaderOnly'],
  'etcdserverpb.Auth/Authenticate': ['AuthenticateRequest', 'AuthenticateResponse'],
  'etcdserverpb.KV/NoSuchMethod': ['Empty', 'Empty'],
  'etcdserverpb.NoSuchService/Range': ['Empty', 'Empty'],
  'v3lockpb.Lock/Lock': ['LockRequest', 'LockResponse'],
  'v3lockpb.Lock/Unlock': ['UnlockRequest', 'HeaderOnly'],
  'v3electionpb.Election/Campaign': ['CampaignRequest', 'CampaignResponse'],
  'v3electionpb.Election/Proclaim': ['ProclaimRequest', 'HeaderOnly'],
  'v3electionpb.Election/Leader': ['LeaderRequest', 'LeaderResponse'],
  'v3electionpb.Election/Observe': ['LeaderRequest', 'LeaderResponse'],
  'v3electionpb.Election/Resign': ['ResignRequest', 'HeaderOnly'],
} as const;

type Messages = typeof MESSAGES;
export type MessageName = keyof Messages;
type Scalar<T> = T extends 'bytes' | 'string'
  ? string
  : T extends 'int'
    ? number
    : T extends 'big'
      ? bigint
      : T extends 'bool'
        ? boolean
        : never;
type Single<T> = T extends MessageName ? Message<T> : Scalar<T>;
type Kind<D> = D extends readonly [number, infer T] ? T : never;
/** A decoded message: scalars have their defaults, absent messages are undefined. */
export type Message<N extends MessageName> = {
  -readonly [F in keyof Messages[N]]: Kind<Messages[N][F]> extends `${infer T}[]`
    ? Single<T>[]
    : Kind<Messages[N][F]> extends MessageName
      ? Message<Kind<Messages[N][F]>> | undefined
      : Scalar<Kind<Messages[N][F]>>;
};
/** A message to encode: all given fields are sent, including zeros. */
export type Draft<N extends MessageName> = {
  readonly [F in keyof Messages[N]]?: Kind<Messages[N][F]> extends `${infer T}[]`
    ? ReadonlyArray<T extends MessageName ? Draft<T> : Scalar<T>>
    : Kind<Messages[N][F]> extends MessageName
      ? Draft<Kind<Messages[N][F]>>
      : Scalar<Kind<Messages[N][F]>>;
};
export type Method = keyof typeof METHODS;
export type Request<M extends Method> = Draft<(typeof METHODS)[M][0]>;
export type Response<M extends Method> = Message<(typeof METHODS)[M][1]>;

type Descriptor = Readonly<Record<string, readonly [number: number, type: string]>>;
type Value = string | number | bigint | boolean | Loose | undefined;
interface Loose {
  [field: string]: Value | Value[];
}

export function encode<N extends MessageName>(name: N, message: Draft<N>): Buffer {
  return encodeLoose(name, message as Loose);
}

function encodeLoose(name: MessageName, message: Loose): Buffer {
  const out: Buffer[] = [];
  const descriptor: Descriptor = MESSAGES[name];
  for (const [field, [number, type]] of Object.entries(descriptor)) {
    const value = message[field];
    // Omit an empty range end: if sent, it would select all keys from the key on, which no client does.
    if (value === undefined || (field === 'range_end' && value === '')) continue;
    const values = Array.isArray(value) ? value : [value];
    for (const one of values) out.push(encodeField(number, type.replace('[]', ''), one));
  }
  return Buffer.concat(out);
}

function encodeField(number: number, type: string, value: Value): Buffer {
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean') {
    return Buffer.concat([varint(BigInt(number * 8)), varint(BigInt.asUintN(64, BigInt(value)))]);
  }
  const body =
    typeof value === 'string'
      ? Buffer.from(value, type === 'string' ? 'utf8' : 'latin1')
      : encodeLoose(type as MessageName, value as Loose);
  return Buffer.concat([varint(BigInt(number * 8 + 2)), varint(BigInt(body.length)), body]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128);
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

export function decode<N extends MessageName>(name: N, bytes: Buffer): Message<N> {
  return decodeLoose(name, bytes) as Message<N>;
}

function decodeLoose(name: MessageName, bytes: Buffer): Loose {
  const descriptor: Descriptor = MESSAGES[name];
  const message: Loose = {};
  const byNumber = new Map<number, readonly [field: string, type: string]>();
  for (const [field, [number, type]] of Object.entries(descriptor)) {
    byNumber.set(number, [field, type]);
    message[field] = initial(type);
  }
  let at = 0;
  const number = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error(`${name} is cut short`);
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const tag = Number(number());
    const known = byNumber.get(tag >> 3);
    if (known === undefined) throw new Error(`${name} has an unknown field ${tag >> 3}`);
    const [field, type] = known;
    const single = type.replace('[]', '');
    let value: Value;
    if ((tag & 7) === 0) value = scalar(single, number());
    else if ((tag & 7) === 2) {
      const length = Number(number());
      const body = bytes.subarray(at, at + length);
      at += length;
      if (body.length !== length) throw new Error(`${name}.${field} is cut short`);
      value = single in MESSAGES ? decodeLoose(single as MessageName, body) : text(single, body);
    } else throw new Error(`${name}.${field} has wire type ${tag & 7}`);
    if (type.endsWith('[]')) (message[field] as Value[]).push(value);
    else message[field] = value;
  }
  return message;
}

function initial(type: string): Value | Value[] {
  if (type.endsWith('[]')) return [];
  const defaults: Record<string, Value> = { bytes: '', string: '', int: 0, big: 0n, bool: false };
  return defaults[type];
}

function scalar(type: string, value: bigint): Value {
  if (type === 'bool') return value !== 0n;
  const signed = BigInt.asIntN(64, value);
  return type === 'big' ? signed : Number(signed);
}

function text(type: string, body: Buffer): string {
  return body.toString(type === 'string' ? 'utf8' : 'latin1');
}
