/** The request that is authorised is the request that is served. */
import assert from 'node:assert/strict';
import type { AttackCase } from '../port.ts';

export const cases: readonly AttackCase[] = [
  {
    finding: 2,
    title: 'a cluster-scoped resource below a namespace is 404 for every verb',
    attack: async (lab) => {
      const tenant = await lab.tenant('admin');
      await lab.pods.kubectl('create', 'role', 'all', '-n', tenant.namespace, '--verb=*', '--resource=*.*');
      await lab.pods.kubectl(
        ...['create', 'rolebinding', 'all', '-n', tenant.namespace, '--role=all'],
        `--serviceaccount=${tenant.namespace}:attacker`,
      );
      const below = (group: string, rest: string): string => `${group}/namespaces/${tenant.namespace}/${rest}`;
      for (const [method, path] of [
        ['GET', below('/api/v1', 'namespaces/kube-system')],
        ['GET', below('/api/v1', 'namespaces')],
        ['GET', below('/api/v1', 'namespaces?watch=1&timeoutSeconds=1')],
        ['PATCH', below('/api/v1', 'namespaces/kube-public')],
        ['DELETE', below('/api/v1', 'namespaces/kube-public')],
        ['DELETE', below('/api/v1', 'namespaces?labelSelector=none=none')],
        ['GET', below('/api/v1', 'nodes')],
        ['GET', below('/apis/rbac.authorization.k8s.io/v1', 'clusterroles/cluster-admin')],
        ['GET', below('/apis/storage.k8s.io/v1', 'storageclasses')],
      ] as const) {
        const body = method === 'PATCH' ? { metadata: { labels: { owned: 'yes' } } } : undefined;
        const answer = await lab.request(tenant, method, path, body);
        assert.equal(answer.code, 404, `${method} ${path}: ${answer.code} ${answer.body.slice(0, 200)}`);
      }
    },
  },
];
