import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { StreamCall, StreamHandler } from '../../wire/grpc/port.ts';
import { firstNumbers } from '../../wire/protobuf/protobuf.ts';
import { MvccError } from '../core/mvcc/errors.ts';
import type { Lease } from '../core/mvcc/leases.ts';
import type { Engine } from '../replication/engine.ts';
import type { LeaseUpdates } from '../replication/peers/peer-protocol.ts';
import type { Encoder } from './encode.ts';
import { KeepAliveStream } from './keep-alive-stream.ts';
import type { UnaryHandlers } from './kv-service.ts';
import type { LeaseQuorum } from './lease-quorum.ts';
import { answerUnary } from './rpc-errors.ts';

/** Counters for metrics. */
export interface LeaseCounts {
  readonly granted: number;
  readonly renewed: number;
  readonly revoked: number;
  readonly expired: number;
}

export interface LeaseServiceDeps {
  readonly engine: Engine;
  readonly encoder: Encoder;
  readonly clock: Clock;
  readonly log: Log;
  /** A random positive 63-bit number. */
  readonly newLeaseId: () => bigint;
  /** Lets the leader handle one request of a stream. */
  readonly callLeader: (path: string, message: Uint8Array, here: () => Promise<Uint8Array>) => Promise<Uint8Array>;
  readonly quorum: LeaseQuorum;
  /** Interval of lease checkpoints. Only leases with a longer TTL than this are checkpointed. */
  readonly checkpointMs: number;
  /** Sends remaining times of leases to the other members. */
  readonly send: (updates: LeaseUpdates) => void;
}

const RETRY_MS = 1000;
const SYNC_MS = 5000;
/** Maximum number of leases in one log entry. Source: etcd lease/lessor.go, maxLeaseCheckpointBatchSize. */
const CHECKPOINT_BATCH = 1000;
const KEEP_ALIVE = '/etcdserverpb.Lease/LeaseKeepAlive';

/** `etcdserverpb.Lease`, and the expiry of leases. */
export class LeaseService {
  readonly #deps: LeaseServiceDeps;
  #timer: Timer | undefined;
  #syncTimer: Timer | undefined;
  #checkpointTimer: Timer | undefined;
  /** Whether this member leads and has received every renewal that previous leaders acknowledged. */
  #informed = false;
  #stopped = false;
  readonly #counts = { granted: 0, renewed: 0, revoked: 0, expired: 0 };

  constructor(deps: LeaseServiceDeps) {
    this.#deps = deps;
  }

  /** Starts expiring leases whenever this member leads. */
  start(): void {
    this.#arm();
    this.#armSync();
    this.#armCheckpoint();
  }

  /** Call when leadership was gained or lost. */
  leadershipChanged(): void {
    const { engine } = this.#deps;
    this.#informed = engine.leads && engine.replica.alone;
    if (engine.leads && !this.#informed) void this.#learn();
    this.#arm();
  }

  async #learn(): Promise<void> {
    const { term } = this.#deps.engine.replica;
    if (!(await this.#deps.quorum.learn()) || this.#deps.engine.replica.term !== term) return;
    this.#informed = true;
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#syncTimer?.cancel();
    this.#checkpointTimer?.cancel();
  }

  /** Applies remaining times sent by the leader. */
  applyRemaining(updates: LeaseUpdates): void {
    const { engine, clock } = this.#deps;
    if (engine.leads) return;
    const now = clock.monotonicMs();
    for (const { id, remainingMs } of updates) engine.machine.leases.setRemaining(id, remainingMs, now);
  }

  /** Response of the leader to one keep-alive. */
  async renew(message: Uint8Array): Promise<Uint8Array> {
    const { engine, encoder, clock } = this.#deps;
    engine.requireLeader();
    const [id] = firstNumbers(message);
    const ttl = renewed(engine.machine.leases, id, clock.monotonicMs());
    if (ttl > 0) this.#counts.renewed += 1;
    if (ttl > 0) {
      const lease = engine.machine.leases.get(id);
      // The renewed time replaces the checkpoint. Otherwise, a restart of all members would restore the older, lower
      // time.
      if (lease?.checkpoint !== undefined)
        await engine.command({ type: 'checkpoint', leases: [{ id, remainingSeconds: ttl }] });
      await this.#deps.quorum.renewed(id);
      engine.requireLeader();
    }
    return encoder.begin(engine.machine.visible).big(2, id).int(3, ttl).finish();
  }

  /** Periodically corrects members that missed an update, or restarted with full TTLs. */
  #armSync(): void {
    if (this.#stopped) return;
    this.#syncTimer?.cancel();
    this.#syncTimer = this.#deps.clock.setTimer(SYNC_MS, () => {
      this.#armSync();
      const { engine, send, quorum } = this.#deps;
      if (engine.leads && this.#informed && engine.machine.leases.size > 0) send(quorum.remaining());
    });
  }

  #armCheckpoint(): void {
    if (this.#stopped) return;
    this.#checkpointTimer = this.#deps.clock.setTimer(this.#deps.checkpointMs, () => {
      void this.#checkpoint().finally(() => this.#armCheckpoint());
    });
  }

  /** Writes checkpoints. Without them a restart of all members would reset long leases to their full TTL. */
  async #checkpoint(): Promise<void> {
    const { engine, log, checkpointMs } = this.#deps;
    const long = [...engine.machine.leases.all()].filter(({ ttlSeconds }) => ttlSeconds * 1000 > checkpointMs);
    // A leader that may lack acknowledged renewals writes none, because a checkpoint limits the remaining time.
    for (let at = 0; at < long.length && engine.leads && this.#informed && !this.#stopped; at += CHECKPOINT_BATCH) {
      const leases = this.#remainingOf(long.slice(at, at + CHECKPOINT_BATCH));
      if (leases.length === 0) continue;
      try {
        await engine.command({ type: 'checkpoint', leases });
      } catch (error) {
        log.v(2, 'lease checkpoint failed; retrying', { cause: messageOf(error) });
        return;
      }
    }
  }

  #remainingOf(leases: readonly Lease[]): Array<{ id: bigint; remainingSeconds: number }> {
    const { engine, clock } = this.#deps;
    const now = clock.monotonicMs();
    const remaining: Array<{ id: bigint; remainingSeconds: number }> = [];
    for (const lease of leases) {
      const remainingSeconds = Math.ceil((lease.expiresAtMs - now) / 1000);
      // A lease may have been revoked while an earlier batch was written.
      if (remainingSeconds <= 0 || engine.machine.leases.get(lease.id) !== lease) continue;
      remaining.push({ id: lease.id, remainingSeconds });
      // A renewal from here on requires a newer checkpoint.
      lease.checkpoint = remainingSeconds;
    }
    return remaining;
  }

  get counts(): LeaseCounts {
    return this.#counts;
  }

  get unary(): UnaryHandlers {
    const { engine, encoder, clock, log } = this.#deps;
    const { machine } = engine;
    return {
      '/etcdserverpb.Lease/LeaseGrant': (message, call) =>
        answerUnary(call, log, async () => {
          const [ttl, id] = firstNumbers(message);
          const lease = await engine.grantLease(id === 0n ? this.#unusedId() : id, Number(ttl));
          this.#counts.granted += 1;
          this.#arm();
          return encoder.begin(machine.visible).big(2, lease.id).int(3, lease.ttlSeconds).finish();
        }),
      '/etcdserverpb.Lease/LeaseRevoke': (message, call) =>
        answerUnary(call, log, async () => {
          await engine.revokeLease(firstNumbers(message)[0]);
          this.#counts.revoked += 1;
          this.#arm();
          return encoder.begin(machine.visible).finish();
        }),
      '/etcdserverpb.Lease/LeaseTimeToLive': (message, call) =>
        answerUnary(call, log, () => {
          const [id, withKeys] = firstNumbers(message);
          engine.requireLeader();
          const lease = machine.leases.get(id);
          const out = encoder.begin(machine.visible).big(2, id);
          if (lease === undefined) return out.int(3, -1).finish();
          const left = Math.max(0, Math.floor((lease.expiresAtMs - clock.monotonicMs()) / 1000));
          out.int(3, left).int(4, lease.ttlSeconds);
          if (withKeys !== 0n) for (const key of [...lease.keys].sort()) out.message(5, Buffer.from(key, 'latin1'));
          return out.finish();
        }),
      '/etcdserverpb.Lease/LeaseLeases': (_message, call) =>
        answerUnary(call, log, () => {
          const out = encoder.begin(machine.visible);
          for (const id of machine.leases.ids()) {
            const mark = out.begin(2);
            out.big(1, id).end(mark);
          }
          return out.finish();
        }),
    };
  }

  /** Handlers for forwarded requests besides unary calls: single requests of keep-alive streams. */
  get peerHandlers(): UnaryHandlers {
    return { [KEEP_ALIVE]: (message, call) => answerUnary(call, this.#deps.log, () => this.renew(message)) };
  }

  /** `LeaseKeepAlive`. The TTL of an expired lease is 0. */
  readonly keepAlive = (call: StreamCall): StreamHandler => {
    const { callLeader, log } = this.#deps;
    return new KeepAliveStream(call, (message) => callLeader(KEEP_ALIVE, message, () => this.renew(message)), log);
  };

  #unusedId(): bigint {
    for (;;) {
      const id = this.#deps.newLeaseId();
      if (id > 0n && this.#deps.engine.machine.leases.get(id) === undefined) return id;
    }
  }

  /** Sets the timer to the next expiry. Keep-alives only postpone expiries, so they do not reset the timer. */
  #arm(delayMs?: number): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#stopped || !this.#deps.engine.leads || !this.#informed) return;
    const next = this.#deps.engine.machine.leases.nextExpiryMs();
    if (next === undefined) return;
    const wait = delayMs ?? Math.max(0, next - this.#deps.clock.monotonicMs());
    this.#timer = this.#deps.clock.setTimer(Math.min(Math.ceil(wait), 0x7fff_ffff), () => void this.#expire());
  }

  async #expire(): Promise<void> {
    const { engine, clock, log } = this.#deps;
    let retry: number | undefined;
    if (!engine.leads || !this.#informed) return;
    try {
      const expired = engine.machine.leases.expired(clock.monotonicMs());
      await Promise.all(expired.map((lease) => engine.revokeLease(lease.id)));
      this.#counts.expired += expired.length;
    } catch (error) {
      retry = RETRY_MS;
      if (!this.#stopped && engine.leads) log.warn('lease expiry failed; retrying', { cause: messageOf(error) });
    }
    this.#arm(retry);
  }
}

function renewed(leases: Engine['machine']['leases'], id: bigint, nowMs: number): number {
  try {
    return leases.renew(id, nowMs).ttlSeconds;
  } catch (error) {
    if (error instanceof MvccError && error.code === 'lease-not-found') return 0;
    throw error;
  }
}
