/**
 * Routes requests that only the leader can serve. A follower forwards the RPC unchanged, without decoding it. The
 * response is delayed until this member has applied the index at which the leader responded, so that clients can read
 * their own writes here.
 */

import { CodedError } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { Clock } from '../../../base/time/clock.ts';
import { type CallIdentity, RpcCode, type RpcMessage, type UnaryCall, wholeMessage } from '../../../wire/grpc/port.ts';
import { Reader, WireError } from '../../../wire/protobuf/protobuf.ts';
import { txnWrites } from '../../core/messages/kv.ts';
import type { Encoder } from '../../services/encode.ts';
import type { UnaryHandlers } from '../../services/kv-service.ts';
import { failureOf } from '../../services/rpc-errors.ts';
import type { Engine } from '../engine.ts';
import { ALARM_CORRUPT } from '../maintenance/alarms.ts';
import type { Replica } from '../replica.ts';
import { type Command, decodeCommand, encodeCommand } from './entry-codec.ts';
import type { Forward, Forwarded } from './peer-protocol.ts';
import type { Peers } from './peers.ts';

/** Role of this member, and the requests that it serves as the leader. */
type RoutedEngine = Pick<
  Engine,
  | 'appliedWithin'
  | 'cluster'
  | 'command'
  | 'leadership'
  | 'leads'
  | 'leadsFrom'
  | 'permissionsSettled'
  | 'remoteLeader'
  | 'requestTimeoutMs'
  | 'stopped'
> & { readonly replica: Pick<Replica, 'applied' | 'leader'> };

export interface RouterDeps {
  readonly engine: RoutedEngine;
  readonly encoder: Encoder;
  readonly clock: Clock;
  readonly log: Log;
  /** Undefined when this member has no peers. */
  readonly peers: () => Pick<Peers, 'forward'> | undefined;
  readonly authRevision: () => number;
  /** Called when a forwarded write failed or timed out. */
  readonly failed: () => void;
}

type Handler = UnaryHandlers[string];
/** Throws AuthError when the caller of `call` lacks permission. */
type CheckCall = (path: string, message: Uint8Array, call: CallIdentity) => void;

/** Auth revision at which a call was authorized, and a function that authorizes it again. */
interface Access {
  revision: number;
  again(): void;
}

/** Request that was forwarded to a leader and is in progress. */
interface UnderWay {
  readonly leader: string;
  abort(error: Error): void;
}

/** Metadata that is forwarded to the leader. */
const PASSED_ON = ['hyperedge-durability'] as const;
const COMMAND = 'command';
/**
 * Pause before a request that the known leader did not accept is repeated. This member is not notified when the leader
 * becomes able to accept it.
 */
const REPEAT_MS = 50;
/** Time in which a replaced leader detects the replacement and responds. */
const ANSWER_MS = 300;
/** Calls that this member answers itself after a linearizable check. */
const READS: ReadonlySet<string> = new Set([
  ...['Range', 'Txn'].map((name) => `/etcdserverpb.KV/${name}`),
  ...['UserGet', 'UserList', 'RoleGet', 'RoleList', 'AuthStatus'].map((name) => `/etcdserverpb.Auth/${name}`),
  ...['LeaseTimeToLive', 'LeaseLeases'].map((name) => `/etcdserverpb.Lease/${name}`),
  '/etcdserverpb.Cluster/MemberList',
]);
const TXN = '/etcdserverpb.KV/Txn';
/** Calls that only the leader can serve, besides transactions that write. */
const LEADER_CALLS: ReadonlySet<string> = new Set([
  ...['Put', 'DeleteRange', 'Compact'].map((name) => `/etcdserverpb.KV/${name}`),
  ...['LeaseGrant', 'LeaseRevoke', 'LeaseTimeToLive'].map((name) => `/etcdserverpb.Lease/${name}`),
]);
/** Calls served while the CORRUPT alarm is raised; all others are rejected. */
const SERVED_WHILE_CORRUPT = [
  '/etcdserverpb.Maintenance/',
  '/etcdserverpb.Cluster/',
  '/etcdserverpb.Auth/Authenticate',
];

export class Router {
  readonly #deps: RouterDeps;
  /** Handlers for forwarded requests, which the forwarding member has authorized. */
  #unchecked: ReadonlyMap<string, Handler> = new Map();
  readonly #underWay = new Set<UnderWay>();

  constructor(deps: RouterDeps) {
    this.#deps = deps;
  }

  servePeers(handlers: UnaryHandlers): void {
    this.#unchecked = new Map(Object.entries(handlers));
  }

  /**
   * The same handlers, each routed to the leader if necessary. `check`: the authorization that `handlers` require. The
   * authorization is repeated when auth has changed in the meantime, because this member may apply a change later than
   * other members acknowledge it. Source: etcd v3_server.go, doSerialize.
   */
  unary(handlers: UnaryHandlers, check?: CheckCall): UnaryHandlers {
    const { engine, authRevision } = this.#deps;
    const routed = Object.entries(handlers).map(([path, handler]): [string, Handler] => {
      const always = SERVED_WHILE_CORRUPT.some((prefix) => path.startsWith(prefix));
      return [
        path,
        (message, call) => {
          if (!always && engine.cluster.alarms.length > 0 && this.#corrupt(call)) return;
          const access =
            check === undefined ? undefined : { revision: authRevision(), again: () => check(path, message, call) };
          const redirect = (): void => void this.#redirect(path, handler, message, call, access);
          handler(message, new RoutedCall(call, redirect, () => this.#mayReply(path, message, call, access)));
        },
      ];
    });
    return Object.fromEntries(routed);
  }

  /**
   * The same handlers, except that a follower with a known leader redirects the calls that need the leader, instead of
   * decoding and evaluating them.
   */
  forwarding(handlers: UnaryHandlers): UnaryHandlers {
    const { engine } = this.#deps;
    const forwarded = Object.entries(handlers).map(([path, handler]): [string, Handler] => {
      if (path !== TXN && !LEADER_CALLS.has(path)) return [path, handler];
      return [
        path,
        (message, call) => {
          if (call.redirect !== undefined && engine.remoteLeader !== undefined && needsLeader(path, message))
            call.redirect();
          else handler(message, call);
        },
      ];
    });
    return Object.fromEntries(forwarded);
  }

  /** Repeats the authorization of a read before the response. The leader has authorized writes. */
  #mayReply(path: string, message: Uint8Array, call: UnaryCall, access: Access | undefined): boolean {
    if (access === undefined || access.revision === this.#deps.authRevision() || !READS.has(path)) return true;
    if (path === TXN && txnWrites(message)) return true;
    try {
      access.again();
      return true;
    } catch (error) {
      const { code, message: text } = failureOf(error, this.#deps.log);
      call.fail(code, text);
      return false;
    }
  }

  #corrupt(call: UnaryCall): boolean {
    if (!this.#deps.engine.cluster.alarms.some(({ alarm }) => alarm === ALARM_CORRUPT)) return false;
    const { code, message } = failureOf(new CodedError('corrupt', ''), this.#deps.log);
    call.fail(code, message);
    return true;
  }

  /** Replicates a command through the leader. Throws CodedError 'timed-out', 'leader-failed'. */
  async command(command: Command): Promise<void> {
    const { engine } = this.#deps;
    const outcome = await this.#reach(COMMAND, encodeCommand(command), new Map(), async () => {
      await engine.command(command);
      return DONE;
    });
    if (outcome.code !== RpcCode.ok) throw new CodedError('refused', outcome.text);
  }

  /** Response of the leader to `message`, with this member's response header. Throws CodedError. */
  async callLeader(path: string, message: Uint8Array, here: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const outcome = await this.#reach(path, message, new Map(), async () => ({ ...DONE, body: await here() }));
    if (outcome.code !== RpcCode.ok) throw new CodedError('refused', outcome.text);
    return outcome.index > 0 ? this.#reheaded(outcome.body) : outcome.body;
  }

  async #redirect(
    path: string,
    handler: Handler,
    message: Uint8Array,
    call: UnaryCall,
    access: Access | undefined,
  ): Promise<void> {
    const metadata = new Map<string, string>();
    for (const name of PASSED_ON) {
      const value = call.metadata(name);
      if (value !== undefined) metadata.set(name, value);
    }
    // A cancelled request that still waits for a leader must not be executed later.
    let given = false;
    let cancel = (): void => {};
    call.whenCancelled(() => {
      given = true;
      cancel();
    });
    const caller = {
      metadata: (name: string) => call.metadata(name),
      peerCommonName: () => call.peerCommonName(),
      whenCancelled: (listener: () => void) => {
        cancel = listener;
      },
    };
    const here = (): Promise<Forwarded> => collected(handler, message, caller);
    try {
      const outcome = await this.#reach(path, message, metadata, here, () => given, access);
      if (outcome.code !== RpcCode.ok) call.fail(outcome.code as RpcCode, outcome.text);
      else call.reply(outcome.index > 0 ? this.#reheaded(outcome.body) : outcome.body);
    } catch (error) {
      const { code, message: text } = failureOf(error, this.#deps.log);
      call.fail(code, text);
    }
  }

  /** Executes the request here or on the leader as soon as a leader is known. No request is executed twice. */
  async #reach(
    path: string,
    message: Uint8Array,
    metadata: ReadonlyMap<string, string>,
    here: () => Promise<Forwarded>,
    givenUp: () => boolean = () => false,
    access?: Access,
  ): Promise<Forwarded> {
    const { engine, clock, peers, authRevision } = this.#deps;
    const deadline = clock.monotonicMs() + engine.requestTimeoutMs;
    for (;;) {
      const left = deadline - clock.monotonicMs();
      if (left <= 0 || givenUp()) {
        this.#deps.failed();
        throw new CodedError('timed-out', 'no leader was elected in time');
      }
      const { changes } = engine.leadership;
      // Without a leader, only a change of leadership can help.
      let pauseMs = left;
      const leader = engine.remoteLeader;
      if (engine.leads) {
        pauseMs = REPEAT_MS;
        try {
          const outcome = await here();
          if (!outcome.redirect) return outcome;
        } catch (error) {
          if (!(error instanceof CodedError && error.code === 'not-leader')) throw error;
        }
      } else if (leader !== undefined) {
        pauseMs = REPEAT_MS;
        const revision = authRevision();
        // The leader trusts the authorization of the forwarding member.
        if (access !== undefined && access.revision !== revision) access.again();
        if (access !== undefined) access.revision = revision;
        const request = { path, message, metadata, authRevision: revision };
        const outcome = await this.#forward(peers(), leader, request, left);
        if (!outcome.redirect) {
          if (outcome.index > 0) await this.#applied(outcome.index, deadline);
          return outcome;
        }
      }
      await engine.leadership.changeSince(changes, Math.min(pauseMs, left));
    }
  }

  /**
   * Waits until this member has applied `index`, at which the leader responded, or is stopping. Throws CodedError
   * 'timed-out' after the deadline, for example if this member has lost its connection to the leader.
   */
  async #applied(index: number, deadlineMs: number): Promise<void> {
    const { engine, clock, failed } = this.#deps;
    await engine.appliedWithin(index, Math.max(1, deadlineMs - clock.monotonicMs()));
    if (engine.replica.applied >= index || engine.stopped) return;
    failed();
    throw new CodedError('timed-out', 'this member did not apply the response of the leader in time');
  }

  async #forward(
    peers: Pick<Peers, 'forward'> | undefined,
    leader: string,
    request: Forward,
    leftMs: number,
  ): Promise<Forwarded> {
    if (peers === undefined) throw new CodedError('timed-out', 'the leader is not connected');
    const replaced = Promise.withResolvers<never>();
    const underWay: UnderWay = { leader, abort: replaced.reject };
    this.#underWay.add(underWay);
    try {
      return await Promise.race([peers.forward(leader, request, leftMs), replaced.promise]);
    } catch (error) {
      this.#deps.failed();
      if (!(error instanceof CodedError && error.code === 'peer-unreachable')) throw error;
      throw new CodedError('leader-failed', error.message, { cause: error });
    } finally {
      this.#underWay.delete(underWay);
    }
  }

  /**
   * Aborts requests at a former leader after a delay. A replaced leader responds to received requests once the next
   * leader has decided them, but a stalled leader does not respond.
   */
  leaderChanged(): void {
    const { engine, clock } = this.#deps;
    const { leader } = engine.replica;
    if (leader === undefined) return;
    const left = [...this.#underWay].filter((each) => each.leader !== leader);
    if (left.length === 0) return;
    clock.setTimer(ANSWER_MS, () => {
      for (const each of left)
        each.abort(new CodedError('leader-failed', `${each.leader} was replaced before it answered`));
    });
  }

  /** Serves a request forwarded by another member. */
  async forwarded({ path, message, metadata, authRevision }: Forward): Promise<Forwarded> {
    const { engine } = this.#deps;
    // An elected leader is ready when it has applied the entries of earlier terms.
    if (engine.leadsFrom > 0 && !engine.leads) await engine.leadership.change(engine.requestTimeoutMs);
    if (engine.permissionsSettled !== undefined) await engine.permissionsSettled;
    if (!engine.leads || authRevision !== this.#deps.authRevision()) return REDIRECTED;
    if (path === COMMAND) return this.#forwardedCommand(message);
    const handler = this.#unchecked.get(path);
    if (handler === undefined) return { ...DONE, code: RpcCode.unimplemented, text: `unknown method ${path}` };
    const outcome = await collected(handler, message, {
      metadata: (name) => metadata.get(name),
      peerCommonName: () => '',
      // The forwarding member reports a cancellation to its client. The wait here ends by timeout.
      whenCancelled: () => {},
    });
    return outcome.redirect ? outcome : { ...outcome, index: engine.replica.applied };
  }

  async #forwardedCommand(message: Uint8Array): Promise<Forwarded> {
    const { engine } = this.#deps;
    try {
      await engine.command(decodeCommand(message.subarray(1)));
      return { ...DONE, index: engine.replica.applied };
    } catch (error) {
      if (error instanceof CodedError && error.code === 'not-leader') return REDIRECTED;
      const { code, message: text } = failureOf(error, this.#deps.log);
      return { ...DONE, code, text };
    }
  }

  /** Replaces the leader's response header with the header of this member, and keeps the revision. */
  #reheaded(body: Uint8Array): Uint8Array {
    const reader = new Reader(body);
    if (reader.field() !== 1) return body;
    const header = new Reader(reader.bytes());
    let revision = 0;
    for (let field = header.field(); field !== 0; field = header.field()) {
      if (field === 3) revision = header.int();
      else header.skip();
    }
    return this.#deps.encoder.begin(revision).raw(body.subarray(reader.position)).finish();
  }
}

const DONE: Forwarded = { redirect: false, code: RpcCode.ok, text: '', body: new Uint8Array(), index: 0 };
const REDIRECTED: Forwarded = { ...DONE, redirect: true };

/** Whether only the leader can serve a call. A malformed transaction is rejected by the handler of this member. */
function needsLeader(path: string, message: Uint8Array): boolean {
  if (path !== TXN) return true;
  try {
    return txnWrites(message);
  } catch (error) {
    if (error instanceof WireError) return false;
    throw error;
  }
}

class RoutedCall implements UnaryCall {
  readonly #call: UnaryCall;
  readonly #mayReply: () => boolean;
  readonly redirect: () => void;

  constructor(call: UnaryCall, redirect: () => void, mayReply: () => boolean) {
    this.#call = call;
    this.#mayReply = mayReply;
    this.redirect = redirect;
  }

  metadata(name: string): string | undefined {
    return this.#call.metadata(name);
  }

  peerCommonName(): string {
    return this.#call.peerCommonName();
  }

  reply(message: RpcMessage): void {
    if (this.#mayReply()) this.#call.reply(message);
  }

  fail(code: RpcCode, message: string): void {
    this.#call.fail(code, message);
  }

  whenCancelled(listener: () => void): void {
    this.#call.whenCancelled(listener);
  }
}

/** Runs a unary handler and resolves with its outcome. */
function collected(
  handler: Handler,
  message: Uint8Array,
  identity: Pick<UnaryCall, 'metadata' | 'peerCommonName' | 'whenCancelled'>,
): Promise<Forwarded> {
  return new Promise((resolve) => {
    handler(message, {
      metadata: (name) => identity.metadata(name),
      peerCommonName: () => identity.peerCommonName(),
      reply: (body) => resolve({ ...DONE, body: wholeMessage(body) }),
      fail: (code, text) => resolve({ ...DONE, code, text }),
      redirect: () => resolve(REDIRECTED),
      whenCancelled: (listener) => identity.whenCancelled(listener),
    });
  });
}
