import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../../../src/base/clock.ts';
import { silentLog } from '../../../src/base/log.ts';
import { Channel } from '../../../src/wire/grpc/channel.ts';
import { Reader, Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { clock, remove, startHere, temporaryDirectory } from '../harness.ts';

const LEASES = 2_100;
const TTL_SECONDS = 3_600;
const PASSED_SECONDS = 600;

function remainingSeconds(response: Uint8Array): number {
  const reader = new Reader(response);
  for (let field = reader.field(); field !== 0; field = reader.field()) {
    if (field === 3) return reader.int();
    reader.skip();
  }
  return 0;
}

it('keeps the remaining times of more leases than fit into one checkpoint over a restart', async () => {
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
