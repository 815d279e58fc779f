import { Reader } from '../../api/etcd/wire.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { MvccError } from '../../core/mvcc/errors.ts';
import type { Encoder } from './encode.ts';
import type { Engine } from './engine.ts';
import type { UnaryHandlers } from './kv-service.ts';
import type { StreamCall, StreamHandler } from './port.ts';
import { answer, failureOf } from './rpc-errors.ts';

export interface LeaseServiceDeps {
  readonly engine: Engine;
  readonly encoder: Encoder;
  readonly clock: Clock;
  readonly log: Log;
  /** A random positive 63-bit number. */
  readonly newLeaseId: () => bigint;
}

const RETRY_MS = 1000;

/** `etcdserverpb.Lease`, and the expiry of leases. */
export class LeaseService {
  readonly #deps: LeaseServiceDeps;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(deps: LeaseServiceDeps) {
    this.#deps = deps;
  }

  /** Begins to expire leases. */
  start(): void {
    this.#arm();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  get unary(): UnaryHandlers {
    const { engine, encoder, clock, log } = this.#deps;
    const { machine } = engine;
    return {
      '/etcdserverpb.Lease/LeaseGrant': (message, call) =>
        answer(call, log, async () => {
          const [ttl, id] = twoNumbers(message);
          const lease = await engine.grantLease(id === 0n ? this.#unusedId() : id, Number(ttl));
          this.#arm();
          return encoder.begin(machine.visible).big(2, lease.id).int(3, lease.ttlSeconds).finish();
        }),
      '/etcdserverpb.Lease/LeaseRevoke': (message, call) =>
        answer(call, log, async () => {
          await engine.revokeLease(twoNumbers(message)[0]);
          this.#arm();
          return encoder.begin(machine.visible).finish();
        }),
      '/etcdserverpb.Lease/LeaseTimeToLive': (message, call) =>
        answer(call, log, () => {
          const [id, withKeys] = twoNumbers(message);
          const lease = machine.leases.get(id);
          const out = encoder.begin(machine.visible).big(2, id);
          if (lease === undefined) return out.int(3, -1).finish();
          const left = Math.max(0, Math.floor((lease.expiresAtMs - clock.monotonicMs()) / 1000));
          out.int(3, left).int(4, lease.ttlSeconds);
          if (withKeys !== 0n) for (const key of [...lease.keys].sort()) out.message(5, Buffer.from(key, 'latin1'));
          return out.finish();
        }),
      '/etcdserverpb.Lease/LeaseLeases': (_message, call) =>
        answer(call, log, () => {
          const out = encoder.begin(machine.visible);
          for (const id of machine.leases.ids()) {
            const mark = out.begin(2);
            out.big(1, id).end(mark);
          }
          return out.finish();
        }),
    };
  }

  /** `LeaseKeepAlive`: one answer a request, in order; a lease that is gone is answered with time to live 0. */
  readonly keepAlive = (call: StreamCall): StreamHandler => {
    const { engine, encoder, clock, log } = this.#deps;
    const { machine } = engine;
    return {
      message: (message) => {
        try {
          const [id] = twoNumbers(message);
          const ttl = renewed(machine.leases, id, clock.monotonicMs());
          call.send(encoder.begin(machine.visible).big(2, id).int(3, ttl).finish());
        } catch (error) {
          const { code, message: text } = failureOf(error, log);
          call.end(code, text);
        }
      },
      ended: () => call.end(),
      closed: () => {},
      drained: () => {},
    };
  };

  #unusedId(): bigint {
    for (;;) {
      const id = this.#deps.newLeaseId();
      if (id > 0n && this.#deps.engine.machine.leases.get(id) === undefined) return id;
    }
  }

  /** Sets the timer to the next expiry. Keep-alives only move expiries later, so they need not touch it. */
  #arm(delayMs?: number): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#stopped) return;
    const next = this.#deps.engine.machine.leases.nextExpiryMs();
    if (next === undefined) return;
    const wait = delayMs ?? Math.max(0, next - this.#deps.clock.monotonicMs());
    this.#timer = this.#deps.clock.setTimer(Math.min(Math.ceil(wait), 0x7fff_ffff), () => void this.#expire());
  }

  async #expire(): Promise<void> {
    const { engine, clock, log } = this.#deps;
    let retry: number | undefined;
    try {
      const expired = engine.machine.leases.expired(clock.monotonicMs());
      await Promise.all(expired.map((lease) => engine.revokeLease(lease.id)));
    } catch (error) {
      retry = RETRY_MS;
      if (!this.#stopped) log.warn('leases could not be expired yet', { cause: messageOf(error) });
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

/** Fields 1 and 2 of a message that has only numbers. */
function twoNumbers(message: Uint8Array): readonly [first: bigint, second: bigint] {
  const reader = new Reader(message);
  let first = 0n;
  let second = 0n;
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 1) first = reader.big();
    else if (field === 2) second = reader.big();
    else reader.skip();
  }
  return [first, second];
}
