import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  catalogState,
  installedState,
  planState,
  poolState,
  subscriptionState,
} from '../../../src/console/data/operators.ts';

const condition = (type: string, status: string, message = '', reason = '') => ({ type, status, message, reason });
const subscription = (state: string, ...conditions: readonly object[]) => ({
  metadata: {},
  status: { state, conditions, installedCSV: '' },
});
const pool = (spec: object, ...conditions: readonly object[]) => ({
  metadata: {},
  spec,
  status: { conditions, degradedMachineCount: 1 },
});

describe('states of operators', () => {
  test('a subscription without a solution shows the reason of the resolver', () => {
    const failed = subscription('', condition('ResolutionFailed', 'True', 'no such package'));
    assert.deepEqual(subscriptionState(failed), {
      level: 'bad',
      text: 'no version can be installed: no such package',
    });
  });

  test('a failed installation precedes the other problems of a subscription', () => {
    const failed = subscription(
      'UpgradePending',
      condition('CatalogSourcesUnhealthy', 'True', 'gone'),
      condition('InstallPlanFailed', 'True', 'no permission'),
    );
    assert.equal(subscriptionState(failed).text, 'the installation failed: no permission');
  });

  test('a subscription with manual approval waits for its plan', () => {
    const waiting = subscription('UpgradePending', condition('InstallPlanPending', 'True', '', 'RequiresApproval'));
    assert.equal(subscriptionState(waiting).text, 'waits for the approval of its install plan');
    assert.equal(subscriptionState(subscription('UpgradePending')).text, 'is being installed');
    assert.equal(subscriptionState(subscription('AtLatestKnown')).level, 'good');
  });

  test('a catalog, a plan and an installed operator show the message of their failure', () => {
    assert.equal(catalogState({ status: { message: 'no image' } }).text, 'not usable: no image');
    const plan = { status: { phase: 'Failed', conditions: [condition('Installed', 'False', 'no role')] } };
    assert.equal(planState(plan).text, 'failed: no role');
    const operator = { status: { phase: 'Failed', message: 'deployment is not available' } };
    assert.equal(installedState(operator).text, 'failed: deployment is not available');
  });

  test('a pool shows whether it is paused, and the message of the failed host', () => {
    const updated = condition('Updated', 'True');
    assert.equal(poolState(pool({}, updated)).text, 'updated');
    assert.equal(poolState(pool({ paused: true }, updated)).text, 'paused');
    assert.match(poolState(pool({ paused: true }, condition('Updated', 'False'))).text, /^paused: changes wait/);
    const degraded = [condition('Degraded', 'True'), condition('NodeDegraded', 'True', 'n1: disk is full')];
    assert.equal(poolState(pool({}, ...degraded)).text, 'degraded (1 host): n1: disk is full');
  });
});
