import { createHash } from 'node:crypto';
import { CodedError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Histogram } from '../../base/metrics/histogram.ts';
import type { Clock } from '../../base/time/clock.ts';
import { RpcCode, type StreamCall, type StreamHandler } from '../../wire/grpc/port.ts';
import { firstNumbers } from '../../wire/protobuf/protobuf.ts';
import type { StoreLog } from '../disk/port.ts';
import { hex } from '../membership/cluster.ts';
import type { Engine } from '../replication/engine.ts';
import type { Command } from '../replication/peers/entry-codec.ts';
import type { Encoder } from './encode.ts';
import type { UnaryHandlers } from './kv-service.ts';
import type { EtcdMetrics } from './metrics/metrics.ts';
import { answerUnary, failureOf } from './rpc-errors.ts';
import { ETCD_VERSION } from './version.ts';

export interface MaintenanceDeps {
  readonly engine: Engine;
  readonly encoder: Encoder;
  readonly storage: StoreLog;
  readonly metrics: EtcdMetrics;
  readonly clock: Clock;
  readonly log: Log;
  /** Replicates a command through the leader. */
  readonly command: (command: Command) => Promise<void>;
}

/**
 * Checksum of etcd's bucket names, which etcd's `Hash` includes. The hash of an empty store is therefore not 0, which
 * JSON would omit.
 */
const NAMES = 0x2ad1a2b6;

/** Time after which a client that does not read its snapshot loses it, because the copy occupies the disk. */
const STALL_MS = 120_000;

const AlarmAction = { get: 0, activate: 1, deactivate: 2 } as const;
/** Number of election timeouts after which a transfer counts as failed. */
const TRANSFER_ELECTIONS = 2;

/** `etcdserverpb.Maintenance`. */
export class MaintenanceService {
  readonly #engine: Engine;
  readonly #encoder: Encoder;
  readonly #storage: StoreLog;
  readonly #metrics: EtcdMetrics;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #command: (command: Command) => Promise<void>;

  constructor({ engine, encoder, storage, metrics, clock, log, command }: MaintenanceDeps) {
    this.#engine = engine;
    this.#encoder = encoder;
    this.#storage = storage;
    this.#metrics = metrics;
    this.#clock = clock;
    this.#log = log;
    this.#command = command;
  }

  get unary(): UnaryHandlers {
    const { machine } = this.#engine;
    const encoder = this.#encoder;
    const log = this.#log;
    return {
      '/etcdserverpb.Maintenance/Status': (_message, call) => answerUnary(call, log, () => this.#status()),
      '/etcdserverpb.Maintenance/Alarm': (message, call) => answerUnary(call, log, () => this.#alarm(message)),
      '/etcdserverpb.Maintenance/MoveLeader': (message, call) =>
        answerUnary(call, log, () => this.#moveLeader(message)),
      '/etcdserverpb.Maintenance/Downgrade': (message, call) => answerUnary(call, log, () => this.#downgrade(message)),
      '/etcdserverpb.Maintenance/Defragment': (_message, call) =>
        answerUnary(call, log, async () => {
          this.#metrics.defragsUnderWay += 1;
          try {
            await this.#timed(this.#metrics.defragSeconds, () => this.#storage.defragment());
          } finally {
            this.#metrics.defragsUnderWay -= 1;
          }
          return encoder.begin(machine.visible).finish();
        }),
      '/etcdserverpb.Maintenance/Hash': (_message, call) =>
        answerUnary(call, log, async () => {
          const hash = await this.#timed(this.#metrics.hashSeconds, () => this.#storage.hash(machine.visible));
          return encoder
            .begin(machine.visible)
            .int(2, (hash ^ NAMES) >>> 0)
            .finish();
        }),
      '/etcdserverpb.Maintenance/HashKV': (message, call) =>
        answerUnary(call, log, async () => {
          const { hash, compacted, revision } = await this.hashKv(Number(firstNumbers(message)[0]));
          // A compaction revision of -1 means never compacted. etcd 3.6 added the field for the hash revision.
          const compactRevision = compacted === 0 ? -1 : compacted;
          return encoder.begin(machine.visible).int(2, hash).int(3, compactRevision).int(4, revision).finish();
        }),
    };
  }

  /**
   * Checksum of the store at a revision, where 0 means the newest revision, and the compaction revision on which the
   * checksum depends. Throws MvccError.
   */
  async hashKv(
    wanted: number,
  ): Promise<{ readonly hash: number; readonly compacted: number; readonly revision: number }> {
    const revision = await this.#engine.settledRevision(wanted);
    const { compacted } = this.#engine.machine;
    const hash = await this.#timed(this.#metrics.hashRevisionSeconds, () => this.#storage.hash(revision));
    return { hash, compacted, revision };
  }

  async #status(): Promise<Uint8Array> {
    const engine = this.#engine;
    const { replica, machine, cluster } = engine;
    const size = await this.#storage.size();
    const { commit, applied, lastIndex } = replica.raft.status();
    const out = this.#encoder.begin(machine.visible).string(2, ETCD_VERSION).int(3, size.bytes);
    if (replica.leader !== undefined) out.big(4, BigInt(`0x${replica.leader}`));
    out
      .int(5, Math.max(commit, lastIndex > 0 ? commit : 0))
      .int(6, replica.term)
      .int(7, applied);
    for (const error of cluster.alarmNames()) out.string(8, error);
    if (replica.leader === undefined) out.string(8, 'etcdserver: no leader');
    return out.int(9, size.inUseBytes).bool(10, cluster.isLearner(replica.id)).finish();
  }

  async #alarm(message: Uint8Array): Promise<Uint8Array> {
    const { cluster, machine } = this.#engine;
    const [first, second, third] = firstNumbers(message);
    const [action, member, alarm] = [Number(first), BigInt.asUintN(64, second), Number(third)];
    // The alarms known to this member may be outdated, and an alarm that it does not know would not be disarmed.
    if (action !== AlarmAction.activate) await this.#engine.upToDate();
    const about = cluster.alarms.filter((each) => member === 0n || each.member === hex(member));
    let shown = alarm === 0 ? about : about.filter((each) => each.alarm === alarm);
    if (action === AlarmAction.activate) {
      const id = hex(member);
      if (alarm > 0) await this.#command({ type: 'alarm', raised: true, member: id, alarm });
      shown = alarm > 0 ? [{ member: id, alarm }] : [];
    } else if (action === AlarmAction.deactivate) {
      for (const each of shown) await this.#command({ type: 'alarm', raised: false, ...each });
    }
    const out = this.#encoder.begin(machine.visible);
    for (const each of shown) {
      const mark = out.begin(2);
      out
        .big(1, BigInt(`0x${each.member}`))
        .int(2, each.alarm)
        .end(mark);
    }
    return out.finish();
  }

  async #moveLeader(message: Uint8Array): Promise<Uint8Array> {
    const engine = this.#engine;
    const target = BigInt.asUintN(64, firstNumbers(message)[0]);
    if (!engine.replica.leads) throw new CodedError('is-not-leader', 'this member is not the leader');
    const to = hex(target);
    if (to !== engine.replica.id) {
      engine.replica.transferLeadership(to);
      await this.#led(to);
    }
    return this.#encoder.begin(engine.machine.visible).finish();
  }

  async #led(by: string): Promise<void> {
    const engine = this.#engine;
    for (let left = TRANSFER_ELECTIONS; engine.replica.leader !== by; ) {
      const before = engine.replica.leader;
      await engine.leadership.change(engine.replica.electionMs);
      if (engine.replica.leader === before) left -= 1;
      if (left === 0) throw new CodedError('leader-failed', `${by} did not become leader in time`);
    }
  }

  /** There is only one storage format, so no downgrade is required or possible. */
  #downgrade(message: Uint8Array): Uint8Array {
    const [action] = firstNumbers(message);
    if (action === 0n) throw new CodedError('no-downgrade', 'downgrades are not supported');
    throw new CodedError('no-downgrade-job', 'no downgrade is in progress');
  }

  /** `Snapshot`: the database file in pieces, followed by its SHA-256, as etcd sends it. */
  readonly snapshot = (call: StreamCall): StreamHandler => {
    let resume: () => void = () => {};
    let gone = false;
    const began = this.#clock.monotonicMs();
    const stream = async (): Promise<void> => {
      const { size, pieces } = await this.#storage.snapshot(this.#engine.replica.applied);
      const hash = createHash('sha256');
      let left = size;
      for await (const piece of pieces) {
        if (gone) return;
        hash.update(piece);
        left -= piece.length;
        const goOn = call.send(this.#piece(left, piece));
        if (!goOn) {
          const stalled = this.#clock.setTimer(STALL_MS, () => {
            gone = true;
            call.end(RpcCode.unavailable, 'etcdserver: snapshot client did not read for too long');
            resume();
          });
          await new Promise<void>((resolve) => {
            resume = resolve;
          });
          stalled.cancel();
        }
      }
      call.send(this.#piece(0, hash.digest()));
      this.#metrics.snapshotSeconds.observe((this.#clock.monotonicMs() - began) / 1000);
      call.end();
    };
    let started = false;
    return {
      message: () => {
        if (started) return;
        started = true;
        stream().catch((error: unknown) => {
          const { code, message } = failureOf(error, this.#log);
          call.end(code, message);
        });
      },
      ended: () => {},
      closed: () => {
        gone = true;
        resume();
      },
      drained: () => resume(),
    };
  };

  async #timed<T>(seconds: Histogram, work: () => Promise<T>): Promise<T> {
    const began = this.#clock.monotonicMs();
    const result = await work();
    seconds.observe((this.#clock.monotonicMs() - began) / 1000);
    return result;
  }

  #piece(left: number, blob: Uint8Array): Buffer {
    return this.#encoder.begin(this.#engine.machine.visible).int(2, left).bytes(3, blob).finish();
  }
}
