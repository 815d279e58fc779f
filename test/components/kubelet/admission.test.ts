/** Who is let onto the node: each reason alone, and that nothing else is refused. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node, Pod, PodSpec } from 'kubernetes-types/core/v1';
import { parseQuantity } from '../../../src/base/quantity.ts';
import { admissionRejection } from '../../../src/components/kubelet/pods/admission.ts';

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

const reasonOf = (wanted: Pod, others: readonly Pod[] = [], node: Node | undefined = open, maxPods = 10) =>
  admissionRejection({ pod: wanted, others, node, allocatable, maxPods, underPressure: undefined })?.reason;

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
    underPressure: undefined,
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
      underPressure: undefined,
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

test('host ports: same protocol and overlapping address conflict', () => {
  const port = (hostPort: number, protocol = 'TCP', hostIP?: string): Pod =>
    pod({
      containers: [
        {
          name: 'c',
          image: 'i',
          ports: [{ containerPort: 1, hostPort, protocol, ...(hostIP === undefined ? {} : { hostIP }) }],
        },
      ],
    });
  assert.equal(reasonOf(port(80), [port(80)]), 'NodePorts');
  assert.equal(reasonOf(port(80), [port(81)]), undefined);
  assert.equal(reasonOf(port(80), [port(80, 'UDP')]), undefined);
  assert.equal(reasonOf(port(80, 'TCP', '192.0.2.1'), [port(80)]), 'NodePorts');
  assert.equal(reasonOf(port(80, 'TCP', '192.0.2.1'), [port(80, 'TCP', '192.0.2.2')]), undefined);
});

test('AppArmor profiles are never left out in silence', () => {
  const profile = (type: string): Pod => pod({ securityContext: { appArmorProfile: { type } } });
  assert.equal(reasonOf(profile('RuntimeDefault')), 'AppArmor');
  assert.equal(reasonOf(profile('Unconfined')), undefined);
});
