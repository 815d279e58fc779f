/**
 * Handling of the metadata `hasleader`, with which clients request an error instead of waiting at a partitioned member
 * (clientv3.WithRequireLeader). Without a known leader, calls are rejected and streams end. Source: etcd
 * api/v3rpc/interceptor.go.
 */
import type { Clock, Timer } from '../../base/time/clock.ts';
import { type CallIdentity, RpcCode, type StreamCall, type StreamHandler } from '../../wire/grpc/port.ts';
import type { UnaryHandlers } from './kv-service.ts';
import type { StreamHandlers } from './local-client.ts';

export interface RequireLeaderDeps {
  readonly clock: Clock;
  readonly hasLeader: () => boolean;
  readonly electionMs: () => number;
}

/** Election timeouts without a leader after which streams end. */
const PATIENCE = 3;
const NO_LEADER = 'etcdserver: no leader';

export class RequireLeader {
  readonly #deps: RequireLeaderDeps;
  readonly #streams = new Set<StreamCall>();
  #timer: Timer | undefined;

  constructor(deps: RequireLeaderDeps) {
    this.#deps = deps;
  }

  unary(handlers: UnaryHandlers): UnaryHandlers {
    const guarded = Object.entries(handlers).map(([path, handler]): [string, UnaryHandlers[string]] => [
      path,
      (message, call) => {
        if (requiresLeader(call) && !this.#deps.hasLeader()) call.fail(RpcCode.unavailable, NO_LEADER);
        else handler(message, call);
      },
    ]);
    return Object.fromEntries(guarded);
  }

  streams(handlers: StreamHandlers): StreamHandlers {
    const guarded = Object.entries(handlers).map(([path, open]): [string, StreamHandlers[string]] => [
      path,
      (call) => (requiresLeader(call) ? this.#open(call, open) : open(call)),
    ]);
    return Object.fromEntries(guarded);
  }

  #open(call: StreamCall, open: StreamHandlers[string]): StreamHandler {
    if (!this.#deps.hasLeader()) {
      call.end(RpcCode.unavailable, NO_LEADER);
      return { message: () => {}, ended: () => {}, closed: () => {}, drained: () => {} };
    }
    const inner = open(call);
    this.#streams.add(call);
    return {
      message: (message) => inner.message(message),
      ended: () => inner.ended(),
      drained: () => inner.drained(),
      closed: () => {
        this.#streams.delete(call);
        inner.closed();
      },
    };
  }

  /** Call when leadership may have changed. */
  leaderChanged(): void {
    const { clock, hasLeader, electionMs } = this.#deps;
    if (hasLeader()) {
      this.stop();
      return;
    }
    this.#timer ??= clock.setTimer(PATIENCE * electionMs(), () => {
      this.#timer = undefined;
      for (const call of [...this.#streams]) call.end(RpcCode.unavailable, NO_LEADER);
    });
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }
}

function requiresLeader(call: CallIdentity): boolean {
  return call.metadata('hasleader') === 'true';
}
