/** Objects are rewritten in the current storage version, and failures are reported. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { KubeObject, ResourceType } from '../../../../src/api/meta/object.ts';
import { resources } from '../../../../src/api/resources.ts';
import { startServer, type TestServer } from '../../../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from '../../harness.ts';

let api: TestServer;
let plane: ControlPlane;
before(async () => {
  api = await startServer({ config: { runtimeConfig: new Map([['storagemigration.k8s.io/v1beta1', true]]) } });
  plane = await startControlPlane({ kubelets: false, api });
});
after(async () => {
  await plane.stop();
  await api.stop();
});

const migrations = () => plane.of(resources.storageVersionMigrations);

const version = (name: string, storage: boolean) => ({
  name,
  served: true,
  storage,
  schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
});

const crd = {
  metadata: { name: 'boards.lab.example.com' },
  spec: {
    group: 'lab.example.com',
    scope: 'Namespaced',
    names: { plural: 'boards', kind: 'Board' },
    versions: [version('v1', true), version('v2', false)],
  },
};

const boards = (of: string): ResourceType<KubeObject> => ({
  group: 'lab.example.com',
  version: of,
  kind: 'Board',
  plural: 'boards',
  namespaced: true,
});

const ended = (name: string, type: string) =>
  eventually(async () => {
    const { status } = await migrations().get(name);
    return status?.conditions?.some((each) => each.type === type && each.status === 'True') ? status : undefined;
  }, `${name} ${type}`);

const migrate = (name: string, group: string, resource: string) =>
  migrations().create({ metadata: { name }, spec: { resource: { group, resource } } });

test('rewrites the objects of a custom resource in the new storage version', { timeout: 60_000 }, async () => {
  const definitions = plane.of(resources.customResourceDefinitions);
  await definitions.create(crd as never);
  await eventually(
    async () =>
      (await definitions.get(crd.metadata.name)).status?.conditions?.some(
        ({ type, status }) => type === 'Established' && status === 'True',
      ),
    'the kind is served',
  );
  await eventually(
    () =>
      plane
        .of(boards('v1'))
        .create({ apiVersion: 'lab.example.com/v1', kind: 'Board', metadata: { name: 'one', namespace: 'default' } })
        .catch(() => undefined),
    'a board is created',
  );
  const changed = await definitions.get(crd.metadata.name);
  await definitions.update({
    ...changed,
    spec: { ...changed.spec, versions: [version('v1', false), version('v2', true)] },
  } as never);
  await eventually(
    async () => (await definitions.get(crd.metadata.name)).status?.storedVersions?.includes('v2'),
    'v2 is a stored version',
  );
  const before = (await plane.of(boards('v1')).get('one', 'default')).metadata?.resourceVersion;
  await migrate('boards', 'lab.example.com', 'boards');
  const status = await ended('boards', 'Succeeded');
  assert.match(status.resourceVersion ?? '', /^[0-9]+$/);
  const running = status.conditions?.find(({ type }) => type === 'Running');
  assert.equal(running?.status, 'False');
  const after = (await plane.of(boards('v1')).get('one', 'default')).metadata?.resourceVersion;
  assert.notEqual(after, before, 'the object was written');
  const migrated = await definitions.get(crd.metadata.name);
  assert.deepEqual(migrated.status?.storedVersions, ['v2']);
  const condition = migrated.status?.conditions?.find(({ type }) => type === 'StorageMigrating');
  assert.equal(condition?.status, 'False');
  assert.equal(condition.reason, 'MigrationSucceeded');
  assert.equal(condition.message, 'The migration has succeeded and the stored versions have been updated');
  const observed = (condition as { observedGeneration?: number }).observedGeneration;
  assert.equal(observed, migrated.metadata?.generation);
  await migrate('again', 'lab.example.com', 'boards');
  await ended('again', 'Succeeded');
  assert.equal((await plane.of(boards('v1')).get('one', 'default')).metadata?.resourceVersion, after, 'nothing to do');
  // The old version can be removed now. The removal was rejected while objects might be stored in this version.
  const { spec, metadata } = await definitions.get(crd.metadata.name);
  await definitions.update({ metadata, spec: { ...spec, versions: [version('v2', true)] } } as never);
  assert.equal((await plane.of(boards('v2')).get('one', 'default')).metadata?.name, 'one');
});

test('migrates roles and other objects with additional validation', { timeout: 60_000 }, async () => {
  for (const [name, group, resource] of [
    ['roles', 'rbac.authorization.k8s.io', 'clusterroles'],
    ['maps', '', 'configmaps'],
    ['accounts', '', 'serviceaccounts'],
  ] as const) {
    await migrate(name, group, resource);
    await ended(name, 'Succeeded');
  }
});

test('marks the migration of a missing resource as failed', { timeout: 60_000 }, async () => {
  await migrate('none', 'lab.example.com', 'nothings');
  const status = await ended('none', 'Failed');
  const failed = status.conditions?.find(({ type }) => type === 'Failed');
  assert.equal(failed?.reason, 'StorageVersionMigrationFailed');
  assert.equal(failed?.message, 'resource nothings.lab.example.com is not served');
  const { metadata } = await migrations().get('none');
  await assert.rejects(
    migrations().update({ metadata: metadata ?? {}, spec: { resource: { group: '', resource: 'pods' } } }),
    /spec: Invalid value: .*field is immutable/,
  );
});
