import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rigClaimGates } from '../../../../src/apiserver/admission/claims/rig-claims.ts';

const rig = { metadata: { name: 'bench' }, spec: { fixtures: [{ name: 'board', fixture: 'board-1' }] } };
const pod = (claim: string | undefined, gates: string[], fixture = 'board-1', nodeName = '') => ({
  metadata: {
    name: 'p',
    namespace: 'lab',
    ...(claim === undefined ? {} : { annotations: { 'rig.hyperedge.dev/claim': claim } }),
  },
  spec: {
    ...(nodeName === '' ? {} : { nodeName }),
    containers: [{ name: 'c', resources: { limits: { [`rig.hyperedge.dev/${fixture}`]: '1' } } }],
    schedulingGates: gates.map((name) => ({ name })),
  },
});
const plugin = (phase: string) =>
  rigClaimGates({
    rigs: () => [{ shared: () => rig }] as never,
    claim: (namespace, name) =>
      namespace === 'lab' && name === 'mine'
        ? ({ shared: () => ({ status: { phase, rig: 'bench' } }) } as never)
        : undefined,
  });
const request = (operation: string, object: object | undefined, old?: object) =>
  ({
    operation,
    object,
    old,
    namespace: 'lab',
    name: 'p',
    subresource: '',
    kind: { plural: 'pods', definition: { group: '' } },
  }) as never;
const GATE = 'rig.hyperedge.dev/mine';

test('adds one scheduling gate to a pod that names a rig claim', () => {
  const made = pod('mine', []);
  plugin('Queued').mutate?.(request('CREATE', made), undefined as never);
  plugin('Queued').mutate?.(request('CREATE', made), undefined as never);
  assert.deepEqual(made.spec.schedulingGates, [{ name: GATE }]);
});

test('rejects a pod that requests a fixture of a rig without a claim, and admits other devices and deletions', () => {
  const check = (operation: string, object?: object) => () =>
    plugin('Queued').validate?.(request(operation, object, pod(undefined, [])));
  assert.throws(check('CREATE', pod(undefined, [])), /fixture "board-1" belongs to rig "bench"; claim the rig/);
  assert.throws(check('CREATE', pod('mine', [GATE], 'board-1', 'n1')), /placed by the scheduler; remove the field/);
  assert.throws(check('CREATE', pod('No Name', [])), /is not a valid RigClaim name/);
  assert.doesNotThrow(check('CREATE', pod(undefined, [], 'board-2')));
  assert.doesNotThrow(check('CREATE', pod('mine', [GATE])));
  assert.doesNotThrow(check('DELETE'));
});

test("admits the removal of a gate only for a granted claim, and rejects changes of a pod's claim", () => {
  const update = (phase: string, to: object) => () =>
    plugin(phase).validate?.(request('UPDATE', to, pod('mine', [GATE])));
  assert.throws(update('Queued', pod('mine', [])), /RigClaim "mine" is not granted; wait for its turn/);
  assert.throws(update('Expired', pod('mine', [])), /is not granted/);
  assert.throws(update('Granted', pod('other', [GATE])), /cannot be changed; create another pod/);
  assert.doesNotThrow(update('Granted', pod('mine', [])));
  assert.doesNotThrow(update('Queued', pod('mine', [GATE])));
});

test("rejects the allocation of a rig's fixture to a ResourceClaim, except an existing one", () => {
  const claim = (device?: string, more: object = {}) => ({
    metadata: { name: 'c', namespace: 'lab' },
    status:
      device === undefined
        ? {}
        : { allocation: { devices: { results: [{ driver: 'rig.hyperedge.dev', pool: 'n', device, ...more }] } } },
  });
  const update = (object: object, old: object, subresource: string) => () =>
    plugin('Queued').validate?.({
      operation: 'UPDATE',
      object,
      old,
      namespace: 'lab',
      name: 'c',
      subresource,
      kind: { plural: 'resourceclaims', definition: { group: 'resource.k8s.io' } },
    } as never);
  assert.throws(update(claim('board-1'), claim(), 'status'), /fixture "board-1" belongs to rig "bench"; claim the rig/);
  assert.doesNotThrow(update(claim('board-1'), claim('board-1'), 'status'));
  assert.doesNotThrow(update(claim('board-2'), claim(), 'status'));
  assert.doesNotThrow(update(claim('board-1', { adminAccess: true }), claim(), 'status'));
  assert.doesNotThrow(update(claim('board-1', { driver: 'd.example.com' }), claim(), 'status'));
  assert.ok(plugin('Queued').resources?.includes('resourceclaims.resource.k8s.io'));
});
