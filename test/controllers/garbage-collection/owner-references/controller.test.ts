/** The garbage collector with a real API server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ kubelets: false });
});
after(() => plane.stop());

const namespace = 'default';
const referenceTo = (name: string, uid: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', name, uid });

async function isGone(name: string): Promise<true | undefined> {
  try {
    await plane.of(resources.configMaps).get(name, namespace);
    return undefined;
  } catch (error) {
    if (isApiError(error, 'NotFound')) return true;
    throw error;
  }
}

test('deletes a dependent that is created while an earlier dependent of its deleted owner terminates', async () => {
  const maps = plane.of(resources.configMaps);
  const owner = await maps.create({ metadata: { name: 'owner', namespace } });
  const ownerReferences = [referenceTo('owner', owner.metadata?.uid ?? '')];
  await maps.create({ metadata: { name: 'early', namespace, ownerReferences, finalizers: ['example.com/hold'] } });
  await maps.delete('owner', namespace, { propagationPolicy: 'Background' });
  await eventually(
    async () => ((await maps.get('early', namespace)).metadata?.deletionTimestamp === undefined ? undefined : true),
    'the first dependent terminates',
    30_000,
  );
  await maps.create({ metadata: { name: 'late', namespace, ownerReferences } });
  await eventually(() => isGone('late'), 'the later dependent is deleted', 30_000);
  await maps.patch('early', namespace, 'merge', { metadata: { finalizers: null } });
});

const OWNERS = 1_000;

/** Number of requests for a config map that does not exist. */
async function lookups(): Promise<number> {
  const { text } = await plane.api.call('GET', '/metrics');
  const lines = text
    .split('\n')
    .filter((line) => /^apiserver_request_total\{.*"configmaps".*verb="GET".*code="404"/.test(line));
  return lines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

test('collects objects while others have thousands of absent owners', async () => {
  const maps = plane.of(resources.configMaps);
  const before = await lookups();
  const wide = Array.from({ length: 10 }, (_, index) => `wide-${index}`);
  const owner = await maps.create({ metadata: { name: 'small-owner', namespace } });
  const ownerReferences = [referenceTo('small-owner', owner.metadata?.uid ?? '')];
  await maps.create({ metadata: { name: 'small', namespace, ownerReferences } });
  for (const name of wide) {
    const owners = Array.from({ length: OWNERS }, (_, index) => referenceTo('absent', `${name}-${index}`));
    await maps.create({ metadata: { name, namespace, ownerReferences: owners } });
  }
  await maps.delete('small-owner', namespace, { propagationPolicy: 'Background' });
  await eventually(() => isGone('small'), 'the dependent is deleted', 60_000);
  const looked = (await lookups()) - before;
  assert.ok(looked < (wide.length * OWNERS) / 2, `${looked} absent owners were looked up before`);
});
