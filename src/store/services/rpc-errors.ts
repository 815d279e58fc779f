/** Maps errors of the store to etcd's gRPC statuses. */
import { CodedError, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { RpcCode, type RpcMessage, type UnaryCall } from '../../wire/grpc/port.ts';
import { WireError } from '../../wire/protobuf/protobuf.ts';
import { AuthError, type AuthErrorCode } from '../core/auth/errors.ts';
import { MvccError, type MvccErrorCode } from '../core/mvcc/errors.ts';
import { RaftError } from '../core/raft/index.ts';

interface RpcFailure {
  readonly code: RpcCode;
  readonly message: string;
}

/** etcd's status and text for each rejection. Clients match on the text. Source: etcd api/v3rpc/rpctypes/error.go. */
const REFUSALS: Readonly<Record<MvccErrorCode, RpcFailure>> = {
  compacted: { code: RpcCode.outOfRange, message: 'etcdserver: mvcc: required revision has been compacted' },
  'future-revision': { code: RpcCode.outOfRange, message: 'etcdserver: mvcc: required revision is a future revision' },
  'empty-key': { code: RpcCode.invalidArgument, message: 'etcdserver: key is not provided' },
  'key-not-found': { code: RpcCode.invalidArgument, message: 'etcdserver: key not found' },
  'value-provided': { code: RpcCode.invalidArgument, message: 'etcdserver: value is provided' },
  'lease-provided': { code: RpcCode.invalidArgument, message: 'etcdserver: lease is provided' },
  'too-many-operations': { code: RpcCode.invalidArgument, message: 'etcdserver: too many operations in txn request' },
  'duplicate-key': { code: RpcCode.invalidArgument, message: 'etcdserver: duplicate key given in txn request' },
  'invalid-sort': { code: RpcCode.invalidArgument, message: 'etcdserver: invalid sort option' },
  'lease-not-found': { code: RpcCode.notFound, message: 'etcdserver: requested lease not found' },
  'lease-exists': { code: RpcCode.failedPrecondition, message: 'etcdserver: lease already exists' },
  'lease-ttl-too-large': { code: RpcCode.outOfRange, message: 'etcdserver: too large lease TTL' },
};

/** Like `REFUSALS`, for auth. Errors that rpctypes does not list have etcd's inner text and an unknown status. */
const AUTH_REFUSALS: Readonly<Record<AuthErrorCode, RpcFailure>> = {
  'root-user-missing': { code: RpcCode.failedPrecondition, message: 'etcdserver: root user does not exist' },
  'root-role-missing': { code: RpcCode.failedPrecondition, message: 'etcdserver: root user does not have root role' },
  'user-exists': { code: RpcCode.failedPrecondition, message: 'etcdserver: user name already exists' },
  'user-empty': { code: RpcCode.invalidArgument, message: 'etcdserver: user name is empty' },
  'user-not-found': { code: RpcCode.failedPrecondition, message: 'etcdserver: user name not found' },
  'role-exists': { code: RpcCode.failedPrecondition, message: 'etcdserver: role name already exists' },
  'role-empty': { code: RpcCode.invalidArgument, message: 'etcdserver: role name is empty' },
  'role-not-found': { code: RpcCode.failedPrecondition, message: 'etcdserver: role name not found' },
  'role-not-granted': { code: RpcCode.failedPrecondition, message: 'etcdserver: role is not granted to the user' },
  'permission-not-granted': {
    code: RpcCode.failedPrecondition,
    message: 'etcdserver: permission is not granted to the role',
  },
  'permission-not-given': { code: RpcCode.invalidArgument, message: 'etcdserver: permission not given' },
  'invalid-management': { code: RpcCode.invalidArgument, message: 'etcdserver: invalid auth management' },
  'permission-denied': { code: RpcCode.permissionDenied, message: 'etcdserver: permission denied' },
  'old-revision': { code: RpcCode.invalidArgument, message: 'etcdserver: revision of auth store is old' },
  'invalid-token': { code: RpcCode.unauthenticated, message: 'etcdserver: invalid auth token' },
  'authentication-failed': {
    code: RpcCode.invalidArgument,
    message: 'etcdserver: authentication failed, invalid user ID or password',
  },
  'password-for-no-password-user': {
    code: RpcCode.unknown,
    message: 'auth: authentication failed, password was given for no password user',
  },
  'not-enabled': { code: RpcCode.failedPrecondition, message: 'etcdserver: authentication is not enabled' },
  'verify-only': { code: RpcCode.unknown, message: 'auth: token signing attempted with verify-only key' },
};

/** Error with the gRPC status of a handler that another handler has called. */
export class RpcFailed extends Error {
  readonly code: RpcCode;
  constructor(code: RpcCode, message: string) {
    super(message);
    this.name = 'RpcFailed';
    this.code = code;
  }
}

export const REQUEST_TOO_LARGE: RpcFailure = {
  code: RpcCode.invalidArgument,
  message: 'etcdserver: request is too large',
};

const OPERATING: Readonly<Record<string, RpcFailure>> = {
  'request-too-large': REQUEST_TOO_LARGE,
  'no-space': { code: RpcCode.resourceExhausted, message: 'etcdserver: mvcc: database space exceeded' },
  'too-many-requests': { code: RpcCode.resourceExhausted, message: 'etcdserver: too many requests' },
  closed: { code: RpcCode.unavailable, message: 'etcdserver: server stopped' },
  'not-leader': { code: RpcCode.failedPrecondition, message: 'etcdserver: not leader' },
  'is-not-leader': { code: RpcCode.failedPrecondition, message: 'etcdserver: not leader' },
  'no-downgrade': { code: RpcCode.failedPrecondition, message: 'etcdserver: invalid downgrade target version' },
  'no-downgrade-job': { code: RpcCode.failedPrecondition, message: 'etcdserver: no inflight downgrade' },
  'no-leader': { code: RpcCode.unavailable, message: 'etcdserver: request timed out' },
  'timed-out': { code: RpcCode.unavailable, message: 'etcdserver: request timed out' },
  'leader-failed': {
    code: RpcCode.unavailable,
    message: 'etcdserver: request timed out, possibly due to previous leader failure',
  },
  corrupt: { code: RpcCode.dataLoss, message: 'etcdserver: corrupt cluster' },
  'member-not-found': { code: RpcCode.notFound, message: 'etcdserver: member not found' },
  'member-exists': { code: RpcCode.failedPrecondition, message: 'etcdserver: member ID already exist' },
  'peer-url-exists': { code: RpcCode.failedPrecondition, message: 'etcdserver: Peer URLs already exists' },
  'bad-peer-urls': { code: RpcCode.invalidArgument, message: 'etcdserver: given member URLs are invalid' },
  'too-few-started': {
    code: RpcCode.failedPrecondition,
    message: 'etcdserver: re-configuration failed due to not enough started members',
  },
  'unhealthy-cluster': { code: RpcCode.unavailable, message: 'etcdserver: unhealthy cluster' },
  'learner-not-ready': {
    code: RpcCode.failedPrecondition,
    message: 'etcdserver: can only promote a learner member which is in sync with leader',
  },
  'not-a-learner': {
    code: RpcCode.failedPrecondition,
    message: 'etcdserver: can only promote a learner member',
  },
  'too-many-learners': { code: RpcCode.failedPrecondition, message: 'etcdserver: too many learner members in cluster' },
  'bad-transferee': { code: RpcCode.failedPrecondition, message: 'etcdserver: bad leader transferee' },
};

/** Status of a rejection by raft, with etcd's text if it has one. */
function ofRaft(error: RaftError): RpcFailure {
  if (error.code === 'BadTarget') return OPERATING['bad-transferee'] as RpcFailure;
  if (error.code === 'NoLeader') return { code: RpcCode.unavailable, message: 'etcdserver: no leader' };
  if (error.code === 'ConfChangePending') return OPERATING['unhealthy-cluster'] as RpcFailure;
  return { code: RpcCode.failedPrecondition, message: `etcdserver: ${error.message}` };
}

/** The status for `error`. Unexpected errors are logged and reported as internal. */
export function failureOf(error: unknown, log: Log): RpcFailure {
  if (error instanceof MvccError) return REFUSALS[error.code];
  if (error instanceof AuthError) return AUTH_REFUSALS[error.code];
  if (error instanceof RpcFailed) return { code: error.code, message: error.message };
  if (error instanceof WireError)
    return { code: RpcCode.invalidArgument, message: `malformed request: ${error.message}` };
  if (error instanceof RaftError) return ofRaft(error);
  const known = error instanceof CodedError ? OPERATING[error.code] : undefined;
  if (known !== undefined) return known;
  log.error('request failed', { cause: error instanceof Error ? (error.stack ?? error.message) : String(error) });
  return { code: RpcCode.internal, message: messageOf(error) };
}

/** Runs a unary handler that returns a message or throws. */
export function answerUnary(call: UnaryCall, log: Log, work: () => Promise<RpcMessage> | RpcMessage): void {
  const fail = (error: unknown): void => {
    if (call.redirect !== undefined && error instanceof CodedError && error.code === 'not-leader') {
      call.redirect();
      return;
    }
    const { code, message } = failureOf(error, log);
    call.fail(code, message);
  };
  try {
    const result = work();
    if (!(result instanceof Promise)) call.reply(result);
    else result.then((message) => call.reply(message), fail);
  } catch (error) {
    fail(error);
  }
}
