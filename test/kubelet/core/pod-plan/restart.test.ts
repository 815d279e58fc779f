import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, Pod } from '../../../../src/api/generated/core/v1.ts';
import { restartsAfter } from '../../../../src/kubelet/core/pod-plan/restart.ts';

const restarts = (podPolicy: string, container: object, exitCode: number): boolean =>
  restartsAfter({ spec: { restartPolicy: podPolicy, containers: [] } } as Pod, container as Container, exitCode);
const rule = (operator: string, ...values: number[]): object => ({
  action: 'Restart',
  exitCodes: { operator, values },
});

test('a matching restart rule overrides the policy of the container, which overrides the policy of the pod', () => {
  assert.equal(restarts('OnFailure', {}, 0), false);
  assert.equal(restarts('OnFailure', {}, 1), true);
  assert.equal(restarts('Always', { restartPolicy: 'Never' }, 1), false);
  assert.equal(restarts('Never', { restartPolicy: 'OnFailure' }, 1), true);
  const ruled = (...rules: object[]): object => ({ restartPolicy: 'Never', restartPolicyRules: rules });
  assert.equal(restarts('Never', ruled(rule('In', 42)), 42), true);
  assert.equal(restarts('Never', ruled(rule('In', 42)), 43), false);
  assert.equal(restarts('Never', ruled(rule('NotIn', 42)), 43), true);
  assert.equal(restarts('Never', ruled(rule('In', 1), rule('In', 2)), 2), true);
});
