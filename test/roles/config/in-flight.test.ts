/** How much is served at once: kube-apiserver's flags. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { inFlight } from '../../../src/roles/api-config.ts';
import { ApiUsageProblem, ApiValues, readApiArguments } from '../../../src/roles/config/apiserver/index.ts';

const read = (...argv: string[]) => {
  const values = new ApiValues((path) => path);
  readApiArguments(argv, values);
  return inFlight(values);
};

describe('limits of requests', () => {
  it("are upstream's, with priority and fairness unless it is switched off", () => {
    assert.deepEqual(read(), { maxInFlight: { reading: 400, mutating: 200 }, priorityAndFairness: true });
    assert.deepEqual(
      read('--max-requests-inflight=0', '--max-mutating-requests-inflight=7', '--enable-priority-and-fairness=false'),
      { maxInFlight: { reading: 0, mutating: 7 }, priorityAndFairness: false },
    );
  });

  it('must leave something to be shared out, and are no less than nothing', () => {
    const none = ['--max-requests-inflight=0', '--max-mutating-requests-inflight=0'];
    assert.throws(() => read(...none), ApiUsageProblem);
    assert.throws(() => read(...none), /max-requests-inflight.*must add up to something positive/);
    assert.equal(read(...none, '--enable-priority-and-fairness=false').priorityAndFairness, false);
    assert.throws(
      () => read('--max-mutating-requests-inflight=-1'),
      /max-mutating-requests-inflight: must not be negative/,
    );
  });
});
