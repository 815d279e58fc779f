import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resourcesInDiscovery, resourcesInList } from '../../src/api/discovery/foreign.ts';
import { aggregatedContentType, discoveryDocuments, servedGroupVersions } from '../../src/api/discovery/index.ts';
import { builtinKinds } from '../../src/api/registry/index.ts';

const documents = discoveryDocuments(builtinKinds);

test('shows a short name in only one API group, and in no removed group', () => {
  const shortNamesIn = (groupVersion: string, name: string) =>
    documents.resources.get(groupVersion)?.resources.find((each) => each.name === name)?.shortNames;
  assert.deepEqual(shortNamesIn('networking.k8s.io/v1', 'ingresses'), ['ing']);
  assert.deepEqual(shortNamesIn('networking.k8s.io/v1beta1', 'ingresses'), ['ing']);
  assert.equal(shortNamesIn('extensions/v1beta1', 'ingresses'), undefined);
  assert.deepEqual(shortNamesIn('events.k8s.io/v1', 'events'), ['ev']);
});

test('discovery lists kinds and their subresources', () => {
  const core = documents.resources.get('v1');
  assert.deepEqual(
    core?.resources.find((each) => each.name === 'pods'),
    {
      name: 'pods',
      singularName: 'pod',
      namespaced: true,
      kind: 'Pod',
      verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
      shortNames: ['po'],
      categories: ['all'],
    },
  );
  assert.deepEqual(
    core?.resources.find((each) => each.name === 'pods/eviction'),
    {
      name: 'pods/eviction',
      singularName: '',
      namespaced: true,
      group: 'policy',
      version: 'v1',
      kind: 'Eviction',
      verbs: ['create'],
    },
  );
  const apps = documents.resources.get('apps/v1')?.resources.map((each) => each.name);
  assert.deepEqual(apps, [
    'controllerrevisions',
    'daemonsets',
    'daemonsets/status',
    'deployments',
    'deployments/scale',
    'deployments/status',
    'replicasets',
    'replicasets/scale',
    'replicasets/status',
    'statefulsets',
    'statefulsets/scale',
    'statefulsets/status',
  ]);
  assert.ok(documents.resources.get('events.k8s.io/v1')?.resources.some((each) => each.name === 'events'));
});

test('reports the same storage version hash in every group and version', () => {
  const hashed = discoveryDocuments(builtinKinds, { storageHash: (stored) => `<${stored}>` });
  const hashes = (groupVersion: string) =>
    Object.fromEntries(
      hashed.resources.get(groupVersion)?.resources.map((each) => [each.name, each.storageVersionHash]) ?? [],
    );
  const { pods, bindings, componentstatuses, 'pods/status': status } = hashes('v1');
  assert.deepEqual([pods, bindings, componentstatuses, status], ['</v1/Pod>', undefined, undefined, undefined]);
  assert.equal(hashes('batch/v1beta1')['cronjobs'], '<batch/v1/CronJob>');
  assert.equal(hashes('authorization.k8s.io/v1')['subjectaccessreviews'], undefined);
});

test('discovery lists the subresources that kubectl needs', () => {
  const names = new Set(documents.resources.get('v1')?.resources.map((each) => each.name));
  for (const name of [
    'pods/log',
    'pods/exec',
    'pods/attach',
    'pods/portforward',
    'pods/binding',
    'pods/ephemeralcontainers',
    'pods/status',
    'namespaces/finalize',
    'namespaces/status',
    'nodes/proxy',
    'serviceaccounts/token',
    'replicationcontrollers/scale',
    'services/status',
  ]) {
    assert.ok(names.has(name), name);
  }
  const csr = documents.resources.get('certificates.k8s.io/v1')?.resources.map((each) => each.name);
  assert.ok(csr?.includes('certificatesigningrequests/approval'));
});

test('discovery orders groups by priority, with all their versions', () => {
  const groups = documents.apiGroups.groups.map((group) => group.name);
  assert.deepEqual(groups.slice(0, 3), ['apiregistration.k8s.io', 'apps', 'events.k8s.io']);
  assert.equal(new Set(groups).size, groups.length);
  assert.ok(groups.includes('policy'));
  for (const group of documents.apiGroups.groups) {
    assert.deepEqual(group.preferredVersion, group.versions[0]);
    for (const version of group.versions) assert.ok(documents.resources.has(version.groupVersion));
  }
  assert.equal(servedGroupVersions(builtinKinds)[0]?.group, '');
});

test('aggregated discovery has the same content as the unaggregated documents', () => {
  for (const version of ['v2', 'v2beta1'] as const) {
    const list = documents.aggregated('apis', version) as {
      apiVersion: string;
      items: {
        metadata: { name: string };
        versions: { version: string; resources: { resource: string; scope: string }[] }[];
      }[];
    };
    assert.equal(list.apiVersion, `apidiscovery.k8s.io/${version}`);
    for (const group of list.items) {
      for (const each of group.versions) {
        const plain = documents.resources.get(`${group.metadata.name}/${each.version}`)?.resources ?? [];
        assert.deepEqual(
          each.resources.map((resource) => resource.resource),
          plain.map((resource) => resource.name).filter((name) => !name.includes('/')),
        );
      }
    }
    assert.match(aggregatedContentType(version), new RegExp(`v=${version};as=APIGroupDiscoveryList$`));
  }
});

test('merges aggregated API servers by priority and prefers them to local versions', () => {
  const resources = [{ resource: 'things' }];
  const foreign = (group: string, version: string, groupPriority: number, versionPriority: number) => ({
    group,
    version,
    priority: { group: groupPriority, version: versionPriority },
    resources,
    freshness: 'Stale' as const,
  });
  const merged = discoveryDocuments(builtinKinds, {
    registered: new Map([['policy/v1', { group: 20_000, version: 15 }]]),
    foreign: [foreign('b.test', 'v1', 100, 1), foreign('b.test', 'v2', 17_790, 2), foreign('apps', 'v1', 17_800, 15)],
  });
  const names = merged.apiGroups.groups.map(({ name }) => name);
  assert.deepEqual(names.slice(0, 4), ['apiregistration.k8s.io', 'policy', 'apps', 'b.test']);
  assert.deepEqual(
    merged.groups.get('b.test')?.versions.map(({ version }) => version),
    ['v2', 'v1'],
  );
  // The resource list is requested from the aggregated server.
  assert.equal(merged.resources.has('apps/v1'), false);
  const { items } = merged.aggregated('apis', 'v2') as { items: { metadata: { name: string }; versions: object[] }[] };
  assert.deepEqual(items.find(({ metadata }) => metadata.name === 'apps')?.versions, [
    { version: 'v1', resources, freshness: 'Stale' },
  ]);
});

test('ignores malformed parts of discovery documents of aggregated servers', () => {
  const at = { group: 'g.test', version: 'v1' };
  for (const rubbish of [
    null,
    3,
    [],
    {},
    { items: 3 },
    { items: [null, { metadata: { name: 'g.test' }, versions: {} }] },
  ]) {
    assert.equal(resourcesInDiscovery(rubbish as never, at), undefined);
    assert.deepEqual(resourcesInList(rubbish as never, at), []);
  }
  const versions = (resources: unknown) => ({
    items: [{ metadata: { name: 'g.test' }, versions: [{ version: 'v1', resources }] }],
  });
  const verbs = ['get', 5, null, 'x'.repeat(300)];
  const odd = [
    { resource: 'things', verbs, extra: 1, subresources: [{ subresource: 'a', verbs: 'get' }] },
    { resource: 7 },
    'x',
  ];
  assert.deepEqual(resourcesInDiscovery(versions(odd) as never, at), [
    {
      resource: 'things',
      scope: 'Cluster',
      singularResource: '',
      verbs: ['get'],
      subresources: [{ subresource: 'a', verbs: [] }],
    },
  ]);
  const many = Array.from({ length: 10_000 }, (_, index) => ({ resource: `r${index}`, verbs: [] }));
  assert.equal(resourcesInDiscovery(versions(many) as never, at)?.length, 2_000);
  const orphan = {
    resources: [{ name: 'things/part', namespaced: true, kind: 'Part', verbs: ['get'] }, { name: '/x' }],
  };
  assert.deepEqual(resourcesInList(orphan, at), [
    {
      resource: 'things',
      scope: 'Namespaced',
      singularResource: '',
      verbs: [],
      subresources: [{ subresource: 'part', responseKind: { ...at, kind: 'Part' }, verbs: ['get'] }],
    },
  ]);
});
