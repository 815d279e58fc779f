/** Events of ClusterOperators, on a real API server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resources } from '../../../../src/api/resources.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { createEventRecorder, createInformerFactory } from '../../../../src/client/index.ts';
import { systemClock as clock, systemRandom as random } from '../../../../src/host/process/process.ts';
import type { EtcdFact, ProbeFacts } from '../../../../src/openshift/operators/cluster-operators/core/index.ts';
import { Operators } from '../../../../src/openshift/operators/cluster-operators/operators.ts';
import { type ControlPlane, startControlPlane } from '../../../controllers/harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane();
});
after(() => plane?.stop());

function factsOf(state: 'ok' | 'unreachable'): ProbeFacts {
  const member = { name: 'm1', state, learner: false, errors: [] };
  const etcd: EtcdFact = { quorum: state === 'ok', leader: 'm1', members: [member] };
  return {
    hosts: [],
    etcd: { state: 'value', value: etcd, ageMs: 0 },
    controllersLease: { state: 'none' },
    schedulerLease: { state: 'none' },
    pools: { state: 'absent' },
    storage: { state: 'absent' },
    metrics: { state: 'absent' },
    skew: [],
    updatingTo: undefined,
  };
}

test('records a condition change as one event on the ClusterOperator and one in the namespace of its operator', async () => {
  const client = await plane.clientAs('system:admin', 'system:masters');
  const informers = createInformerFactory({ client, clock, random, log: silentLog });
  const recorder = createEventRecorder({
    client,
    component: 'cluster-version-operator',
    clock,
    random,
    log: silentLog,
  });
  const operators = new Operators({ client, informers, recorder, clock, log: silentLog });
  await informers.startAndSync();
  operators.start();
  for (const state of ['ok', 'ok', 'unreachable', 'unreachable'] as const) await operators.apply(factsOf(state));
  await recorder.stop();
  await informers.stop();
  for (const namespace of ['default', 'openshift-etcd']) {
    const { items } = await plane.of(resources.events).list({ namespace });
    const own = items.filter(({ involvedObject: { kind, name } }) => kind === 'ClusterOperator' && name === 'etcd');
    assert.deepEqual(
      own.map(({ reason, count, source }) => [reason, count, source?.component]),
      [['OperatorStatusChanged', 1, 'etcd-operator']],
      namespace,
    );
    assert.match(
      own[0]?.message ?? '',
      /^Status for clusteroperator\/etcd changed: Available changed from True to False \("no quorum: 0 of 1 members/,
    );
  }
});
