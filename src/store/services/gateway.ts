/**
 * etcd's API as JSON over HTTP (`POST /v3/kv/range` …), like grpc-gateway. The header `Authorization` contains the
 * token. As in etcd, client certificates do not identify users here. Source: etcd's google.api.http annotations in
 * rpc.proto.
 */

import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import {
  type CallIdentity,
  type HttpAnswer,
  type HttpRequest,
  type HttpStream,
  RpcCode,
} from '../../wire/grpc/port.ts';
import { WireError } from '../../wire/protobuf/protobuf.ts';
import { type Json, messageFromJson, messageToJson } from '../core/messages/json.ts';
import type { LocalClient } from './local-client.ts';
import { failureOf, type RpcFailed } from './rpc-errors.ts';

type Route = readonly [method: string, request: string, answer: string, stream?: 'stream'];

const KV = 'etcdserverpb.KV';
const LEASE = 'etcdserverpb.Lease';
const CLUSTER = 'etcdserverpb.Cluster';
const MAINTENANCE = 'etcdserverpb.Maintenance';
const AUTH = 'etcdserverpb.Auth';
const ELECTION = 'v3electionpb.Election';

const ROUTES: ReadonlyMap<string, Route> = new Map<string, Route>([
  ['kv/range', [`${KV}/Range`, 'RangeRequest', 'RangeResponse']],
  ['kv/put', [`${KV}/Put`, 'PutRequest', 'PutResponse']],
  ['kv/deleterange', [`${KV}/DeleteRange`, 'DeleteRangeRequest', 'DeleteRangeResponse']],
  ['kv/txn', [`${KV}/Txn`, 'TxnRequest', 'TxnResponse']],
  ['kv/compaction', [`${KV}/Compact`, 'CompactionRequest', 'HeaderOnly']],
  ['watch', ['etcdserverpb.Watch/Watch', 'WatchRequest', 'WatchResponse', 'stream']],
  ['lease/grant', [`${LEASE}/LeaseGrant`, 'LeaseGrantRequest', 'LeaseGrantResponse']],
  ['lease/revoke', [`${LEASE}/LeaseRevoke`, 'LeaseID', 'HeaderOnly']],
  ['kv/lease/revoke', [`${LEASE}/LeaseRevoke`, 'LeaseID', 'HeaderOnly']],
  ['lease/keepalive', [`${LEASE}/LeaseKeepAlive`, 'LeaseID', 'LeaseKeepAliveResponse', 'stream']],
  ['lease/timetolive', [`${LEASE}/LeaseTimeToLive`, 'LeaseTimeToLiveRequest', 'LeaseTimeToLiveResponse']],
  ['kv/lease/timetolive', [`${LEASE}/LeaseTimeToLive`, 'LeaseTimeToLiveRequest', 'LeaseTimeToLiveResponse']],
  ['lease/leases', [`${LEASE}/LeaseLeases`, 'Empty', 'LeaseLeasesResponse']],
  ['kv/lease/leases', [`${LEASE}/LeaseLeases`, 'Empty', 'LeaseLeasesResponse']],
  ['cluster/member/list', [`${CLUSTER}/MemberList`, 'Empty', 'MemberListResponse']],
  ['cluster/member/add', [`${CLUSTER}/MemberAdd`, 'MemberAddRequest', 'MemberAddResponse']],
  ['cluster/member/remove', [`${CLUSTER}/MemberRemove`, 'MemberIDRequest', 'MemberListResponse']],
  ['cluster/member/update', [`${CLUSTER}/MemberUpdate`, 'MemberUpdateRequest', 'MemberListResponse']],
  ['cluster/member/promote', [`${CLUSTER}/MemberPromote`, 'MemberIDRequest', 'MemberListResponse']],
  ['maintenance/status', [`${MAINTENANCE}/Status`, 'Empty', 'StatusResponse']],
  ['maintenance/alarm', [`${MAINTENANCE}/Alarm`, 'AlarmRequest', 'AlarmResponse']],
  ['maintenance/defragment', [`${MAINTENANCE}/Defragment`, 'Empty', 'HeaderOnly']],
  ['maintenance/hash', [`${MAINTENANCE}/Hash`, 'Empty', 'HashResponse']],
  ['maintenance/hashkv', [`${MAINTENANCE}/HashKV`, 'HashKVRequest', 'HashKVResponse']],
  ['maintenance/snapshot', [`${MAINTENANCE}/Snapshot`, 'Empty', 'SnapshotResponse', 'stream']],
  ['maintenance/transfer-leadership', [`${MAINTENANCE}/MoveLeader`, 'MoveLeaderRequest', 'HeaderOnly']],
  ['auth/enable', [`${AUTH}/AuthEnable`, 'Empty', 'HeaderOnly']],
  ['auth/disable', [`${AUTH}/AuthDisable`, 'Empty', 'HeaderOnly']],
  ['auth/status', [`${AUTH}/AuthStatus`, 'Empty', 'AuthStatusResponse']],
  ['auth/authenticate', [`${AUTH}/Authenticate`, 'AuthenticateRequest', 'AuthenticateResponse']],
  ['auth/user/add', [`${AUTH}/UserAdd`, 'UserAddRequest', 'HeaderOnly']],
  ['auth/user/get', [`${AUTH}/UserGet`, 'NameRequest', 'RolesResponse']],
  ['auth/user/list', [`${AUTH}/UserList`, 'Empty', 'UsersResponse']],
  ['auth/user/delete', [`${AUTH}/UserDelete`, 'NameRequest', 'HeaderOnly']],
  ['auth/user/changepw', [`${AUTH}/UserChangePassword`, 'AuthenticateRequest', 'HeaderOnly']],
  ['auth/user/grant', [`${AUTH}/UserGrantRole`, 'UserGrantRequest', 'HeaderOnly']],
  ['auth/user/revoke', [`${AUTH}/UserRevokeRole`, 'UserRevokeRequest', 'HeaderOnly']],
  ['auth/role/add', [`${AUTH}/RoleAdd`, 'NameRequest', 'HeaderOnly']],
  ['auth/role/get', [`${AUTH}/RoleGet`, 'RoleRequest', 'RoleGetResponse']],
  ['auth/role/list', [`${AUTH}/RoleList`, 'Empty', 'RolesResponse']],
  ['auth/role/delete', [`${AUTH}/RoleDelete`, 'RoleRequest', 'HeaderOnly']],
  ['auth/role/grant', [`${AUTH}/RoleGrantPermission`, 'RoleGrantRequest', 'HeaderOnly']],
  ['auth/role/revoke', [`${AUTH}/RoleRevokePermission`, 'RoleRevokeRequest', 'HeaderOnly']],
  ['lock/lock', ['v3lockpb.Lock/Lock', 'LockRequest', 'LockResponse']],
  ['lock/unlock', ['v3lockpb.Lock/Unlock', 'UnlockRequest', 'HeaderOnly']],
  ['election/campaign', [`${ELECTION}/Campaign`, 'CampaignRequest', 'CampaignResponse']],
  ['election/proclaim', [`${ELECTION}/Proclaim`, 'ProclaimRequest', 'HeaderOnly']],
  ['election/leader', [`${ELECTION}/Leader`, 'LeaderRequest', 'LeaderResponse']],
  ['election/observe', [`${ELECTION}/Observe`, 'LeaderRequest', 'LeaderResponse', 'stream']],
  ['election/resign', [`${ELECTION}/Resign`, 'ResignRequest', 'HeaderOnly']],
]);

/** Source: grpc-gateway v1 runtime/errors.go. */
const HTTP_STATUS: Readonly<Record<number, number>> = {
  [RpcCode.cancelled]: 408,
  [RpcCode.invalidArgument]: 400,
  [RpcCode.deadlineExceeded]: 504,
  [RpcCode.notFound]: 404,
  [RpcCode.permissionDenied]: 403,
  [RpcCode.resourceExhausted]: 429,
  [RpcCode.failedPrecondition]: 412,
  [RpcCode.outOfRange]: 400,
  [RpcCode.unimplemented]: 501,
  [RpcCode.unavailable]: 503,
  [RpcCode.unauthenticated]: 401,
};

const JSON_TYPE = 'application/json';
const TEXT = 'text/plain; charset=utf-8';

/** Limits concurrent gateway calls. Further calls wait, as on a gRPC connection without free streams. */
class Places {
  #free: number;
  readonly #waiting = new Set<() => void>();

  constructor(most: number) {
    this.#free = most;
  }

  /** Resolves with a release function, or with undefined when the client disconnected while waiting. */
  take(request: Pick<HttpRequest, 'closed'>): Promise<(() => void) | undefined> {
    return new Promise((resolve) => {
      const enter = (): void => {
        this.#waiting.delete(enter);
        this.#free -= 1;
        let inside = true;
        resolve(() => {
          if (inside) this.#leave();
          inside = false;
        });
      };
      if (this.#free > 0) {
        enter();
        return;
      }
      this.#waiting.add(enter);
      request.closed(() => {
        if (this.#waiting.delete(enter)) resolve(undefined);
      });
    });
  }

  #leave(): void {
    this.#free += 1;
    const [next] = this.#waiting;
    next?.();
  }
}

/** Handles `/v3/…`. Returns undefined for other paths. `most`: maximum number of concurrent calls of all clients. */
export function gateway(
  client: LocalClient,
  log: Log,
  most = Number.POSITIVE_INFINITY,
): (request: HttpRequest) => Promise<HttpAnswer> | undefined {
  const places = new Places(most);
  return (request) => {
    const [, version, ...rest] = request.path.split('/');
    if (version !== 'v3' && version !== 'v3beta') return undefined;
    const route = ROUTES.get(rest.join('/'));
    if (route === undefined) return Promise.resolve({ status: 404, contentType: TEXT, body: 'Not Found\n' });
    if (request.method !== 'POST') {
      return Promise.resolve({ status: 405, contentType: TEXT, body: 'Method Not Allowed\n' });
    }
    return served(route, request, { client, log, places }).catch((error: unknown) => refusal(error, log));
  };
}

const GONE: HttpAnswer = { status: 499, contentType: TEXT, body: '' };

async function served(
  [method, requestName, answerName, stream]: Route,
  request: HttpRequest,
  { client, log, places }: { readonly client: LocalClient; readonly log: Log; readonly places: Places },
): Promise<HttpAnswer> {
  const message = messageFromJson(requestName, parsed(Buffer.from(await request.body()).toString()));
  const identity: CallIdentity = {
    metadata: (name) => (name === 'token' ? request.metadata('authorization') : undefined),
    peerCommonName: () => '',
  };
  const leave = await places.take(request);
  if (leave === undefined) return GONE;
  if (stream === undefined) {
    const json = messageToJson(answerName, await client.call(`/${method}`, message, identity).finally(leave));
    return { status: 200, contentType: JSON_TYPE, body: JSON.stringify(json) };
  }
  request.closed(leave);
  const follow = (out: HttpStream): void => {
    const line = (json: Json): boolean => out.write(`${JSON.stringify(json)}\n`);
    const local = client.stream(
      `/${method}`,
      {
        message: (bytes) => line({ result: messageToJson(answerName, bytes) }),
        ended: (failure) => {
          if (failure !== undefined) line({ error: streamError(failure, log) });
          out.end();
        },
      },
      identity,
    );
    out.closed(() => local.cancel());
    out.drained(() => local.drained());
    local.send(message);
    local.end();
  };
  return { status: 200, contentType: JSON_TYPE, body: '', follow };
}

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
/** `JSON.parse` with the reviver context of ECMAScript 2026. */
const parseJson = JSON.parse as (text: string, reviver: Reviver) => unknown;
/** Whole numbers with at most as many digits as a 64-bit integer. Longer numbers are out of range anyway. */
const WHOLE = /^-?\d{1,20}$/;

/** Keeps all digits of whole numbers, because 64-bit numbers may exceed the exact range of `number`. */
const exactly: Reviver = (_, value, { source }) =>
  typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && WHOLE.test(source)
    ? BigInt(source)
    : value;

function parsed(text: string): unknown {
  if (text.trim() === '') return {};
  try {
    return parseJson(text, exactly);
  } catch (error) {
    throw new WireError((error as Error).message);
  }
}

function refusal(error: unknown, log: Log): HttpAnswer {
  const { code, message } = statusOf(error, log);
  const body = JSON.stringify({ error: message, message, code });
  return { status: HTTP_STATUS[code] ?? 500, contentType: JSON_TYPE, body };
}

function streamError(error: RpcFailed, log: Log): Json {
  const { code, message } = statusOf(error, log);
  return { grpc_code: code, http_code: HTTP_STATUS[code] ?? 500, message };
}

function statusOf(error: unknown, log: Log): { readonly code: number; readonly message: string } {
  if (error instanceof WireError) return { code: RpcCode.invalidArgument, message: error.message };
  if (error instanceof CodedError && error.code === 'too-large') {
    return { code: RpcCode.resourceExhausted, message: error.message };
  }
  return failureOf(error, log);
}
