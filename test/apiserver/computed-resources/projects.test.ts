/** The OpenShift groups project, authorization and config on a complete API server. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Deployment } from '../../../src/api/generated/apps/v1.ts';
import type { KeyPair } from '../../../src/pki/certificate.ts';
import { startServer, type TestServer } from '../harness.ts';

const REQUESTS = '/apis/project.openshift.io/v1/projectrequests';
const REVIEWS = '/apis/authorization.openshift.io/v1';

interface Listed {
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

const request = (name: string, more: object = {}) => ({
  apiVersion: 'project.openshift.io/v1',
  kind: 'ProjectRequest',
  metadata: { name },
  ...more,
});

describe('projects', { concurrency: false }, () => {
  let server: TestServer;
  let ann: KeyPair;
  let bob: KeyPair;
  before(async () => {
    server = await startServer({ config: { openshift: { profile: 'okd', domain: 'apps.lab.example' } } });
    ann = await server.user('ann', 'system:authenticated:oauth');
    bob = await server.user('bob');
  });
  after(() => server.stop());

  const configure = (spec: object) =>
    server.call('PATCH', '/apis/config.openshift.io/v1/projects/cluster', {
      body: { spec },
      type: 'application/merge-patch+json',
    });

  test('an administrator gets a project by name, and access reviews of projects may omit the API group', async () => {
    const path = '/apis/apps/v1/namespaces/openshift-machine-config-operator/deployments/machine-config-operator';
    const { body } = await server.call<Deployment>('GET', path);
    const [container] = body.spec?.template.spec?.containers ?? [];
    assert.deepEqual([body.spec?.replicas, container?.name], [0, 'machine-config-operator']);
  });

  test('allows self-provisioners to request projects, and returns the configured message to other users', async () => {
    const allowed = await server.call('GET', REQUESTS, { as: ann });
    assert.deepEqual([allowed.code, allowed.body['kind'], allowed.body['status']], [200, 'Status', 'Success']);
    const refused = await server.call('GET', REQUESTS, { as: bob });
    assert.deepEqual([refused.code, refused.body['message']], [403, 'You may not request a new project via this API.']);
    await configure({ projectRequestMessage: 'Ask ann for a project.' });
    assert.equal((await server.call('GET', REQUESTS, { as: bob })).body['message'], 'Ask ann for a project.');
    assert.equal((await server.call('POST', REQUESTS, { as: bob, body: request('his') })).code, 403);
  });

  test('the requester becomes the administrator of the new project, and sees the project at once', async () => {
    const made = await server.call<{ kind: string; metadata: { annotations: Record<string, string> } }>(
      'POST',
      REQUESTS,
      { as: ann, body: request('shop', { displayName: 'Shop', description: 'Sells.' }) },
    );
    assert.equal(made.code, 201, made.text);
    assert.equal(made.body.kind, 'Project');
    assert.deepEqual(made.body.metadata.annotations, {
      'openshift.io/description': 'Sells.',
      'openshift.io/display-name': 'Shop',
      'openshift.io/requester': 'ann',
    });
    const names = async (as: KeyPair) => {
      const { body } = await server.call<Listed>('GET', '/apis/project.openshift.io/v1/projects', { as });
      return body.items.map(({ metadata }) => metadata.name);
    };
    assert.deepEqual(await names(ann), ['shop']);
    assert.deepEqual(await names(bob), []);
    const again = await server.call('POST', REQUESTS, { as: ann, body: request('shop') });
    assert.deepEqual([again.code, again.body['message']], [409, 'project.project.openshift.io "shop" already exists']);
  });

  test('rejects project requests with reserved names', async () => {
    for (const name of ['openshift', 'kube', 'kube-x', 'openshift-x']) {
      const { code, text } = await server.call('POST', REQUESTS, { as: ann, body: request(name) });
      assert.equal(code, 403, text);
      assert.match(text, /cannot request a project/);
    }
    assert.equal((await server.call('POST', REQUESTS, { as: ann, body: request('Bad_Name') })).code, 422);
  });

  test('a project request whose template is missing creates no project', async () => {
    await configure({ projectRequestTemplate: { name: 'missing' } });
    const { code, text } = await server.call('POST', REQUESTS, { as: ann, body: request('other') });
    assert.equal(code, 404, text);
    assert.equal((await server.call('GET', '/api/v1/namespaces/other')).code, 404);
    await configure({ projectRequestTemplate: null });
  });

  test("creates a project from the cluster's template completely or creates no object", async () => {
    const parameter = (name: string): string => `$\{${name}}`;
    const project = {
      apiVersion: 'project.openshift.io/v1',
      kind: 'Project',
      metadata: { name: parameter('PROJECT_NAME'), labels: { team: parameter('TEAM') } },
    };
    const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
    const store = (name: string, objects: object[]) =>
      server.call('POST', '/apis/template.openshift.io/v1/namespaces/openshift-config/templates', {
        body: {
          apiVersion: 'template.openshift.io/v1',
          kind: 'Template',
          metadata: { name },
          objects: [project, ...objects],
          parameters: [{ name: 'PROJECT_NAME' }, { name: 'TEAM', value: 'blue' }],
        },
      });
    const clusterWide = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'sneaks' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
    };
    for (const [name, objects] of Object.entries({
      good: [map('settings')],
      wide: [map('settings'), clusterWide],
      broken: [map('settings'), map('Bad_Name')],
    })) {
      const stored = await store(name, objects);
      assert.equal(stored.code, 201, stored.text);
      await configure({ projectRequestTemplate: { name } });
      const { code, text } = await server.call('POST', REQUESTS, { as: ann, body: request(`by-${name}`) });
      assert.equal(code, name === 'good' ? 201 : 500, text);
      if (name === 'wide')
        assert.match(text, /ClusterRoleBinding specified in project template is not namespace scoped/);
    }
    const labels = async (name: string) =>
      (await server.call<{ metadata: { labels: Record<string, string> } }>('GET', `/api/v1/namespaces/${name}`)).body
        .metadata.labels;
    assert.equal((await labels('by-good'))['team'], 'blue');
    assert.equal((await server.call('GET', '/api/v1/namespaces/by-good/configmaps/settings')).code, 200);
    assert.equal((await server.call('GET', '/api/v1/namespaces/by-wide')).code, 404);
    // No controller runs in this test that would delete the contents.
    const undone = await server.call<{ status: { phase: string } }>('GET', '/api/v1/namespaces/by-broken');
    assert.equal(undone.body.status.phase, 'Terminating');
    assert.equal((await server.call('GET', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/sneaks')).code, 404);
    await configure({ projectRequestTemplate: null });
  });

  test('access reviews list the users and groups with a permission, and check single subjects', async () => {
    const action = { verb: 'get', resource: 'pods', resourceAPIGroup: '' };
    const review = (kind: string, body: object) =>
      server.call<{ users: string[]; groups: string[]; allowed: boolean; kind: string }>(
        'POST',
        `${REVIEWS}/${kind.startsWith('Local') ? 'namespaces/shop/' : ''}${kind.toLowerCase()}s`,
        { body: { apiVersion: 'authorization.openshift.io/v1', kind, ...body } },
      );
    const local = await review('LocalResourceAccessReview', action);
    assert.equal(local.code, 201, local.text);
    assert.equal(local.body.kind, 'ResourceAccessReviewResponse');
    assert.ok(local.body.users.includes('ann'), local.text);
    assert.ok(local.body.groups.includes('system:masters') && local.body.groups.includes('system:cluster-readers'));
    const everywhere = await review('ResourceAccessReview', action);
    assert.ok(!everywhere.body.users.includes('ann'), everywhere.text);
    for (const [user, allowed] of [
      ['ann', true],
      ['bob', false],
    ] as const) {
      const answer = await review('LocalSubjectAccessReview', { ...action, user });
      assert.deepEqual([answer.body.kind, answer.body.allowed], ['SubjectAccessReviewResponse', allowed], answer.text);
    }
    assert.equal((await review('ResourceAccessReview', { verb: 'get' })).code, 422);
  });

  test('a role binding is the same object in both API groups of RBAC', async () => {
    const at = `${REVIEWS}/namespaces/shop/rolebindings`;
    const binding = {
      apiVersion: 'authorization.openshift.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'view' },
      roleRef: { name: 'view' },
      userNames: ['bob', 'system:serviceaccount:shop:default'],
      groupNames: ['team'],
    };
    const made = await server.call('POST', at, { body: binding, as: ann });
    assert.equal(made.code, 201, made.text);
    const stored = await server.call('GET', '/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings/view');
    assert.deepEqual(stored.body['subjects'], [
      { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'bob' },
      { kind: 'ServiceAccount', name: 'default', namespace: 'shop' },
      { kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'team' },
    ]);
    const shown = await server.call('GET', `${at}/view`);
    assert.deepEqual(shown.body['userNames'], ['bob', 'system:serviceaccount:shop:default']);
    assert.deepEqual(shown.body['roleRef'], { name: 'view' });
    // The legacy group enforces the same rules against escalation.
    const more = { ...binding, metadata: { name: 'more' }, roleRef: { name: 'cluster-admin' } };
    assert.equal((await server.call('POST', at, { body: more, as: ann })).code, 403);
  });

  test('RoleBindingRestrictions limit the subjects of role bindings', async () => {
    const restriction = {
      apiVersion: 'authorization.openshift.io/v1',
      kind: 'RoleBindingRestriction',
      metadata: { name: 'few' },
      spec: { userrestriction: { users: ['bob'] } },
    };
    const path = `${REVIEWS}/namespaces/shop/rolebindingrestrictions`;
    const stored = await server.call('POST', path, { body: restriction });
    assert.equal(stored.code, 201, stored.text);
    const bind = (name: string) =>
      server.call('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings', {
        as: ann,
        body: {
          metadata: { name: `edit-${name}` },
          roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
          subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name }],
        },
      });
    assert.equal((await bind('bob')).code, 201);
    const refused = await bind('eve');
    assert.equal(refused.code, 403);
    assert.match(refused.text, /rolebindings to User \\"eve\\" are not allowed in project \\"shop\\"/);
  });

  test('creates config.openshift.io objects with the settings of the cluster, and keeps later changes', async () => {
    const spec = async (plural: string, name = 'cluster') =>
      (await server.call<{ spec: Record<string, unknown> }>('GET', `/apis/config.openshift.io/v1/${plural}/${name}`))
        .body.spec;
    assert.equal((await spec('dnses'))['baseDomain'], 'lab.example');
    assert.equal((await spec('ingresses'))['domain'], 'apps.lab.example');
    assert.deepEqual((await spec('networks'))['serviceNetwork'], ['172.30.0.0/16']);
    assert.equal((await spec('projects'))['projectRequestMessage'], 'Ask ann for a project.');
    const second = { apiVersion: 'config.openshift.io/v1', kind: 'OAuth', metadata: { name: 'other' }, spec: {} };
    const refused = await server.call('POST', '/apis/config.openshift.io/v1/oauths', { body: second });
    assert.equal(refused.code, 422, refused.text);
    const readers = await server.user('rita', 'system:cluster-readers');
    assert.equal((await server.call('GET', '/apis/config.openshift.io/v1/oauths/cluster', { as: readers })).code, 200);
    assert.equal((await server.call('GET', '/apis/config.openshift.io/v1/oauths/cluster', { as: bob })).code, 403);
  });
});

test('in profile kubernetes only administrators create projects', async () => {
  const server = await startServer();
  try {
    const ann = await server.user('ann', 'system:authenticated:oauth');
    assert.equal((await server.call('POST', REQUESTS, { as: ann, body: request('shop') })).code, 403);
    assert.equal((await server.call('POST', REQUESTS, { body: request('shop') })).code, 201);
  } finally {
    await server.stop();
  }
});

test('ProjectRequestLimit limits the projects of a user by the labels of the user', async () => {
  const projectRequestLimits = [
    { selector: { level: 'admin' }, maxProjects: undefined },
    { selector: { level: 'advanced' }, maxProjects: 2 },
    { selector: {}, maxProjects: 1 },
  ];
  const server = await startServer({
    config: { openshift: { profile: 'okd', domain: 'apps.lab.example' }, admission: { projectRequestLimits } },
  });
  try {
    const ask = async (user: string, level: string | undefined, names: readonly string[]): Promise<number[]> => {
      const pair = await server.user(user, 'system:authenticated:oauth');
      const metadata = { name: user, ...(level === undefined ? {} : { labels: { level } }) };
      await server.call('POST', '/apis/user.openshift.io/v1/users', { body: { metadata } });
      const codes: number[] = [];
      for (const name of names)
        codes.push((await server.call('POST', REQUESTS, { as: pair, body: request(name) })).code);
      return codes;
    };
    assert.deepEqual(await ask('ann', undefined, ['a1', 'a2']), [201, 403]);
    assert.deepEqual(await ask('bob', 'advanced', ['b1', 'b2', 'b3']), [201, 201, 403]);
    assert.deepEqual(await ask('eve', 'admin', ['e1', 'e2', 'e3']), [201, 201, 201]);
    const ann = await server.user('ann', 'system:authenticated:oauth');
    const refused = await server.call('POST', REQUESTS, { as: ann, body: request('a3') });
    assert.match(String(refused.body['message']), /"a3" is forbidden: user ann cannot create more than 1 project/);
  } finally {
    await server.stop();
  }
});

test('deletes an unchanged binding of self-provisioners in profile kubernetes', async () => {
  const path = '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/self-provisioners';
  const okd = { openshift: { profile: 'okd', domain: 'apps.lab.example' } } as const;
  const first = await startServer({ config: okd });
  const { store } = first;
  const settles = async (server: TestServer, wanted: number): Promise<void> => {
    const deadline = performance.now() + 10_000;
    let code = 0;
    while (code !== wanted && performance.now() < deadline) code = (await server.call('GET', path)).code;
    assert.equal(code, wanted);
  };
  await settles(first, 200);
  await first.stop(true);
  const second = await startServer({ store });
  await settles(second, 404);
  await second.stop(true);
  const third = await startServer({ store, config: okd });
  await settles(third, 200);
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'builders' }];
  const type = 'application/merge-patch+json';
  assert.equal((await third.call('PATCH', path, { body: { subjects }, type })).code, 200);
  await third.stop(true);
  const fourth = await startServer({ store });
  try {
    await new Promise((resolve) => setTimeout(resolve, 500));
    await settles(fourth, 200);
  } finally {
    await fourth.stop();
  }
});
