/** A node whose file operations hang is not ready, and reports the last known facts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/base/log.ts';
import { FileOperations } from '../../../src/kubelet/housekeeping/file-operations.ts';
import { ManualClock } from '../../client/clocks.ts';

function lab() {
  const clock = new ManualClock();
  const state = { blocked: undefined as PromiseWithResolvers<void> | undefined, changes: 0 };
  const operations = new FileOperations({
    clock,
    log: silentLog,
    host: { touchFile: async () => state.blocked?.promise },
    onChanged: () => {
      state.changes += 1;
    },
  });
  return { clock, state, operations };
}

test('reports a problem while file operations have been hanging for more than ten seconds', async () => {
  const { clock, state, operations } = lab();
  operations.start();
  await clock.advance(60_000);
  assert.deepEqual([operations.problem(), state.changes], [undefined, 0]);
  state.blocked = Promise.withResolvers();
  await clock.advance(9_000);
  assert.equal(operations.problem(), undefined);
  await clock.advance(6_000);
  assert.match(operations.problem() ?? '', /^file operations of the host process do not finish/);
  assert.equal(state.changes, 1);
  state.blocked.resolve();
  state.blocked = undefined;
  await clock.advance(2_000);
  assert.deepEqual([operations.problem(), state.changes], [undefined, 2]);
  operations.stop();
  assert.equal(clock.pendingTimers, 0);
});

test('file operations return the last known facts while a read hangs', async () => {
  const { clock, operations } = lab();
  const readings: PromiseWithResolvers<number>[] = [];
  const facts = operations.latest(() => {
    const reading = Promise.withResolvers<number>();
    readings.push(reading);
    return reading.promise;
  });
  const first = facts();
  await clock.advance(60_000);
  readings[0]?.resolve(1);
  assert.equal(await first, 1);
  const second = facts();
  await clock.advance(10_000);
  assert.equal(await second, 1);
  const third = facts();
  assert.equal(readings.length, 2, 'one reading at a time');
  readings[1]?.resolve(2);
  assert.equal(await third, 2);
  const failed = facts();
  readings[2]?.reject(new Error('no runtime'));
  await assert.rejects(failed, /no runtime/);
});
