import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PersistentVolume, PersistentVolumeClaim, Pod, Volume } from '../../../src/api/generated/core/v1.ts';
import { podInfoOf } from '../../../src/api/podspec/scheduling/pod-info.ts';
import type { FilterName } from '../../../src/scheduler/core/filters/filter.ts';
import { type ClusterEvent, canChangeResult } from '../../../src/scheduler/core/hints.ts';
import { DEFAULT_ARGS } from '../../../src/scheduler/core/plugin-args.ts';
import { feasibleNodesToFind } from '../../../src/scheduler/core/profile.ts';
import type { VolumeLister } from '../../../src/scheduler/core/volumes/pod-volumes.ts';
import { boundTo, cluster, decide, messageOf, node, pod } from './cluster-objects.ts';

const ZONE = 'topology.kubernetes.io/zone';

const withVolume = (volume: Omit<Volume, 'name'>, on?: string): Pod =>
  pod({ ...(on === undefined ? {} : { node: on }), spec: { volumes: [{ name: 'v', ...volume }] } });
const withClaim = (claimName: string, on?: string): Pod => withVolume({ persistentVolumeClaim: { claimName } }, on);

/** Binds every claim to the volume of the same name. */
function lister(
  volume: (name: string) => PersistentVolume,
  limits: Readonly<Record<string, number>> = {},
): VolumeLister {
  const claim = (namespace: string, name: string): PersistentVolumeClaim => ({
    metadata: { name, namespace, annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
    spec: { volumeName: name },
    status: { phase: 'Bound' },
  });
  return {
    claim,
    volume,
    volumes: () => [],
    storageClass: () => undefined,
    csiNode: (name) => ({
      metadata: { name },
      spec: { drivers: [{ name: 'csi.example.com', nodeID: name, allocatable: { count: limits[name] ?? 100 } }] },
    }),
  };
}

test('NodeVolumeLimits counts a volume once per node and enforces the limit of its driver', () => {
  const csi = (name: string): PersistentVolume => ({
    metadata: { name },
    spec: { csi: { driver: 'csi.example.com', volumeHandle: name } },
  });
  const volumes = lister(csi, { a: 2 });
  const made = cluster([node('a')], [withClaim('one', 'a'), withClaim('two', 'a')]);
  assert.match(messageOf(decide(withClaim('three'), made, { volumes })), /1 node\(s\) exceed max volume count/);
  assert.equal(boundTo(decide(withClaim('two'), made, { volumes })), 'a', 'the volume is attached already');
});

test('VolumeZone restricts a volume with a zone label to nodes of its zones', () => {
  const zoned = (name: string): PersistentVolume => ({ metadata: { name, labels: { [ZONE]: 'x__y' } }, spec: {} });
  const volumes = lister(zoned);
  const zones = (zone: string) => cluster([node('a', { labels: { [ZONE]: zone } })]);
  assert.equal(boundTo(decide(withClaim('c'), zones('y'), { volumes })), 'a');
  assert.match(messageOf(decide(withClaim('c'), zones('z'), { volumes })), /node\(s\) had no available volume zone/);
  assert.equal(boundTo(decide(withClaim('c'), cluster([node('a')]), { volumes })), 'a', 'no zones, no constraint');
});

test('VolumeRestrictions allows a second mount of a disk only if both mounts are read-only', () => {
  const disk = (readOnly: boolean) => ({ gcePersistentDisk: { pdName: 'd', readOnly } });
  const target = (readOnly: boolean) => cluster([node('a')], [withVolume(disk(readOnly), 'a')]);
  assert.match(messageOf(decide(withVolume(disk(false)), target(true))), /node\(s\) had no available disk/);
  assert.equal(boundTo(decide(withVolume(disk(true)), target(true))), 'a');
  const ebs = { awsElasticBlockStore: { volumeID: 'v', readOnly: true } };
  const used = cluster([node('a')], [withVolume(ebs, 'a')]);
  assert.match(messageOf(decide(withVolume(ebs), used)), /node\(s\) had no available disk/);
  const rbd = (monitor: string) => ({ rbd: { monitors: [monitor], image: 'i' } });
  const ceph = cluster([node('a')], [withVolume(rbd('m1'), 'a')]);
  assert.equal(boundTo(decide(withVolume(rbd('m2')), ceph)), 'a', 'another cluster');
  assert.match(messageOf(decide(withVolume(rbd('m1')), ceph)), /node\(s\) had no available disk/);
});

test('scores nodes by the scoring strategy, added affinity and default constraints of the profile', () => {
  const made = cluster([node('a'), node('b', { labels: { rack: 'r' } })], [pod({ node: 'a', cpu: '2' })]);
  const small = pod({ cpu: '1' });
  const strategy = (type: 'LeastAllocated' | 'MostAllocated') => ({
    scores: new Map([['NodeResourcesFit', 1] as const]),
    args: { ...DEFAULT_ARGS, scoringStrategy: { ...DEFAULT_ARGS.scoringStrategy, type } },
  });
  assert.equal(boundTo(decide(small, made, { profile: strategy('MostAllocated') })), 'a');
  assert.equal(boundTo(decide(small, made, { profile: strategy('LeastAllocated') })), 'b');
  const terms = [{ matchExpressions: [{ key: 'rack', operator: 'In', values: ['none'] }] }];
  const addedAffinity = { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } };
  const message = messageOf(decide(small, made, { profile: { args: { ...DEFAULT_ARGS, addedAffinity } } }));
  assert.match(message, /2 node\(s\) didn't match scheduler-enforced node affinity/);
  const defaultConstraints = [{ maxSkew: 1, topologyKey: 'rack', whenUnsatisfiable: 'DoNotSchedule' }];
  const peersOf = () => [{ requirements: [], nothing: false }];
  const spread = decide(small, made, { peersOf, profile: { args: { ...DEFAULT_ARGS, defaultConstraints } } });
  assert.equal(boundTo(spread), 'b', 'a has no such label');
});

test('stops filtering nodes of a large cluster once enough feasible nodes are found', () => {
  assert.equal(feasibleNodesToFind(99, 0), 99);
  assert.equal(feasibleNodesToFind(1_000, 0), 420);
  assert.equal(feasibleNodesToFind(6_000, 0), 300);
  assert.equal(feasibleNodesToFind(1_000, 70), 700);
  const nodes = Array.from({ length: 300 }, (_, index) => node(`n${index}`));
  const made = cluster(nodes);
  const first = decide(pod({ cpu: '1' }), made);
  assert.equal(first.kind === 'bind' && first.feasible, 144);
});

const HINTS: readonly (readonly [FilterName, string, Pod, ClusterEvent, boolean])[] = [
  [
    'NodeResourcesFit',
    'a new node that is too small',
    pod({ cpu: '8' }),
    { kind: 'NodeAdded', node: node('n') },
    false,
  ],
  [
    'NodeResourcesFit',
    'a new node that is large enough',
    pod({ cpu: '4' }),
    { kind: 'NodeAdded', node: node('n') },
    true,
  ],
  [
    'TaintToleration',
    'a changed taint that the pod does not tolerate',
    pod(),
    { kind: 'NodeTaintsChanged', node: node('n', { taints: [{ key: 'k', effect: 'NoSchedule' }] }) },
    false,
  ],
  [
    'NodePorts',
    'the removal of a pod with another host port',
    pod({ hostPort: 80 }),
    { kind: 'PodLeft', pod: podInfoOf(pod({ hostPort: 81, node: 'n' })) },
    false,
  ],
  [
    'NodePorts',
    'the removal of a pod with the same host port',
    pod({ hostPort: 80 }),
    { kind: 'PodLeft', pod: podInfoOf(pod({ hostPort: 80, node: 'n' })) },
    true,
  ],
  [
    'VolumeBinding',
    "a change of another pod's claim",
    withClaim('mine'),
    { kind: 'ClaimChanged', claim: { metadata: { namespace: 'ns', name: 'other' } } },
    false,
  ],
  [
    'VolumeBinding',
    "a change of the pod's own claim",
    withClaim('mine'),
    { kind: 'ClaimChanged', claim: { metadata: { namespace: 'ns', name: 'mine' } } },
    true,
  ],
  [
    'PodTopologySpread',
    'the removal of a pod in another namespace',
    pod(),
    { kind: 'PodLeft', pod: podInfoOf(pod({ namespace: 'other', node: 'n' })) },
    false,
  ],
];

for (const [filter, what, waiting, event, expected] of HINTS) {
  test(`${filter} ${expected ? 'retries' : 'does not retry'} a rejected pod for ${what}`, () =>
    assert.equal(canChangeResult(filter, podInfoOf(waiting), event), expected));
}
