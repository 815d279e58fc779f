import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statusDiff } from '../../../../../src/openshift/operators/cluster-operators/core/index.ts';
import type { OperatorCondition } from '../../../../../src/openshift/operators/kinds/config/types.ts';

const condition = (type: string, status: 'True' | 'False', message = ''): OperatorCondition => ({
  type,
  status,
  message,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});
const versions = [{ name: 'operator', version: '0.1.0' }];

test("describes changed conditions and versions in an event with library-go's wording", () => {
  const before = { conditions: [condition('Available', 'True', 'all'), condition('Degraded', 'False')], versions };
  const after = {
    conditions: [
      condition('Available', 'False', 'no "one"'),
      condition('Degraded', 'False'),
      condition('Extra', 'True'),
    ],
    versions: [{ name: 'operator', version: '0.2.0' }],
  };
  assert.equal(
    statusDiff(before, after),
    'Available changed from True to False ("no \\"one\\""),Extra set to True,' +
      'status.versions changed from ["operator 0.1.0"] to ["operator 0.2.0"]',
  );
});

test('reports no event for a changed message or for the first status of a ClusterOperator', () => {
  const before = { conditions: [condition('Available', 'True', '2 nodes')], versions };
  assert.equal(statusDiff(before, { conditions: [condition('Available', 'True', '3 nodes')], versions }), '');
  assert.equal(statusDiff(undefined, before), '');
});
