/** The template instance controller on a real API server. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import type { Template } from '../../../../src/openshift/templates/kinds/templates/index.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../../controllers/harness.ts';

const namespace = 'default';
let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ kubelets: false });
});
after(() => plane.stop());

const instances = () => plane.of(resources.templateInstances);
const configMaps = () => plane.of(resources.configMaps);
const configMap = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
const create = (name: string, objects: readonly object[]) =>
  instances().create({
    metadata: { name, namespace },
    spec: { template: { metadata: { name: 't' }, objects } as Template },
  });
const conditionOf = async (name: string) => (await instances().get(name, namespace)).status?.conditions?.[0];
const isNotFound = (error: unknown): boolean => isApiError(error, 'NotFound');

test('creates the objects of an instance, and deletes them with it', async () => {
  await create('shop', [configMap('one'), configMap('two')]);
  const { type } = await eventually(() => conditionOf('shop'), 'a condition');
  assert.equal(type, 'Ready');
  const { status } = await instances().get('shop', namespace);
  assert.deepEqual(
    status?.objects?.map(({ ref }) => `${ref?.kind} ${ref?.name}`),
    ['ConfigMap one', 'ConfigMap two'],
  );
  await configMaps().get('two', namespace);

  await instances().delete('shop', namespace);
  await eventually(
    () =>
      configMaps()
        .get('one', namespace)
        .then(() => false, isNotFound),
    'the objects are deleted',
  );
  await eventually(
    () =>
      instances()
        .get('shop', namespace)
        .then(() => false, isNotFound),
    'the instance is deleted',
  );
});

test('reports a rejected object without creating the others', async () => {
  await create('broken', [configMap('valid'), configMap('NOT_VALID')]);
  const condition = await eventually(() => conditionOf('broken'), 'a condition');
  assert.equal(condition.type, 'InstantiateFailure');
  assert.match(condition.message ?? '', /NOT_VALID/);
  await assert.rejects(configMaps().get('valid', namespace), { reason: 'NotFound' });
});
