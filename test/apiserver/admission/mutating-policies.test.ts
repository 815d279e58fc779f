/** MutatingAdmissionPolicy, according to its documentation. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { define } from '../custom-resources/definition.ts';
import { run, startServer, type TestServer } from '../harness.ts';
import { configure, patchOf, unconfigure, WebhookServer } from './webhook-server.ts';

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';
const MAPS = '/api/v1/namespaces/default/configmaps';
const DEPLOYMENTS = '/apis/apps/v1/namespaces/default/deployments';

interface Body {
  message: string;
  reason: string;
  code: number;
  details?: { causes?: { message: string }[] };
  metadata: { name: string; labels?: Record<string, string> };
  data?: Record<string, string>;
  spec: { replicas: number; paused?: boolean; template: { spec: { containers: Record<string, unknown>[] } } };
}

describe('mutating admission policies', () => {
  let server: TestServer;
  let hooks: WebhookServer;
  let serial = 0;
  before(async () => {
    [server, hooks] = [await startServer(), await WebhookServer.start()];
  });
  after(async () => {
    await server.stop();
    await hooks.stop();
  });
  afterEach(async () => {
    await server.call('DELETE', `${REGISTRATION}/mutatingadmissionpolicies`);
    await server.call('DELETE', `${REGISTRATION}/mutatingadmissionpolicybindings`);
    await unconfigure(server);
  });

  const rule = (group: string, resource: string) => ({
    operations: ['CREATE', 'UPDATE'],
    apiGroups: [group],
    apiVersions: ['v1'],
    resources: [resource],
  });
  const CONFIG_MAPS = [rule('', 'configmaps')];
  const post = (path: string, body: unknown) => server.call<Body>('POST', path, { body });
  const write = (spec: object, name = 'p', version = 'v1') =>
    post(`/apis/admissionregistration.k8s.io/${version}/mutatingadmissionpolicies`, {
      metadata: { name },
      spec: { reinvocationPolicy: 'Never', matchConstraints: { resourceRules: CONFIG_MAPS }, ...spec },
    });
  const policy = async (spec: object, name = 'p'): Promise<void> => {
    const made = await write(spec, name);
    assert.equal(made.code, 201, made.text);
    const body = { metadata: { name: `${name}-b` }, spec: { policyName: name } };
    const bound = await post(`${REGISTRATION}/mutatingadmissionpolicybindings`, body);
    assert.equal(bound.code, 201, bound.text);
  };
  const apply = (expression: string) => ({
    patchType: 'ApplyConfiguration',
    applyConfiguration: { expression },
  });
  const patch = (expression: string) => ({ patchType: 'JSONPatch', jsonPatch: { expression } });
  const map = (data: Record<string, string> = {}, metadata: object = {}) =>
    post(MAPS, { metadata: { name: `m${++serial}`, ...metadata }, data });
  const deployment = (spec: object = {}) =>
    post(DEPLOYMENTS, {
      metadata: { name: `d${++serial}` },
      spec: {
        selector: { matchLabels: { app: 'x' } },
        template: { metadata: { labels: { app: 'x' } }, spec: { containers: [{ name: 'a', image: 'a:1' }] } },
        ...spec,
      },
    });

  it('mutating admission policies apply configurations and patches in order, once they are bound', async () => {
    const made = await write({
      matchConstraints: { resourceRules: [rule('apps', 'deployments')] },
      variables: [{ name: 'extra', expression: 'object.spec.replicas + 100' }],
      mutations: [
        apply(`Object{
          spec: Object.spec{
            replicas: variables.extra,
            template: Object.spec.template{spec: Object.spec.template.spec{
              containers: [Object.spec.template.spec.containers{name: "side", image: "s:1",
                ports: [Object.spec.template.spec.containers.ports{containerPort: 80}]}]
            }}
          }
        }`),
        patch(`[
          JSONPatch{op: "test", path: "/spec/replicas", value: variables.extra - 100},
          JSONPatch{op: "add", path: "/metadata/labels", value: {}},
          JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("lab.test/x"), value: string(object.spec.replicas)}
        ]`),
        patch('[JSONPatch{op: "test", path: "/spec/replicas", value: 1}, JSONPatch{op: "remove", path: "/spec"}]'),
      ],
    });
    assert.equal(made.code, 201, made.text);
    assert.equal((await deployment({ replicas: 1 })).body.spec.replicas, 1, 'not bound yet');
    await post(`${REGISTRATION}/mutatingadmissionpolicybindings`, {
      metadata: { name: 'b' },
      spec: { policyName: 'p' },
    });
    const { code, body, text } = await deployment({ replicas: 1 });
    assert.equal(code, 201, text);
    // The second mutation sees the result of the first: 101, and its own variables: 201.
    assert.equal(body.spec.replicas, 101);
    assert.deepEqual(body.metadata.labels, { 'lab.test/x': '101' });
    const [first, side] = body.spec.template.spec.containers;
    assert.equal(first?.['name'], 'a');
    assert.deepEqual(side?.['ports'], [{ containerPort: 80, protocol: 'TCP' }], 'defaults are filled in');
  });

  it('mutating admission policies support parameters, match conditions and selectors of bindings', async () => {
    await map({ key: 'k', value: 'v' }, { name: 'settings' });
    const made = await write({
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      matchConditions: [{ name: 'wanted', expression: "object.metadata.name != 'left-alone'" }],
      mutations: [apply('Object{data: {params.data.key: params.data.value + namespaceObject.metadata.name}}')],
    });
    assert.equal(made.code, 201, made.text);
    const spec = {
      policyName: 'p',
      paramRef: { name: 'settings', parameterNotFoundAction: 'Deny' },
      matchResources: { objectSelector: { matchLabels: { mutate: 'yes' } } },
    };
    await post(`${REGISTRATION}/mutatingadmissionpolicybindings`, { metadata: { name: 'b' }, spec });
    const labels = { mutate: 'yes' };
    assert.deepEqual((await map({ a: '1' }, { labels })).body.data, { a: '1', k: 'vdefault' });
    assert.deepEqual((await map({ a: '1' })).body.data, { a: '1' });
    assert.deepEqual((await map({ a: '1' }, { labels, name: 'left-alone' })).body.data, { a: '1' });
    await server.call('DELETE', `${MAPS}/settings`);
    const refused = await map({ a: '1' }, { labels });
    assert.equal(refused.code, 403);
    assert.match(
      refused.body.message,
      /^policy 'p' with binding 'b' denied request: failed to configure binding: no params found for policy binding with `Deny`/,
    );
  });

  it('mutating admission policies reject a request with all failures, unless the failure policy is Ignore', async () => {
    const mutations = [
      patch('[JSONPatch{op: "remove", path: "/data/gone"}]'),
      apply('Object{data: {"a": object.data.missing}}'),
      patch('[JSONPatch{op: "add", path: "/data/b", value: "2"}]'),
    ];
    await policy({ mutations });
    const refused = await map({ a: '1' });
    assert.equal(refused.code, 403);
    assert.equal(refused.body.reason, 'Invalid');
    const causes = (refused.body.details?.causes ?? []).map(({ message }) => message);
    assert.equal(causes.length, 2);
    assert.equal(refused.body.message, causes[0]);
    assert.match(
      causes[0] ?? '',
      /^policy 'p' with binding 'p-b' denied request: JSONPath: the path "\/data\/gone" does not exist$/,
    );
    assert.match(causes[1] ?? '', /expression 'Object\{.*' resulted in error: no such key: missing$/);
    await server.call('PATCH', `${REGISTRATION}/mutatingadmissionpolicies/p`, {
      body: { spec: { failurePolicy: 'Ignore' } },
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    const { code, body, text } = await map({ a: '1' });
    assert.equal(code, 201, text);
    assert.deepEqual(body.data, { a: '1', b: '2' }, 'what did not fail is done');
  });

  it('mutating admission policies report type errors in upstream’s wording', async () => {
    const cases: [object, number, RegExp][] = [
      [
        apply('Object{spec: Object.specs{}}'),
        403,
        /type mismatch: unexpected type name "Object.specs", expected "Object.spec"/,
      ],
      [
        apply('Object{spec: Object.spec{replicasx: 1}}'),
        403,
        /error applying patch: failed to convert patch object to typed object: \.spec\.replicasx: field not declared in schema/,
      ],
      [
        apply('Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {"a": "b"}}}}'),
        403,
        /error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: \.spec\.selector$/,
      ],
      [
        patch('[JSONPatch{op: "add", path: "/spec/x", value: 1}]'),
        500,
        /^Internal error occurred: strict decoding error: unknown field "spec\.x"$/,
      ],
    ];
    for (const [mutation, code, message] of cases) {
      await policy({ matchConstraints: { resourceRules: [rule('apps', 'deployments')] }, mutations: [mutation] });
      const refused = await deployment();
      assert.match(refused.body.message, message);
      assert.equal(refused.code, code, refused.text);
      await server.call('DELETE', `${REGISTRATION}/mutatingadmissionpolicies/p`);
      await server.call('DELETE', `${REGISTRATION}/mutatingadmissionpolicybindings/p-b`);
    }
  });

  it('mutating admission policies are rejected on write if an expression does not compile or has the wrong type', async () => {
    const cases: [object, RegExp][] = [
      [
        { mutations: [apply("'teapot'")] },
        /mutations\[0\]\.applyConfiguration\.expression: .*must evaluate to Object but got string/,
      ],
      [{ mutations: [apply('Object.spec{}')] }, /must evaluate to Object but got Object\.spec/],
      [
        { mutations: [patch('[1]')] },
        /jsonPatch\.expression: .*must evaluate to list\(JSONPatch\) but got list\(int\)/,
      ],
      [{ mutations: [patch('[JSONPatch{no: 1}]')] }, /compilation failed: .*undefined field 'no'/s],
      [
        { mutations: [patch('[]')], variables: [{ name: 'v', expression: 'Object{}' }] },
        /undeclared reference to 'Object'/,
      ],
      [{ mutations: [] }, /mutations must contain at least one item/],
      [
        { mutations: [{ patchType: 'JSONPatch' }] },
        /jsonPatch: Required value: must be specified when patchType is JSONPatch/,
      ],
      [
        { mutations: [{ ...apply('Object{}'), ...patch('[]') }] },
        /applyConfiguration: .*must not be specified when patchType is JSONPatch/,
      ],
      [{ mutations: [patch('[]')], reinvocationPolicy: '' }, /spec\.reinvocationPolicy: Required value/],
      [
        {
          mutations: [patch('[]')],
          matchConstraints: { resourceRules: [{ ...CONFIG_MAPS[0], operations: ['DELETE'] }] },
        },
        /resourceRules\.operations: Unsupported value: "DELETE"/,
      ],
    ];
    for (const [spec, message] of cases) {
      const refused = await write(spec);
      assert.equal(refused.code, 422, refused.text);
      assert.match(refused.body.message, message);
    }
  });

  it('mutating admission policies run in name order before webhooks, and are reinvoked after later plug-ins changed the object', async () => {
    const count = (name: string, reinvocationPolicy: string) =>
      policy(
        {
          reinvocationPolicy,
          mutations: [patch(`[JSONPatch{op: "add", path: "/data/order", value: object.data.order + "${name}"}]`)],
        },
        name,
      );
    await count('b', 'Never');
    await count('a', 'IfNeeded');
    const order = async (): Promise<string | undefined> => (await map({ order: '' })).body.data?.['order'];
    // a is reinvoked after the change by b. b is not reinvoked after the second change by a.
    assert.equal(await order(), 'aba');
    hooks.on('/append', ({ request }) => {
      const { order: seen = '' } = (request.object?.['data'] ?? {}) as { order?: string };
      return patchOf({ op: 'add', path: '/data/order', value: `${seen}w` });
    });
    await configure(server, 'Mutating', 'w', hooks.hook('/append', { reinvocationPolicy: 'IfNeeded' }));
    assert.equal(await order(), 'abwaw');
    await server.call('DELETE', `${REGISTRATION}/mutatingadmissionpolicies/b`);
    assert.equal(await order(), 'awaw', 'a sees what the webhook did, the webhook what a did then');
  });

  it('mutating admission policies are reinvoked after their own changes, and have no namespaceObject in match conditions', async () => {
    const order = '[JSONPatch{op: "add", path: "/data/order", value: object.data.order + "a"}]';
    const matchConditions = [{ name: 'none', expression: 'namespaceObject == null' }];
    await policy({ reinvocationPolicy: 'IfNeeded', matchConditions, mutations: [patch(order)] });
    assert.equal((await map({ order: '' })).body.data?.['order'], 'aa');
    const { text } = await server.call('GET', '/metrics');
    assert.match(
      text,
      /apiserver_mutating_admission_policy_check_total\{error_type="no_error",policy="p",policy_binding="p-b"\} \d/,
    );
    const paramKind = { apiVersion: 'v1', kind: 'Nothing' };
    await policy({ paramKind, mutations: [patch(order)] }, 'q');
    const refused = await map({ order: '' });
    assert.equal(
      refused.body.message,
      `policy "q" denied request: failed to configure policy: failed to find resource referenced by paramKind: '/v1, Kind=Nothing'`,
    );
    assert.equal(refused.body.reason, 'Forbidden', 'nothing was tried');
  });

  it('mutating admission policies apply to custom resources, and not to excluded resources', async () => {
    await define(server, 'lab.test', 'Rig', {
      spec: {
        type: 'object',
        properties: {
          slots: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['id'],
            items: {
              type: 'object',
              required: ['id'],
              properties: { id: { type: 'string' }, power: { type: 'integer', default: 5 } },
            },
          },
        },
      },
    });
    await policy({
      matchConstraints: { resourceRules: [rule('lab.test', 'rigs')] },
      mutations: [apply('Object{spec: Object.spec{slots: [Object.spec.slots{id: "b"}]}}')],
    });
    const rigs = '/apis/lab.test/v1/namespaces/default/rigs';
    let made = await post(rigs, {
      apiVersion: 'lab.test/v1',
      kind: 'Rig',
      metadata: { name: 'r' },
      spec: { slots: [{ id: 'a', power: 1 }] },
    });
    for (let attempt = 0; made.code === 404 && attempt < 100; attempt++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      made = await post(rigs, {
        apiVersion: 'lab.test/v1',
        kind: 'Rig',
        metadata: { name: 'r' },
        spec: { slots: [{ id: 'a', power: 1 }] },
      });
    }
    assert.equal(made.code, 201, made.text);
    assert.deepEqual((made.body.spec as unknown as { slots: unknown }).slots, [
      { id: 'a', power: 1 },
      { id: 'b', power: 5 },
    ]);
  });

  it('mutating admission policies are served in all versions of upstream, and kubectl can show them', async () => {
    const older = await write({ mutations: [apply('Object{data: {"seen": "yes"}}')] }, 'older', 'v1alpha1');
    assert.equal(older.code, 201, older.text);
    assert.equal(older.headers['warning'], undefined);
    const beta = await server.call<Record<string, unknown>>(
      'GET',
      '/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolicies/older',
    );
    assert.equal(beta.body['apiVersion'], 'admissionregistration.k8s.io/v1beta1');
    const file = join(server.directory, 'policy.json');
    const list = {
      apiVersion: 'v1',
      kind: 'List',
      items: [
        {
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'MutatingAdmissionPolicy',
          metadata: { name: 'by-kubectl' },
          spec: {
            reinvocationPolicy: 'Never',
            matchConstraints: { resourceRules: CONFIG_MAPS },
            mutations: [apply('Object{data: {"by": "kubectl"}}')],
          },
        },
        {
          apiVersion: 'admissionregistration.k8s.io/v1beta1',
          kind: 'MutatingAdmissionPolicyBinding',
          metadata: { name: 'by-kubectl' },
          spec: { policyName: 'by-kubectl' },
        },
      ],
    };
    await writeFile(file, JSON.stringify(list));
    const kubectl = (...args: string[]) => run('kubectl', ['--kubeconfig', server.kubeconfig, ...args]);
    const applied = await kubectl('apply', '-f', file);
    assert.equal(applied.code, 0, applied.stderr);
    assert.match(
      (await kubectl('get', 'mutatingadmissionpolicies')).stdout,
      /NAME +MUTATIONS +PARAMKIND +AGE\nby-kubectl +1 +<unset>/,
    );
    assert.match(
      (await kubectl('get', 'mutatingadmissionpolicybindings')).stdout,
      /NAME +POLICYNAME +PARAMREF +AGE\nby-kubectl +by-kubectl +<unset>/,
    );
    assert.deepEqual((await map()).body.data, { by: 'kubectl' });
  });
});
