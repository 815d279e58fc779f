import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kubeletResources } from '../../../src/host/node/kubelet-resources.ts';

const of = (given: object) => kubeletResources('node-config.yaml', given, '/seccomp');

test('parses kubelet arguments about resources like the flags of the same names', () => {
  const found = of({
    'cpu-manager-policy': ['static'],
    'reserved-cpus': ['0-1'],
    'topology-manager-policy': ['single-numa-node'],
    'memory-manager-policy': ['Static'],
    'reserved-memory': ['0:memory=1Gi;1:memory=512Mi'],
    'memory-swap-behavior': ['LimitedSwap'],
    'feature-gates': ['MemoryQoS=true'],
    'system-reserved': ['cpu=100m,memory=64Mi'],
    'system-reserved-cgroup': ['/system.slice'],
    'enforce-node-allocatable': ['pods,system-reserved'],
    'allowed-unsafe-sysctls': ['net.core.somaxconn,kernel.msg*'],
  });
  assert.deepEqual(found, {
    kubeReserved: {},
    reservedCgroups: [{ name: '/system.slice', amounts: { cpu: '100m', memory: '64Mi' } }],
    allowedUnsafeSysctls: ['net.core.somaxconn', 'kernel.msg*'],
    seccompProfileRoot: '/seccomp',
    resources: {
      cpuManager: 'static',
      reservedCpus: '0-1',
      topologyManager: 'single-numa-node',
      topologyScope: 'container',
      memoryManager: 'Static',
      reservedMemory: new Map([
        [0, 1024 ** 3],
        [1, 512 * 1024 ** 2],
      ]),
      swapBehavior: 'LimitedSwap',
      memoryThrottlingFactor: 0.9,
    },
  });
});

test('the error of kubelet arguments names the invalid argument', () => {
  const cases: readonly [object, RegExp][] = [
    [{ 'cpu-manager-policy': ['dynamic'] }, /cpu-manager-policy: "dynamic" is not one of none, static/],
    [{ 'reserved-cpus': ['x'] }, /reserved-cpus: "x" is not a list/],
    [{ 'reserved-memory': ['1Gi'] }, /reserved-memory: "1Gi" is not NODE:memory=QUANTITY/],
    [{ 'memory-throttling-factor': ['2'] }, /memory-throttling-factor: give a number/],
    [{ 'enforce-node-allocatable': ['kube-reserved'] }, /kube-reserved requires kube-reserved-cgroup/],
  ];
  for (const [given, message] of cases) assert.throws(() => of(given), message);
});
