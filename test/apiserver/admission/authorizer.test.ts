/**
 * The `authorizer` variable in policies and match conditions, with decisions by roles and by an authorization webhook.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import type { KeyPair } from '../../../src/pki/certificate.ts';
import { startServer, type TestServer } from '../harness.ts';
import { configure, unconfigure, WebhookServer } from './webhook-server.ts';

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const MAPS = '/api/v1/namespaces/default/configmaps';

interface Body {
  message: string;
  data?: Record<string, string>;
}

interface Question {
  spec: { user: string; resourceAttributes?: Record<string, string>; nonResourceAttributes?: { path: string } };
}

describe('the authorizer of admission expressions', () => {
  let server: TestServer;
  let hooks: WebhookServer;
  let bob: KeyPair;
  let serial = 0;
  let requested: string[] = [];
  before(async () => {
    hooks = await WebhookServer.start();
    // Allows reads of config maps and secrets named "open", and has no opinion on others, so that roles decide.
    hooks.on('/access', (review) => {
      const { user, resourceAttributes: of, nonResourceAttributes: path } = (review as unknown as Question).spec;
      requested.push(`${user} ${of?.['verb'] ?? ''} ${of?.['resource'] ?? path?.path} ${of?.['name'] ?? ''}`);
      return JSON.stringify({ status: { allowed: of?.['resource'] === 'secrets' && of['name'] === 'open' } });
    });
    server = await startServer({
      config: {
        authorizers: [
          {
            type: 'Webhook',
            webhook: {
              endpoint: {
                url: `https://127.0.0.1:${hooks.port}/access`,
                ca: Buffer.from(hooks.caBundle, 'base64').toString(),
              },
              version: 'v1',
              allowedMs: 0,
              deniedMs: 0,
            },
          },
          { type: 'RBAC' },
        ],
      },
    });
    bob = await server.user('bob');
    const rules = [
      { verbs: ['create', 'get'], apiGroups: [''], resources: ['configmaps'] },
      { verbs: ['mark'], apiGroups: [''], resources: ['configmaps'], resourceNames: ['marked'] },
    ];
    await server.call('POST', `${RBAC}/clusterroles`, { body: { metadata: { name: 'maps' }, rules } });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'maps' };
    const subjects = [
      { kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' },
      { kind: 'ServiceAccount', name: 'robot', namespace: 'kube-system' },
    ];
    const body = { metadata: { name: 'maps' }, roleRef, subjects };
    assert.equal((await server.call('POST', `${RBAC}/clusterrolebindings`, { body })).code, 201);
  });
  after(async () => {
    await server.stop();
    await hooks.stop();
  });
  afterEach(async () => {
    for (const kind of ['validatingadmissionpolicies', 'validatingadmissionpolicybindings']) {
      await server.call('DELETE', `${REGISTRATION}/${kind}`);
    }
    for (const kind of ['mutatingadmissionpolicies', 'mutatingadmissionpolicybindings']) {
      await server.call('DELETE', `${REGISTRATION}/${kind}`);
    }
    await unconfigure(server);
  });

  const rules = [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }];
  const policy = async (sort: 'validating' | 'mutating', spec: object): Promise<void> => {
    const made = await server.call('POST', `${REGISTRATION}/${sort}admissionpolicies`, {
      body: { metadata: { name: 'p' }, spec: { matchConstraints: { resourceRules: rules }, ...spec } },
    });
    assert.equal(made.code, 201, made.text);
    const bound = await server.call('POST', `${REGISTRATION}/${sort}admissionpolicybindings`, {
      body: {
        metadata: { name: 'b' },
        spec: { policyName: 'p', ...(sort === 'validating' ? { validationActions: ['Deny'] } : {}) },
      },
    });
    assert.equal(bound.code, 201, bound.text);
  };
  const create = async (as: KeyPair | undefined, name = `m${++serial}`) => {
    requested = [];
    const body = { metadata: { name }, data: { a: '1' } };
    return server.call<Body>('POST', MAPS, as === undefined ? { body } : { as, body });
  };
  /** Waits until the new role takes effect. */
  const allowed = async (): Promise<void> => {
    const deadline = performance.now() + 10_000;
    while ((await create(bob)).code !== 201) assert.ok(performance.now() < deadline);
  };

  it('the authorizer of admission decides by roles and by the webhook, for the requester and for service accounts', async () => {
    await allowed();
    await policy('validating', {
      variables: [
        { name: 'secrets', expression: "authorizer.group('').resource('secrets').namespace('default')" },
        { name: 'robot', expression: "authorizer.serviceAccount('kube-system', 'robot')" },
      ],
      validations: [
        { expression: "variables.secrets.name('open').check('get').allowed()", message: 'open' },
        { expression: "!variables.secrets.name('shut').check('get').allowed()", message: 'shut' },
        { expression: "variables.robot.group('').resource('configmaps').check('get').allowed()", message: 'robot' },
        { expression: "!authorizer.path('/healthz').check('get').errored()", message: 'path' },
        {
          expression: "authorizer.requestResource.check('mark').allowed()",
          message: 'must be allowed to mark',
        },
      ],
    });
    const refused = await create(bob);
    assert.equal(refused.code, 422, refused.text);
    assert.match(refused.body.message, /denied request: must be allowed to mark$/);
    // Each check is sent once, although the policy is evaluated again after each decision.
    const own = requested.filter((each) => !each.startsWith('bob create configmaps'));
    assert.deepEqual(own, [
      'bob get secrets open',
      'bob get secrets shut',
      'system:serviceaccount:kube-system:robot get configmaps ',
      'bob  /healthz ',
      `bob mark configmaps m${serial}`,
    ]);
    assert.equal((await create(bob, 'marked')).code, 201);
    assert.match((await create(undefined)).body.message, /denied request: shut$/, 'who may do everything may do that');
  });

  it('the authorizer of admission is available in match conditions of webhooks and policies, and in mutations', async () => {
    await allowed();
    const privileged = "authorizer.group('').resource('secrets').name('shut').check('delete').allowed()";
    hooks.on('/deny', () => ({ allowed: false }));
    await configure(server, 'Validating', 'a', {
      ...hooks.hook('/deny'),
      matchConditions: [{ name: 'ordinary', expression: `!${privileged}` }],
    });
    assert.equal((await create(bob)).code, 400);
    assert.equal((await create(undefined)).code, 201);
    await unconfigure(server);
    await policy('mutating', {
      reinvocationPolicy: 'Never',
      matchConditions: [{ name: 'named', expression: "authorizer.requestResource.check('mark').allowed()" }],
      mutations: [
        {
          patchType: 'ApplyConfiguration',
          applyConfiguration: { expression: `Object{data: {"all": string(${privileged})}}` },
        },
      ],
    });
    assert.deepEqual((await create(bob)).body.data, { a: '1' });
    await server.call('DELETE', `${MAPS}/marked`);
    assert.deepEqual((await create(bob, 'marked')).body.data, { a: '1', all: 'false' });
    assert.deepEqual((await create(undefined)).body.data, { a: '1', all: 'true' });
  });
});
