/**
 * Registered API group whose server is unavailable: known objects are deleted, and the condition reports the rest as
 * pending.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isApiError } from '../../src/api/meta/status.ts';
import { resources } from '../../src/api/resources.ts';
import { API_SERVICES, apiService } from '../apiserver/aggregation/setup.ts';
import { type ControlPlane, eventually, startControlPlane } from './harness.ts';

const NAME = 'v1.away.example.com';
let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ kubelets: false });
  const made = await plane.api.call('POST', API_SERVICES, { body: apiService('', 'away', NAME) });
  assert.equal(made.code, 201, made.text);
});
after(() => plane.stop());

test('deletes known objects of terminating namespaces while an API group is unavailable, and the namespaces afterwards', async () => {
  const namespaces = plane.of(resources.namespaces);
  const maps = plane.of(resources.configMaps);
  await namespaces.create({ metadata: { name: 'doomed' } });
  await maps.create({ metadata: { name: 'm', namespace: 'doomed' } });
  await namespaces.delete('doomed');
  const condition = await eventually(
    async () => {
      const { status } = await namespaces.get('doomed');
      const found = status?.conditions?.find(({ type }) => type === 'NamespaceDeletionDiscoveryFailure');
      return found?.status === 'True' ? found : undefined;
    },
    'the condition',
    30_000,
  );
  assert.equal(condition.reason, 'DiscoveryFailed');
  assert.match(condition.message ?? '', /^Discovery failed for some groups, 1 failing: away\.example\.com\/v1: /);
  assert.deepEqual((await maps.list({ namespace: 'doomed' })).items, []);
  assert.equal((await plane.api.call('DELETE', `${API_SERVICES}/${NAME}`)).code, 200);
  await eventually(
    async () => {
      const found = await namespaces.get('doomed').catch((error: unknown) => {
        if (isApiError(error, 'NotFound')) return undefined;
        throw error;
      });
      return found === undefined ? true : undefined;
    },
    'the namespace has gone',
    30_000,
  );
});

test('deletes objects whose owners are deleted while an API group is unavailable', async () => {
  const made = await plane.api.call('POST', API_SERVICES, { body: apiService('', 'away', NAME) });
  assert.equal(made.code, 201, made.text);
  const maps = plane.of(resources.configMaps);
  const owner = await maps.create({ metadata: { name: 'owner', namespace: 'default' } });
  const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata?.uid ?? '' };
  await maps.create({ metadata: { name: 'owned', namespace: 'default', ownerReferences: [reference] } });
  await maps.delete('owner', 'default');
  await eventually(
    async () => {
      const { items } = await maps.list({ namespace: 'default' });
      return items.some(({ metadata }) => metadata?.name === 'owned') ? undefined : true;
    },
    'the owned one has gone',
    30_000,
  );
});
