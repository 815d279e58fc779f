/** Admission of pods on the node: each rejection reason, and valid pods that are admitted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Pod, PodSpec, Service } from '../../../src/api/generated/core/v1.ts';
import { parseQuantity } from '../../../src/base/quantity.ts';
import { admissionRejection, hostPortRejection, manifestRejection } from '../../../src/kubelet/pods/admission.ts';

const allocatable = { cpu: parseQuantity('2'), memory: parseQuantity('1Gi') };
const closed: Node = {
  metadata: { name: 'n', labels: { disk: 'ssd' } },
  spec: { taints: [{ key: 'closed', effect: 'NoExecute' }] },
};
const open: Node = { metadata: { name: 'n', labels: { disk: 'ssd' } } };

function pod(spec: Partial<PodSpec>, requests: Record<string, string> = {}): Pod {
  return {
    metadata: { name: 'p', namespace: 'd' },
    spec: { containers: [{ name: 'c', image: 'i', resources: { requests } }], ...spec },
  };
}

const free = {
  reservedPorts: [],
  services: () => [],
  underPressure: undefined,
  allowedUnsafeSysctls: ['net.ipv4.ip_forward', 'fs.mqueue.*'],
};
const reasonOf = (wanted: Pod, others: readonly Pod[] = [], node: Node | undefined = open, maxPods = 10) =>
  admissionRejection({ pod: wanted, others, node, allocatable, maxPods, ...free })?.reason;

test('counts resources of other pods, compares limits exactly, and ignores resources without a request', () => {
  const half = pod({}, { cpu: '1' });
  assert.equal(reasonOf(half, [half]), undefined);
  assert.equal(reasonOf(pod({}, { cpu: '1001m' }), [half]), 'OutOfcpu');
  assert.equal(reasonOf(pod({}, { memory: '1Gi' })), undefined);
  assert.equal(reasonOf(pod({}, { memory: '1025Mi' })), 'OutOfmemory');
  assert.equal(reasonOf(pod({}), [pod({}, { cpu: '99' })]), undefined);
  assert.equal(reasonOf(pod({}), [half, half], open, 2), 'OutOfpods');
  const rejection = admissionRejection({
    pod: pod({}, { cpu: '1500m' }),
    others: [half],
    node: open,
    allocatable,
    maxPods: 9,
    ...free,
  });
  assert.equal(
    rejection?.message,
    "Node didn't have enough resource: cpu, requested: 1500, used: 1000, capacity: 2000",
  );
});

test('matches node selectors and affinity against the labels of the node', () => {
  assert.equal(reasonOf(pod({ nodeSelector: { disk: 'ssd' } })), undefined);
  assert.equal(reasonOf(pod({ nodeSelector: { disk: 'tape' } })), 'NodeAffinity');
  assert.equal(reasonOf(pod({ nodeSelector: { toString: 'x' } })), 'NodeAffinity');
  assert.equal(
    admissionRejection({
      pod: pod({ nodeSelector: { disk: 'tape' } }),
      others: [],
      node: undefined,
      allocatable,
      maxPods: 1,
      ...free,
    }),
    undefined,
    'a node that was not seen yet has no labels to hold against anybody',
  );
});

test('requires a toleration for NoExecute taints and ignores NoSchedule taints', () => {
  assert.equal(reasonOf(pod({}), [], closed), 'TaintToleration');
  assert.equal(reasonOf(pod({ tolerations: [{ operator: 'Exists' }] }), [], closed), undefined);
  const noSchedule: Node = { spec: { taints: [{ key: 'closed', effect: 'NoSchedule' }] } };
  assert.equal(reasonOf(pod({}), [], noSchedule), undefined);
});

const port = (hostPort: number, protocol = 'TCP', hostIP?: string, more: Partial<PodSpec> = {}): Pod =>
  pod({
    containers: [
      {
        name: 'c',
        image: 'i',
        ports: [{ containerPort: 1, hostPort, protocol, ...(hostIP === undefined ? {} : { hostIP }) }],
      },
    ],
    ...more,
  });

test('rejects ports reserved by the host on every address and for host-network pods', () => {
  const reservedPorts = [
    { protocol: 'TCP', port: 9443 },
    { protocol: 'UDP', port: 7946 },
  ] as const;
  const judged = (wanted: Pod): string | undefined =>
    hostPortRejection({ pod: wanted, others: [], reservedPorts, services: () => [] })?.reason;
  for (const address of [undefined, '', '0.0.0.0', '::', '127.0.0.1', '192.0.2.1'])
    assert.equal(judged(port(9443, 'TCP', address)), 'NodePorts', address);
  assert.equal(judged(port(7946, 'UDP')), 'NodePorts');
  assert.equal(judged(port(9443, 'TCP', '', { hostNetwork: true })), 'NodePorts');
  const sidecar = { name: 's', restartPolicy: 'Always', ports: [{ containerPort: 1, hostPort: 9443 }] };
  assert.equal(judged(pod({ initContainers: [sidecar] })), 'NodePorts');
  for (const wanted of [port(7946), port(9443, 'UDP'), port(8443)]) assert.equal(judged(wanted), undefined);
});

test('rejects host ports that are node ports of services in other namespaces, unless the pod only listens', () => {
  const service = (namespace: string): Service => ({
    metadata: { namespace, name: 's' },
    spec: { ports: [{ port: 80, nodePort: 30_080 }, { port: 81 }] },
  });
  const judged = (wanted: Pod, namespace: string): string | undefined =>
    hostPortRejection({ pod: wanted, others: [], reservedPorts: [], services: () => [service(namespace)] })?.reason;
  assert.equal(judged(port(30_080), 'other'), 'NodePorts');
  assert.equal(judged(port(30_080), 'd'), undefined);
  assert.equal(judged(port(30_080, 'UDP'), 'other'), undefined);
  assert.equal(judged(port(30_080, 'TCP', '', { hostNetwork: true }), 'other'), undefined);
});

test('rejects host ports with the same protocol and an overlapping address', () => {
  assert.equal(reasonOf(port(80), [port(80)]), 'NodePorts');
  assert.equal(reasonOf(port(80), [port(81)]), undefined);
  assert.equal(reasonOf(port(80), [port(80, 'UDP')]), undefined);
  assert.equal(reasonOf(port(80, 'TCP', '192.0.2.1'), [port(80)]), 'NodePorts');
  assert.equal(reasonOf(port(80, 'TCP', '192.0.2.1'), [port(80, 'TCP', '192.0.2.2')]), undefined);
});

test('rejects pods of another operating system regardless of the scheduler', () => {
  const windows = pod({ os: { name: 'windows' } });
  const labelled = { ...pod({}), metadata: { name: 'p', labels: { 'kubernetes.io/os': 'windows' } } };
  assert.equal(reasonOf(windows), 'PodOSNotSupported');
  assert.equal(manifestRejection(windows, [])?.message, "Failed to admit pod as the OS field doesn't match node OS");
  assert.equal(reasonOf(pod({ os: { name: 'linux' } })), undefined);
  assert.equal(reasonOf(labelled), 'PodOSSelectorNodeLabelDoesNotMatch');
  assert.equal(reasonOf(pod({ nodeSelector: { 'kubernetes.io/os': 'windows' } })), 'NodeAffinity');
});

test('rejects sysctls that are unsafe and not allowed by the node', () => {
  const sysctl = (name: string): Pod => pod({ securityContext: { sysctls: [{ name, value: '1' }] } });
  assert.equal(reasonOf(sysctl('kernel.msgmax')), 'SysctlForbidden');
  assert.equal(reasonOf(sysctl('fs.mqueue.msg_max')), undefined);
  assert.equal(reasonOf(sysctl('net/ipv4/tcp_syncookies')), undefined);
  assert.match(
    manifestRejection(sysctl('net.ipv4.ip_forward'), [])?.message ?? '',
    /^forbidden sysctl: .* not allowlisted$/,
  );
});

test('rejects sysctls of a namespace that the pod shares with the host', () => {
  const sysctl = (name: string, spec: Partial<PodSpec>): Pod =>
    pod({ ...spec, securityContext: { sysctls: [{ name, value: '1' }] } });
  assert.equal(reasonOf(sysctl('net.ipv4.ip_forward', {})), undefined);
  assert.equal(reasonOf(sysctl('net.ipv4.ip_forward', { hostNetwork: true })), 'SysctlForbidden');
  assert.equal(reasonOf(sysctl('net/ipv4/ip_forward', { hostNetwork: true })), 'SysctlForbidden');
  assert.equal(reasonOf(sysctl('kernel.shm_rmid_forced', { hostNetwork: true })), undefined);
  assert.equal(reasonOf(sysctl('kernel.shm_rmid_forced', { hostIPC: true })), 'SysctlForbidden');
  assert.equal(manifestRejection(sysctl('fs.mqueue.msg_max', { hostIPC: true }), [])?.reason, 'SysctlForbidden');
});

test('rejects huge pages that the node lacks, but not unknown extended resources', () => {
  assert.equal(reasonOf(pod({}, { 'hugepages-2Mi': '2Mi' })), 'OutOfhugepages-2Mi');
  assert.equal(reasonOf(pod({}, { 'example.com/gpu': '1' })), undefined);
});
