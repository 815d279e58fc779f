import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ClusterRoleBinding, RoleBinding } from '../../../../src/api/generated/rbac/v1.ts';
import { type Bearer, whatCan } from '../../../../src/console/data/api/what-can.ts';

const apiGroup = 'rbac.authorization.k8s.io';

const OBJECTS = {
  clusterRoles: [
    { metadata: { name: 'view' }, rules: [{ verbs: ['get'], apiGroups: ['', 'apps'], resources: ['pods', '*'] }] },
    { metadata: { name: 'admin' }, rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] },
    { metadata: { name: 'probe' }, rules: [{ verbs: ['get'], nonResourceURLs: ['/healthz', '/livez'] }] },
  ],
  roles: [
    {
      metadata: { name: 'one', namespace: 'shop' },
      rules: [{ verbs: ['get', 'update'], apiGroups: [''], resources: ['secrets'], resourceNames: ['key'] }],
    },
    { metadata: { name: 'one', namespace: 'bank' }, rules: [] },
  ],
  clusterRoleBindings: [
    {
      metadata: { name: 'admins' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'admin' },
      subjects: [{ apiGroup, kind: 'Group', name: 'ops' }],
    },
    {
      metadata: { name: 'probes' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'probe' },
      subjects: [{ apiGroup, kind: 'Group', name: 'system:authenticated' }],
    },
  ] satisfies ClusterRoleBinding[],
  roleBindings: [
    {
      metadata: { name: 'viewers', namespace: 'shop' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'view' },
      subjects: [
        { kind: 'ServiceAccount', namespace: 'shop', name: 'robot' },
        { apiGroup, kind: 'User', name: 'eva' },
      ],
    },
    {
      metadata: { name: 'ones', namespace: 'shop' },
      roleRef: { apiGroup, kind: 'Role', name: 'one' },
      subjects: [{ apiGroup, kind: 'Group', name: 'system:serviceaccounts:shop' }],
    },
    {
      metadata: { name: 'probes', namespace: 'shop' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'probe' },
      subjects: [{ apiGroup, kind: 'User', name: 'eva' }],
    },
    {
      metadata: { name: 'missing', namespace: 'shop' },
      roleRef: { apiGroup, kind: 'Role', name: 'absent' },
      subjects: [{ apiGroup, kind: 'User', name: 'eva' }],
    },
  ] satisfies RoleBinding[],
};

const grantsOf = (bearer: Partial<Bearer>): string[] =>
  whatCan({ kind: 'User', namespace: '', name: '', ...bearer }, OBJECTS, [{ group: 'ops', users: ['eva'] }]).map(
    ({ namespace, verbs, target, binding, through }) => [namespace, verbs, target, binding, through].join(' | '),
  );

const PROBES = ' | get | /healthz, /livez | probes | Group system:authenticated';

test('permissions of a user include the permissions of its groups; URL rules apply only to the whole cluster', () => {
  assert.deepEqual(grantsOf({ name: 'eva' }), [
    PROBES,
    ' | * | everything | admins | Group ops',
    'shop | get | pods, pods.apps, *, *.apps | viewers | ',
  ]);
  assert.deepEqual(grantsOf({ name: 'adam' }), [PROBES]);
  assert.deepEqual(grantsOf({ name: 'system:anonymous' }), []);
});

test('permissions of a service account include only permissions in its namespace', () => {
  const robot = { kind: 'ServiceAccount', name: 'robot' } as const;
  assert.deepEqual(grantsOf({ ...robot, namespace: 'shop' }), [
    PROBES,
    'shop | get | pods, pods.apps, *, *.apps | viewers | ',
    'shop | get, update | secrets with the name key | ones | Group system:serviceaccounts:shop',
  ]);
  assert.deepEqual(grantsOf({ ...robot, namespace: 'bank' }), [PROBES]);
});

test('permissions of a group come only from bindings of the group', () => {
  assert.deepEqual(grantsOf({ kind: 'Group', name: 'ops' }), [' | * | everything | admins | ']);
});
