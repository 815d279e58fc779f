/** Defaults and limits from objects: limit ranges, default classes and runtime classes. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';

interface Body {
  message: string;
  metadata: { annotations?: Record<string, string> };
  spec: Record<string, unknown> & { containers: { name: string; resources: Record<string, unknown> }[] };
}

describe('admission by limit ranges, default classes and runtime classes', () => {
  let server: TestServer;
  let serial = 0;
  before(async () => {
    server = await startServer();
    const account = { metadata: { name: 'default' } };
    await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', { body: account });
    await server.call('POST', '/api/v1/namespaces/kube-public/serviceaccounts', { body: account });
  });
  after(() => server.stop());
  const post = async (path: string, body: unknown) => server.call<Body>('POST', path, { body });
  const pod = (namespace: string, resources: object[], more: object = {}) =>
    post(`/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name: `p${++serial}` },
      spec: {
        containers: resources.map((each, index) => ({ name: `c${index}`, image: 'i', resources: each })),
        ...more,
      },
    });
  const range = async (namespace: string, ...limits: object[]) => {
    const made = await post(`/api/v1/namespaces/${namespace}/limitranges`, {
      metadata: { name: `r${++serial}` },
      spec: { limits },
    });
    assert.equal(made.code, 201, made.text);
  };

  it('containers without resources get the defaults of the limit range, and an annotation lists them', async () => {
    await range('default', {
      type: 'Container',
      default: { cpu: '500m', memory: '1Gi' },
      defaultRequest: { cpu: '100m' },
      max: { cpu: '2' },
      min: { cpu: '50m' },
      maxLimitRequestRatio: { cpu: '10' },
    });
    const made = await pod('default', [{}, { requests: { cpu: '200m' }, limits: { cpu: '1' } }]);
    assert.equal(made.code, 201, made.text);
    const [first, second] = made.body.spec.containers;
    assert.deepEqual(first?.resources, {
      limits: { cpu: '500m', memory: '1Gi' },
      requests: { cpu: '100m', memory: '1Gi' },
    });
    assert.deepEqual(second?.resources['limits'], { cpu: '1', memory: '1Gi' });
    assert.match(
      made.body.metadata.annotations?.['kubernetes.io/limit-ranger'] ?? '',
      /^LimitRanger plugin set: cpu, memory request for container c0; cpu, memory limit for container c0; /,
    );
  });

  it('rejects containers that exceed the limit range, with every violation', async () => {
    const refused = await pod('default', [{ requests: { cpu: '10m' }, limits: { cpu: '3' } }]);
    assert.equal(refused.code, 403);
    assert.equal(
      refused.body.message,
      `pods "p${serial}" is forbidden: [minimum cpu usage per Container is 50m, but request is 10m, maximum cpu usage per Container is 2, but limit is 3, cpu max limit to request ratio per Container is 10, but provided ratio is 300.000000]`,
    );
  });

  it("a limit range limits the total resources of a pod's containers", async () => {
    await range('kube-public', { type: 'Pod', max: { memory: '300Mi' } });
    const each = (memory: string) => ({ requests: { memory }, limits: { memory } });
    assert.equal((await pod('kube-public', [each('100Mi'), each('200Mi')])).code, 201);
    const initContainers = [{ name: 'i', image: 'i', resources: each('300Mi') }];
    assert.equal((await pod('kube-public', [each('100Mi'), each('200Mi')], { initContainers })).code, 201);
    const refused = await pod('kube-public', [each('200Mi'), each('200Mi')]);
    assert.match(refused.body.message, /maximum memory usage per Pod is 300Mi, but limit is 400Mi/);
    const silent = await pod('kube-public', [{}]);
    assert.match(silent.body.message, /maximum memory usage per Pod is 300Mi\. {2}No limit is specified/);
  });

  it('claims and ingresses without a class get the default class', async () => {
    const marked = (group: string) => ({ annotations: { [`${group}.kubernetes.io/is-default-class`]: 'true' } });
    const classes = '/apis/storage.k8s.io/v1/storageclasses';
    await post(classes, { metadata: { name: 'fast', ...marked('storageclass') }, provisioner: 'x.example.com' });
    await post(classes, { metadata: { name: 'slow' }, provisioner: 'x.example.com' });
    await range('default', { type: 'PersistentVolumeClaim', max: { storage: '2Gi' }, min: { storage: '1Gi' } });
    const claim = (storage: string, more: object = {}) =>
      post('/api/v1/namespaces/default/persistentvolumeclaims', {
        metadata: { name: `c${++serial}` },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, ...more },
      });
    assert.equal((await claim('1Gi')).body.spec['storageClassName'], 'fast');
    assert.equal((await claim('1Gi', { storageClassName: '' })).body.spec['storageClassName'], '');
    assert.match(
      (await claim('5Gi')).body.message,
      /maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi/,
    );
    const ingressClasses = '/apis/networking.k8s.io/v1/ingressclasses';
    const ingressClass = (name: string) =>
      post(ingressClasses, { metadata: { name, ...marked('ingressclass') }, spec: { controller: 'example.com/x' } });
    const ingress = () =>
      post('/apis/networking.k8s.io/v1/namespaces/default/ingresses', {
        metadata: { name: `i${++serial}` },
        spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } },
      });
    await ingressClass('a');
    assert.equal((await ingress()).body.spec['ingressClassName'], 'a');
    // The newer of two default classes is used; of two with the same age, the first by name.
    const a = ((await ingressClass('a0')).body.metadata as { creationTimestamp?: string }).creationTimestamp;
    const other = (await server.call<{ metadata: { creationTimestamp: string } }>('GET', `${ingressClasses}/a`)).body;
    const newest = a === other.metadata.creationTimestamp ? 'a' : 'a0';
    assert.equal((await ingress()).body.spec['ingressClassName'], newest);
  });

  it('a runtime class adds its overhead and scheduling constraints', async () => {
    await post('/apis/node.k8s.io/v1/runtimeclasses', {
      metadata: { name: 'vm' },
      handler: 'vm',
      overhead: { podFixed: { memory: '64Mi' } },
      scheduling: { nodeSelector: { vm: 'yes' }, tolerations: [{ key: 'vm', operator: 'Exists' }] },
    });
    const create = (more: object) =>
      post('/api/v1/namespaces/kube-system/pods', {
        metadata: { name: `p${++serial}` },
        spec: { containers: [{ name: 'c', image: 'i' }], ...more },
      });
    const account = { metadata: { name: 'default' } };
    await post('/api/v1/namespaces/kube-system/serviceaccounts', account);
    const made = await create({ runtimeClassName: 'vm', nodeSelector: { a: 'b' } });
    assert.equal(made.code, 201, made.text);
    assert.deepEqual(made.body.spec['overhead'], { memory: '64Mi' });
    assert.deepEqual(made.body.spec['nodeSelector'], { a: 'b', vm: 'yes' });
    assert.ok((made.body.spec['tolerations'] as { key: string }[]).some(({ key }) => key === 'vm'));
    const says = async (more: object, text: RegExp) => {
      const refused = await create(more);
      assert.equal(refused.code, 403, refused.text);
      assert.match(refused.body.message, text);
    };
    await says({ runtimeClassName: 'none' }, /pod rejected: RuntimeClass "none" not found/);
    await says(
      { runtimeClassName: 'vm', overhead: { memory: '1Mi' } },
      /doesn't match RuntimeClass's defined Overhead/,
    );
    await says(
      { runtimeClassName: 'vm', nodeSelector: { vm: 'no' } },
      /conflict: runtimeClass\.scheduling\.nodeSelector\[vm\]/,
    );
    await says({ overhead: { memory: '1Mi' } }, /Pod Overhead set without corresponding RuntimeClass/);
  });
});
