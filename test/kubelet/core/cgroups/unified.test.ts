import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, Pod } from '../../../../src/api/generated/core/v1.ts';
import { oomScoreAdjOf, podAmount } from '../../../../src/kubelet/core/cgroups/resources.ts';
import { podNode, reservedTree } from '../../../../src/kubelet/core/cgroups/tree.ts';
import { memoryProtection, swapLimit } from '../../../../src/kubelet/core/cgroups/unified.ts';

const GIB = 1024 ** 3;
const container = (requests: object, limits: object = {}): Container =>
  ({ name: 'c', resources: { requests, limits } }) as Container;
const pod = (each: Container, spec: object = {}): Pod =>
  ({ metadata: { uid: 'u' }, spec: { containers: [each], ...spec } }) as Pod;

test('swap is proportional to the request, and only for Burstable containers', () => {
  const burstable = container({ memory: '1Gi' }, { memory: '2Gi' });
  assert.equal(swapLimit(pod(burstable), burstable, 4 * GIB, 2 * GIB), GIB / 2);
  assert.equal(swapLimit(pod(burstable), burstable, 4 * GIB, 0), 0);
  const full = container({ memory: '1Gi', cpu: '1' }, { memory: '1Gi', cpu: '1' });
  assert.equal(swapLimit(pod(full), full, 4 * GIB, 2 * GIB), 0);
  assert.equal(swapLimit(pod(container({})), container({}), 4 * GIB, 2 * GIB), 0);
});

test('memory is protected up to the request and throttled below the limit', () => {
  const qos = { throttlingFactor: 0.9, allocatableBytes: 4 * GIB };
  const burstable = container({ memory: '1Gi' }, { memory: '2Gi' });
  assert.deepEqual(memoryProtection(pod(burstable), burstable, qos), {
    'memory.min': String(GIB),
    'memory.high': String(Math.floor((1.9 * GIB) / 4096) * 4096),
  });
  const open = container({ memory: '1Gi' });
  assert.equal(
    memoryProtection(pod(open), open, qos)['memory.high'],
    String(Math.floor((GIB + 0.9 * 3 * GIB) / 4096) * 4096),
  );
  const full = container({ memory: '1Gi', cpu: '1' }, { memory: '1Gi', cpu: '1' });
  assert.deepEqual(memoryProtection(pod(full), full, qos), { 'memory.min': String(GIB) });
});

test("pod-level resources limit the pod's cgroup", () => {
  const whole = pod(container({ memory: '100Mi' }), {
    resources: { requests: { memory: '1Gi', cpu: '500m' }, limits: { memory: '2Gi', cpu: '1' } },
  });
  assert.equal(podAmount(whole, 'requests', 'memory'), GIB);
  const options = {
    root: [],
    allocatable: { cpuMilli: 2000, memoryBytes: 4 * GIB },
    podPidsLimit: 0,
    cpuCfsQuota: true,
    memoryQos: true,
  };
  assert.deepEqual(podNode(whole, options).limits, {
    cpuShares: 512,
    cpuPeriodUs: 100_000,
    cpuQuotaUs: 100_000,
    memoryLimitBytes: 2 * GIB,
    memoryMinBytes: GIB,
  });
  const [only] = whole.spec?.containers ?? [];
  assert.equal(only === undefined ? 0 : oomScoreAdjOf(whole, only, 4 * GIB), 750);
});

test("limits the host's cgroups to their reservations", () => {
  assert.deepEqual(reservedTree([{ name: '/system', amounts: { cpu: '200m', memory: '64Mi', pid: '100' } }]), [
    { path: ['system'], limits: { cpuShares: 204, memoryLimitBytes: 64 * 1024 ** 2, pidsLimit: 100 } },
  ]);
});
