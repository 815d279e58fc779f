import { createHash } from 'node:crypto';
import { Reader } from '../../api/etcd/wire.ts';
import type { Log } from '../../base/log.ts';
import type { Encoder } from './encode.ts';
import type { Engine } from './engine.ts';
import type { UnaryHandlers } from './kv-service.ts';
import type { RevisionLog, StreamCall, StreamHandler } from './port.ts';
import { answer, failureOf } from './rpc-errors.ts';

/** The version of etcd whose API this speaks, for clients that look. */
export const ETCD_VERSION = '3.4.31';

export interface MemberInfo {
  readonly name: string;
  readonly clientUrls: readonly string[];
  readonly peerUrls: readonly string[];
}

const ALARM_NO_SPACE = 1;

/** `etcdserverpb.Maintenance` and the part of `etcdserverpb.Cluster` that a single member can answer. */
export class MaintenanceService {
  readonly #engine: Engine;
  readonly #encoder: Encoder;
  readonly #revisions: RevisionLog;
  readonly #member: MemberInfo;
  readonly #log: Log;

  constructor(engine: Engine, encoder: Encoder, revisions: RevisionLog, member: MemberInfo, log: Log) {
    this.#engine = engine;
    this.#encoder = encoder;
    this.#revisions = revisions;
    this.#member = member;
    this.#log = log;
  }

  get unary(): UnaryHandlers {
    const { machine } = this.#engine;
    const encoder = this.#encoder;
    const log = this.#log;
    return {
      '/etcdserverpb.Maintenance/Status': (_message, call) =>
        answer(call, log, async () => {
          const size = await this.#revisions.size();
          const out = encoder.begin(machine.visible).string(2, ETCD_VERSION).int(3, size.bytes);
          out.big(4, encoder.memberId).int(5, machine.visible).int(6, 1).int(7, machine.visible);
          if (this.#engine.full) out.string(8, `memberID:${encoder.memberId} alarm:NOSPACE `);
          return out.int(9, size.inUseBytes).finish();
        }),
      '/etcdserverpb.Maintenance/Alarm': (message, call) =>
        answer(call, log, () => {
          const [action] = numbers(message);
          const out = encoder.begin(machine.visible);
          // The alarm is the state of the disk: it cannot be set, and it clears itself when there is room.
          if (action === 0 && this.#engine.full) {
            const mark = out.begin(2);
            out.big(1, encoder.memberId).int(2, ALARM_NO_SPACE).end(mark);
          }
          return out.finish();
        }),
      '/etcdserverpb.Maintenance/Defragment': (_message, call) =>
        answer(call, log, async () => {
          await this.#revisions.defragment();
          return encoder.begin(machine.visible).finish();
        }),
      '/etcdserverpb.Maintenance/Hash': (_message, call) =>
        answer(call, log, async () => {
          const hash = await this.#revisions.hash(machine.visible);
          return encoder.begin(machine.visible).int(2, hash).finish();
        }),
      '/etcdserverpb.Maintenance/HashKV': (message, call) =>
        answer(call, log, async () => {
          const [wanted] = numbers(message);
          const revision = await this.#engine.settledRevision(wanted);
          const hash = await this.#revisions.hash(revision);
          return encoder.begin(machine.visible).int(2, hash).int(3, machine.compacted).finish();
        }),
      '/etcdserverpb.Cluster/MemberList': (_message, call) =>
        answer(call, log, () => {
          const out = encoder.begin(machine.visible);
          const mark = out.begin(2);
          out.big(1, encoder.memberId).string(2, this.#member.name);
          for (const url of this.#member.peerUrls) out.string(3, url);
          for (const url of this.#member.clientUrls) out.string(4, url);
          return out.end(mark).finish();
        }),
    };
  }

  /** `Snapshot`: the database file in pieces, then its SHA-256, as etcd sends it. */
  readonly snapshot = (call: StreamCall): StreamHandler => {
    let resume: () => void = () => {};
    let gone = false;
    const stream = async (): Promise<void> => {
      const { size, pieces } = await this.#revisions.snapshot();
      const hash = createHash('sha256');
      let left = size;
      for await (const piece of pieces) {
        if (gone) return;
        hash.update(piece);
        left -= piece.length;
        const goOn = call.send(this.#piece(left, piece));
        if (!goOn) {
          await new Promise<void>((resolve) => {
            resume = resolve;
          });
        }
      }
      call.send(this.#piece(0, hash.digest()));
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

  #piece(left: number, blob: Uint8Array): Buffer {
    return this.#encoder.begin(this.#engine.machine.visible).int(2, left).bytes(3, blob).finish();
  }
}

function numbers(message: Uint8Array): readonly [first: number] {
  const reader = new Reader(message);
  let first = 0;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) first = reader.int();
    else reader.skip();
  }
  return [first];
}
