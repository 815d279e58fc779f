/** The local provisioner on a real API server, with a simulated host that deletes the data of volumes. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { isApiError } from '../../../../src/api/meta/status.ts';
import { resources } from '../../../../src/api/resources.ts';
import { SELECTED_NODE } from '../../../../src/api/volumes/binding.ts';
import {
  LOCAL_CLASS,
  LOCAL_DELETE,
  LOCAL_DELETED,
  LOCAL_DIRECTORY,
} from '../../../../src/api/volumes/local-provisioner.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

const namespace = 'default';
let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane({ controllers: { localVolumes: true } });
  await plane.addNode('n1', (node) => {
    node.metadata = { ...node.metadata, annotations: { [LOCAL_DIRECTORY]: '/data' } };
  });
});
after(() => plane.stop());

const claims = () => plane.of(resources.persistentVolumeClaims);
const volumes = () => plane.of(resources.persistentVolumes);
const nodes = () => plane.of(resources.nodes);

test('creates the volume of a claim, and deletes it after the host has deleted its data', async () => {
  await eventually(() => plane.of(resources.storageClasses).get(LOCAL_CLASS), 'the storage class exists');
  await claims().create({
    metadata: { name: 'data', namespace, annotations: { [SELECTED_NODE]: 'n1' } },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  const name = await eventually(async () => {
    const { status, spec } = await claims().get('data', namespace);
    return status?.phase === 'Bound' && spec?.volumeName;
  }, 'the claim is bound');
  assert.equal((await volumes().get(name)).spec?.local?.path, `/data/${name}`);

  await claims().delete('data', namespace);
  await eventually(
    async () => (await nodes().get('n1')).metadata?.annotations?.[LOCAL_DELETE] === name,
    'the host is requested to delete the data',
  );
  await nodes().patch('n1', undefined, 'merge', { metadata: { annotations: { [LOCAL_DELETED]: name } } });
  const isDeleted = (error: unknown): boolean => isApiError(error, 'NotFound');
  await eventually(
    () =>
      volumes()
        .get(name)
        .then(() => false, isDeleted),
    'the volume is deleted',
  );
  await eventually(
    async () => (await nodes().get('n1')).metadata?.annotations?.[LOCAL_DELETE] === undefined,
    'the request to the host is removed',
  );
});
