import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KeyPair } from '../../../src/pki/certificate.ts';
import { type CallOptions, startServer, type TestServer } from '../harness.ts';

interface Thing {
  message: string;
  metadata: { name: string };
  items: Thing[];
}

const RESOURCE = '/apis/resource.k8s.io/v1';
const SLICES = `${RESOURCE}/resourceslices`;
const claims = (namespace: string): string => `${RESOURCE}/namespaces/${namespace}/resourceclaims`;
const slice = (name: string, nodeName: string) => ({
  metadata: { name },
  spec: { driver: 'gpu.example.com', pool: { name: nodeName, generation: 1, resourceSliceCount: 1 }, nodeName },
});
const claimSpec = (adminAccess: boolean) => ({
  devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'gpu', ...(adminAccess ? { adminAccess } : {}) } }] },
});

describe('admission of devices', () => {
  let server: TestServer;
  let node: KeyPair;
  const call = (method: string, path: string, options?: CallOptions) => server.call<Thing>(method, path, options);
  before(async () => {
    server = await startServer();
    node = await server.user('system:node:n1', 'system:nodes');
    for (const [name, labels] of [
      ['plain', {}],
      ['admin', { 'resource.kubernetes.io/admin-access': 'true' }],
      ['half', { 'resource.kubernetes.io/admin-access': 'yes' }],
    ] as const)
      assert.equal((await call('POST', '/api/v1/namespaces', { body: { metadata: { name, labels } } })).code, 201);
  });
  after(() => server.stop());

  it('permits adminAccess to devices only in labelled namespaces', async () => {
    for (const [namespace, code] of [
      ['plain', 422],
      ['half', 422],
      ['admin', 201],
    ] as const) {
      const claim = await call('POST', claims(namespace), {
        body: { metadata: { name: 'watched' }, spec: claimSpec(true) },
      });
      assert.equal(claim.code, code, claim.body.message);
      const template = await call('POST', claims(namespace).replace('claims', 'claimtemplates'), {
        body: { metadata: { name: 'watched' }, spec: { spec: claimSpec(true) } },
      });
      assert.equal(template.code, code, template.body.message);
      if (code === 422)
        assert.match(claim.body.message, /requires the `resource.kubernetes.io\/admin-access: true` label/);
    }
    const usual = { body: { metadata: { name: 'usual' }, spec: claimSpec(false) } };
    assert.equal((await call('POST', claims('plain'), usual)).code, 201);
    const results = [{ request: 'r', driver: 'gpu.example.com', pool: 'p', device: 'd', adminAccess: true }];
    const given = (namespace: string) =>
      call('PATCH', `${claims(namespace)}/${namespace === 'plain' ? 'usual' : 'watched'}/status`, {
        body: { status: { allocation: { devices: { results } } } },
        headers: { 'content-type': 'application/merge-patch+json' },
      });
    assert.match((await given('plain')).body.message, /status.allocation.devices.results\[0\].adminAccess: Forbidden/);
    const allowed = await given('admin');
    assert.equal(allowed.code, 200, allowed.body.message);
  });

  it('permits a node to write only its own ResourceSlices', async () => {
    const refused = await call('POST', SLICES, { as: node, body: slice('theirs', 'n2') });
    assert.equal(refused.code, 403);
    assert.match(refused.body.message, /can only create ResourceSlice with the same NodeName as the requesting node/);
    assert.equal((await call('POST', SLICES, { body: slice('theirs', 'n2') })).code, 201);
    const { spec } = slice('fixtures', 'n1');
    for (const [pool, code] of [
      ['n2', 403],
      ['n1', 201],
    ] as const) {
      const body = {
        metadata: { name: `fixtures-${pool}` },
        spec: { ...spec, driver: 'rig.hyperedge.dev', pool: { ...spec.pool, name: pool } },
      };
      const fixtures = await call('POST', SLICES, { as: node, body });
      assert.equal(fixtures.code, code, fixtures.body.message);
    }
    assert.equal((await call('DELETE', `${SLICES}/fixtures-n1`)).code, 200);
    const made = await call('POST', SLICES, { as: node, body: slice('mine', 'n1') });
    assert.equal(made.code, 201, made.body.message);
    const own = await call('GET', `${SLICES}?fieldSelector=spec.nodeName%3Dn1`, { as: node });
    assert.deepEqual(
      own.body.items.map(({ metadata }) => metadata.name),
      ['mine'],
    );
    for (const path of [SLICES, `${SLICES}?fieldSelector=spec.nodeName%3Dn2`, `${SLICES}/theirs`])
      assert.equal((await call('GET', path, { as: node })).code, 403, path);
    assert.equal((await call('DELETE', `${SLICES}/theirs`, { as: node })).code, 403);
    assert.equal((await call('DELETE', `${SLICES}?fieldSelector=spec.nodeName%3Dn1`, { as: node })).code, 200);
    assert.equal((await call('GET', `${SLICES}/mine`)).code, 404);
    assert.equal((await call('GET', `${SLICES}/theirs`)).code, 200);
  });

  it('does not permit a node to set the device claims of a pod', async () => {
    const pods = '/api/v1/namespaces/plain/pods';
    await call('POST', '/api/v1/namespaces/plain/serviceaccounts', { body: { metadata: { name: 'default' } } });
    const spec = {
      nodeName: 'n1',
      containers: [{ name: 'c', image: 'i' }],
      resourceClaims: [{ name: 'a', resourceClaimTemplateName: 't' }],
    };
    const made = await call('POST', pods, { body: { metadata: { name: 'p' }, spec } });
    assert.equal(made.code, 201, made.body.message);
    const status = { resourceClaimStatuses: [{ name: 'a', resourceClaimName: 'usual' }] };
    const refused = await call('PATCH', `${pods}/p/status`, {
      as: node,
      body: { status },
      headers: { 'content-type': 'application/merge-patch+json' },
    });
    assert.equal(refused.code, 403);
    assert.match(refused.body.message, /cannot update resource claim statuses/);
    assert.equal((await call('GET', `${claims('plain')}/usual`, { as: node })).code, 403);
  });
});
