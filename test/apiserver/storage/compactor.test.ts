import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Compactor } from '../../../src/apiserver/storage/compactor.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { Store } from '../../../src/store/port.ts';
import { ManualClock } from '../../client/clocks.ts';

it('compacts to the revision of the previous round, unless there are few changes', async () => {
  const compactions: number[] = [];
  const store = { compact: async (revision: number) => void compactions.push(revision) } as unknown as Store;
  const clock = new ManualClock();
  const history = { revision: 1_000, compactedTo: 0 };
  const compactor = new Compactor(store, clock, silentLog, 300, history);
  compactor.start();
  await clock.advance(300_000);
  assert.deepEqual(compactions, [1_000]);
  for (let round = 0; round < 6; round += 1) {
    history.revision += 50;
    await clock.advance(300_000);
  }
  assert.deepEqual(compactions, [1_000]);
  history.revision += 50;
  await clock.advance(300_000);
  assert.deepEqual(compactions, [1_000, 1_300]);
  compactor.stop();
});
