import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ReplicaSet } from '../../../src/api/generated/apps/v1.ts';
import type { ReplicationController } from '../../../src/api/generated/core/v1.ts';
import { replicaSets } from '../../../src/api/kinds/workloads/replicasets/index.ts';
import { replicationControllers } from '../../../src/api/kinds/workloads/replicationcontrollers/index.ts';

const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };

test('defaults labels from the template for a ReplicationController, but not for a ReplicaSet of apps/v1', () => {
  const set: ReplicaSet = { metadata: { name: 's' }, spec: { selector: { matchLabels: { app: 'a' } }, template } };
  replicaSets.setDefaults?.(set, false);
  assert.equal(set.metadata?.labels, undefined);
  assert.equal(set.spec?.replicas, 1);
  const controller: ReplicationController = { metadata: { name: 'c' }, spec: { template: structuredClone(template) } };
  replicationControllers.setDefaults?.(controller, false);
  assert.deepEqual([controller.metadata?.labels, controller.spec?.selector], [{ app: 'a' }, { app: 'a' }]);
});
