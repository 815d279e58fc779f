/** Who is let onto the node: each reason alone, and that nothing else is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Pod, PodSpec, Service } from 'kubernetes-types/core/v1';
import { parseQuantity } from '../../../src/base/quantity.ts';
import {
  admissionRejection,
  hostPortRejection,
  manifestRejection,
} from '../../../src/components/kubelet/pods/admission.ts';

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

test('resources: what others hold counts, limits are exact, what is not asked for is not looked at', () => {
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

test('node selectors and affinity hold against the labels of the node', () => {
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

test('NoExecute taints need a toleration, NoSchedule is the scheduler business', () => {
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

test('ports of the host itself are never free: on any of its addresses, for pods in its network too', () => {
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

test('node ports of services of other namespaces are not free, unless the pod only listens', () => {
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

test('host ports: same protocol and overlapping address conflict', () => {
  assert.equal(reasonOf(port(80), [port(80)]), 'NodePorts');
  assert.equal(reasonOf(port(80), [port(81)]), undefined);
  assert.equal(reasonOf(port(80), [port(80, 'UDP')]), undefined);
  assert.equal(reasonOf(port(80, 'TCP', '192.0.2.1'), [port(80)]), 'NodePorts');
  assert.equal(reasonOf(port(80, 'TCP', '192.0.2.1'), [port(80, 'TCP', '192.0.2.2')]), undefined);
});

test('pods of another operating system are refused, whatever the scheduler thought', () => {
  const windows = pod({ os: { name: 'windows' } });
  const labelled = { ...pod({}), metadata: { name: 'p', labels: { 'kubernetes.io/os': 'windows' } } };
  assert.equal(reasonOf(windows), 'PodOSNotSupported');
  assert.equal(manifestRejection(windows, [])?.message, "Failed to admit pod as the OS field doesn't match node OS");
  assert.equal(reasonOf(pod({ os: { name: 'linux' } })), undefined);
  assert.equal(reasonOf(labelled), 'PodOSSelectorNodeLabelDoesNotMatch');
  assert.equal(reasonOf(pod({ nodeSelector: { 'kubernetes.io/os': 'windows' } })), 'NodeAffinity');
});

test('settings that are neither safe nor allowed by the node are refused', () => {
  const sysctl = (name: string): Pod => pod({ securityContext: { sysctls: [{ name, value: '1' }] } });
  assert.equal(reasonOf(sysctl('kernel.msgmax')), 'SysctlForbidden');
  assert.equal(reasonOf(sysctl('fs.mqueue.msg_max')), undefined);
  assert.equal(reasonOf(sysctl('net/ipv4/tcp_syncookies')), undefined);
  assert.match(
    manifestRejection(sysctl('net.ipv4.ip_forward'), [])?.message ?? '',
    /^forbidden sysctl: .* not allowlisted$/,
  );
});

test('settings of a namespace that the pod shares with the host are refused', () => {
  const sysctl = (name: string, spec: Partial<PodSpec>): Pod =>
    pod({ ...spec, securityContext: { sysctls: [{ name, value: '1' }] } });
  assert.equal(reasonOf(sysctl('net.ipv4.ip_forward', {})), undefined);
  assert.equal(reasonOf(sysctl('net.ipv4.ip_forward', { hostNetwork: true })), 'SysctlForbidden');
  assert.equal(reasonOf(sysctl('net/ipv4/ip_forward', { hostNetwork: true })), 'SysctlForbidden');
  assert.equal(reasonOf(sysctl('kernel.shm_rmid_forced', { hostNetwork: true })), undefined);
  assert.equal(reasonOf(sysctl('kernel.shm_rmid_forced', { hostIPC: true })), 'SysctlForbidden');
  assert.equal(manifestRejection(sysctl('fs.mqueue.msg_max', { hostIPC: true }), [])?.reason, 'SysctlForbidden');
});

test('huge pages that the node does not have are scarce, extended resources are the cluster business', () => {
  assert.equal(reasonOf(pod({}, { 'hugepages-2Mi': '2Mi' })), 'OutOfhugepages-2Mi');
  assert.equal(reasonOf(pod({}, { 'example.com/gpu': '1' })), undefined);
});
