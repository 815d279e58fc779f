import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { Event, Node, Pod } from '../../../../src/api/generated/core/v1.ts';
import { explainMissingPods, explainPod, podStatusText } from '../../../../src/console/data/pods/explain.ts';

const NOW_MS = Date.parse('2026-01-01T00:10:00Z');
const node: Node = { metadata: { name: 'n1' }, spec: { taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] } };

const explain = (pod: Pod, events: Event[] = [], nodes: Node[] = [node]) =>
  explainPod({ pod, events, nodes, nowMs: NOW_MS });

const event = (reason: string, message: string): Event => ({
  metadata: { creationTimestamp: '2026-01-01T00:00:00Z' },
  involvedObject: {},
  reason,
  message,
});

const spec = {
  containers: [{ name: 'app', image: 'reg/app:1', resources: { requests: { cpu: '8' } } }],
  nodeSelector: { disk: 'ssd' },
};
const unscheduled = (message: string): Pod => ({
  metadata: { name: 'p' },
  spec,
  status: {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
  },
});

type Container = NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number];
const placed = (container: Partial<Container>): Pod => ({
  metadata: { name: 'p' },
  spec: { ...spec, nodeName: 'n1' },
  status: {
    phase: 'Running',
    containerStatuses: [{ name: 'app', image: 'reg/app:1', imageID: '', ready: false, restartCount: 0, ...container }],
  },
});
const crashed = (terminated: object, restartCount = 3): Pod =>
  placed({
    restartCount,
    state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s' } },
    lastState: { terminated: { exitCode: 1, ...terminated } },
  });

const LONG_NAME = 'n'.repeat(253);
/** A new pod has no statuses of containers yet. */
const nameTooLong: Pod = {
  metadata: { name: LONG_NAME, namespace: 'demo' },
  spec: { ...spec, nodeName: 'n1' },
  status: { phase: 'Pending' },
};

/** Each case: its name, the pod, the events, and the expected title and fix of the first finding. */
const CASES: readonly (readonly [name: string, pod: Pod, events: Event[], title: RegExp, fix: RegExp])[] = [
  [
    'a name that is too long',
    nameTooLong,
    [
      event(
        'FailedCreatePodSandBox',
        `Failed to create pod sandbox: ENAMETOOLONG: name too long, mkdir '/${LONG_NAME}'`,
      ),
    ],
    /names of the pod and its namespace are too long: they have 257 characters/,
    /at most 217 characters/,
  ],
  [
    'resources',
    unscheduled('0/1 nodes are available: 1 Insufficient cpu.'),
    [],
    /requests cpu 8 \(app\)/,
    /Lower the requests/,
  ],
  ['taints', unscheduled('1 node(s) had untolerated taint {gpu: yes}'), [], /n1 has gpu=yes/, /toleration/],
  ['selector', unscheduled("1 node(s) didn't match Pod's node affinity/selector"), [], /disk=ssd/, /Label a node/],
  ['cordoned nodes', unscheduled('1 node(s) were unschedulable'), [], /cordoned/, /Uncordon/],
  ['ports', unscheduled("1 node(s) didn't have free ports"), [], /host port/, /hostPort/],
  ['a missing claim', unscheduled('persistentvolumeclaim "data" not found'), [], /volume/, /Storage/],
  ['an unknown scheduling message', unscheduled('0/1 nodes: odd'), [], /No node can run/, /message/],
  [
    'a rig gate',
    { metadata: { name: 'p' }, spec: { ...spec, schedulingGates: [{ name: 'rig.hyperedge.dev/board' }] } },
    [],
    /rig claim board/,
    /Rigs/,
  ],
  [
    'another gate',
    { metadata: { name: 'p' }, spec: { ...spec, schedulingGates: [{ name: 'x/y' }] } },
    [],
    /scheduling gate/,
    /controller/,
  ],
  [
    'an image that does not exist',
    placed({ state: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off' } } }),
    [event('Failed', 'Failed to pull image "reg/app:1": manifest unknown')],
    /reg\/app:1 does not exist/,
    /tag/,
  ],
  [
    'an image whose cause is in the status, beside a later event with the reason only',
    placed({
      state: {
        waiting: {
          reason: 'ImagePullBackOff',
          message: 'Back-off pulling image "reg/app:1": ErrImagePull: pull reg/app:1: registry reg cannot be reached',
        },
      },
    }),
    [event('Failed', 'Error: ImagePullBackOff')],
    /reg\/app:1 cannot be fetched: the registry cannot be reached/,
    /Storage and images/,
  ],
  [
    'an image whose cause is in an earlier event only',
    placed({ state: { waiting: { reason: 'ImagePullBackOff', message: 'Back-off' } } }),
    [event('Failed', 'Failed to pull image "reg/app:1": unauthorized'), event('Failed', 'Error: ImagePullBackOff')],
    /needs a login/,
    /pull secret/,
  ],
  [
    'an image that needs a login',
    placed({ state: { waiting: { reason: 'ErrImagePull', message: 'unauthorized' } } }),
    [],
    /needs a login/,
    /pull secret/,
  ],
  [
    'a registry that cannot be reached',
    placed({ state: { waiting: { reason: 'ErrImagePull', message: 'dial tcp: lookup reg: no such host' } } }),
    [],
    /cannot be reached/,
    /DNS/,
  ],
  [
    'a missing config map',
    placed({ state: { waiting: { reason: 'CreateContainerConfigError', message: 'configmap "settings" not found' } } }),
    [],
    /config map settings, which does not exist/,
    /Create it/,
  ],
  [
    'a missing key',
    placed({
      state: { waiting: { reason: 'CreateContainerConfigError', message: "couldn't find key host in ConfigMap n/x" } },
    }),
    [],
    /key host/,
    /Add the key/,
  ],
  ['an exit code', crashed({ exitCode: 127 }), [], /3 restarts.*exit code 127.*not found/, /command/],
  [
    'a lack of memory',
    crashed({ exitCode: 137, reason: 'OOMKilled' }),
    [],
    /more memory than its limit/,
    /limits\.memory/,
  ],
  [
    'a liveness probe',
    crashed({ exitCode: 143 }),
    [event('Unhealthy', 'Liveness probe failed: HTTP 500')],
    /liveness probe failed/,
    /port and path/,
  ],
  [
    'a readiness probe',
    placed({ state: { running: {} } }),
    [event('Unhealthy', 'Readiness probe failed: refused')],
    /readiness probe fails/,
    /logs/,
  ],
  [
    'a volume',
    placed({ state: { waiting: { reason: 'ContainerCreating' } } }),
    [event('FailedMount', 'MountVolume.SetUp failed: timed out')],
    /cannot be mounted/,
    /claims/,
  ],
  [
    'a volume of a missing secret',
    placed({ state: { waiting: { reason: 'ContainerCreating' } } }),
    [event('FailedMount', 'MountVolume.SetUp failed for volume "s": secret "keys" not found')],
    /secret keys, which does not exist/,
    /Create it/,
  ],
  [
    'an eviction',
    { metadata: { name: 'p' }, spec: { ...spec, nodeName: 'n1' }, status: { phase: 'Failed', reason: 'Evicted' } },
    [],
    /evicted/,
    /disk/,
  ],
  [
    'a finalizer',
    { metadata: { name: 'p', deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['x/y'] }, spec },
    [],
    /finalizer/,
    /controller/,
  ],
];

suite('explanation of a pod that does not run', () => {
  for (const [name, pod, events, title, fix] of CASES)
    test(name, () => {
      const [first] = explain(pod, events);
      assert.match(first?.title ?? 'no finding', title);
      assert.match(first?.fix ?? '', fix);
    });

  test('a healthy and a finished pod have no findings', () => {
    assert.deepEqual(explain(placed({ ready: true, state: { running: {} } })), []);
    assert.deepEqual(explain({ metadata: { name: 'p' }, spec, status: { phase: 'Succeeded' } }), []);
  });

  test('all causes in one scheduling message are named', () => {
    const findings = explain(unscheduled('1 Insufficient cpu, 1 node(s) had untolerated taint {gpu: yes}'));
    assert.equal(findings.length, 2);
  });

  test('texts of API objects with markup are shown as text in a finding', () => {
    const html = '<img src=x onerror=alert(1)>';
    const [first] = explain(placed({ state: { waiting: { reason: 'ErrImagePull', message: html } } }));
    assert.equal(first?.detail, html);
  });

  test('a workload whose pods are refused names quota or policy', () => {
    assert.match(explainMissingPods(['pods "x" is forbidden: exceeded quota: small'])?.title ?? '', /quota/);
    assert.match(explainMissingPods(['violates PodSecurity "restricted"'])?.title ?? '', /security policy/);
    assert.equal(explainMissingPods(['Created pod: x']), undefined);
  });
});

suite('the status of a pod in a list', () => {
  test('the status of a pod in a list equals the status that kubectl shows', () => {
    assert.equal(podStatusText(crashed({})), 'CrashLoopBackOff');
    assert.equal(podStatusText(placed({ ready: true, state: { running: {} } })), 'Running');
    assert.equal(podStatusText(unscheduled('x')), 'Pending');
    assert.equal(
      podStatusText({
        spec: { containers: [], initContainers: [{ name: 'a' }, { name: 'b' }] },
        status: {
          phase: 'Pending',
          initContainerStatuses: [
            { name: 'a', image: '', imageID: '', ready: true, restartCount: 0, state: { terminated: { exitCode: 0 } } },
            { name: 'b', image: '', imageID: '', ready: false, restartCount: 0, state: { running: {} } },
          ],
        },
      }),
      'Init:1/2',
    );
  });
});
