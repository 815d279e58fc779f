import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type {
  ClusterRole,
  ClusterRoleBinding,
  PolicyRule,
  Role,
  RoleBinding,
  RoleRef,
  Subject,
} from '../../../../src/api/generated/rbac/v1.ts';
import type { UserInfo } from '../../../../src/api/registry/definition.ts';
import {
  type Action,
  coversRules,
  createRbacAuthorizer,
  describeDenial,
} from '../../../../src/apiserver/core/authorization/index.ts';
import { Choices } from './generators.ts';

const GROUP = 'rbac.authorization.k8s.io';
const NAMES = ['one', 'two', 'three'];
const NAMESPACES = ['a', 'b'];
const VERBS = ['get', 'list', 'create'];
const GROUPS = ['', 'apps'];
const RESOURCES = ['pods', 'pods/log', 'deployments', 'deployments/scale'];
const PATHS = ['/healthz', '/healthz/etcd', '/api', '/metrics'];
const USERS: readonly UserInfo[] = [
  { name: 'alice', groups: ['dev', 'system:authenticated'] },
  { name: 'bob', groups: ['system:authenticated'] },
  { name: 'system:serviceaccount:a:robot', groups: ['system:serviceaccounts', 'system:serviceaccounts:a'] },
  { name: 'nobody', groups: [] },
];
const SUBJECTS: readonly Subject[] = [
  { kind: 'User', name: 'alice' },
  { kind: 'User', name: 'bob' },
  { kind: 'Group', name: 'dev' },
  { kind: 'Group', name: 'system:authenticated' },
  { kind: 'ServiceAccount', name: 'robot', namespace: 'a' },
  { kind: 'ServiceAccount', name: 'robot' },
];

function randomRule(choices: Choices): PolicyRule {
  if (choices.chance(0.2)) {
    return {
      verbs: choices.some([...VERBS, '*'], 1, 2),
      nonResourceURLs: choices.some([...PATHS, '/healthz/*', '*', '/m*'], 1, 2),
    };
  }
  return {
    verbs: choices.some([...VERBS, '*'], 1, 2),
    apiGroups: choices.some([...GROUPS, '*'], 1, 2),
    resources: choices.some([...RESOURCES, '*', '*/scale', '*/log'], 1, 3),
    ...(choices.chance(0.3) ? { resourceNames: choices.some(['x', 'y'], 1, 2) } : {}),
  };
}

function randomAction(choices: Choices): Action {
  if (choices.chance(0.2)) return { verb: choices.one(VERBS), path: choices.one(PATHS) };
  const [resource = '', subresource = ''] = choices.one(RESOURCES).split('/');
  return {
    verb: choices.one(VERBS),
    group: choices.one(GROUPS),
    resource,
    subresource,
    namespace: choices.one(['', ...NAMESPACES]),
    name: choices.one(['', 'x', 'y', 'z']),
  };
}

/** Oracle: the matching rules of the documentation, evaluated one after the other without indexes. */
function ruleAllows(rule: PolicyRule, action: Action): boolean {
  const has = (list: readonly string[] | undefined, value: string) =>
    list?.some((each) => each === '*' || each === value);
  if (has(rule.verbs, action.verb) !== true) return false;
  if ('path' in action) {
    return (rule.nonResourceURLs ?? []).some((url) =>
      url.endsWith('*') ? action.path.startsWith(url.slice(0, -1)) : url === action.path,
    );
  }
  const combined = action.subresource === '' ? action.resource : `${action.resource}/${action.subresource}`;
  const named = rule.resourceNames === undefined || rule.resourceNames.includes(action.name);
  const resource = (rule.resources ?? []).some(
    (each) => each === '*' || each === combined || (action.subresource !== '' && each === `*/${action.subresource}`),
  );
  return has(rule.apiGroups, action.group) === true && resource && named;
}

interface World {
  readonly clusterRoles: Map<string, ClusterRole>;
  readonly roles: Map<string, Role>;
  readonly clusterRoleBindings: Map<string, ClusterRoleBinding>;
  readonly roleBindings: Map<string, RoleBinding>;
}

function oracle(world: World, user: UserInfo, action: Action): boolean {
  const isSubject = (subject: Subject, namespace: string): boolean => {
    if (subject.kind === 'User') return subject.name === user.name;
    if (subject.kind === 'Group') return user.groups.includes(subject.name);
    return user.name === `system:serviceaccount:${subject.namespace ?? namespace}:${subject.name}`;
  };
  const allows = (ref: RoleRef, namespace: string): boolean => {
    const role =
      ref.kind === 'ClusterRole' ? world.clusterRoles.get(ref.name) : world.roles.get(`${namespace}/${ref.name}`);
    return (role?.rules ?? []).some((rule) => ruleAllows(rule, action));
  };
  for (const binding of world.clusterRoleBindings.values()) {
    if ((binding.subjects ?? []).some((subject) => isSubject(subject, '')) && allows(binding.roleRef, '')) return true;
  }
  if ('path' in action || action.namespace === '') return false;
  for (const binding of world.roleBindings.values()) {
    const namespace = binding.metadata?.namespace ?? '';
    if (namespace !== action.namespace) continue;
    const subjects = binding.subjects ?? [];
    if (subjects.some((subject) => isSubject(subject, namespace)) && allows(binding.roleRef, namespace)) return true;
  }
  return false;
}

describe('RBAC', () => {
  it('RBAC decides like a reference implementation through random changes of roles and bindings', () => {
    for (let seed = 1; seed <= 40; seed++) {
      const choices = new Choices(seed);
      const rbac = createRbacAuthorizer();
      const world: World = {
        clusterRoles: new Map(),
        roles: new Map(),
        clusterRoleBindings: new Map(),
        roleBindings: new Map(),
      };
      for (let step = 0; step < 60; step++) {
        change(choices, world, rbac);
        for (let probe = 0; probe < 10; probe++) {
          const user = choices.one(USERS);
          const action = randomAction(choices);
          const decision = rbac.authorize(user, action);
          assert.equal(
            decision.allowed,
            oracle(world, user, action),
            `seed ${seed} step ${step}: ${user.name} ${JSON.stringify(action)} ${decision.reason}`,
          );
        }
      }
    }
  });

  it('lists the RBAC rules that apply to a user', () => {
    for (let seed = 1; seed <= 20; seed++) {
      const choices = new Choices(seed);
      const rbac = createRbacAuthorizer();
      const world: World = {
        clusterRoles: new Map(),
        roles: new Map(),
        clusterRoleBindings: new Map(),
        roleBindings: new Map(),
      };
      for (let step = 0; step < 30; step++) change(choices, world, rbac);
      for (let probe = 0; probe < 50; probe++) {
        const user = choices.one(USERS);
        const action = randomAction(choices);
        const effective = rbac.rulesFor(user, 'path' in action ? '' : action.namespace);
        const rules = 'path' in action ? effective.nonResourceRules : effective.resourceRules;
        assert.equal(
          rules.some((rule) => ruleAllows(rule, action)),
          rbac.authorize(user, action).allowed,
          `seed ${seed}: ${JSON.stringify(action)}`,
        );
      }
    }
  });

  it('the generation of RBAC changes exactly with changes that affect decisions', () => {
    const rbac = createRbacAuthorizer();
    const role: ClusterRole = {
      metadata: { name: 'r' },
      rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }],
    };
    rbac.setClusterRole(role);
    const first = rbac.generation;
    rbac.setClusterRole({ ...role, metadata: { name: 'r', labels: { a: 'b' } } });
    rbac.deleteClusterRole('other');
    rbac.deleteRoleBinding('a', 'other');
    assert.equal(rbac.generation, first);
    rbac.setClusterRole({ ...role, rules: [] });
    assert.notEqual(rbac.generation, first);
    const second = rbac.generation;
    rbac.deleteClusterRole('r');
    assert.notEqual(rbac.generation, second);
  });

  it("RBAC gives the reasons of its decisions in upstream's wording", () => {
    const rbac = createRbacAuthorizer();
    const read: Action = { verb: 'get', group: '', resource: 'pods', subresource: 'log', namespace: 'a', name: 'x' };
    rbac.setRoleBinding({
      metadata: { namespace: 'a', name: 'readers' },
      roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: 'view' },
      subjects: [{ kind: 'ServiceAccount', name: 'robot' }],
    });
    const robot = USERS[2] ?? { name: '', groups: [] };
    assert.equal(rbac.authorize(robot, read).reason, 'RBAC: clusterrole.rbac.authorization.k8s.io "view" not found');
    rbac.setClusterRole({
      metadata: { name: 'view' },
      rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods/log'] }],
    });
    assert.deepEqual(rbac.authorize(robot, read), {
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "readers/a" of ClusterRole "view" to ServiceAccount "robot/a"',
    });
    assert.equal(
      describeDenial({ name: 'bob', groups: [] }, read),
      'User "bob" cannot get resource "pods/log" in API group "" in the namespace "a"',
    );
    assert.equal(
      describeDenial({ name: 'bob', groups: [] }, { ...read, namespace: '', group: 'apps', subresource: '' }),
      'User "bob" cannot get resource "pods" in API group "apps" at the cluster scope',
    );
    assert.equal(
      describeDenial({ name: 'bob', groups: [] }, { verb: 'get', path: '/x' }),
      'User "bob" cannot get path "/x"',
    );
  });

  it('permits everything to system:masters', () => {
    const rbac = createRbacAuthorizer();
    assert.equal(rbac.authorize({ name: 'x', groups: ['system:masters'] }, { verb: 'get', path: '/x' }).allowed, true);
  });

  it('RBAC treats prototype names as plain data', () => {
    const rbac = createRbacAuthorizer();
    for (const name of ['__proto__', 'constructor', 'toString']) {
      const action: Action = { verb: name, group: name, resource: name, subresource: name, namespace: name, name };
      assert.equal(rbac.authorize({ name, groups: [name] }, action).allowed, false);
    }
  });

  it('decides RBAC requests in microseconds with any number of bindings', () => {
    const rbac = createRbacAuthorizer();
    for (let index = 0; index < 5000; index++) {
      rbac.setClusterRole({
        metadata: { name: `r${index}` },
        rules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }],
      });
      rbac.setClusterRoleBinding({
        metadata: { name: `b${index}` },
        roleRef: { apiGroup: GROUP, kind: 'ClusterRole', name: `r${index}` },
        subjects: [{ kind: 'User', name: `u${index}` }],
      });
    }
    const action: Action = {
      verb: 'list',
      group: 'apps',
      resource: 'deployments',
      subresource: '',
      namespace: 'a',
      name: '',
    };
    const startedMs = performance.now();
    for (let index = 0; index < 10_000; index++)
      rbac.authorize({ name: `u${index}`, groups: ['system:authenticated'] }, action);
    const microseconds = ((performance.now() - startedMs) * 1000) / 10_000;
    assert.ok(microseconds < 500, `${microseconds} µs`);
  });
});

describe('RBAC escalation check', () => {
  it('the escalation check never accepts permissions that the owner does not have', () => {
    let coveredOnes = 0;
    for (let seed = 1; seed <= 3000; seed++) {
      const choices = new Choices(seed);
      const owned = Array.from({ length: 1 + choices.below(4) }, () => randomRule(choices));
      const wanted = Array.from({ length: 1 + choices.below(2) }, () => randomRule(choices));
      const { covered, uncovered } = coversRules(owned, wanted);
      assert.equal(covered, uncovered.length === 0);
      if (!covered) continue;
      coveredOnes++;
      for (let probe = 0; probe < 40; probe++) {
        const action = randomAction(choices);
        if (!wanted.some((rule) => ruleAllows(rule, action))) continue;
        assert.ok(
          owned.some((rule) => ruleAllows(rule, action)),
          `seed ${seed}: ${JSON.stringify({ owned, wanted, action })}`,
        );
      }
    }
    assert.ok(coveredOnes > 100, `only ${coveredOnes} covered`);
  });

  const rule = (verbs: string, resources: string, resourceNames?: string[]): PolicyRule => ({
    verbs: verbs.split(' '),
    apiGroups: [''],
    resources: resources.split(' '),
    ...(resourceNames === undefined ? {} : { resourceNames }),
  });

  it('the escalation check accepts a rule that several owned rules cover together', () => {
    const owned = [rule('get', 'pods'), rule('list', 'pods'), rule('get list', 'secrets')];
    assert.equal(coversRules(owned, [rule('get list', 'pods secrets')]).covered, true);
    assert.deepEqual(coversRules(owned, [rule('get watch', 'pods')]).uncovered, [rule('watch', 'pods')]);
  });

  it('the escalation check distinguishes named objects from all objects, and resources from their subresources', () => {
    assert.equal(coversRules([rule('get', 'pods', ['x'])], [rule('get', 'pods')]).covered, false);
    assert.equal(coversRules([rule('get', 'pods')], [rule('get', 'pods', ['x'])]).covered, true);
    assert.equal(coversRules([rule('get', 'pods')], [rule('get', 'pods/log')]).covered, false);
    assert.equal(coversRules([rule('get', '*/scale')], [rule('get', 'x/scale')]).covered, true);
    assert.equal(coversRules([rule('get', '*')], [rule('get', 'x/scale')]).covered, true);
    const urls = (url: string): PolicyRule[] => [{ verbs: ['get'], nonResourceURLs: [url] }];
    assert.equal(coversRules(urls('/a/*'), urls('/a/b')).covered, true);
    assert.equal(coversRules(urls('/a'), urls('/a/*')).covered, false);
  });

  it('the escalation check rejects an excessive number of permissions within a short time', () => {
    const many = (prefix: string) => Array.from({ length: 400 }, (_, index) => `${prefix}${index}`);
    const monster: PolicyRule = {
      verbs: many('v'),
      apiGroups: many('g'),
      resources: many('r'),
      resourceNames: many('n'),
    };
    const startedMs = performance.now();
    const { covered, uncovered } = coversRules([rule('get', 'pods'), { ...monster, verbs: ['v0'] }], [monster]);
    assert.equal(covered, false);
    assert.ok(uncovered.length <= 50);
    assert.ok(performance.now() - startedMs < 2000);
  });
});

function change(choices: Choices, world: World, rbac: ReturnType<typeof createRbacAuthorizer>): void {
  const name = choices.one(NAMES);
  const namespace = choices.one(NAMESPACES);
  const key = `${namespace}/${name}`;
  const rules = Array.from({ length: choices.below(4) }, () => randomRule(choices));
  const subjects = choices.some(SUBJECTS, 0, 3);
  const ref = (kind: string): RoleRef => ({ apiGroup: GROUP, kind, name: choices.one(NAMES) });
  switch (choices.below(8)) {
    case 0:
    case 1: {
      const role = { metadata: { name }, rules };
      world.clusterRoles.set(name, role);
      rbac.setClusterRole(role);
      return;
    }
    case 2: {
      const role = { metadata: { name, namespace }, rules };
      world.roles.set(key, role);
      rbac.setRole(role);
      return;
    }
    case 3: {
      const binding = { metadata: { name }, roleRef: ref('ClusterRole'), subjects };
      world.clusterRoleBindings.set(name, binding);
      rbac.setClusterRoleBinding(binding);
      return;
    }
    case 4:
    case 5: {
      const binding = { metadata: { name, namespace }, roleRef: ref(choices.one(['Role', 'ClusterRole'])), subjects };
      world.roleBindings.set(key, binding);
      rbac.setRoleBinding(binding);
      return;
    }
    case 6:
      world.clusterRoles.delete(name);
      rbac.deleteClusterRole(name);
      world.roleBindings.delete(key);
      rbac.deleteRoleBinding(namespace, name);
      return;
    default:
      world.roles.delete(key);
      rbac.deleteRole(namespace, name);
      world.clusterRoleBindings.delete(name);
      rbac.deleteClusterRoleBinding(name);
  }
}
