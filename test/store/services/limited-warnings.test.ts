/** Warnings about slow requests under load. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Log, type LogFields, silentLog } from '../../../src/base/log.ts';
import { EtcdMetrics } from '../../../src/store/services/metrics/metrics.ts';
import { RpcMetrics } from '../../../src/store/services/metrics/rpc-metrics.ts';
import type { UnaryCall } from '../../../src/wire/grpc/port.ts';
import { ManualClock } from '../../client/clocks.ts';

function recorder() {
  const lines: (LogFields | undefined)[] = [];
  const log: Log = { ...silentLog, warn: (_message, fields) => lines.push(fields) };
  return { lines, log };
}

test('logs the first slow request, then the slowest of each interval with the number of suppressed lines', async () => {
  const { lines, log } = recorder();
  const clock = new ManualClock();
  const rpc = new RpcMetrics({ clock, log, slowMs: 100, extensive: false });
  const path = '/etcdserverpb.KV/Put';
  let current: UnaryCall | undefined;
  const handlers = rpc.unary({
    [path]: (_message, call) => {
      current = call;
    },
  });
  const request = async (ms: number): Promise<void> => {
    const call = { metadata: () => undefined, reply: () => {}, fail: () => {} } as unknown as UnaryCall;
    handlers[path]?.(new Uint8Array(), call);
    await clock.advance(ms);
    current?.reply(new Uint8Array());
  };
  await request(200);
  assert.deepEqual(lines, [{ method: 'Put', ms: 200, expected: 100 }]);
  for (const ms of [101, 900, 300, 50]) await request(ms);
  assert.equal(lines.length, 1);
  await clock.advance(10_000);
  assert.deepEqual(lines.slice(1), [{ method: 'Put', ms: 900, expected: 100, suppressed: 2 }]);
  await request(150);
  assert.equal(lines.length, 2);
  await clock.advance(10_000);
  assert.deepEqual(lines.at(-1), { method: 'Put', ms: 150, expected: 100, suppressed: 0 });
  // After an interval without slow requests, the next one is logged immediately.
  await clock.advance(10_000);
  await request(120);
  assert.equal(lines.length, 4);
  assert.equal(clock.pendingTimers, 1);
});

test('limits the lines of slow applies and late heartbeats and counts each of them', () => {
  const { lines, log } = recorder();
  const metrics = new EtcdMetrics(100, log, new ManualClock());
  for (let i = 0; i < 500; i++) {
    metrics.applied(200);
    metrics.lateHeartbeat('2', 300);
  }
  assert.equal(lines.length, 2);
  assert.deepEqual([metrics.slowApplies, metrics.heartbeatSendFailures], [500, 500]);
});
