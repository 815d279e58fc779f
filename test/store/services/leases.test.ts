import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { silentLog } from '../../../src/base/log.ts';
import type { Clock } from '../../../src/base/time/clock.ts';
import { Leases } from '../../../src/store/core/mvcc/leases.ts';
import type { Command } from '../../../src/store/replication/peers/entry-codec.ts';
import { LeaseService, type LeaseServiceDeps } from '../../../src/store/services/lease-service.ts';
import { Channel } from '../../../src/wire/grpc/channel.ts';
import { createRpcListener } from '../../../src/wire/grpc/index.ts';
import { messagePrefix } from '../../../src/wire/grpc/messages.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { ManualClock } from '../../client/clocks.ts';
import { clock, remove, startHere, temporaryDirectory } from '../harness.ts';

const LEASES = 2_100;
const TTL_SECONDS = 3_600;
const PASSED_SECONDS = 600;
/** Number of bytes that exceeds the receive window of a stream. */
const MANY_BYTES = 8 << 20;

function remainingSeconds(response: Uint8Array): number {
  const reader = new Reader(response);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 3) return reader.int();
    reader.skip();
  }
  return 0;
}

it('keeps the remaining times of leases over a restart if they need several checkpoints', async () => {
  const data = await temporaryDirectory();
  let passedMs = 0;
  const later: Clock = { ...clock, monotonicMs: () => clock.monotonicMs() + passedMs };
  const call = async (endpoint: string, method: string, messages: readonly Buffer[]): Promise<Buffer[]> => {
    const channel = new Channel({ endpoints: [endpoint], log: silentLog, clock });
    const path = `/etcdserverpb.Lease/${method}`;
    return Promise.all(messages.map((message) => channel.unary(path, message, 20_000))).finally(() => channel.close());
  };
  const ids = Array.from({ length: LEASES }, (_, index) => BigInt(index + 1));
  try {
    const first = await startHere(data, undefined, { clock: later, leaseCheckpointMs: 200 });
    const grants = ids.map((id) => new Writer(32).int(1, TTL_SECONDS).big(2, id).finish());
    await call(first.endpoint, 'LeaseGrant', grants);
    passedMs = PASSED_SECONDS * 1000;
    await sleep(1_500);
    await first.server.stop();

    const second = await startHere(data, undefined);
    const queries = ids.map((id) => new Writer(16).big(1, id).finish());
    const remaining = (await call(second.endpoint, 'LeaseTimeToLive', queries)).map(remainingSeconds);
    await second.server.stop();
    const reset = remaining.filter((seconds) => seconds > TTL_SECONDS - PASSED_SECONDS);
    assert.equal(reset.length, 0, `${reset.length} leases have ${reset[0]} s again`);
    assert.ok(remaining.every((seconds) => seconds > 0));
  } finally {
    await remove(data);
  }
});

it('a new leader writes no lease checkpoint before it has received the renewals of its predecessor', async () => {
  const manual = new ManualClock();
  const leases = new Leases();
  leases.grant(1n, TTL_SECONDS, manual.monotonicMs());
  const commands: Command[] = [];
  const learned = Promise.withResolvers<boolean>();
  const deps = {
    clock: manual,
    log: silentLog,
    checkpointMs: 1_000,
    engine: {
      leads: true,
      replica: { alone: false, term: 1 },
      machine: { leases },
      command: async (command: Command) => void commands.push(command),
    },
    quorum: { learn: () => learned.promise, remaining: () => [] },
    send: () => {},
  };
  const service = new LeaseService(deps as unknown as LeaseServiceDeps);
  service.start();
  service.leadershipChanged();
  await manual.advance(PASSED_SECONDS * 1000);
  assert.deepEqual(commands, []);
  leases.prolong(1n, TTL_SECONDS * 1000, manual.monotonicMs());
  learned.resolve(true);
  await manual.advance(1_000);
  service.stop();
  assert.deepEqual(commands, [{ type: 'checkpoint', leases: [{ id: 1n, remainingSeconds: TTL_SECONDS - 1 }] }]);
});

/** Serves LeaseKeepAlive with `respond` as the leader, and opens a stream. */
async function keepAlives(respond: () => Promise<Uint8Array>) {
  const deps: Partial<LeaseServiceDeps> = { callLeader: respond, log: silentLog };
  const { keepAlive } = new LeaseService(deps as LeaseServiceDeps);
  const listener = createRpcListener({ host: '127.0.0.1', port: 0, log: silentLog });
  const { port } = await listener.listen({
    hasService: () => true,
    unary: () => undefined,
    stream: () => keepAlive,
    http: async () => ({ status: 404, contentType: 'text/plain', body: '' }),
  });
  const session = connectHttp2(`http://127.0.0.1:${port}`);
  const head = { ':method': 'POST', ':path': '/etcdserverpb.Lease/LeaseKeepAlive', 'content-type': 'application/grpc' };
  const request = session.request(head).on('error', () => {});
  return {
    request,
    close: async () => {
      session.destroy();
      await listener.close(0);
    },
  };
}

function requests(count: number): Buffer {
  const message = new Writer(16).big(1, 1n).finish();
  return Buffer.concat(Array.from({ length: count }, () => Buffer.concat([messagePrefix(message.length), message])));
}

/** Resolves when `count` no longer grows. */
async function settled(count: () => number): Promise<void> {
  for (let before = -1; count() > before; await sleep(500)) before = count();
}

it('reads no more lease keep-alives than the receive window while the leader does not respond', async () => {
  const { request, close } = await keepAlives(() => new Promise(() => {}));
  try {
    const some = requests(10_000);
    let accepted = 0;
    const next = (): void => {
      request.write(some, (error) => {
        if (error !== null && error !== undefined) return;
        accepted += some.length;
        if (accepted < MANY_BYTES) next();
      });
    };
    next();
    await settled(() => accepted);
    assert.ok(accepted < MANY_BYTES, `${accepted} bytes of requests were accepted`);
  } finally {
    await close();
  }
});

it('pauses lease keep-alives while the client does not read the responses, and then continues', async () => {
  const count = 20_000;
  let renewals = 0;
  const { request, close } = await keepAlives(async () => {
    renewals += 1;
    return Buffer.alloc(1_000);
  });
  try {
    request.end(requests(count));
    await settled(() => renewals);
    assert.ok(renewals > 0 && renewals < count / 2, `${renewals} renewals`);
    request.resume();
    await once(request, 'end');
    assert.equal(renewals, count);
  } finally {
    await close();
  }
});
