import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type DeploymentState, notReady, type PodState } from '../../build/workload-state.ts';

const deployment = (readyReplicas: number, more: object = {}): DeploymentState => ({
  metadata: { name: 'hello', generation: 2 },
  spec: { replicas: 2 },
  status: { observedGeneration: 2, updatedReplicas: 2, readyReplicas, ...more },
});
const late = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded', message: 'has timed out' };
const pod = (name: string, status: PodState['status'] = {}): PodState => ({ metadata: { name }, status });
const READY = { conditions: [{ type: 'Ready', status: 'True' }] };

test('treats a deployment as ready although an earlier roll-out exceeded its progress deadline', () => {
  assert.deepEqual(notReady(deployment(2, { conditions: [late] }), [pod('a', READY), pod('b', READY)]), []);
});

test('waits until the controller has observed a changed template', () => {
  assert.deepEqual(notReady(deployment(2, { observedGeneration: 1 }), [pod('a', READY)]), [
    'deployment/hello: 2 of 2 replicas ready',
  ]);
  assert.equal(notReady(deployment(2, { updatedReplicas: 1 }), []).length, 1);
});

test('the state of a workload names each pod that is not ready, and the reason', () => {
  const container = { name: 'hello', ready: false, restartCount: 0 };
  const waiting = { reason: 'ErrImageNeverPull', message: 'no such image' };
  const lines = notReady(deployment(1, { conditions: [late] }), [
    pod('ready', READY),
    pod('pulling', { containerStatuses: [{ ...container, state: { waiting } }] }),
    pod('crashing', {
      containerStatuses: [
        {
          ...container,
          restartCount: 3,
          state: { waiting: { reason: 'CrashLoopBackOff' } },
          lastState: { terminated: { exitCode: 127, reason: 'Error', message: 'sh: not found' } },
        },
      ],
    }),
    pod('probing', { containerStatuses: [{ ...container, state: { running: {} } }] }),
    pod('pending', {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes are free' }],
    }),
    pod('evicted', { phase: 'Failed', reason: 'Evicted', message: 'the disk is full' }),
  ]);
  assert.deepEqual(lines, [
    'deployment/hello: 1 of 2 replicas ready',
    'pod/pulling: container hello: ErrImageNeverPull: no such image',
    'pod/crashing: container hello: CrashLoopBackOff (3 restarts, last exit code 127: Error: sh: not found)',
    'pod/probing: container hello: runs, but its readiness probe fails',
    'pod/pending: Pending: Unschedulable: 0/1 nodes are free',
    'pod/evicted: Failed: Evicted: the disk is full',
  ]);
});

test('shows why the pods of a deployment cannot be created', () => {
  const failure = { type: 'ReplicaFailure', status: 'True', reason: 'FailedCreate', message: 'exceeded quota' };
  assert.deepEqual(notReady(deployment(0, { conditions: [failure] }), []), [
    'deployment/hello: 0 of 2 replicas ready: FailedCreate: exceeded quota',
  ]);
});
