/** Permissions that are required to write admission policies with parameters. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KeyPair } from '../../../src/pki/certificate.ts';
import { startServer, type TestServer } from '../harness.ts';

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const AUTHOR_RULES = [{ apiGroups: ['admissionregistration.k8s.io'], resources: ['*'], verbs: ['*'] }];
const SECRETS = { apiVersion: 'v1', kind: 'Secret' };
const MAPS = { apiVersion: 'v1', kind: 'ConfigMap' };
const matchConstraints = {
  resourceRules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['services'] }],
};
const SPECS = {
  validating: { matchConstraints, validations: [{ expression: 'false' }] },
  mutating: {
    matchConstraints,
    reinvocationPolicy: 'Never',
    mutations: [
      { patchType: 'JSONPatch', jsonPatch: { expression: "[JSONPatch{op: 'test', path: '/kind', value: 'Service'}]" } },
    ],
  },
};

describe('parameters of admission policies', () => {
  let server: TestServer;
  let author: KeyPair;
  before(async () => {
    server = await startServer();
    author = await server.user('author');
    const reading = { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] };
    await grant('clusterroles', 'author', { rules: [...AUTHOR_RULES, reading] });
    const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: 'author' }];
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'author' };
    await grant('clusterrolebindings', 'author', { subjects, roleRef });
  });
  after(() => server.stop());

  async function grant(plural: string, name: string, fields: object): Promise<void> {
    const made = await server.call('POST', `${RBAC}/${plural}`, { body: { metadata: { name }, ...fields } });
    assert.equal(made.code, 201, made.text);
  }

  for (const type of ['validating', 'mutating'] as const) {
    const policies = `${REGISTRATION}/${type}admissionpolicies`;
    const bindings = `${REGISTRATION}/${type}admissionpolicybindings`;
    const policy = (name: string, paramKind?: object) => ({ metadata: { name }, spec: { ...SPECS[type], paramKind } });
    const binding = (name: string, policyName: string, paramRef?: object) => ({
      metadata: { name },
      spec: { policyName, paramRef, ...(type === 'validating' ? { validationActions: ['Deny'] } : {}) },
    });
    const paramRef = { name: 'token', namespace: 'kube-system', parameterNotFoundAction: 'Deny' };

    it(`rejects ${type} policies with a paramKind that the author cannot read`, async () => {
      const created = await server.call('POST', policies, { as: author, body: policy('secrets', SECRETS) });
      assert.equal(created.code, 422, created.text);
      assert.match(
        created.text,
        /spec\.paramKind: Forbidden: user \\"author\\" must have \\"get\\" permission on all objects of the referenced paramKind \(kind=Secret, apiVersion=v1\)/,
      );
      const unserved = { apiVersion: 'example.com/v1', kind: 'Missing' };
      assert.equal((await server.call('POST', policies, { as: author, body: policy('any', unserved) })).code, 422);
      assert.equal((await server.call('POST', policies, { as: author, body: policy('plain') })).code, 201);
      const allowed = await server.call('POST', policies, { as: author, body: policy('maps', MAPS) });
      assert.equal(allowed.code, 201, allowed.text);
      const patched = await server.call('PATCH', `${policies}/maps`, {
        as: author,
        type: 'application/merge-patch+json',
        body: { spec: { paramKind: SECRETS } },
      });
      assert.equal(patched.code, 422, patched.text);
      const kept = await server.call('PATCH', `${policies}/maps`, {
        as: author,
        type: 'application/merge-patch+json',
        body: { metadata: { labels: { a: 'b' } } },
      });
      assert.equal(kept.code, 200, kept.text);
    });

    it(`rejects bindings of ${type} policies with a paramRef that the author cannot read`, async () => {
      assert.equal((await server.call('POST', policies, { body: policy('theirs', SECRETS) })).code, 201);
      const body = binding('theirs', 'theirs', paramRef);
      const created = await server.call('POST', bindings, { as: author, body });
      assert.equal(created.code, 422, created.text);
      assert.match(
        created.text,
        /spec\.paramRef: Forbidden: user \\"author\\" does not have \\"get\\" permission on the object referenced by paramRef/,
      );
      const early = await server.call('POST', bindings, { as: author, body: binding('early', 'missing', paramRef) });
      assert.equal(early.code, 422, 'the policy does not exist yet, so its parameters can be of any kind');
      const maps = await server.call('POST', bindings, { as: author, body: binding('maps', 'maps', paramRef) });
      assert.equal(maps.code, 201, maps.text);
      const moved = await server.call('PATCH', `${bindings}/maps`, {
        as: author,
        type: 'application/merge-patch+json',
        body: { spec: { policyName: 'theirs' } },
      });
      assert.equal(moved.code, 422, moved.text);
    });
  }
});
