import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ClusterRole, ClusterRoleBinding, RoleBinding } from '../../../../src/api/generated/rbac/v1.ts';
import type { UserInfo } from '../../../../src/api/registry/definition.ts';
import {
  type Action,
  AUTOUPDATE_ANNOTATION,
  aggregatedRules,
  bindingEscalation,
  bindingToCreate,
  bootstrapPolicy,
  coversRules,
  createRbacAuthorizer,
  type EscalationContext,
  reconcileBinding,
  reconcileRole,
  roleEscalation,
} from '../../../../src/apiserver/core/authorization/index.ts';

const GROUP = 'rbac.authorization.k8s.io';

function bootstrapped() {
  const rbac = createRbacAuthorizer();
  for (const role of bootstrapPolicy.clusterRoles) rbac.setClusterRole(role);
  for (const binding of bootstrapPolicy.clusterRoleBindings) rbac.setClusterRoleBinding(binding);
  for (const role of bootstrapPolicy.roles) rbac.setRole(role);
  for (const binding of bootstrapPolicy.roleBindings) rbac.setRoleBinding(binding);
  return rbac;
}

function action(verb: string, what: string, namespace = '', name = ''): Action {
  if (what.startsWith('/')) return { verb, path: what };
  const [path = '', group = ''] = what.split('@');
  const [resource = '', subresource = ''] = path.split('/');
  return { verb, group, resource, subresource, namespace, name };
}

const clusterRole = (name: string): ClusterRole => {
  const role = bootstrapPolicy.clusterRoles.find((each) => each.metadata?.name === name);
  assert.ok(role !== undefined, name);
  return role;
};

const authenticated = (name: string, ...groups: string[]): UserInfo => ({
  name,
  groups: [...groups, 'system:authenticated'],
});

describe('default RBAC policy', () => {
  const rbac = bootstrapped();
  rbac.setRoleBinding({
    metadata: { namespace: 'shop', name: 'editors' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'edit' },
    subjects: [{ kind: 'User', name: 'ed' }],
  });
  rbac.setRoleBinding({
    metadata: { namespace: 'shop', name: 'viewers' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'view' },
    subjects: [{ kind: 'User', name: 'vi' }],
  });
  rbac.setRoleBinding({
    metadata: { namespace: 'shop', name: 'admins' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'admin' },
    subjects: [{ kind: 'User', name: 'ad' }],
  });
  const anonymous: UserInfo = { name: 'system:anonymous', groups: ['system:unauthenticated'] };
  const manager = authenticated('system:kube-controller-manager');
  const scheduler = authenticated('system:kube-scheduler');
  const account = (name: string): UserInfo =>
    authenticated(
      `system:serviceaccount:kube-system:${name}`,
      'system:serviceaccounts',
      'system:serviceaccounts:kube-system',
    );
  const table: readonly (readonly [UserInfo, boolean, ...Parameters<typeof action>])[] = [
    [authenticated('ad'), true, 'create', 'rolebindings@rbac.authorization.k8s.io', 'shop'],
    [authenticated('ad'), true, 'create', 'pods/exec', 'shop', 'x'],
    [authenticated('ad'), true, 'list', 'deployments@apps', 'shop'],
    [authenticated('ad'), false, 'update', 'resourcequotas', 'shop', 'x'],
    [authenticated('ad'), false, 'list', 'pods', 'other'],
    [authenticated('ed'), true, 'patch', 'deployments/scale@apps', 'shop', 'x'],
    [authenticated('ed'), true, 'get', 'secrets', 'shop', 'x'],
    [authenticated('ed'), false, 'create', 'roles@rbac.authorization.k8s.io', 'shop'],
    [authenticated('ed'), false, 'create', 'endpoints', 'shop'],
    [authenticated('vi'), true, 'get', 'pods/log', 'shop', 'x'],
    [authenticated('vi'), false, 'get', 'secrets', 'shop', 'x'],
    [authenticated('vi'), false, 'delete', 'pods', 'shop', 'x'],
    [authenticated('anyone'), true, 'create', 'selfsubjectaccessreviews@authorization.k8s.io'],
    [authenticated('anyone'), true, 'get', '/openapi/v2'],
    [authenticated('anyone'), false, 'get', '/metrics'],
    [anonymous, true, 'get', '/healthz'],
    [anonymous, false, 'get', '/api'],
    [manager, true, 'watch', 'anything@example.com'],
    [manager, true, 'update', 'deployments/status@apps', 'shop', 'x'],
    [manager, true, 'update', 'leases@coordination.k8s.io', 'kube-system', 'kube-controller-manager'],
    [manager, true, 'create', 'events', 'shop'],
    [manager, false, 'create', 'clusterrolebindings@rbac.authorization.k8s.io'],
    [manager, false, 'create', 'deployments@apps', 'shop'],
    [scheduler, true, 'create', 'pods/binding', 'shop', 'x'],
    [scheduler, true, 'update', 'leases@coordination.k8s.io', 'kube-system', 'kube-scheduler'],
    [scheduler, true, 'update', 'leases@coordination.k8s.io', 'kube-system', 'other'],
    [scheduler, false, 'update', 'leases@coordination.k8s.io', 'shop', 'other'],
    // Kinds that controllers of release 1.36 list at start.
    [scheduler, true, 'watch', 'resourceslices@resource.k8s.io'],
    [scheduler, true, 'patch', 'resourceclaims/status@resource.k8s.io', 'shop', 'x'],
    [authenticated('system:kube-proxy'), true, 'watch', 'servicecidrs@networking.k8s.io'],
    [account('ephemeral-volume-controller'), true, 'create', 'persistentvolumeclaims', 'shop'],
    [account('resource-claim-controller'), true, 'create', 'resourceclaims@resource.k8s.io', 'shop'],
    [account('device-taint-eviction-controller'), true, 'delete', 'pods', 'shop', 'x'],
    [account('legacy-service-account-token-cleaner'), true, 'patch', 'secrets', 'shop', 'x'],
    [account('legacy-service-account-token-cleaner'), false, 'get', 'secrets', 'shop', 'x'],
    [account('selinux-warning-controller'), true, 'list', 'csidrivers@storage.k8s.io'],
    [
      account('validatingadmissionpolicy-status-controller'),
      true,
      'patch',
      'validatingadmissionpolicies/status@admissionregistration.k8s.io',
      '',
      'x',
    ],
    [
      account('volumeattributesclass-protection-controller'),
      true,
      'update',
      'volumeattributesclasses@storage.k8s.io',
      '',
      'x',
    ],
    [account('cloud-provider'), true, 'create', 'configmaps', 'kube-system'],
    [account('leader-election-controller'), true, 'update', 'leases@coordination.k8s.io', 'kube-system', 'x'],
    [scheduler, true, 'create', 'endpoints', 'kube-system'],
    [scheduler, true, 'update', 'endpoints', 'kube-system', 'kube-scheduler'],
    [scheduler, false, 'update', 'endpoints', 'kube-system', 'other'],
    [account('persistent-volume-binder'), true, 'create', 'pods', 'default'],
    [account('expand-controller'), true, 'patch', 'persistentvolumeclaims/status', 'shop', 'x'],
    [account('service-controller'), true, 'patch', 'services/status', 'shop', 'x'],
    [account('route-controller'), true, 'patch', 'nodes/status', '', 'n1'],
    [account('horizontal-pod-autoscaler'), true, 'get', 'pods@custom.metrics.k8s.io', 'shop', 'x'],
    [authenticated('ed'), true, 'create', 'ingresses@extensions', 'shop'],
    [authenticated('vi'), true, 'get', 'ingresses/status@extensions', 'shop', 'x'],
    [scheduler, false, 'get', 'secrets', 'shop', 'x'],
    [authenticated('system:kube-apiserver'), true, 'create', 'nodes/proxy', '', 'n1'],
    [authenticated('system:node:n1', 'system:nodes'), true, 'list', 'endpointslices@discovery.k8s.io'],
    [
      authenticated('system:node:n1', 'system:nodes'),
      true,
      'create',
      'certificatesigningrequests/selfnodeclient@certificates.k8s.io',
    ],
    [authenticated('system:node:n1', 'system:nodes'), false, 'list', 'secrets'],
  ];
  for (const [user, allowed, ...request] of table) {
    it(`${allowed ? 'permits' : 'forbids'} ${user.name} ${request.join(' ')}`, () => {
      assert.equal(rbac.authorize(user, action(...request)).allowed, allowed);
    });
  }

  it('all default roles and bindings are labelled as bootstrapping defaults', () => {
    const { clusterRoles, clusterRoleBindings, roles, roleBindings } = bootstrapPolicy;
    for (const object of [...clusterRoles, ...clusterRoleBindings, ...roles, ...roleBindings]) {
      assert.equal(object.metadata?.labels?.['kubernetes.io/bootstrapping'], 'rbac-defaults');
      assert.equal(object.metadata?.annotations?.[AUTOUPDATE_ANNOTATION], 'true');
    }
    for (const list of [clusterRoles, clusterRoleBindings]) {
      assert.equal(new Set(list.map((object) => object.metadata?.name)).size, list.length);
    }
    for (const { roleRef, metadata } of clusterRoleBindings) assert.ok(clusterRole(roleRef.name), metadata?.name);
    for (const { roleRef, metadata } of roleBindings) {
      const target = roles.find(
        (role) => role.metadata?.namespace === metadata?.namespace && role.metadata?.name === roleRef.name,
      );
      assert.ok(target !== undefined, metadata?.name);
    }
  });

  it('aggregates the default role view into edit, and edit into admin', () => {
    const [admin, edit, view] = ['admin', 'edit', 'view'].map((name) => clusterRole(name).rules ?? []);
    assert.equal(coversRules(admin ?? [], edit ?? []).covered, true);
    assert.equal(coversRules(edit ?? [], view ?? []).covered, true);
    assert.equal(coversRules(view ?? [], edit ?? []).covered, false);
  });

  it('aggregates roles by any selector, each rule once, without the aggregating role', () => {
    const pods = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
    const nodes = { verbs: ['get'], apiGroups: [''], resources: ['nodes'] };
    const whole: ClusterRole = {
      metadata: { name: 'whole', labels: { part: 'yes' } },
      aggregationRule: {
        clusterRoleSelectors: [
          { matchLabels: { part: 'yes' } },
          { matchExpressions: [{ key: 'part', operator: 'Exists' }] },
          { matchExpressions: [{ key: 'part', operator: 'Nonsense' }] },
        ],
      },
      rules: [{ verbs: ['old'], apiGroups: [''], resources: ['x'] }],
    };
    const parts: readonly ClusterRole[] = [
      { metadata: { name: 'b', labels: { part: 'yes' } }, rules: [nodes, pods] },
      { metadata: { name: 'a', labels: { part: 'yes' } }, rules: [pods] },
      { metadata: { name: 'c' }, rules: [{ ...pods, verbs: ['*'] }] },
    ];
    assert.deepEqual(aggregatedRules(whole, [whole, ...parts]), [pods, nodes]);
    assert.equal(aggregatedRules(parts[0] ?? {}, parts), undefined);
  });

  it('adds missing parts to stored roles without removing any', () => {
    const expected = clusterRole('system:kubelet-api-admin');
    assert.equal(reconcileRole(expected, structuredClone(expected)), undefined);
    const own = { verbs: ['get'], apiGroups: ['x'], resources: ['y'] };
    const stored: ClusterRole = { ...structuredClone(expected), rules: [own, ...(expected.rules ?? []).slice(1)] };
    const mended = reconcileRole(expected, stored);
    assert.deepEqual(mended?.rules, [...(stored.rules ?? []), expected.rules?.[0]]);
    const off = { ...stored, metadata: { ...stored.metadata, annotations: { [AUTOUPDATE_ANNOTATION]: 'false' } } };
    assert.equal(reconcileRole(expected, off), undefined);
    const bare = {
      ...structuredClone(expected),
      metadata: { name: 'system:kubelet-api-admin', labels: { mine: 'x' } },
    };
    assert.deepEqual(reconcileRole(expected, bare)?.metadata?.labels, {
      'kubernetes.io/bootstrapping': 'rbac-defaults',
      mine: 'x',
    });
    // A part of a rule exists, so only the remaining permissions are added.
    const partly: ClusterRole = { ...expected, rules: [{ verbs: ['get'], apiGroups: [''], resources: ['nodes'] }] };
    const rest = reconcileRole({ ...expected, rules: (expected.rules ?? []).slice(0, 1) }, partly)?.rules?.slice(1);
    assert.deepEqual(
      rest?.map(({ verbs }) => verbs),
      [['list'], ['watch']],
    );
    const admin = clusterRole('admin');
    assert.equal(reconcileRole(admin, { ...admin, rules: [] }), undefined);
  });

  it('adds missing subjects to bindings, and replaces bindings with another role', () => {
    const expected = bootstrapPolicy.clusterRoleBindings.find(
      (each) => each.metadata?.name === 'system:public-info-viewer',
    );
    assert.ok(expected !== undefined);
    assert.equal(reconcileBinding(expected, expected), undefined);
    const mine = { kind: 'User', apiGroup: GROUP, name: 'me' };
    const mended = reconcileBinding(expected, { ...expected, subjects: [mine] });
    assert.ok(mended !== undefined && mended !== 'replace');
    assert.deepEqual(mended.subjects, [mine, ...(expected.subjects ?? [])]);
    assert.equal(reconcileBinding(expected, { ...expected, roleRef: { ...expected.roleRef, name: 'x' } }), 'replace');
  });

  it('creates a split role binding with the subjects that the administrator has kept in the original', () => {
    const named = (name: string) => {
      const binding = bootstrapPolicy.clusterRoleBindings.find((each) => each.metadata?.name === name);
      assert.ok(binding !== undefined, name);
      return binding;
    };
    const [viewers, discovery] = [named('system:public-info-viewer'), named('system:discovery')];
    const stored = (...bindings: ClusterRoleBinding[]) => {
      return (name: string) => bindings.find((each) => each.metadata?.name === name);
    };
    assert.equal(bindingToCreate(viewers, stored()), viewers);
    assert.equal(bindingToCreate(named('cluster-admin'), stored(discovery)), named('cluster-admin'));
    const mine = { kind: 'User', apiGroup: GROUP, name: 'me' };
    const closed = {
      ...discovery,
      metadata: { name: 'system:discovery', uid: 'u', annotations: { [AUTOUPDATE_ANNOTATION]: 'false', note: 'x' } },
      subjects: [mine],
    };
    assert.equal(bindingToCreate(viewers, stored(viewers, closed)), viewers);
    assert.deepEqual(bindingToCreate(viewers, stored(closed)), {
      ...viewers,
      metadata: {
        name: 'system:public-info-viewer',
        labels: {},
        annotations: { [AUTOUPDATE_ANNOTATION]: 'false', note: 'x' },
      },
      subjects: [mine],
    });
    // If the server updates the original binding automatically, the new binding gets the default subjects.
    assert.deepEqual(bindingToCreate(viewers, stored(discovery)).subjects, viewers.subjects);
  });
});

describe('escalation of permissions', () => {
  const rbac = bootstrapped();
  rbac.setRoleBinding({
    metadata: { namespace: 'shop', name: 'admins' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'admin' },
    subjects: [{ kind: 'User', name: 'ada' }],
  });
  rbac.setClusterRole({
    metadata: { name: 'may-bind' },
    rules: [{ verbs: ['bind'], apiGroups: [GROUP], resources: ['clusterroles'], resourceNames: ['secret-admin'] }],
  });
  rbac.setClusterRole({
    metadata: { name: 'secret-admin' },
    rules: [{ verbs: ['*'], apiGroups: [''], resources: ['nodes'] }],
  });
  rbac.setClusterRoleBinding({
    metadata: { name: 'binder' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'may-bind' },
    subjects: [{ kind: 'User', name: 'bin' }],
  });
  rbac.setClusterRole({
    metadata: { name: 'may-escalate' },
    rules: [{ verbs: ['escalate'], apiGroups: [GROUP], resources: ['clusterroles'] }],
  });
  rbac.setClusterRoleBinding({
    metadata: { name: 'escalator' },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'may-escalate' },
    subjects: [{ kind: 'User', name: 'esc' }],
  });
  const context = (user: UserInfo): EscalationContext => ({
    rbac,
    user,
    allows: (requested) => rbac.authorize(user, requested).allowed,
  });
  const ada = context({ name: 'ada', groups: ['dev', 'system:authenticated'] });
  const pods = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
  const nodes = { verbs: ['get'], apiGroups: [''], resources: ['nodes'] };
  const role = (namespace: string, rules: ClusterRole['rules'] = []) => ({ metadata: { namespace, name: 'r' }, rules });

  it('prevents users from adding permissions to a role that they do not have there', () => {
    assert.equal(roleEscalation(ada, role('shop', [pods])), undefined);
    assert.equal(
      roleEscalation(ada, role('shop', [pods, nodes])),
      'user "ada" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[""], Resources:["nodes"], Verbs:["get"]}',
    );
    assert.match(roleEscalation(ada, role('other', [pods])) ?? '', /not currently held/);
    assert.match(roleEscalation(ada, { metadata: { name: 'c' }, rules: [pods] }) ?? '', /not currently held/);
  });

  it('permits system:masters and users with the verb escalate', () => {
    const everything = { metadata: { name: 'c' }, rules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }] };
    assert.equal(roleEscalation(context({ name: 'x', groups: ['system:masters'] }), everything), undefined);
    assert.equal(roleEscalation(context({ name: 'esc', groups: [] }), everything), undefined);
    assert.match(
      roleEscalation(context({ name: 'esc', groups: [] }), role('shop', [pods])) ?? '',
      /not currently held/,
    );
  });

  it('writing an aggregation rule requires all permissions in the cluster', () => {
    const aggregating: ClusterRole = {
      metadata: { name: 'c' },
      aggregationRule: { clusterRoleSelectors: [] },
      rules: [],
    };
    assert.equal(roleEscalation(ada, aggregating), 'must have cluster-admin privileges to use the aggregationRule');
    const root = createRbacAuthorizer();
    root.setClusterRole(clusterRole('cluster-admin'));
    root.setClusterRoleBinding({
      metadata: { name: 'root' },
      roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'User', name: 'root' }],
    });
    const user = { name: 'root', groups: [] };
    assert.equal(roleEscalation({ rbac: root, user, allows: () => false }, aggregating), undefined);
  });

  const binding = (name: string, namespace?: string): RoleBinding | ClusterRoleBinding => ({
    metadata: { name: 'b', ...(namespace === undefined ? {} : { namespace }) },
    roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name },
    subjects: [],
  });

  it('prevents users from binding a role with more permissions than they have there, without the verb bind', () => {
    assert.equal(bindingEscalation(ada, binding('view', 'shop')), undefined);
    assert.match(bindingEscalation(ada, binding('view')) ?? '', /not currently held/);
    assert.match(bindingEscalation(ada, binding('cluster-admin', 'shop')) ?? '', /not currently held/);
    assert.equal(
      bindingEscalation(ada, binding('missing', 'shop')),
      'clusterroles.rbac.authorization.k8s.io "missing" not found',
    );
    const bin = context({ name: 'bin', groups: [] });
    assert.equal(bindingEscalation(bin, binding('secret-admin')), undefined);
    assert.match(bindingEscalation(bin, binding('view')) ?? '', /not currently held/);
  });

  it('permits the garbage collector to change owner references only', () => {
    const before = role('shop', [nodes]);
    const after = { rules: [nodes], metadata: { name: 'r', namespace: 'shop', ownerReferences: [], finalizers: [] } };
    assert.equal(roleEscalation(ada, after, before), undefined);
    const labelled = { ...after, metadata: { ...after.metadata, labels: { a: 'b' } } };
    assert.match(roleEscalation(ada, labelled, before) ?? '', /not currently held/);
  });
});

describe('permissions for the administration of hosts', () => {
  it('default roles of users give no permissions on the administration of hosts, in a namespace or in the cluster', () => {
    const rbac = bootstrapped();
    for (const name of [
      'view',
      'edit',
      'admin',
      'basic-user',
      'cluster-status',
      'cluster-reader',
      'system:node-reader',
    ])
      rbac.setClusterRoleBinding({
        metadata: { name: `${name}-test` },
        roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name },
        subjects: [{ kind: 'User', name }],
      });
    rbac.setClusterRoleBinding({
      metadata: { name: 'root-test' },
      roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'User', name: 'root' }],
    });
    const allows = (name: string): boolean =>
      rbac.authorize(authenticated(name), action('create', 'nodes/proxy', '', 'm1')).allowed;
    for (const name of [
      'view',
      'edit',
      'admin',
      'basic-user',
      'cluster-status',
      'cluster-reader',
      'system:node-reader',
      'system:node:m1',
    ])
      assert.equal(allows(name), false, name);
    assert.equal(allows('root'), true);
  });
});
