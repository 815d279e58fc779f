/** ValidatingAdmissionPolicy, according to its documentation. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { kubectls } from '../../support/kubectls.ts';
import { run, startServer, type TestServer } from '../harness.ts';

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';
const MAPS = '/api/v1/namespaces/default/configmaps';

interface Body {
  message: string;
  reason: string;
  details?: { causes?: { message: string }[] };
}

describe('validating admission policies', () => {
  let server: TestServer;
  let serial = 0;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());
  afterEach(async () => {
    await server.call('DELETE', `${REGISTRATION}/validatingadmissionpolicies`);
    await server.call('DELETE', `${REGISTRATION}/validatingadmissionpolicybindings`);
  });

  const rules = [{ operations: ['CREATE', 'UPDATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }];
  const policy = (spec: object, name = 'p') =>
    server.call<Body>('POST', `${REGISTRATION}/validatingadmissionpolicies`, {
      body: { metadata: { name }, spec: { matchConstraints: { resourceRules: rules }, ...spec } },
    });
  const bind = async (spec: object = {}, name = 'b') => {
    const body = { metadata: { name }, spec: { policyName: 'p', validationActions: ['Deny'], ...spec } };
    const bound = await server.call('POST', `${REGISTRATION}/validatingadmissionpolicybindings`, { body });
    assert.equal(bound.code, 201, bound.text);
  };
  const create = (data: Record<string, string>, metadata: object = {}, path = MAPS) =>
    server.call<Body>('POST', path, { body: { metadata: { name: `m${++serial}`, ...metadata }, data } });

  it('validating admission policies reject requests in upstream’s wording, once they are bound', async () => {
    const made = await policy({
      variables: [
        { name: 'size', expression: 'size(object.data)' },
        { name: 'big', expression: 'variables.size > 2' },
      ],
      validations: [
        { expression: '!variables.big', messageExpression: "'too big: ' + string(variables.size)" },
        { expression: "'a' in object.data", reason: 'Forbidden' },
      ],
    });
    assert.equal(made.code, 201, made.text);
    assert.equal((await create({ a: '1', b: '2', c: '3' })).code, 201, 'not bound yet');
    await bind();
    const big = await create({ a: '1', b: '2', c: '3' });
    assert.equal(big.code, 422);
    assert.equal(
      big.body.message,
      `configmaps "m${serial}" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too big: 3`,
    );
    assert.equal(big.body.reason, 'Invalid');
    const without = await create({ b: '1' });
    assert.equal(without.code, 403);
    assert.match(without.body.message, /denied request: failed expression: 'a' in object\.data$/);
    assert.equal((await create({ a: '1' })).code, 201);
    // The rules do not contain DELETE.
    assert.equal((await server.call('DELETE', `${MAPS}/m${serial}`)).code, 200);
  });

  it('validating admission policies with action Warn add a warning instead of a rejection, and only to matching requests', async () => {
    await policy({ validations: [{ expression: 'false', message: 'never' }] });
    await bind({
      validationActions: ['Warn', 'Audit'],
      matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'default' } } },
    });
    const warned = await create({});
    assert.equal(warned.code, 201);
    assert.match(
      String(warned.headers['warning']),
      /Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': never/,
    );
    const elsewhere = await create({}, {}, '/api/v1/namespaces/kube-system/configmaps');
    assert.equal(elsewhere.headers['warning'], undefined);
  });

  it('validating admission policies select parameters by name and by label', async () => {
    await create({ max: '1' }, { name: 'limits', labels: { limits: 'yes' } });
    await create({ max: '3' }, { name: 'other-limits', labels: { limits: 'yes' } });
    await policy({
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      matchConditions: [
        { name: 'judged', expression: "has(object.metadata.labels) && 'judged' in object.metadata.labels" },
      ],
      validations: [{ expression: 'size(object.data) <= int(params.data.max)' }],
    });
    const judged = { labels: { judged: '' } };
    await bind({ paramRef: { name: 'limits', parameterNotFoundAction: 'Deny' } });
    assert.equal((await create({ a: '', b: '' }, judged)).code, 422);
    assert.equal((await create({ a: '', b: '' })).code, 201);
    await server.call('DELETE', `${REGISTRATION}/validatingadmissionpolicybindings/b`);
    await bind({ paramRef: { selector: { matchLabels: { limits: 'yes' } }, parameterNotFoundAction: 'Deny' } });
    assert.equal((await create({ a: '', b: '' }, judged)).code, 422, 'all that are selected must hold');
    assert.equal((await create({ a: '' }, judged)).code, 201);
    await server.call('DELETE', `${REGISTRATION}/validatingadmissionpolicybindings/b`);
    await bind({ paramRef: { name: 'gone', parameterNotFoundAction: 'Deny' } });
    const missing = await create({}, judged);
    assert.match(missing.body.message, /failed to configure binding: no params found for policy binding with `Deny`/);
    await server.call('DELETE', `${REGISTRATION}/validatingadmissionpolicybindings/b`);
    await bind({ paramRef: { name: 'gone', parameterNotFoundAction: 'Allow' } });
    assert.equal((await create({}, judged)).code, 201);
  });

  it('validating admission policies with evaluation errors reject a request, unless the failure policy is Ignore', async () => {
    const validations = [{ expression: "object.data.missing == 'x'" }];
    await policy({ validations });
    await bind();
    const failed = await create({ a: '1' });
    assert.equal(failed.code, 422);
    assert.match(
      failed.body.message,
      /expression 'object\.data\.missing == 'x'' resulted in error: no such key: missing/,
    );
    await server.call('DELETE', `${REGISTRATION}/validatingadmissionpolicies/p`);
    await policy({ validations, failurePolicy: 'Ignore' });
    assert.equal((await create({ a: '1' })).code, 201);
    const wrong = await policy({ validations: [{ expression: 'variables.none' }] }, 'q');
    assert.equal(wrong.code, 422);
    assert.match(wrong.body.message, /spec\.validations\[0\]\.expression: .*compilation failed/s);
    const paramless = await policy({ validations: [{ expression: 'params.x == 1' }] }, 'q');
    assert.equal(paramless.code, 422, 'params without a paramKind');
  });

  it('evaluation of validating admission policies stops at the cost limit without blocking the event loop', async () => {
    const loops = 'object.data.all(a, object.data.all(b, object.data.all(c, object.data.all(d, a + b + c + d != ""))))';
    await policy({ validations: [{ expression: loops }] });
    await bind();
    const data = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`k${index}`, 'v']));
    const began = performance.now();
    const refused = await create(data);
    assert.equal(refused.code, 422, refused.text);
    assert.match(
      refused.body.message,
      / expression '.*' resulted in error: operation cancelled: actual cost limit exceeded$/,
    );
    assert.ok(performance.now() - began < 10_000);
  });

  it('validating admission policies that together exceed the budget report only the exceeded budget', async () => {
    const loop = 'object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != "")))';
    const many = Array.from({ length: 40 }, (_, index) => ({ expression: `${loop} && ${index} >= 0` }));
    await policy({ validations: [{ expression: 'false', message: 'never' }, ...many] });
    await bind();
    const refused = await create(Object.fromEntries(Array.from({ length: 48 }, (_, index) => [`k${index}`, 'v'])));
    assert.equal(
      refused.body.message,
      `configmaps "m${serial}" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: validation failed due to running out of cost budget, no further validation rules will be run`,
    );
  });

  it('validating admission policies must return the expected type and may use only existing variables', async () => {
    const validation = (expression: string, more: object = {}) => ({ validations: [{ expression, ...more }] });
    const annotation = (valueExpression: string) => ({ auditAnnotations: [{ key: 'a', valueExpression }] });
    const condition = { matchConditions: [{ name: 'c', expression: 'object.data.on' }] };
    const composed = { matchConditions: [{ name: 'c', expression: 'variables.x' }] };
    const variables = [{ name: 'x', expression: 'request.userInfo' }];
    const cases: [object, RegExp | undefined][] = [
      [validation('object.data.on'), /validations\[0\]\.expression: .*: must evaluate to bool but got dyn/],
      [validation("['a']"), /must evaluate to bool but got list\(string\)/],
      [validation('true', { messageExpression: 'object.data.a' }), /messageExpression: .*string but got dyn/],
      [validation('true', { messageExpression: 'null' }), /must evaluate to string but got null_type/],
      [annotation('object.data.a'), /valueExpression: .*must evaluate to one of \[string null_type\] but got dyn/],
      [annotation("duration('1s')"), /one of \[string null_type\] but got google\.protobuf\.Duration/],
      [annotation('null'), undefined],
      [{ ...condition, ...validation('true') }, /must evaluate to bool but got dyn/],
      [{ ...composed, variables, ...validation('true') }, /undeclared reference to 'variables'/],
      [{ variables, ...validation("variables.x.nobody == 'a'") }, undefined],
      [
        validation('true', { messageExpression: "string(authorizer.path('/x').check('get').allowed())" }),
        /messageExpression: .*undeclared reference to 'authorizer'/s,
      ],
      [validation("namespaceObject.spec.x == ''"), /undefined field 'x'/],
      [validation("namespaceObject.metadata.creationTimestamp < timestamp('2100-01-01T00:00:00Z')"), undefined],
    ];
    for (const [index, [spec, wrong]] of cases.entries()) {
      const made = await policy(spec, `t${index}`);
      if (wrong === undefined) assert.equal(made.code, 201, made.text);
      else assert.match(made.body.message, wrong, JSON.stringify(spec));
    }
  });

  it('validating admission policies have no namespaceObject for cluster-scoped objects, and treat scalars as having no fields', async () => {
    await policy({
      matchConstraints: { resourceRules: [{ ...rules[0], resources: ['configmaps', 'namespaces'] }] },
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [
        {
          expression:
            "namespaceObject == null || has(namespaceObject.metadata.labels) && namespaceObject.metadata.name == 'default'",
        },
        { expression: 'has(params.data)', message: ' no parameters ' },
      ],
    });
    await bind({ validationActions: ['Warn'] });
    for (const made of [
      await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'in-none' } } }),
      await create({}),
    ]) {
      assert.equal(made.code, 201, made.text);
      assert.match(String(made.headers['warning']), /^299 - "[^"]*binding 'b': no parameters"$/);
    }
  });

  it('validating admission policies whose parameter kind is not served reject requests', async () => {
    await policy({ paramKind: { apiVersion: 'lab.test/v1', kind: 'Nothing' }, validations: [{ expression: 'true' }] });
    await bind({ paramRef: { name: 'x', parameterNotFoundAction: 'Allow' } });
    assert.equal(
      (await create({})).body.message,
      `configmaps "m${serial}" is forbidden: ValidatingAdmissionPolicy 'p' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'lab.test/v1, Kind=Nothing'`,
    );
  });

  it('validating admission policies are counted in metrics by action', async () => {
    const counted = async (action: string, error: string): Promise<number> => {
      const { text } = await server.call('GET', '/metrics');
      const labels = `enforcement_action="${action}",error_type="${error}",policy="counted",policy_binding="b"`;
      assert.doesNotMatch(text, /e-\d"/, 'bounds have exponents of two digits');
      const line = `apiserver_validating_admission_policy_check_total{${labels}} `;
      return Number(
        text
          .split('\n')
          .find((each) => each.startsWith(line))
          ?.slice(line.length) ?? 0,
      );
    };
    await policy({ failurePolicy: 'Ignore', validations: [{ expression: "object.data.a == '1'" }] }, 'counted');
    await bind({ policyName: 'counted' });
    assert.equal((await create({ a: '2' })).code, 422);
    assert.equal(await counted('deny', 'invalid_error'), 1);
    assert.equal((await create({ b: '2' })).code, 201);
    assert.equal(await counted('allow', 'invalid_error'), 1);
    assert.equal((await create({ a: '1' })).code, 201);
    assert.equal(await counted('allow', 'no_error'), 0, 'what was as it should be is not counted');
  });

  it('validating admission policies are type checked against the matched kinds, with the warnings in their status', async () => {
    interface Checked {
      metadata: { generation: number };
      status?: {
        observedGeneration?: number;
        typeChecking?: { expressionWarnings?: { fieldRef: string; warning: string }[] };
      };
    }
    const path = `${REGISTRATION}/validatingadmissionpolicies/p`;
    const warnings = async () => {
      for (let deadline = performance.now() + 20_000; ; ) {
        const { body } = await server.call<Checked>('GET', path);
        if (body.status?.observedGeneration === body.metadata.generation) {
          return body.status.typeChecking?.expressionWarnings;
        }
        assert.ok(performance.now() < deadline, JSON.stringify(body));
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    };
    const apps = { operations: ['CREATE'], apiGroups: ['apps'], apiVersions: ['v1'] };
    const spec = {
      matchConstraints: {
        resourceRules: [{ ...apps, resources: ['deployments', 'replicasets', 'deployments/scale'] }],
      },
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      variables: [{ name: 'replicas', expression: 'object.spec.replicas' }],
      validations: [
        { expression: 'object.spec.paused || variables.replicas > 1' },
        { expression: "authorizer.requestResource.check('get').allowed() || object.spec == oldObject.metadata" },
        { expression: "variables.replicas == 'three'", messageExpression: "'not ' + params.dat.a" },
        {
          expression:
            "object.metadata.labels['a'] == 'b' && object.spec.template.spec.containers[0].ports[0].containerPort == 1" +
            " && oldObject == null && namespaceObject.metadata.name != '' && params.data['a'] == 'x' && size(object.metadata.annotations) > 0" +
            " && object.metadata.creationTimestamp < timestamp('2100-01-01T00:00:00Z')",
        },
      ],
    };
    const made = await policy(spec);
    assert.equal(made.code, 201, made.text);
    assert.equal((made.body as unknown as Checked).status?.observedGeneration, undefined, 'the request does not wait');
    assert.deepEqual(await warnings(), [
      {
        fieldRef: 'spec.validations[0].expression',
        warning:
          "apps/v1, Kind=ReplicaSet: ERROR: <input>:1:12: undefined field 'paused'\n | object.spec.paused || variables.replicas > 1\n | ...........^\n",
      },
      {
        fieldRef: 'spec.validations[1].expression',
        warning: ['Deployment', 'ReplicaSet']
          .map((kind) => {
            const [source, at] = [
              `\n | ${spec.validations[1]?.expression}\n | `,
              `apps/v1, Kind=${kind}: ERROR: <input>:1:`,
            ];
            return `${at}11: unexpected failed resolution of 'kubernetes.authorization.Authorizer'${source}..........^\nERROR: <input>:1:66: found no matching overload for '_==_' applied to '(${kind}.spec, ${kind}.metadata)'${source}${'.'.repeat(65)}^\n`;
          })
          .join('\n'),
      },
      {
        fieldRef: 'spec.validations[2].expression',
        warning: ['Deployment', 'ReplicaSet']
          .map(
            (kind) =>
              `apps/v1, Kind=${kind}: ERROR: <input>:1:20: found no matching overload for '_==_' applied to '(int, string)'\n | variables.replicas == 'three'\n | ...................^\n`,
          )
          .join('\n'),
      },
      {
        fieldRef: 'spec.validations[2].messageExpression',
        warning: ['Deployment', 'ReplicaSet']
          .map(
            (kind) =>
              `apps/v1, Kind=${kind}: ERROR: <input>:1:16: undefined field 'dat'\n | 'not ' + params.dat.a\n | ...............^\n`,
          )
          .join('\n'),
      },
    ]);
    const mended = { spec: { validations: [{ expression: 'object.spec.replicas > 1' }] } };
    const patched = await server.call('PATCH', path, {
      body: mended,
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    assert.equal(patched.code, 200, patched.text);
    assert.equal(await warnings(), undefined);
  });

  for (const { label, path } of kubectls()) {
    it(`kubectl shows the rejection of a validating admission policy (${label})`, async () => {
      await policy({ validations: [{ expression: "object.metadata.name.startsWith('ok-')", message: 'name it ok-' }] });
      await bind();
      const file = join(server.directory, 'map.json');
      const map = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
      await writeFile(file, JSON.stringify(map('bad')));
      const { code, stderr } = await run(path, ['--kubeconfig', server.kubeconfig, 'create', '-f', file]);
      assert.equal(code, 1, stderr);
      assert.match(stderr, /ValidatingAdmissionPolicy 'p' with binding 'b' denied request: name it ok-/);
    });
  }
});
