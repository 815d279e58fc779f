import assert from 'node:assert/strict';
import { it } from 'node:test';
import { CodedError } from '../../../../src/base/errors.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { Maintenance, type MaintenanceDeps } from '../../../../src/store/replication/maintenance/maintenance.ts';
import { Timeline } from '../../../sim/raft/timeline.ts';
import { Life, SimulatedClock } from '../../../sim/store/process.ts';

const QUOTA_BYTES = 1000;

it('retries to raise the NOSPACE alarm after a rejection, without waiting for another write', async () => {
  const timeline = new Timeline();
  const requested: number[] = [];
  const parts: Partial<Record<keyof MaintenanceDeps, unknown>> = {
    engine: { replica: { id: '1' }, cluster: { alarms: [] } },
    storage: { size: async () => ({ bytes: 2 * QUOTA_BYTES, inUseBytes: 2 * QUOTA_BYTES }) },
    clock: new SimulatedClock(timeline, new Life(), 1, 0),
    log: silentLog,
    compaction: undefined,
    quotaBytes: QUOTA_BYTES,
    command: async () => {
      requested.push(timeline.nowMs);
      if (requested.length < 4) throw new CodedError('too-many-requests', 'too many requests wait to be committed');
    },
  };
  const maintenance = new Maintenance(parts as unknown as MaintenanceDeps);
  const pass = async (ms: number): Promise<void> => {
    for (const end = timeline.nowMs + ms; timeline.step(end); ) await new Promise((resolve) => setImmediate(resolve));
  };
  maintenance.wrote();
  await pass(2000);
  assert.equal(requested.length, 4, `asked at ${requested.join()} ms`);
  await pass(10_000);
  assert.equal(requested.length, 4, 'it was raised');
  maintenance.stop();
});
