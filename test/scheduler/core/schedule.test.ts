import assert from 'node:assert/strict';
import { test } from 'node:test';
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  PodAffinityTerm,
  TopologySpreadConstraint,
} from '../../../src/api/generated/core/v1.ts';
import { podInfoOf } from '../../../src/api/podspec/scheduling/pod-info.ts';
import { toNodeName, toUid } from '../../../src/base/brand.ts';
import { selectorOfLabels } from '../../../src/base/selector.ts';
import type { VolumeLister } from '../../../src/scheduler/core/volumes/pod-volumes.ts';
import { boundTo, cluster, decide, messageOf, node, pod } from './cluster-objects.ts';

const ZONE = 'topology.kubernetes.io/zone';
const zoned = (name: string, zone: string) => node(name, { labels: { [ZONE]: zone } });
const anti = (term: PodAffinityTerm) => ({
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
});
const near = (term: PodAffinityTerm) => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } },
});
const web = { app: 'web' };
const webTerm: PodAffinityTerm = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: web } };

test("the scheduler reports failures in upstream's wording", () => {
  const noNode = decide(pod(), cluster([]));
  assert.equal(messageOf(noNode), 'no nodes available to schedule pods');
  const full = decide(pod({ memory: '9Gi', cpu: '5' }), cluster([node('n')]));
  assert.equal(
    messageOf(full),
    '0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.',
  );
  const occupied = cluster([node('n', { memory: '1Gi' })], [pod({ node: 'n', memory: '1Gi' })]);
  assert.equal(
    messageOf(decide(pod({ memory: '1Gi' }), occupied)),
    '0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.',
  );
  const various = cluster([
    node('a', { unschedulable: true }),
    node('b', { taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] }),
    node('c', { taints: [{ key: 'k', value: 'v', effect: 'NoExecute' }] }),
  ]);
  assert.match(
    messageOf(decide(pod(), various)),
    /^0\/3 nodes are available: 1 node\(s\) were unschedulable, 2 node\(s\) had untolerated taint \{k: v\}\./,
  );
});

test('treats a PreferNoSchedule taint only as a preference', () => {
  const made = cluster([node('a', { taints: [{ key: 'k', effect: 'PreferNoSchedule' }] }), node('b')]);
  for (const random of [0, 0.99]) assert.equal(boundTo(decide(pod(), made, { random: () => random })), 'b');
});

test('prefers the node with more unallocated resources', () => {
  const made = cluster([node('a'), node('b')], [pod({ node: 'a', cpu: '2', memory: '4Gi' })]);
  assert.equal(boundTo(decide(pod({ cpu: '1', memory: '1Gi' }), made)), 'b');
});

test('rejects a node that already runs its maximum number of pods', () => {
  const made = cluster([node('a', { pods: '1' })], [pod({ node: 'a' })]);
  assert.match(messageOf(decide(pod(), made)), /1 Too many pods\./);
});

test('rejects nodes on which the protocol, address and host port of the pod conflict with another pod', () => {
  const made = cluster([node('a')], [pod({ node: 'a', hostPort: 80 })]);
  assert.match(messageOf(decide(pod({ hostPort: 80 }), made)), /didn't have free ports/);
  assert.equal(boundTo(decide(pod({ hostPort: 81 }), made)), 'a');
  const udp = pod();
  udp.spec = { containers: [{ name: 'c', ports: [{ containerPort: 80, hostPort: 80, protocol: 'UDP' }] }] };
  assert.equal(boundTo(decide(udp, made)), 'a');
});

test("treats host ports in the Node's annotation and of its kubelet as used", () => {
  const annotations = { 'hyperedge.dev/reserved-host-ports': 'TCP/8443,UDP/7946,x,TCP/99999' };
  const plain = node('a');
  const own: Node = {
    ...plain,
    metadata: { ...plain.metadata, annotations },
    status: { ...plain.status, daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } } },
  };
  const made = cluster([own, node('b')], []);
  for (const hostPort of [8443, 10_250]) assert.equal(boundTo(decide(pod({ hostPort }), made)), 'b');
  assert.match(messageOf(decide(pod({ hostPort: 8443 }), cluster([own], []))), /didn't have free ports/);
  assert.equal(boundTo(decide(pod({ hostPort: 7946 }), cluster([own], []))), 'a');
});

test('applies the anti-affinity of the new pod and that of existing pods', () => {
  const made = cluster([node('a'), node('b')], [pod({ node: 'a', labels: web })]);
  assert.equal(boundTo(decide(pod({ labels: web, spec: anti(webTerm) }), made)), 'b');
  const guarded = cluster([node('a')], [pod({ node: 'a', labels: web, spec: anti(webTerm) })]);
  assert.match(messageOf(decide(pod({ labels: web }), guarded)), /existing pods anti-affinity rules/);
  assert.equal(boundTo(decide(pod({ labels: web, namespace: 'other' }), guarded)), 'a');
});

test('applies pod affinity, and schedules the first pod of a group that has affinity to itself', () => {
  const made = cluster([zoned('a', 'x'), zoned('b', 'y'), zoned('c', 'x')], [pod({ node: 'a', labels: web })]);
  const term = { ...webTerm, topologyKey: ZONE };
  assert.ok(['a', 'c'].includes(boundTo(decide(pod({ spec: near(term) }), made)) ?? ''));
  const lonely = cluster([zoned('a', 'x')]);
  assert.match(messageOf(decide(pod({ spec: near(term) }), lonely)), /didn't match pod affinity rules/);
  assert.equal(boundTo(decide(pod({ labels: web, spec: near(term) }), lonely)), 'a');
});

test('pod affinity selects pods of other namespaces by namespace labels', () => {
  const made = cluster([node('a'), node('b')], [pod({ node: 'a', labels: web, namespace: 'prod-1' })]);
  const term = { ...webTerm, namespaceSelector: { matchLabels: { stage: 'prod' } } };
  const namespaceLabels = (name: string): Record<string, string> => (name === 'prod-1' ? { stage: 'prod' } : {});
  assert.equal(boundTo(decide(pod({ spec: near(term) }), made, { namespaceLabels })), 'a');
  made.namespaceChanged();
  assert.match(messageOf(decide(pod({ spec: near(term) }), made)), /didn't match pod affinity rules/);
});

test('applies topology spread constraints with maxSkew, minDomains and nodes without the label', () => {
  const constraint: TopologySpreadConstraint = {
    maxSkew: 1,
    topologyKey: ZONE,
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: web },
  };
  const spread = (more: Partial<TopologySpreadConstraint> = {}) =>
    pod({ labels: web, spec: { topologySpreadConstraints: [{ ...constraint, ...more }] } });
  const made = cluster(
    [zoned('a', 'x'), zoned('b', 'y'), node('c')],
    [pod({ node: 'a', labels: web }), pod({ node: 'a', labels: web })],
  );
  assert.equal(boundTo(decide(spread(), made)), 'b');
  const one = cluster([zoned('a', 'x'), node('c')], [pod({ node: 'a', labels: web })]);
  assert.equal(boundTo(decide(spread(), one)), 'a');
  assert.match(
    messageOf(decide(spread({ minDomains: 2 }), one)),
    /1 node\(s\) didn't match pod topology spread constraints, 1 node\(s\) didn't match pod topology spread constraints \(missing required label\)/,
  );
});

test('spreads pods of one service over nodes by default', () => {
  const made = cluster([node('a'), node('b')], [pod({ node: 'a', labels: web, cpu: '100m' })]);
  const decision = decide(pod({ labels: web }), made, {
    peersOf: () => [selectorOfLabels(web)],
  });
  assert.equal(boundTo(decision), 'b');
});

test('prefers a node that already has the image of the pod', () => {
  const images = [{ names: ['big:latest'], sizeBytes: 900 * 1024 * 1024 }];
  const made = cluster([node('a'), node('b', { images })]);
  const wants = pod();
  wants.spec = { containers: [{ name: 'c', image: 'big' }] };
  assert.equal(boundTo(decide(wants, made)), 'b');
});

test('requires that the claims of a pod exist, are bound, and have volumes accessible from the node', () => {
  const claimed = pod({ spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] } });
  const made = cluster([node('a'), node('b')]);
  assert.match(messageOf(decide(claimed, made)), /persistentvolumeclaim "c" not found/);
  const claim: PersistentVolumeClaim = { metadata: { name: 'c' }, spec: { storageClassName: 's' } };
  const lister: VolumeLister = {
    claim: () => claim,
    volume: () => undefined,
    volumes: () => [],
    storageClass: () => undefined,
    csiNode: () => undefined,
  };
  assert.match(
    messageOf(decide(claimed, made, { volumes: lister })),
    /^0\/2 nodes are available: pod has unbound immediate PersistentVolumeClaims\. preemption/,
  );
  const onlyB = {
    required: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['b'] }] }] },
  };
  const volume = (name: string): PersistentVolume => ({
    metadata: { name },
    spec: { storageClassName: 's', nodeAffinity: onlyB },
    status: { phase: 'Available' },
  });
  const completed = { ...claim.metadata, annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } };
  const bound = { metadata: completed, spec: { ...claim.spec, volumeName: 'pv' } };
  const withBound: VolumeLister = { ...lister, claim: () => bound, volume };
  assert.equal(boundTo(decide(claimed, made, { volumes: withBound })), 'b');
  // A claim that waits for its pod allows nodes with a matching volume, or on which one can be provisioned.
  const late = (provisioner: string): VolumeLister['storageClass'] => {
    return () => ({ provisioner, volumeBindingMode: 'WaitForFirstConsumer' });
  };
  const none = { ...lister, storageClass: late('kubernetes.io/no-provisioner') };
  assert.match(
    messageOf(decide(claimed, made, { volumes: none })),
    /2 node\(s\) didn't find available persistent volumes/,
  );
  const free = { ...none, volumes: () => [volume('pv')] };
  assert.equal(boundTo(decide(claimed, made, { volumes: free })), 'b');
  const selected = { metadata: { annotations: { 'volume.kubernetes.io/selected-node': 'a' } }, spec: claim.spec ?? {} };
  const made2 = { ...lister, storageClass: late('example.com/disks'), claim: () => selected };
  assert.equal(boundTo(decide(claimed, made, { volumes: made2 })), 'a');
});

// Source: KEP-1472.
test('selects a node for which the CSI driver reports enough storage capacity', () => {
  const claimed = pod({ spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] } });
  const made = cluster([node('a', { labels: { zone: 'a' } }), node('b', { labels: { zone: 'b' } })]);
  const claim: PersistentVolumeClaim = {
    metadata: { name: 'c' },
    spec: { storageClassName: 's', resources: { requests: { storage: '5Gi' } } },
  };
  const room = (zone: string, capacity: string, more: object = {}) => ({
    storageClassName: 's',
    capacity,
    nodeTopology: { matchLabels: { zone } },
    ...more,
  });
  const decided = (capacities: ReturnType<typeof room>[], storageCapacity = true) =>
    decide(claimed, made, {
      volumes: {
        claim: () => claim,
        volume: () => undefined,
        volumes: () => [],
        csiNode: () => undefined,
        storageClass: () => ({
          metadata: { name: 's' },
          provisioner: 'example.com/disks',
          volumeBindingMode: 'WaitForFirstConsumer',
        }),
        capacity: { driver: () => ({ spec: { storageCapacity } }), capacities: () => capacities },
      },
    });
  assert.equal(boundTo(decided([room('a', '1Gi'), room('b', '6Gi')])), 'b');
  assert.equal(boundTo(decided([room('a', '5Gi'), room('b', '6Gi', { maximumVolumeSize: '1Gi' })])), 'a');
  assert.match(messageOf(decided([room('a', '1Gi')])), /2 node\(s\) did not have enough free storage/);
  const other = { ...room('a', '9Gi'), storageClassName: 'other' };
  assert.match(messageOf(decided([other, { ...room('a', '9Gi'), nodeTopology: undefined as never }])), /free storage/);
  assert.ok(['a', 'b'].includes(boundTo(decided([], false)) ?? ''), 'a driver that reports nothing');
});

test('schedules only one pod with a given ReadWriteOncePod claim', () => {
  const user = (name: string) =>
    pod({ name, spec: { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] } });
  const claim: PersistentVolumeClaim = {
    metadata: { annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    spec: { accessModes: ['ReadWriteOncePod'], volumeName: 'pv' },
  };
  const volumes: VolumeLister = {
    claim: () => claim,
    volume: () => ({}),
    volumes: () => [],
    storageClass: () => undefined,
    csiNode: () => undefined,
  };
  const made = cluster([node('a'), node('b')]);
  const first = podInfoOf(user('first'));
  made.assume(first, toNodeName('a'));
  assert.match(messageOf(decide(user('second'), made, { volumes })), /ReadWriteOncePod access mode/);
  made.forget(first.uid);
  assert.notEqual(boundTo(decide(user('second'), made, { volumes })), undefined);
});

test('counts an assumed pod against the node at once, and no longer when the binding fails', () => {
  const made = cluster([node('a', { cpu: '1' })]);
  const first = podInfoOf(pod({ cpu: '1' }));
  made.assume(first, toNodeName('a'));
  assert.match(messageOf(decide(pod({ cpu: '1' }), made)), /Insufficient cpu/);
  made.forget(first.uid);
  assert.equal(boundTo(decide(pod({ cpu: '1' }), made)), 'a');
});

test('keeps counting a pod if the API confirmed the binding before the binding is reported as failed', () => {
  const made = cluster([node('a', { cpu: '1' })]);
  const first = pod({ cpu: '1' });
  made.assume(podInfoOf(first), toNodeName('a'));
  made.setPod({ ...first, spec: { ...first.spec, containers: first.spec?.containers ?? [], nodeName: 'a' } });
  made.forget(toUid(first.metadata?.uid));
  assert.match(messageOf(decide(pod({ cpu: '1' }), made)), /Insufficient cpu/);
});

test('keeps counting the pods of a node after its labels change', () => {
  const made = cluster([node('a', { cpu: '1' })], [pod({ node: 'a', cpu: '1' })]);
  made.setNode(node('a', { cpu: '1', labels: { x: 'y' } }));
  assert.match(messageOf(decide(pod({ cpu: '1' }), made)), /Insufficient cpu/);
});

test('counts a pod that was reported before its node once the node is known', () => {
  const made = cluster([], [pod({ node: 'late', cpu: '4' })]);
  made.setNode(node('late'));
  assert.match(messageOf(decide(pod({ cpu: '1' }), made)), /Insufficient cpu/);
  made.removeNode(toNodeName('late'));
  made.setNode(node('late'));
  assert.match(messageOf(decide(pod({ cpu: '1' }), made)), /Insufficient cpu/);
});
