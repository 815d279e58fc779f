/**
 * Authorizes every call while auth is on. The checks are stricter than those of etcd 3.4, as in newer releases of etcd,
 * for transactions that return previous values or attach leases, open-ended watches, leases, alarms, member lists and
 * compactions (CVE-2023-28235, CVE-2026-33413, CVE-2026-44283, GHSA-xg4h-6gfc-h4m8). An unknown method requires the
 * role root. Locks and elections are not checked here; their key operations are. Source: etcd
 * server/etcdserver/apply/auth.go, v3rpc/maintenance.go, v3rpc/watch.go.
 */

import type { Log } from '../../base/log.ts';
import { type CallIdentity, RpcCode, type StreamCall, type StreamHandler } from '../../wire/grpc/port.ts';
import { firstNumbers } from '../../wire/protobuf/protobuf.ts';
import type { AuthMachine } from '../core/auth/machine.ts';
import type { Caller } from '../core/auth/types.ts';
import { decodeNamedRequest } from '../core/messages/auth.ts';
import {
  decodeDeleteRangeRequest,
  decodePutRequest,
  decodeRangeRequest,
  decodeTxnRequest,
  type PutRequest,
  type RequestOp,
  type TxnRequest,
} from '../core/messages/kv.ts';
import type { UnaryHandlers } from '../services/kv-service.ts';
import { failureOf } from '../services/rpc-errors.ts';
import type { Auth } from './auth.ts';

export interface AuthGuardDeps {
  readonly auth: Auth;
  readonly log: Log;
  /** Keys attached to a lease. Empty when the lease does not exist. */
  readonly leaseKeys: (id: bigint) => Iterable<string>;
}

type StreamHandlers = Readonly<Record<string, (call: StreamCall) => StreamHandler>>;
/** Throws AuthError when `caller` may not send `message`. */
type Check = (caller: Caller | undefined, message: Uint8Array) => void;

const ALARM_GET = 0;

export class AuthGuard {
  readonly #auth: Auth;
  readonly #machine: AuthMachine;
  readonly #log: Log;
  readonly #leaseKeys: (id: bigint) => Iterable<string>;
  readonly #checks: ReadonlyMap<string, Check>;

  constructor({ auth, log, leaseKeys }: AuthGuardDeps) {
    this.#auth = auth;
    this.#machine = auth.machine;
    this.#log = log;
    this.#leaseKeys = leaseKeys;
    this.#checks = new Map(Object.entries(this.#table()));
  }

  /** Throws AuthError when the caller of `call` lacks permission in the current auth state. */
  check(path: string, message: Uint8Array, call: CallIdentity): void {
    if (this.#machine.enabled) this.#checkOf(path)(this.#auth.caller(call), message);
  }

  /** Wraps `handlers` in the authorization check. */
  unary(handlers: UnaryHandlers): UnaryHandlers {
    const guarded = Object.entries(handlers).map(([path, handler]): [string, UnaryHandlers[string]] => {
      const check = this.#checkOf(path);
      return [
        path,
        (message, call) => {
          const answer = (): void => {
            if (this.#machine.enabled) {
              try {
                check(this.#auth.caller(call), message);
              } catch (error) {
                const failure = failureOf(error, this.#log);
                call.fail(failure.code, failure.message);
                return;
              }
            }
            handler(message, call);
          };
          const awaited = this.#auth.awaited(call);
          if (awaited === undefined) answer();
          else void awaited.then(answer);
        },
      ];
    });
    return Object.fromEntries(guarded);
  }

  /** Like `unary`. A stream is checked with its first message. Watches are checked individually, see `watchRefusal`. */
  streams(handlers: StreamHandlers): StreamHandlers {
    const guarded = Object.entries(handlers).map(([path, open]): [string, StreamHandlers[string]] => {
      const check = this.#checkOf(path);
      return [path, (call) => this.#guarded(call, open(call), check)];
    });
    return Object.fromEntries(guarded);
  }

  /** Reason why `call` may not watch the range, in etcd's text for the cancelled watch. Undefined when it may. */
  watchRefusal(call: StreamCall, key: string, end: string): string | undefined {
    if (!this.#machine.enabled) return undefined;
    try {
      this.read(this.#auth.caller(call), key, end);
      return undefined;
    } catch (error) {
      const { code, message } = failureOf(error, this.#log);
      return `rpc error: code = ${STATUS_NAMES[code] ?? 'Unknown'} desc = ${message}`;
    }
  }

  read(caller: Caller | undefined, key: string, end = ''): void {
    this.#machine.requireAccess(caller, 'read', key, end);
  }

  write(caller: Caller | undefined, key: string, end = ''): void {
    this.#machine.requireAccess(caller, 'write', key, end);
  }

  /**
   * Requires permission to all keys of a lease, because a client that attaches a key to a lease may also revoke the
   * lease, which deletes all its keys.
   */
  useLease(caller: Caller | undefined, id: bigint): void {
    this.#machine.requireUser(caller);
    for (const key of this.#leaseKeys(id)) this.write(caller, key);
  }

  #checkOf(path: string): Check {
    return this.#checks.get(path) ?? ((caller) => this.#machine.requireRoot(caller));
  }

  #guarded(call: StreamCall, inner: StreamHandler, check: Check): StreamHandler {
    let state: 'new' | 'passed' | 'refused' = 'new';
    const handler: StreamHandler = {
      message: (message) => {
        if (state === 'new') {
          try {
            if (this.#machine.enabled) check(this.#auth.caller(call), message);
            state = 'passed';
          } catch (error) {
            state = 'refused';
            const failure = failureOf(error, this.#log);
            call.end(failure.code, failure.message);
          }
        }
        if (state === 'passed') inner.message(message);
      },
      ended: () => {
        if (state !== 'refused') inner.ended();
      },
      closed: () => inner.closed(),
      drained: () => inner.drained(),
    };
    const awaited = this.#auth.awaited(call);
    return awaited === undefined ? handler : afterwards(call, handler, awaited);
  }

  #table(): Readonly<Record<string, Check>> {
    const open: Check = () => {};
    const user: Check = (caller) => this.#machine.requireUser(caller);
    return {
      '/etcdserverpb.KV/Range': (caller, message) => {
        const { key, end } = decodeRangeRequest(message);
        this.read(caller, key, end);
      },
      '/etcdserverpb.KV/Put': (caller, message) => this.#put(caller, decodePutRequest(message)),
      '/etcdserverpb.KV/DeleteRange': (caller, message) =>
        this.#operation(caller, { kind: 'delete', delete: decodeDeleteRangeRequest(message) }),
      '/etcdserverpb.KV/Txn': (caller, message) => this.#txn(caller, decodeTxnRequest(message)),
      '/etcdserverpb.Watch/Watch': open,
      '/etcdserverpb.Lease/LeaseGrant': user,
      '/etcdserverpb.Lease/LeaseKeepAlive': user,
      '/etcdserverpb.Lease/LeaseLeases': user,
      '/etcdserverpb.Lease/LeaseRevoke': (caller, message) => this.useLease(caller, firstNumbers(message)[0]),
      '/etcdserverpb.Lease/LeaseTimeToLive': (caller, message) => {
        const [id, withKeys] = firstNumbers(message);
        this.#machine.requireUser(caller);
        if (withKeys !== 0n) for (const key of this.#leaseKeys(id)) this.read(caller, key);
      },
      '/etcdserverpb.Cluster/MemberList': user,
      '/etcdserverpb.Maintenance/Status': open,
      '/etcdserverpb.Maintenance/Alarm': (caller, message) => {
        if (firstNumbers(message)[0] === BigInt(ALARM_GET)) this.#machine.requireUser(caller);
        else this.#machine.requireRoot(caller);
      },
      '/etcdserverpb.Auth/Authenticate': open,
      '/etcdserverpb.Auth/UserGet': (caller, message) => {
        if (caller === undefined || caller.user !== decodeNamedRequest(message).name) this.#machine.requireRoot(caller);
      },
      '/etcdserverpb.Auth/RoleGet': (caller, message) => {
        const own = caller === undefined ? undefined : this.#machine.user(caller.user);
        if (!own?.roles.includes(decodeNamedRequest(message).name)) this.#machine.requireRoot(caller);
      },
      '/grpc.health.v1.Health/Check': open,
      '/grpc.health.v1.Health/Watch': open,
    };
  }

  #put(caller: Caller | undefined, put: PutRequest): void {
    this.write(caller, put.key);
    if (put.lease !== 0n) this.useLease(caller, put.lease);
    if (put.prevKv) this.read(caller, put.key);
  }

  #txn(caller: Caller | undefined, txn: TxnRequest): void {
    this.#machine.requireUser(caller);
    for (const { key, end } of txn.compares) this.read(caller, key, end);
    for (const operation of txn.success) this.#operation(caller, operation);
    for (const operation of txn.failure) this.#operation(caller, operation);
  }

  #operation(caller: Caller | undefined, operation: RequestOp): void {
    if (operation.kind === 'range') this.read(caller, operation.range.key, operation.range.end);
    else if (operation.kind === 'put') this.#put(caller, operation.put);
    else if (operation.kind === 'txn') this.#txn(caller, operation.txn);
    else {
      const { key, end, prevKv } = operation.delete;
      this.write(caller, key, end);
      if (prevKv) this.read(caller, key, end);
    }
  }
}

/** Queues the calls of a handler until `awaited` has resolved, and then runs them in order. */
function afterwards(call: StreamCall, handler: StreamHandler, awaited: Promise<void>): StreamHandler {
  call.pause();
  let held: Array<() => void> | undefined = [];
  const run = (each: () => void): void => {
    if (held === undefined) each();
    else held.push(each);
  };
  void awaited.then(() => {
    const all = held ?? [];
    held = undefined;
    for (const each of all) each();
    call.resume();
  });
  return {
    message: (message) => run(() => handler.message(message)),
    ended: () => run(() => handler.ended()),
    closed: () => run(() => handler.closed()),
    drained: () => run(() => handler.drained()),
  };
}

/** Status names of gRPC for Go with which a watch can be rejected. */
const STATUS_NAMES: Partial<Record<RpcCode, string>> = {
  [RpcCode.invalidArgument]: 'InvalidArgument',
  [RpcCode.permissionDenied]: 'PermissionDenied',
  [RpcCode.unauthenticated]: 'Unauthenticated',
};
