/** Stages of a write: reservations are settled exactly once, whichever stage fails. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type AdmissionRequest,
  type Reservation,
  storeAdmitted,
} from '../../../../src/apiserver/pipeline/admission.ts';
import { runStages, type Stage, type Write } from '../../../../src/apiserver/rest/writes/stages.ts';

test('refunds the quota reservations of a write that fails after admission exactly once', async () => {
  const settled: string[] = [];
  const reservation: Reservation = {
    used: () => void settled.push('used'),
    refund: async () => void settled.push('refunded'),
  };
  const run = async (...stages: readonly Stage<Write>[]): Promise<readonly string[]> => {
    settled.length = 0;
    const admission = { reservations: [reservation] } as unknown as AdmissionRequest;
    const write = { large: false, admission } as Write;
    await runStages(stages, write).catch((error: Error) => assert.equal(error.message, 'failed'));
    return [...settled];
  };
  const fail = (): Promise<never> => Promise.reject(new Error('failed'));
  const store = (commit: () => Promise<boolean>): Stage<Write> => {
    return async ({ admission }) => {
      if (admission !== undefined) await storeAdmitted(admission, commit, (stored) => stored);
    };
  };
  assert.deepEqual(await run(fail), ['refunded']);
  assert.deepEqual(await run(store(fail)), ['refunded']);
  assert.deepEqual(await run(store(async () => false)), ['refunded']);
  assert.deepEqual(await run(store(async () => true)), ['used']);
  assert.deepEqual(
    await run(
      store(async () => true),
      fail,
    ),
    ['used'],
  );
});
