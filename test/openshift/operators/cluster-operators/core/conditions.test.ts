import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostProbe, HostReport } from '../../../../../src/api/kinds/nodes/nodes/host-report.ts';
import {
  conditionsOf,
  DEGRADED_INERTIA_MS,
} from '../../../../../src/openshift/operators/cluster-operators/core/conditions.ts';
import {
  type OperatorState,
  operatorStates,
  type ProbeFacts,
} from '../../../../../src/openshift/operators/cluster-operators/core/index.ts';
import type { OperatorCondition } from '../../../../../src/openshift/operators/kinds/config/types.ts';
import { generator } from '../../../../support/random.ts';

const PROBES: readonly HostProbe[] = [
  'api',
  'authentication',
  'controllers',
  'dns',
  'etcd',
  'network',
  'router',
  'slices',
];
const report = (change: Partial<Record<HostProbe, string>> = {}, version = '0.1.0'): HostReport => ({
  version,
  kubernetes: 'v1.36.0+hyperedge1',
  kubeletAuthority: true,
  probes: { ...Object.fromEntries(PROBES.map((name) => [name, ''])), ...change },
});

const member = (name: string, state: 'ok' | 'unreachable' = 'ok') => ({ name, state, learner: false, errors: [] });
const lease = { state: 'value', value: { holder: 'h1_x', renewedMs: 1_000, durationMs: 15_000 }, ageMs: 0 } as const;

function facts(
  change: Partial<ProbeFacts> = {},
  reports: readonly (HostReport | undefined)[] = [report()],
): ProbeFacts {
  return {
    hosts: reports.map((each, index) => ({ name: `h${index + 1}`, master: true, report: each, ageMs: 0 })),
    etcd: { state: 'value', value: { quorum: true, leader: 'h1', members: [member('h1')] }, ageMs: 0 },
    controllersLease: lease,
    schedulerLease: lease,
    pools: { state: 'absent' },
    storage: { state: 'value', value: { defaultClass: 'local', provisioner: 'p', served: true }, ageMs: 0 },
    metrics: { state: 'value', value: { nodes: reports.length }, ageMs: 0 },
    skew: [],
    updatingTo: undefined,
    ...change,
  };
}

const at = (ms: number) => ({ monotonicMs: ms, nowMs: Date.UTC(2026, 0, 1) + ms });
const stateOf = (given: ProbeFacts, name: string): OperatorState => {
  const found = operatorStates(given).find((each) => each.name === name);
  assert.ok(found, name);
  return found;
};
const statusOf = (
  given: ProbeFacts,
  name: string,
  previous: readonly OperatorCondition[] = [],
): Record<string, string> =>
  Object.fromEntries(
    conditionsOf(stateOf(given, name).assessment, previous, undefined, at(0)).conditions.map((each) => [
      each.type,
      each.status,
    ]),
  );

test('reports a ClusterOperator for each component with the version of the oldest host', () => {
  const states = operatorStates(facts({}, [report(), report({}, '0.2.0')]));
  assert.deepEqual(
    states.map(({ name }) => name),
    ['authentication', 'dns', 'etcd', 'ingress', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'].concat([
      'monitoring',
      'network',
      'node-tuning',
      'storage',
    ]),
  );
  for (const { versions, assessment } of states) {
    assert.deepEqual(versions[0], { name: 'operator', version: '0.1.0' });
    assert.deepEqual(Object.keys(assessment), ['well']);
  }
  const api = states.find(({ name }) => name === 'kube-apiserver');
  assert.deepEqual(api?.versions[1], { name: 'kube-apiserver', version: '1.36.0' });
});

test('reports the ClusterOperator machine-config, with the state of the pools, if pools exist', () => {
  const condition = (type: string) => ({ type, status: 'True', message: 'because' });
  const pool = {
    name: 'worker',
    paused: false,
    drains: false,
    conditions: [condition('Degraded'), condition('Updating')],
  };
  const { assessment } = stateOf(facts({ pools: { state: 'value', value: [pool], ageMs: 0 } }), 'machine-config');
  assert.equal(assessment.degraded?.message, 'pool worker: because');
  assert.equal(assessment.progressing?.message, 'pool worker: because');
  assert.equal(assessment.notUpgradeable?.reason, 'DegradedPool');
});

test('sets Available=False if a component responds on no host, and Degraded=True if it fails on some hosts', () => {
  const gone = report({ dns: 'no answer' });
  assert.equal(statusOf(facts({}, [gone]), 'dns')['Available'], 'False');
  assert.equal(statusOf(facts({}, [gone, report()]), 'dns')['Available'], 'True');
  assert.match(
    stateOf(facts({}, [gone, report()]), 'dns').assessment.degraded?.message ?? '',
    /1 of 2 hosts; h1: no answer/,
  );
});

test('ignores host reports and the status of etcd that are older than 30 s', () => {
  const given = facts();
  const hosts = given.hosts.map((host) => ({ ...host, ageMs: 30_001 }));
  assert.equal(statusOf({ ...given, hosts }, 'dns')['Available'], 'False');
  assert.equal(
    statusOf(
      facts({ etcd: { state: 'value', value: { quorum: true, leader: '', members: [] }, ageMs: 30_001 } }),
      'etcd',
    )['Available'],
    'Unknown',
  );
});

test('the ClusterOperator etcd is available only with a quorum of healthy voters', () => {
  const etcd = (...states: ('ok' | 'unreachable')[]): ProbeFacts =>
    facts({
      etcd: {
        state: 'value',
        value: { quorum: true, leader: 'm0', members: states.map((state, index) => member(`m${index}`, state)) },
        ageMs: 0,
      },
    });
  assert.equal(statusOf(etcd('ok', 'ok', 'unreachable'), 'etcd')['Available'], 'True');
  assert.match(
    stateOf(etcd('ok', 'ok', 'unreachable'), 'etcd').assessment.degraded?.message ?? '',
    /m2 is unreachable/,
  );
  assert.equal(statusOf(etcd('ok', 'unreachable', 'unreachable'), 'etcd')['Available'], 'False');
});

test('a component whose leader election lease has expired is not available', () => {
  const late = (renewedMs: number, holder = 'h1_x'): Partial<ProbeFacts> => ({
    schedulerLease: { state: 'value', value: { holder, renewedMs, durationMs: 15_000 }, ageMs: 0 },
  });
  assert.equal(statusOf(facts(late(6_000)), 'kube-scheduler')['Available'], 'True');
  assert.equal(statusOf(facts(late(16_000)), 'kube-scheduler')['Available'], 'False');
  assert.equal(statusOf(facts(late(0, '')), 'kube-scheduler')['Available'], 'False');
  const hosts = [report({ controllers: 'no answer' }), report()];
  assert.equal(statusOf(facts(late(6_000), hosts), 'kube-scheduler')['Available'], 'False');
  assert.equal(statusOf(facts(late(3_000), hosts), 'kube-scheduler')['Available'], 'True');
});

test('sets Degraded=True two minutes after a fault begins, and Degraded=False as soon as it ends', () => {
  const assessment = { well: '', degraded: { reason: 'Fault', message: 'm' } };
  let { conditions, degradedSinceMs } = conditionsOf(assessment, [], undefined, at(0));
  const degraded = (): OperatorCondition | undefined => conditions.find(({ type }) => type === 'Degraded');
  assert.equal(degraded()?.status, 'False');
  ({ conditions, degradedSinceMs } = conditionsOf(
    assessment,
    conditions,
    degradedSinceMs,
    at(DEGRADED_INERTIA_MS - 1),
  ));
  assert.equal(degraded()?.status, 'False');
  ({ conditions, degradedSinceMs } = conditionsOf(assessment, conditions, degradedSinceMs, at(DEGRADED_INERTIA_MS)));
  assert.equal(degraded()?.status, 'True');
  // A new leader does not know when the fault began.
  ({ conditions } = conditionsOf(assessment, conditions, undefined, at(DEGRADED_INERTIA_MS + 1)));
  assert.equal(degraded()?.status, 'True');
  ({ conditions } = conditionsOf({ well: '' }, conditions, degradedSinceMs, at(DEGRADED_INERTIA_MS + 2)));
  assert.equal(degraded()?.status, 'False');
});

test('changes lastTransitionTime only when the status of a condition changes', () => {
  const random = generator(16);
  for (let round = 0; round < 2_000; round++) {
    let conditions: readonly OperatorCondition[] = [];
    let since: number | undefined;
    for (let step = 0; step < 8; step++) {
      const some = (): { reason: string; message: string } | undefined =>
        random() < 0.5 ? undefined : { reason: 'R', message: String(step) };
      const [unavailable, degraded, progressing] = [some(), some(), some()];
      const given = {
        well: String(step),
        ...(unavailable === undefined ? {} : { unavailable }),
        ...(degraded === undefined ? {} : { degraded }),
        ...(progressing === undefined ? {} : { progressing }),
      };
      const now = at(step * 50_000);
      const next = conditionsOf(given, conditions, since, now);
      for (const each of next.conditions) {
        const old = conditions.find(({ type }) => type === each.type);
        const changed = old?.status !== each.status;
        const stamp = `${new Date(now.nowMs).toISOString().slice(0, 19)}Z`;
        assert.equal(each.lastTransitionTime, changed ? stamp : old.lastTransitionTime);
      }
      const shown = next.conditions.find(({ type }) => type === 'Degraded')?.status;
      if (degraded === undefined) assert.equal(shown, 'False');
      ({ conditions, degradedSinceMs: since } = next);
    }
  }
});
