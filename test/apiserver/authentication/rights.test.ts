import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { HOST_ROOT_IMAGE } from '../../../src/api/podspec/host-root-image.ts';
import { generateKey, type KeyPair } from '../../../src/pki/certificate.ts';
import { createSigningRequest } from '../../../src/pki/signing-request.ts';
import { type CallOptions, startServer, type TestServer } from '../harness.ts';

interface Thing {
  message: string;
  metadata: { uid: string; name: string };
  status: { token: string };
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const PODS = '/api/v1/namespaces/default/pods';
const pod = (name: string, extra: object = {}, metadata: object = {}) => ({
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'c', image: 'i' }], ...extra },
});

describe('permissions of users and nodes', () => {
  let server: TestServer;
  let bob: KeyPair;
  let node: KeyPair;
  before(async () => {
    server = await startServer();
    bob = await server.user('bob');
    node = await server.user('system:node:n1', 'system:nodes');
    await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { metadata: { name: 'default' } },
    });
  });
  after(() => server.stop());
  const call = (method: string, path: string, options?: CallOptions) => server.call<Thing>(method, path, options);
  const grant = async (name: string, rules: object[]) => {
    assert.equal(
      (await call('POST', `${RBAC}/namespaces/default/roles`, { body: { metadata: { name }, rules } })).code,
      201,
    );
    const body = {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' }],
    };
    assert.equal((await call('POST', `${RBAC}/namespaces/default/rolebindings`, { body })).code, 201);
  };

  it('denies every form of request that no role allows', async () => {
    const forms = [
      'application/json',
      'application/json;as=Table;v=v1;g=meta.k8s.io',
      'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
    ];
    for (const accept of forms) {
      for (const query of ['', '?watch=true', '?fieldSelector=metadata.name%3Dx', '?labelSelector=a', '?limit=1']) {
        const answer = await call('GET', `/api/v1/namespaces/default/secrets${query}`, {
          as: bob,
          headers: { accept },
        });
        assert.equal(answer.code, 403, `${accept} ${query}`);
        assert.match(answer.body.message, /secrets .*is forbidden: User "bob" cannot (list|watch) resource "secrets"/);
      }
    }
  });

  it('allows a request only while a role permits the request', async () => {
    await grant('reader', [{ verbs: ['list'], apiGroups: [''], resources: ['configmaps'] }]);
    const list = () => call('GET', '/api/v1/namespaces/default/configmaps', { as: bob });
    await untilCode(list, 200);
    assert.equal((await call('GET', '/api/v1/configmaps', { as: bob })).code, 403);
    await call('DELETE', `${RBAC}/namespaces/default/rolebindings/reader`);
    await untilCode(list, 403);
  });

  it("lets a node read the volumes of its pods' claims, and its own attachments", async () => {
    const volumes = '/api/v1/persistentvolumes';
    const attachments = '/apis/storage.k8s.io/v1/volumeattachments';
    const volume = (name: string, claim: string) => ({
      metadata: { name },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/v' },
        claimRef: { namespace: 'default', name: claim },
      },
    });
    const attachment = (name: string, nodeName: string) => ({
      metadata: { name },
      spec: { attacher: 'csi.example', nodeName, source: { persistentVolumeName: 'used' } },
    });
    for (const [path, body] of [
      [volumes, volume('used', 'mine')],
      [volumes, volume('unused', 'other')],
      [attachments, attachment('here', 'n1')],
      [attachments, attachment('there', 'n2')],
      [PODS, pod('claims', { nodeName: 'n1', volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'mine' } }] })],
    ] as const) {
      const made = await call('POST', path, { body });
      assert.equal(made.code, 201, made.body.message);
    }
    await untilCode(() => call('GET', `${volumes}/used`, { as: node }), 200);
    await untilCode(() => call('GET', `${attachments}/here`, { as: node }), 200);
    for (const path of [`${volumes}/unused`, `${attachments}/there`, volumes, attachments]) {
      assert.equal((await call('GET', path, { as: node })).code, 403, path);
    }
    await call('DELETE', `${PODS}/claims?gracePeriodSeconds=0`);
    await untilCode(() => call('GET', `${volumes}/used`, { as: node }), 403);
  });

  it('prevents the escalation of permissions on create, update, patch and apply', async () => {
    await grant('role-writer', [
      {
        verbs: ['create', 'get', 'list', 'update', 'patch'],
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['roles', 'rolebindings'],
      },
      { verbs: ['get'], apiGroups: [''], resources: ['pods'] },
    ]);
    const roles = `${RBAC}/namespaces/default/roles`;
    const rules = (verb: string) => ({ rules: [{ verbs: [verb], apiGroups: [''], resources: ['pods'] }] });
    await untilCode(() => call('GET', roles, { as: bob }), 200);
    assert.equal(
      (await call('POST', roles, { as: bob, body: { metadata: { name: 'own' }, ...rules('get') } })).code,
      201,
    );
    const more = { metadata: { name: 'own' }, ...rules('delete') };
    assert.equal((await call('POST', roles, { as: bob, body: { ...more, metadata: { name: 'more' } } })).code, 403);
    assert.equal((await call('PUT', `${roles}/own`, { as: bob, body: more })).code, 403);
    for (const type of ['application/merge-patch+json', 'application/strategic-merge-patch+json']) {
      assert.equal(
        (await call('PATCH', `${roles}/own`, { as: bob, raw: JSON.stringify(rules('delete')), type })).code,
        403,
        type,
      );
    }
    const document = JSON.stringify({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'Role', ...more });
    const apply = await call('PATCH', `${roles}/own?fieldManager=x&force=true`, {
      as: bob,
      raw: document,
      type: 'application/apply-patch+yaml',
    });
    assert.equal(apply.code, 403);
    const binding = {
      metadata: { name: 'admin' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' }],
    };
    assert.equal((await call('POST', `${RBAC}/namespaces/default/rolebindings`, { as: bob, body: binding })).code, 403);
  });

  it('lets a node create and update only its own Node', async () => {
    const nodes = '/api/v1/nodes';
    const labels = { 'kubernetes.io/hostname': 'n1', 'node-role.kubernetes.io/edge': '' };
    assert.equal((await call('POST', nodes, { as: node, body: { metadata: { name: 'n1', labels } } })).code, 403);
    const created = await server.call<{ spec: { taints: { key: string }[] } }>('POST', nodes, {
      as: node,
      body: { metadata: { name: 'n1', labels: { 'kubernetes.io/hostname': 'n1' } } },
    });
    assert.equal(created.code, 201, created.text);
    assert.equal(created.body.spec.taints[0]?.key, 'node.kubernetes.io/not-ready');
    assert.equal((await call('POST', nodes, { as: node, body: { metadata: { name: 'n2' } } })).code, 403);
    await call('POST', nodes, { body: { metadata: { name: 'n2' } } });
    const merge = (path: string, patch: object) =>
      call('PATCH', path, { as: node, raw: JSON.stringify(patch), type: 'application/merge-patch+json' });
    assert.equal((await merge(`${nodes}/n1/status`, { status: { phase: 'Running' } })).code, 200);
    assert.equal((await merge(`${nodes}/n2/status`, { status: { phase: 'Running' } })).code, 403);
    assert.equal((await merge(`${nodes}/n1`, { spec: { taints: [] } })).code, 403);
    assert.equal(
      (await merge(`${nodes}/n1`, { metadata: { labels: { 'node-restriction.kubernetes.io/x': 'y' } } })).code,
      403,
    );
    assert.equal(
      (await merge(`${nodes}/n1`, { metadata: { labels: { 'node.kubernetes.io/x': 'y', mine: 'z' } } })).code,
      200,
    );
    assert.equal((await call('DELETE', `${nodes}/n2`, { as: node })).code, 403);
  });

  it('lets a node read only the secrets of its own pods', async () => {
    for (const name of ['s1', 's2'])
      await call('POST', '/api/v1/namespaces/default/secrets', { body: { metadata: { name } } });
    await call('POST', PODS, {
      body: pod('with-secret', { nodeName: 'n1', volumes: [{ name: 'v', secret: { secretName: 's1' } }] }),
    });
    await untilCode(() => call('GET', '/api/v1/namespaces/default/secrets/s1', { as: node }), 200);
    assert.equal((await call('GET', '/api/v1/namespaces/default/secrets/s2', { as: node })).code, 403);
    assert.equal((await call('GET', '/api/v1/namespaces/default/secrets', { as: node })).code, 403);
    assert.equal((await call('GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1', { as: node })).code, 200);
    // Network policies need the pods of the whole cluster.
    assert.equal((await call('GET', '/api/v1/pods', { as: node })).code, 200);
    await call('POST', PODS, { body: pod('elsewhere', { nodeName: 'n2' }) });
    assert.equal((await call('GET', `${PODS}/elsewhere`, { as: node })).code, 403);
    assert.equal((await call('DELETE', `${PODS}/elsewhere`, { as: node })).code, 403);
    await call('DELETE', `${PODS}/elsewhere`, {});
  });

  it('lets a node create only mirror pods of its own', async () => {
    const uid = (await call('GET', '/api/v1/nodes/n1')).body.metadata.uid;
    const mirror = (name: string, spec: object = {}, owner: object = {}) =>
      pod(
        name,
        { nodeName: 'n1', ...spec },
        {
          annotations: { 'kubernetes.io/config.mirror': 'hash' },
          ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid, controller: true, ...owner }],
        },
      );
    const create = async (body: object) => (await call('POST', PODS, { as: node, body })).code;
    assert.equal(await create(mirror('m-good')), 201);
    const containers = [{ name: 'c', image: HOST_ROOT_IMAGE }];
    assert.equal(await create(mirror('m-root', { containers })), 201);
    const fake = mirror('m-fake', { containers, automountServiceAccountToken: false });
    const refused = await call('POST', PODS, { body: fake });
    assert.equal(refused.code, 403, 'an administrator is not the node');
    assert.match(refused.body.message, /^pods "m-fake" is forbidden: spec.containers\[0\].image: Forbidden: image /);
    const labels = { metadata: { labels: { checked: 'yes' } } };
    const labelled = await call('PATCH', `${PODS}/m-root`, { body: labels, type: 'application/merge-patch+json' });
    assert.equal(labelled.code, 200, 'what is stored may be written again');
    assert.equal(await create(pod('m-plain', { nodeName: 'n1' })), 403);
    assert.equal(await create(mirror('m-other', { nodeName: 'n2' })), 403);
    assert.equal(await create(mirror('m-uid', {}, { uid: 'x' })), 403);
    assert.equal(await create(mirror('m-controller', {}, { controller: false })), 403);
    assert.equal(await create(mirror('m-secret', { volumes: [{ name: 'v', secret: { secretName: 's2' } }] })), 403);
    assert.equal(await create(mirror('m-account', { serviceAccountName: 'default' })), 403);
    const share = { shareName: 's', secretName: 's2' };
    assert.equal(await create(mirror('m-share', { volumes: [{ name: 'v', azureFile: share }] })), 403);
    const monitors = { monitors: ['192.0.2.1'], secretRef: { name: 's2' } };
    assert.equal(await create(mirror('m-ceph', { volumes: [{ name: 'v', cephfs: monitors }] })), 403);
    const bundle = { projected: { sources: [{ clusterTrustBundle: { name: 'b', path: 'p' } }] } };
    assert.equal(await create(mirror('m-bundle', { volumes: [{ name: 'v', ...bundle }] })), 403);
    const resourceClaims = [{ name: 'd', resourceClaimName: 'other' }];
    assert.equal(await create(mirror('m-device', { resourceClaims })), 403);
    assert.equal(
      await create({
        ...mirror('m-noowner'),
        metadata: { name: 'm-noowner', annotations: { 'kubernetes.io/config.mirror': 'h' } },
      }),
      403,
    );
    await call('POST', PODS, { body: pod('elsewhere', { nodeName: 'n2' }) });
    assert.equal((await call('DELETE', `${PODS}/elsewhere`, { as: node })).code, 403);
    const status = (labels: object) =>
      call('PATCH', `${PODS}/m-good/status`, {
        as: node,
        raw: JSON.stringify({ metadata: { labels }, status: { phase: 'Running' } }),
        type: 'application/strategic-merge-patch+json',
      });
    assert.equal((await status({})).code, 200);
    assert.equal((await status({ a: 'b' })).code, 403);
    assert.equal((await call('PUT', `${PODS}/m-good`, { as: node, body: mirror('m-good') })).code, 403);
    assert.equal((await call('DELETE', `${PODS}/m-good?gracePeriodSeconds=0`, { as: node })).code, 200);
  });

  it('lets a node request only tokens of its own pods', async () => {
    const uid = (await call('GET', `${PODS}/with-secret`)).body.metadata.uid;
    const token = (reference: object | undefined, ...audiences: string[]) =>
      call('POST', '/api/v1/namespaces/default/serviceaccounts/default/token', {
        as: node,
        body: {
          spec: {
            audiences,
            ...(reference === undefined ? {} : { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', ...reference } }),
          },
        },
      });
    assert.equal((await token({ name: 'with-secret', uid })).code, 201);
    assert.equal((await token({ name: 'with-secret' })).code, 403);
    assert.equal((await token({ name: 'with-secret', uid: 'x' })).code, 403);
    assert.equal((await token(undefined)).code, 403);
    const other = (await call('GET', `${PODS}/elsewhere`)).body.metadata.uid;
    assert.equal((await token({ name: 'elsewhere', uid: other })).code, 403);
    const wants = { projected: { sources: [{ serviceAccountToken: { path: 't', audience: 'vault' } }] } };
    await call('POST', '/apis/storage.k8s.io/v1/csidrivers', {
      body: { metadata: { name: 'csi.example.com' }, spec: { tokenRequests: [{ audience: 'disk' }] } },
    });
    await call('POST', '/api/v1/namespaces/default/persistentvolumeclaims', {
      body: {
        metadata: { name: 'data' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '1Gi' } },
          storageClassName: '',
          volumeName: 'pv',
        },
      },
    });
    await call('POST', '/api/v1/persistentvolumes', {
      body: {
        metadata: { name: 'pv' },
        spec: {
          accessModes: ['ReadWriteOnce'],
          capacity: { storage: '1Gi' },
          csi: { driver: 'csi.example.com', volumeHandle: 'h' },
        },
      },
    });
    const plain = { nodeName: 'n1', automountServiceAccountToken: false };
    const volume = (source: object) => ({ ...plain, volumes: [{ name: 'v', ...source }] });
    const requestToken = async (name: string, spec: object, ...audiences: string[]) => {
      const made = await call('POST', PODS, { body: pod(name, spec) });
      assert.equal(made.code, 201, made.text);
      const answer = await token({ name, uid: made.body.metadata.uid }, ...audiences);
      return answer.code;
    };
    assert.equal(await requestToken('t-none', plain), 403);
    assert.equal(await requestToken('t-named', volume(wants), 'vault'), 201);
    assert.equal(await requestToken('t-here', volume(wants)), 403);
    assert.equal(await requestToken('t-other', volume(wants), 'other'), 403);
    assert.equal(await requestToken('t-both', volume(wants), 'vault', 'vault'), 403);
    assert.equal(await requestToken('t-inline', volume({ csi: { driver: 'csi.example.com' } }), 'disk'), 201);
    assert.equal(await requestToken('t-claim', volume({ persistentVolumeClaim: { claimName: 'data' } }), 'disk'), 201);
    assert.equal(
      await requestToken('t-no-claim', volume({ persistentVolumeClaim: { claimName: 'gone' } }), 'disk'),
      403,
    );
    const rule = {
      apiGroups: [''],
      resources: ['registry'],
      resourceNames: ['default'],
      verbs: ['request-serviceaccounts-token-audience'],
    };
    await call('POST', `${RBAC}/clusterroles`, { body: { metadata: { name: 'audience' }, rules: [rule] } });
    await call('POST', `${RBAC}/clusterrolebindings`, {
      body: {
        metadata: { name: 'audience' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'audience' },
        subjects: [{ kind: 'Group', name: 'system:nodes', apiGroup: 'rbac.authorization.k8s.io' }],
      },
    });
    assert.equal(await requestToken('t-allowed', plain, 'registry'), 201);
  });

  it('lets a node write only capacity and conditions in the status of a claim', async () => {
    const claim = '/api/v1/namespaces/default/persistentvolumeclaims/data';
    await call('POST', PODS, {
      body: pod('uses-data', {
        nodeName: 'n1',
        volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }],
      }),
    });
    const status = (patch: object) =>
      call('PATCH', `${claim}/status`, {
        as: node,
        raw: JSON.stringify(patch),
        type: 'application/merge-patch+json',
      });
    assert.equal((await status({ status: { capacity: { storage: '2Gi' } } })).code, 200);
    const conditions = [{ type: 'FileSystemResizePending', status: 'True' }];
    assert.equal((await status({ status: { conditions } })).code, 200);
    const refused = await status({ status: { phase: 'Bound' } });
    assert.equal(refused.code, 403);
    assert.match(
      refused.body.message,
      /not allowed to update fields other than status\.capacity and status\.conditions/,
    );
    for (const metadata of [{ labels: { a: 'b' } }, { annotations: { a: 'b' } }, { finalizers: [] }])
      assert.equal((await status({ metadata })).code, 403, JSON.stringify(metadata));
  });

  it('lets a node write only Leases and CSINodes with its own name', async () => {
    const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
    assert.equal(
      (await call('POST', leases, { as: node, body: { metadata: { name: 'n1' }, spec: { holderIdentity: 'n1' } } }))
        .code,
      201,
    );
    assert.equal((await call('POST', leases, { as: node, body: { metadata: { name: 'n2' } } })).code, 403);
    const drivers = '/apis/storage.k8s.io/v1/csinodes';
    for (const [name, code] of [
      ['n1', 201],
      ['n2', 403],
    ] as const) {
      const body = { metadata: { name }, spec: { drivers: [] } };
      assert.equal((await call('POST', drivers, { as: node, body })).code, code, name);
    }
  });

  it('lets a node evict only its own pods', async () => {
    for (const [name, nodeName, code] of [
      ['evict-mine', 'n1', 201],
      ['evict-other', 'n2', 403],
    ] as const) {
      assert.equal((await call('POST', PODS, { body: pod(name, { nodeName }) })).code, 201);
      const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } };
      const evicted = await call('POST', `${PODS}/${name}/eviction`, { as: node, body });
      assert.equal(evicted.code, code, evicted.text);
    }
  });

  it('requires permission to request system:masters certificates, to approve and to sign', async () => {
    const path = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
    const key = await generateKey();
    const ask = (name: string, organizations: string[], as?: KeyPair) =>
      call('POST', path, {
        ...(as === undefined ? {} : { as }),
        body: {
          metadata: { name },
          spec: {
            signerName: 'kubernetes.io/kube-apiserver-client',
            usages: ['client auth'],
            username: 'somebody-else',
            request: Buffer.from(createSigningRequest(key, { commonName: 'eve', organizations })).toString('base64'),
          },
        },
      });
    const refused = await ask('masters', ['system:masters']);
    assert.equal(refused.code, 403);
    assert.match(refused.body.message, /system:masters group is not allowed/);
    const made = await ask('plain', ['dev']);
    assert.equal(made.code, 201, made.text);
    assert.match(made.text, /"username":"system:admin"/);
    const rbac = `${RBAC}/clusterroles`;
    const rules = [
      {
        verbs: ['update', 'get'],
        apiGroups: ['certificates.k8s.io'],
        resources: ['certificatesigningrequests/approval', 'certificatesigningrequests'],
      },
    ];
    await call('POST', rbac, { body: { metadata: { name: 'approver' }, rules } });
    await call('POST', `${RBAC}/clusterrolebindings`, {
      body: {
        metadata: { name: 'approver' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'approver' },
        subjects: [{ kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' }],
      },
    });
    await untilCode(() => call('GET', `${path}/plain`, { as: bob }), 200);
    const approve = (as: KeyPair) =>
      call('PUT', `${path}/plain/approval`, {
        as,
        body: {
          metadata: { name: 'plain' },
          spec: {},
          status: { conditions: [{ type: 'Approved', status: 'True', reason: 'x' }] },
        },
      });
    const denied = await approve(bob);
    assert.equal(denied.code, 403, denied.text);
    assert.match(denied.body.message, /not permitted to approve requests with signerName/);
    const approved = await approve(server.admin);
    assert.equal(approved.code, 200, approved.text);
    assert.match(approved.text, /"type":"Approved"/);
  });

  it('requires the delete permission for owner references', async () => {
    await grant('creator', [{ verbs: ['create', 'get', 'patch'], apiGroups: [''], resources: ['configmaps'] }]);
    const maps = '/api/v1/namespaces/default/configmaps';
    await untilCode(() => call('POST', maps, { as: bob, body: { metadata: { generateName: 'x-' } } }), 201);
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' }];
    const owned = await call('POST', maps, { as: bob, body: { metadata: { name: 'owned', ownerReferences } } });
    assert.equal(owned.code, 201, owned.text);
    const type = 'application/merge-patch+json';
    const body = { metadata: { ownerReferences: [{ ...ownerReferences[0], uid: 'v' }] } };
    const denied = await call('PATCH', `${maps}/owned`, { as: bob, body, type });
    assert.equal(denied.code, 403);
    assert.match(denied.text, /cannot set an ownerRef on a resource you can't delete/);
    assert.equal((await call('PATCH', `${maps}/owned`, { body, type })).code, 200);
  });
});

async function untilCode(ask: () => Promise<{ code: number; text: string }>, code: number): Promise<void> {
  const deadline = performance.now() + 3000;
  for (;;) {
    const answer = await ask();
    if (answer.code === code) return;
    if (performance.now() > deadline) assert.fail(`${answer.code} instead of ${code}: ${answer.text}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
