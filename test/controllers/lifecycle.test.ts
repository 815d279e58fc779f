import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ConfigMap, Secret } from '../../src/api/generated/core/v1.ts';
import { isApiError } from '../../src/api/meta/status.ts';
import { resources } from '../../src/api/resources.ts';
import { silentLog } from '../../src/base/log.ts';
import { createInformerFactory } from '../../src/client/index.ts';
import { systemClock as clock, systemRandom as random } from '../../src/host/process/process.ts';
import { type ControlPlane, eventually, startControlPlane } from './harness.ts';

let plane: ControlPlane;
before(async () => {
  plane = await startControlPlane();
  await plane.addNode('n1');
});
after(() => plane.stop());

const namespace = 'default';
const gone = (read: Promise<unknown>): Promise<boolean> =>
  read.then(
    () => false,
    (error: unknown) => {
      if (isApiError(error, 'NotFound')) return true;
      throw error;
    },
  );
const maps = () => plane.of(resources.configMaps);
const owned = (
  name: string,
  owner: ConfigMap,
  more: { uid?: string; blockOwnerDeletion?: boolean } = {},
): ConfigMap => ({
  metadata: {
    name,
    namespace,
    ownerReferences: [
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: owner.metadata?.name ?? '',
        uid: more.uid ?? owner.metadata?.uid ?? '',
        ...(more.blockOwnerDeletion === undefined ? {} : { blockOwnerDeletion: more.blockOwnerDeletion }),
      },
    ],
  },
});

test('creates service account and CA in every namespace, and again after a deletion', async () => {
  await plane.of(resources.namespaces).create({ metadata: { name: 'fresh' } });
  const accounts = plane.of(resources.serviceAccounts);
  await eventually(() => accounts.get('default', 'fresh'), 'the account');
  const map = await eventually(() => maps().get('kube-root-ca.crt', 'fresh'), 'the CA');
  assert.equal(map.data?.['ca.crt'], plane.api.ca.certPem);
  await accounts.delete('default', 'fresh');
  await maps().delete('kube-root-ca.crt', 'fresh');
  await eventually(() => accounts.get('default', 'fresh'), 'the account again');
  await eventually(() => maps().get('kube-root-ca.crt', 'fresh'), 'the CA again');
  await maps().patch('kube-root-ca.crt', 'fresh', 'merge', { data: { 'ca.crt': 'forged' } });
  await eventually(
    async () => (await maps().get('kube-root-ca.crt', 'fresh')).data?.['ca.crt'] === plane.api.ca.certPem,
    'the right CA',
  );
});

test('fills a service account token secret, and removes the secret with the account', async () => {
  const accounts = plane.of(resources.serviceAccounts);
  const secrets = plane.of(resources.secrets);
  const type = 'kubernetes.io/service-account-token';
  const asking = (name: string, account: string, more: Record<string, string> = {}): Promise<Secret> =>
    secrets.create({
      type,
      metadata: { name, namespace, annotations: { 'kubernetes.io/service-account.name': account, ...more } },
    });
  await accounts.create({ metadata: { name: 'robot', namespace } });
  await asking('robot-token', 'robot');
  const filled = await eventually(async () => {
    const secret = await secrets.get('robot-token', namespace);
    return secret.data?.['token'] === undefined ? undefined : secret;
  }, 'the token');
  const text = (key: string): string => Buffer.from(filled.data?.[key] ?? '', 'base64').toString();
  assert.deepEqual([text('namespace'), text('ca.crt')], [namespace, plane.api.ca.certPem]);
  const review = () =>
    plane.admin.request<{ status: { authenticated?: boolean; user?: { username: string } } }>(
      'POST',
      '/apis/authentication.k8s.io/v1/tokenreviews',
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token: text('token') } },
    );
  assert.equal((await review()).status.user?.username, 'system:serviceaccount:default:robot');
  // A removed key is restored.
  await secrets.patch('robot-token', namespace, 'merge', { data: { 'ca.crt': null } });
  await eventually(
    async () => (await secrets.get('robot-token', namespace)).data?.['ca.crt'] === filled.data?.['ca.crt'],
    'the CA',
  );
  // The reference in an account is removed with the secret.
  await asking('robot-other', 'robot');
  await accounts.patch('robot', namespace, 'merge', { secrets: [{ name: 'robot-other' }, { name: 'mine' }] });
  await eventually(async () => (await secrets.get('robot-other', namespace)).data?.['token'] !== undefined, 'filled');
  await secrets.delete('robot-other', namespace);
  await eventually(
    async () => (await accounts.get('robot', namespace)).secrets?.map(({ name }) => name).join() === 'mine',
    'no mention',
  );
  await asking('of-nobody', 'nobody');
  await asking('of-another', 'robot', { 'kubernetes.io/service-account.uid': 'another' });
  await eventually(() => gone(secrets.get('of-nobody', namespace)), 'the end of that of nobody');
  await eventually(() => gone(secrets.get('of-another', namespace)), "the end of that of another's");
  await accounts.delete('robot', namespace);
  await eventually(() => gone(secrets.get('robot-token', namespace)), 'the end of that of an account that is gone');
  assert.notEqual((await review()).status.authenticated, true);
});

test('deletes the content of a terminating namespace, and reports the finalizers that block the deletion', async () => {
  await plane.of(resources.namespaces).create({ metadata: { name: 'doomed' } });
  await eventually(() => plane.of(resources.serviceAccounts).get('default', 'doomed'), 'the account');
  await maps().create({ metadata: { name: 'held', namespace: 'doomed', finalizers: ['example.com/hold'] } });
  await plane.of(resources.pods).create({
    metadata: { name: 'p', namespace: 'doomed' },
    spec: { containers: [{ name: 'c', image: 'i' }] },
  });
  await plane.of(resources.namespaces).delete('doomed');
  const held = await eventually(async () => {
    const found = await plane.of(resources.namespaces).get('doomed');
    return (
      found.status?.conditions?.some(
        (each) => each.type === 'NamespaceFinalizersRemaining' && each.status === 'True',
      ) && found
    );
  }, 'the condition');
  const message = held.status?.conditions?.find((each) => each.type === 'NamespaceFinalizersRemaining')?.message;
  assert.equal(
    message,
    'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
  );
  assert.equal(await gone(plane.of(resources.pods).get('p', 'doomed')), true);
  await maps().patch('held', 'doomed', 'merge', { metadata: { finalizers: null } });
  await eventually(() => gone(plane.of(resources.namespaces).get('doomed')), 'the end of the namespace', 12_000);
});

test('background deletion: deletes indirect dependents after their owner', async () => {
  const owner = await maps().create({ metadata: { name: 'owner', namespace } });
  const child = await maps().create(owned('child', owner));
  await maps().create(owned('grandchild', child));
  await maps().delete('owner', namespace);
  await eventually(() => gone(maps().get('grandchild', namespace)), 'the grandchild');
  assert.equal(await gone(maps().get('child', namespace)), true);
});

test('foreground deletion: keeps the owner until its blocking dependents are deleted', async () => {
  const owner = await maps().create({ metadata: { name: 'fg', namespace } });
  const held = owned('fg-child', owner, { blockOwnerDeletion: true });
  await maps().create({ ...held, metadata: { ...held.metadata, finalizers: ['example.com/hold'] } });
  await maps().create(owned('fg-other', owner));
  await maps().delete('fg', namespace, { propagationPolicy: 'Foreground' });
  await eventually(
    async () => (await maps().get('fg-child', namespace)).metadata?.deletionTimestamp !== undefined,
    'the child being deleted',
  );
  assert.equal(await gone(maps().get('fg', namespace)), false);
  await maps().patch('fg-child', namespace, 'merge', { metadata: { finalizers: null } });
  await eventually(() => gone(maps().get('fg', namespace)), 'the owner');
  await eventually(() => gone(maps().get('fg-other', namespace)), 'the dependent that did not block');
});

test('orphan deletion: keeps dependents and removes their owner reference', async () => {
  const owner = await maps().create({ metadata: { name: 'or', namespace } });
  await maps().create(owned('or-child', owner));
  await maps().delete('or', namespace, { propagationPolicy: 'Orphan' });
  await eventually(() => gone(maps().get('or', namespace)), 'the owner');
  const child = await maps().get('or-child', namespace);
  assert.equal(child.metadata?.ownerReferences, undefined);
});

test('deletes a dependent whose owner never existed, and removes only the owner reference if another owner remains', async () => {
  const owner = await maps().create({ metadata: { name: 'real', namespace } });
  await maps().create(owned('stray', owner, { uid: '00000000-0000-4000-8000-000000000000' }));
  await eventually(() => gone(maps().get('stray', namespace)), 'the stray');
  const two = owned('two', owner);
  two.metadata?.ownerReferences?.push({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: 'never',
    uid: '00000000-0000-4000-8000-000000000001',
  });
  await maps().create(two);
  const kept = await eventually(async () => {
    const found = await maps().get('two', namespace);
    return found.metadata?.ownerReferences?.length === 1 && found;
  }, 'one reference');
  assert.equal(kept.metadata?.ownerReferences?.[0]?.uid, owner.metadata?.uid);
  assert.equal(await gone(maps().get('real', namespace)), false);
});

test('ignores an owner reference to another namespace without affecting valid references', async () => {
  const owner = await maps().create({ metadata: { name: 'home', namespace } });
  await plane.of(resources.namespaces).create({ metadata: { name: 'abroad' } });
  await eventually(() => plane.of(resources.serviceAccounts).get('default', 'abroad'), 'the namespace');
  const far = owned('far', owner);
  await maps().create({ ...far, metadata: { ...far.metadata, namespace: 'abroad' } });
  await eventually(() => gone(maps().get('far', 'abroad')), 'the far one');
  await maps().create(owned('near', owner));
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal(await gone(maps().get('near', namespace)), false);
});

test('deletes the replica sets and pods of a deployment', async () => {
  await plane.of(resources.deployments).create({
    metadata: { name: 'd', namespace },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'd' } },
      template: { metadata: { labels: { app: 'd' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
  const list = async () => (await plane.of(resources.pods).list({ namespace, labelSelector: 'app=d' })).items;
  await eventually(async () => (await list()).length === 2, 'two pods');
  await plane.of(resources.deployments).delete('d', namespace);
  await eventually(async () => (await list()).length === 0, 'no pod');
  const sets = (await plane.of(resources.replicaSets).list({ namespace, labelSelector: 'app=d' })).items;
  assert.equal(sets.length, 0);
});

test('updates Endpoints and slices with readiness, and deletes the objects with their service', async () => {
  await plane.of(resources.deployments).create({
    metadata: { name: 'be', namespace },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'be' } },
      template: {
        metadata: { labels: { app: 'be' } },
        spec: { containers: [{ name: 'c', image: 'i', ports: [{ name: 'http', containerPort: 8080 }] }] },
      },
    },
  });
  await plane.of(resources.services).create({
    metadata: { name: 'be', namespace },
    spec: { selector: { app: 'be' }, ports: [{ name: 'web', port: 80, targetPort: 'http' }] },
  });
  const endpoints = await eventually(async () => {
    const found = await plane.of(resources.endpoints).get('be', namespace);
    return found.subsets?.[0]?.addresses?.length === 2 && found;
  }, 'two addresses');
  assert.deepEqual(endpoints.subsets?.[0]?.ports, [{ name: 'web', port: 8080, protocol: 'TCP' }]);
  const slices = async () =>
    (await plane.of(resources.endpointSlices).list({ namespace, labelSelector: 'kubernetes.io/service-name=be' }))
      .items;
  const [slice] = await eventually(async () => {
    const found = await slices();
    return found[0]?.endpoints?.length === 2 && found;
  }, 'two endpoints');
  assert.equal(slice?.metadata?.labels?.['endpointslice.kubernetes.io/managed-by'], 'endpointslice-controller.k8s.io');
  const [pod] = (await plane.of(resources.pods).list({ namespace, labelSelector: 'app=be' })).items;
  await plane
    .of(resources.pods)
    .patch(
      pod?.metadata?.name ?? '',
      namespace,
      'strategic',
      { status: { conditions: [{ type: 'Ready', status: 'False' }] } },
      { subresource: 'status' },
    );
  await eventually(async () => {
    const found = await plane.of(resources.endpoints).get('be', namespace);
    return found.subsets?.[0]?.addresses?.length === 1 && found.subsets[0].notReadyAddresses?.length === 1;
  }, 'one not ready');
  await eventually(
    async () => (await slices())[0]?.endpoints?.some((endpoint) => endpoint.conditions?.ready === false),
    'one not ready in the slice',
  );
  await plane.of(resources.services).delete('be', namespace);
  await eventually(() => gone(plane.of(resources.endpoints).get('be', namespace)), 'the endpoints gone');
  await eventually(async () => (await slices()).length === 0, 'the slices gone');
});

test('a metadata-only informer holds only type and metadata, from list and watch', async () => {
  const secrets = plane.of(resources.secrets);
  await secrets.create({ metadata: { name: 's1', namespace, labels: { a: 'b' } }, data: { key: 'c2VjcmV0' } });
  const informers = createInformerFactory({ client: plane.admin, log: silentLog, clock, random });
  const informer = informers.informer(resources.secrets, { metadataOnly: true });
  try {
    await informers.startAndSync();
    await secrets.create({ metadata: { name: 's2', namespace }, data: { key: 'c2VjcmV0' } });
    const second = await eventually(async () => informer.get(`${namespace}/s2`), 'the second');
    const first = informer.get(`${namespace}/s1`);
    for (const copy of [first, second]) {
      assert.equal(copy?.kind, 'Secret');
      assert.equal(copy.apiVersion, 'v1');
      assert.equal(copy.data, undefined);
      assert.notEqual(copy.metadata?.uid, undefined);
    }
    assert.deepEqual(first?.metadata?.labels, { a: 'b' });
  } finally {
    await informers.stop();
  }
});

test('garbage-collects custom resources as owners and dependents, and with their namespace and definition', async () => {
  const call = (method: string, path: string, body?: unknown) =>
    plane.api.call<{ metadata: { uid: string } }>(method, path, body === undefined ? {} : { body });
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const definition = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'rigs.lab.example.com' },
    spec: {
      group: 'lab.example.com',
      scope: 'Namespaced',
      names: { plural: 'rigs', kind: 'Rig' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  };
  const rigs = (of: string): string => `/apis/lab.example.com/v1/namespaces/${of}/rigs`;
  const rig = (name: string) => ({ apiVersion: 'lab.example.com/v1', kind: 'Rig', metadata: { name } });
  for (const round of ['first', 'again']) {
    assert.equal((await call('POST', definitions, definition)).code, 201);
    await eventually(async () => (await call('GET', rigs('default'))).code === 200, 'the kind');
    const owner = await call('POST', rigs(namespace), rig('owner'));
    const name = `owned-by-rig-${round}`;
    await maps().create({
      metadata: {
        name,
        namespace,
        ownerReferences: [
          { apiVersion: 'lab.example.com/v1', kind: 'Rig', name: 'owner', uid: owner.body.metadata.uid },
        ],
      },
    });
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    assert.equal((await maps().get(name, namespace)).metadata?.name, name, 'what has an owner stays');
    await call('DELETE', `${rigs(namespace)}/owner`);
    await eventually(() => gone(maps().get(name, namespace)), 'the dependent to go');
    await plane.of(resources.namespaces).create({ metadata: { name: `rigs-${round}` } });
    assert.equal((await call('POST', rigs(`rigs-${round}`), rig('inside'))).code, 201);
    await plane.of(resources.namespaces).delete(`rigs-${round}`);
    await eventually(() => gone(plane.of(resources.namespaces).get(`rigs-${round}`)), 'the namespace to go');
    assert.equal((await call('DELETE', `${definitions}/rigs.lab.example.com`)).code, 200);
    await eventually(async () => (await call('GET', rigs('default'))).code === 404, 'the kind to go');
  }
});
