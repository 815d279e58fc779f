import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, Pod } from '../../../../src/api/generated/core/v1.ts';
import { assumedRequests, heldRequests, podRequests } from '../../../../src/api/podspec/scheduling/node-resources.ts';
import { podInfoOf } from '../../../../src/api/podspec/scheduling/pod-info.ts';

const asks = (cpu: string, more: Partial<Container> = {}): Container => ({
  name: 'c',
  resources: { requests: { cpu } },
  ...more,
});
const cpuOf = (spec: NonNullable<Pod['spec']>): number => podRequests({ spec }).get('cpu') ?? 0;

test('sums the requests of the containers of a pod', () => {
  assert.equal(cpuOf({ containers: [asks('100m'), asks('1')] }), 1100);
});

test("uses an init container's request if it exceeds the sum of all containers", () => {
  assert.equal(cpuOf({ containers: [asks('100m')], initContainers: [asks('50m'), asks('2')] }), 2000);
  assert.equal(cpuOf({ containers: [asks('3')], initContainers: [asks('2')] }), 3000);
});

test('adds requests of sidecars to containers and later init containers', () => {
  const sidecar = asks('500m', { restartPolicy: 'Always' });
  assert.equal(cpuOf({ containers: [asks('100m')], initContainers: [sidecar] }), 600);
  assert.equal(cpuOf({ containers: [asks('100m')], initContainers: [sidecar, asks('1')] }), 1500);
  assert.equal(cpuOf({ containers: [asks('100m')], initContainers: [asks('1'), sidecar] }), 1000);
});

test('adds the pod overhead, and pod-level requests replace the sum', () => {
  assert.equal(cpuOf({ containers: [asks('100m')], overhead: { cpu: '50m' } }), 150);
  const spec = { containers: [asks('100m')], resources: { requests: { cpu: '2' } } };
  assert.equal(cpuOf(spec as NonNullable<Pod['spec']>), 2000);
});

test('scores assume default requests of containers without requests', () => {
  const assumed = assumedRequests({ spec: { containers: [{ name: 'c' }, asks('1')] } });
  assert.equal(assumed.get('cpu'), 1100);
  assert.equal(assumed.get('memory'), 2 * 200 * 1024 * 1024);
  assert.equal(podRequests({ spec: { containers: [{ name: 'c' }] } }).size, 0);
});

test('resource sums treat an invalid quantity as zero', () => {
  assert.equal(podRequests({ spec: { containers: [asks('lots')] } }).size, 0);
});

test('caches the requests of a pod per generation, and computes requests without a generation every time', () => {
  const pod = (cpu: string, generation?: number): Pod => ({
    metadata: { name: 'web', uid: 'u', ...(generation === undefined ? {} : { generation }) },
    spec: { containers: [asks(cpu)] },
  });
  const first = podInfoOf(pod('100m', 1));
  assert.equal(podInfoOf(pod('100m', 1), first).requests, first.requests);
  assert.equal(podInfoOf(pod('200m', 2), first).requests.get('cpu'), 200);
  const unnumbered = podInfoOf(pod('100m'));
  assert.equal(podInfoOf(pod('200m'), unnumbered).requests.get('cpu'), 200);
});

test('uses the largest of requested, allocated and actual amounts during an in-place resize', () => {
  const pod = (requested: string, present: string, allocated: string, conditions: object[] = []): Pod =>
    ({
      metadata: { uid: 'u', generation: 1 },
      spec: { containers: [asks(requested)] },
      status: {
        conditions,
        containerStatuses: [
          { name: 'c', resources: { requests: { cpu: present } }, allocatedResources: { cpu: allocated } },
        ],
      },
    }) as unknown as Pod;
  const held = (each: Pod): number => heldRequests(each).get('cpu') ?? 0;
  assert.equal(held(pod('100m', '1', '100m')), 1000);
  assert.equal(held(pod('100m', '100m', '1')), 1000);
  assert.equal(held(pod('2', '1', '1')), 2000);
  const infeasible = [{ type: 'PodResizePending', status: 'True', reason: 'Infeasible' }];
  assert.equal(held(pod('64', '1', '1', infeasible)), 1000);
  const before = podInfoOf(pod('100m', '1', '1'));
  assert.equal(podInfoOf(pod('100m', '100m', '100m'), before).requests.get('cpu'), 100);
});
