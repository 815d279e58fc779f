/** Differences between the request that is authorized and the request that is served. */
import assert from 'node:assert/strict';
import type { AttackLab, Tenant } from '../lab.ts';
import type { AttackCase } from '../port.ts';

const WIDGETS = { group: 'attack.example.com', plural: 'widgets', kind: 'Widget' };

async function everythingInOwnNamespace(lab: AttackLab): Promise<Tenant> {
  const tenant = await lab.tenant('admin');
  await lab.pods.kubectl('create', 'role', 'all', '-n', tenant.namespace, '--verb=*', '--resource=*.*');
  await lab.pods.kubectl(
    ...['create', 'rolebinding', 'all', '-n', tenant.namespace, '--role=all'],
    `--serviceaccount=${tenant.namespace}:attacker`,
  );
  return tenant;
}

/** Defines the cluster-scoped resource `widgets` with the subresource `status`. */
async function serveWidgets(lab: AttackLab): Promise<void> {
  const { group, plural, kind } = WIDGETS;
  await lab.pods.apply({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Cluster',
      names: { plural, kind, singular: 'widget', listKind: `${kind}List` },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
        },
      ],
    },
  });
  await lab.pods.kubectl('wait', '--for=condition=Established', '--timeout=20s', `crd/${plural}.${group}`);
  await lab.pods.apply({ apiVersion: `${group}/v1`, kind, metadata: { name: 'gem' } });
}

export const cases: readonly AttackCase[] = [
  {
    finding: 2,
    title: 'a cluster-scoped resource in a namespaced path returns 404 for every verb',
    attack: async (lab) => {
      const tenant = await everythingInOwnNamespace(lab);
      await serveWidgets(lab);
      const [node = ''] = (await lab.pods.kubectl('get', 'nodes', '-o', 'name')).trim().split('\n');
      const mine = tenant.namespace;
      const below = (group: string, rest: string): string => `${group}/namespaces/${mine}/${rest}`;
      const watched = (group: string, rest: string): string => `${group}/watch/namespaces/${mine}/${rest}`;
      const custom = `/apis/${WIDGETS.group}/v1`;
      for (const [method, path] of [
        ['GET', below('/api/v1', 'namespaces/kube-system')],
        ['GET', below('/api/v1', 'namespaces')],
        ['GET', below('/api/v1', 'namespaces?watch=1&timeoutSeconds=1')],
        ['GET', watched('/api/v1', 'namespaces?timeoutSeconds=1')],
        ['GET', watched('/api/v1', 'namespaces/kube-system?timeoutSeconds=1')],
        ['PATCH', below('/api/v1', 'namespaces/kube-public')],
        ['PATCH', below('/api/v1', 'namespaces/kube-public/status')],
        ['PUT', below('/api/v1', 'namespaces/kube-public/finalize')],
        ['PUT', below('/api/v1', `namespaces/${mine}/finalize`)],
        ['POST', below('/api/v1', 'namespaces')],
        ['DELETE', below('/api/v1', 'namespaces/kube-public')],
        ['DELETE', below('/api/v1', 'namespaces?labelSelector=none=none')],
        ['GET', below('/api/v1', 'nodes')],
        ['GET', below('/api/v1', `nodes/${node.replace('node/', '')}/proxy/pods`)],
        ['GET', below('/apis/rbac.authorization.k8s.io/v1', 'clusterroles/cluster-admin')],
        ['GET', below('/apis/storage.k8s.io/v1', 'storageclasses')],
        ['GET', below(custom, WIDGETS.plural)],
        ['GET', below(custom, `${WIDGETS.plural}/gem`)],
        ['GET', watched(custom, `${WIDGETS.plural}?timeoutSeconds=1`)],
        ['PATCH', below(custom, `${WIDGETS.plural}/gem`)],
        ['PATCH', below(custom, `${WIDGETS.plural}/gem/status`)],
        ['DELETE', below(custom, `${WIDGETS.plural}/gem`)],
        ['DELETE', below(custom, WIDGETS.plural)],
      ] as const) {
        const sends = method === 'PATCH' || method === 'PUT' || method === 'POST';
        const body = sends ? { metadata: { labels: { owned: 'yes' } } } : undefined;
        const answer = await lab.request(tenant, method, path, body);
        assert.equal(answer.code, 404, `${method} ${path}: ${answer.code} ${answer.body.slice(0, 200)}`);
      }
      await lab.pods.kubectl('delete', 'crd', `${WIDGETS.plural}.${WIDGETS.group}`);
    },
  },
  {
    finding: 2,
    title: 'a /watch/ path gives access only to the object that it names, and to no subresource',
    attack: async (lab) => {
      const tenant = await lab.tenant();
      const { namespace } = tenant;
      await lab.pods.apply(
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'public', namespace } },
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'private', namespace }, stringData: { key: 'treasure' } },
        {
          apiVersion: 'rbac.authorization.k8s.io/v1',
          kind: 'Role',
          metadata: { name: 'reader', namespace },
          rules: [
            { apiGroups: [''], resources: ['secrets'], resourceNames: ['public'], verbs: ['get', 'list', 'watch'] },
            { apiGroups: [''], resources: ['services/proxy', 'pods/exec', 'pods/log'], verbs: ['watch'] },
          ],
        },
      );
      await lab.pods.kubectl(
        ...['create', 'rolebinding', 'reader', '-n', namespace, '--role=reader'],
        `--serviceaccount=${namespace}:attacker`,
      );
      const watched = `/api/v1/watch/namespaces/${namespace}`;
      const other = `${watched}/secrets/public?fieldSelector=metadata.name%3Dprivate&timeoutSeconds=1`;
      const answer = await lab.request(tenant, 'GET', other);
      assert.ok(!answer.body.includes('private'), answer.body.slice(0, 300));
      assert.equal(answer.code, 400, answer.body.slice(0, 300));
      for (const [method, path] of [
        ['GET', 'pods/any/log'],
        ['GET', 'pods/any/exec?command=id'],
        ['POST', 'services/any/proxy/'],
      ] as const) {
        const refused = await lab.request(tenant, method, `${watched}/${path}`);
        assert.equal(refused.code, 404, `${method} ${path}: ${refused.code} ${refused.body.slice(0, 200)}`);
        assert.match(refused.body, /could not find the requested resource/);
      }
    },
  },
];
