/** Image streams, images of the host, and requests of `oc` for projects, on a complete API server. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';

const DIGEST = `sha256:${'a'.repeat(64)}`;
const PROGRAMS = 'hyperedge.local/host-root:programs';

interface Imported {
  readonly status: {
    readonly images: readonly {
      readonly status: { readonly status: string; readonly message?: string };
      readonly image?: { readonly dockerImageReference: string; readonly dockerImageMetadata: object };
    }[];
  };
}

describe('images of image streams', { concurrency: false }, () => {
  let server: TestServer;
  const requested: string[] = [];
  before(async () => {
    server = await startServer({
      imageRegistries: {
        inspect: async (name, credentials) => {
          requested.push(name);
          if (name.startsWith('private.lab/')) {
            if (credentials?.password !== 'open') throw new Error('registry private.lab answered 401');
            return { digest: DIGEST, pullSpec: `private.lab/team/app@${DIGEST}`, configuration: {}, layers: [] };
          }
          if (name.startsWith('other.lab/')) return undefined;
          if (name.endsWith('/broken:1')) throw new Error('registry registry.lab answered 503');
          const configuration = { Config: { ExposedPorts: { '8080/tcp': {} } } };
          return { digest: DIGEST, pullSpec: `registry.lab/app@${DIGEST}`, configuration, layers: [] };
        },
      },
    });
    for (const name of ['shop', 'openshift-must-gather-x']) {
      await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
      const account = { metadata: { name: 'default' } };
      await server.call('POST', `/api/v1/namespaces/${name}/serviceaccounts`, { body: account });
    }
  });
  after(() => server.stop());

  const importOf = async (name: string, more: object = {}) => {
    const answer = await server.call<Imported>(
      'POST',
      '/apis/image.openshift.io/v1/namespaces/shop/imagestreamimports',
      {
        body: {
          apiVersion: 'image.openshift.io/v1',
          kind: 'ImageStreamImport',
          metadata: { name: 'app' },
          spec: { import: true, images: [{ from: { kind: 'DockerImage', name }, to: { name: '1' }, ...more }] },
        },
      },
    );
    assert.equal(answer.code, 201, answer.text);
    return answer.body.status.images[0];
  };

  test('images of image streams are imported only from registries that the configuration names', async () => {
    const found = await importOf('registry.lab/app:1');
    assert.equal(found?.status.status, 'Success');
    assert.deepEqual(found?.image?.dockerImageMetadata, { Config: { ExposedPorts: { '8080/tcp': {} } } });
    const tag = await server.call<{ image: { dockerImageReference: string } }>(
      'GET',
      '/apis/image.openshift.io/v1/namespaces/shop/imagestreamtags/app:1',
    );
    assert.equal(tag.body.image.dockerImageReference, `registry.lab/app@${DIGEST}`);
    assert.match((await importOf('other.lab/app:1'))?.status.message ?? '', /not found in the image store of any host/);
    assert.match((await importOf('registry.lab/broken:1'))?.status.message ?? '', /answered 503/);
    assert.equal((await importOf('../etc'))?.status.status, 'Failure');
    assert.deepEqual(requested, ['registry.lab/app:1', 'other.lab/app:1', 'registry.lab/broken:1']);
  });

  test('images of image streams are imported with the pull secrets of the namespace, by host and path', async () => {
    assert.match((await importOf('private.lab/team/app:1'))?.status.message ?? '', /answered 401/);
    const secret = async (name: string, type: string, key: string, value: object) => {
      const data = { [key]: btoa(JSON.stringify(value)) };
      const body = { metadata: { name }, type, data };
      assert.equal((await server.call('POST', '/api/v1/namespaces/shop/secrets', { body })).code, 201);
    };
    const entry = (password: string) => ({ username: 'u', password, auth: btoa(`u:${password}`) });
    await secret('new', 'kubernetes.io/dockerconfigjson', '.dockerconfigjson', {
      auths: { 'private.lab': entry('wrong'), 'private.lab/team': entry('open') },
    });
    assert.equal((await importOf('private.lab/team/app:1'))?.status.status, 'Success');
    assert.match((await importOf('private.lab/other/app:1'))?.status.message ?? '', /answered 401/);
    await secret('old', 'kubernetes.io/dockercfg', '.dockercfg', { 'private.lab/other': entry('open') });
    assert.equal((await importOf('private.lab/other/app:1'))?.status.status, 'Success');
  });

  test('images of image streams keep the policies of their tag', async () => {
    const policies = { importPolicy: { scheduled: true }, referencePolicy: { type: 'Local' } };
    await importOf('registry.lab/app:1', policies);
    await importOf('registry.lab/app:1');
    const path = '/apis/image.openshift.io/v1/namespaces/shop/imagestreamtags/app:1';
    const { body } = await server.call<{ tag: object }>('GET', path);
    const { importPolicy, referencePolicy } = body.tag as typeof policies;
    assert.deepEqual({ importPolicy, referencePolicy }, policies);
  });

  for (const plural of ['imagestreamtags', 'imagetags'])
    test(`images of image streams are watched as ${plural}`, async () => {
      const base = '/apis/image.openshift.io/v1/namespaces/shop';
      const put = (name: string, from: string) =>
        server.call('PUT', `${base}/imagestreamtags/${name}`, {
          body: { metadata: { name }, tag: { from: { kind: 'DockerImage', name: from }, reference: true } },
        });
      await put('seen:1', 'a.lab/x:1');
      const events = async (query: string): Promise<string[]> => {
        const { text } = await server.call('GET', `${base}/${plural}?watch=true&timeoutSeconds=2&${query}`);
        return text
          .trim()
          .split('\n')
          .filter((line) => line !== '')
          .map((line) => {
            const { type, object } = JSON.parse(line);
            return `${type} ${object.metadata.name} ${(object.tag ?? object.spec)?.from?.name}`;
          });
      };
      const { body } = await server.call<{ metadata: { resourceVersion: string } }>('GET', `${base}/${plural}`);
      const all = events(`resourceVersion=${body.metadata.resourceVersion}`);
      const one = events(`fieldSelector=${encodeURIComponent('metadata.name=seen:1')}`);
      await put('seen:2', 'a.lab/x:2');
      await put('seen:1', 'a.lab/x:3');
      await server.call('DELETE', `${base}/imagestreamtags/seen:2`);
      await server.call('DELETE', `${base}/imagestreams/seen`);
      assert.deepEqual(await all, [
        'ADDED seen:2 a.lab/x:2',
        'MODIFIED seen:1 a.lab/x:3',
        'DELETED seen:2 a.lab/x:2',
        'DELETED seen:1 a.lab/x:3',
      ]);
      const [first, ...rest] = await one;
      assert.deepEqual([first, rest.at(-1)], ['ADDED seen:1 a.lab/x:1', 'DELETED seen:1 a.lab/x:3']);
    });

  test('images of image streams show the host’s programs only to pods of the cluster’s own namespaces', async () => {
    const pod = (namespace: string, image: string) =>
      server.call<{ spec: { affinity: object; nodeSelector: object }; message: string }>(
        'POST',
        `/api/v1/namespaces/${namespace}/pods?dryRun=All`,
        {
          body: {
            metadata: { name: 'p' },
            spec: {
              automountServiceAccountToken: false,
              nodeSelector: { 'node-role.kubernetes.io/master': '', 'kubernetes.io/os': 'linux' },
              containers: [{ name: 'gather', image }],
            },
          },
        },
      );
    const admitted = await pod('openshift-must-gather-x', PROGRAMS);
    assert.equal(admitted.code, 201, admitted.text);
    assert.deepEqual(admitted.body.spec.nodeSelector, { 'kubernetes.io/os': 'linux' });
    assert.match(JSON.stringify(admitted.body.spec.affinity), /"node-role.kubernetes.io\/master","operator":"Exists"/);
    for (const [namespace, image] of [
      ['shop', PROGRAMS],
      ['openshift-must-gather-x', 'hyperedge.local/host-root:latest'],
      ['openshift-must-gather-x', 'HYPEREDGE.local/host-root:programs'],
    ] as const) {
      const refused = await pod(namespace, image);
      assert.equal(refused.code, 403, refused.text);
      assert.match(refused.body.message, /hyperedge\.local\/host-root is reserved/);
    }
  });

  test('the admin of a project gets the project by name, and access reviews of projects may omit the API group', async () => {
    const ann = await server.user('ann');
    const project = '/apis/project.openshift.io/v1/projects/shop';
    assert.equal((await server.call('GET', project, { as: ann })).code, 403);
    await server.call('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings', {
      body: {
        metadata: { name: 'admin' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'ann' }],
      },
    });
    // The review for which `oc adm new-project --admin` waits.
    const review = { namespace: 'shop', verb: 'get', resourceAPIGroup: '', resource: 'projects', user: 'ann' };
    let allowed: unknown;
    for (let tries = 0; tries < 50 && allowed !== true; tries++) {
      const answer = await server.call('POST', '/apis/authorization.openshift.io/v1/subjectaccessreviews', {
        body: { apiVersion: 'authorization.openshift.io/v1', kind: 'SubjectAccessReview', ...review },
      });
      allowed = answer.body['allowed'];
    }
    assert.equal(allowed, true);
    assert.equal((await server.call('GET', project, { as: ann })).code, 200);
    assert.equal((await server.call('DELETE', project, { as: ann })).code, 403);
    assert.equal((await server.call('GET', '/apis/project.openshift.io/v1/projects/default', { as: ann })).code, 403);
  });
});
