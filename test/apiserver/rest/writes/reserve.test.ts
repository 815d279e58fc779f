import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configMaps as configmaps } from '../../../../src/api/kinds/cluster/configmaps/index.ts';
import { leases } from '../../../../src/api/kinds/nodes/leases/index.ts';
import { nodes } from '../../../../src/api/kinds/nodes/nodes/index.ts';
import { pods } from '../../../../src/api/kinds/workloads/pods/index.ts';
import type { WriteRequest } from '../../../../src/apiserver/pipeline/write-request.ts';
import { mayUseReserve } from '../../../../src/apiserver/rest/writes/reserve.ts';

const KINDS = { configmaps, leases, nodes, pods };
const NODE = { name: 'system:node:a', groups: ['system:nodes', 'system:authenticated'] };
const CONTROLLER = { name: 'system:kube-controller-manager', groups: ['system:authenticated'] };
const COLLECTOR = {
  name: 'system:serviceaccount:kube-system:generic-garbage-collector',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system'],
};
const TENANT = {
  name: 'system:serviceaccount:t:attacker',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:t'],
};
const ENDING = { metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } };

for (const [user, plural, subresource, object, may] of [
  [NODE, 'pods', 'status', {}, true],
  [NODE, 'nodes', 'status', {}, true],
  [NODE, 'leases', '', {}, true],
  [CONTROLLER, 'leases', '', {}, true],
  [CONTROLLER, 'nodes', '', {}, true],
  [CONTROLLER, 'configmaps', '', {}, false],
  [COLLECTOR, 'configmaps', '', ENDING, true],
  [NODE, 'pods', '', {}, false],
  [TENANT, 'pods', 'status', {}, false],
  [TENANT, 'leases', '', {}, false],
  [TENANT, 'pods', '', ENDING, false],
] as const)
  test(`${may ? 'grants' : 'denies'} the disk reserve to ${user.name} for updates of ${object === ENDING ? 'deleted ' : ''}${plural}${subresource === '' ? '' : `/${subresource}`}`, () => {
    const request = { user, kind: { definition: KINDS[plural] }, subresource } as unknown as WriteRequest;
    assert.equal(mayUseReserve(request, object), may);
  });
