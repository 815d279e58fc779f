/** Plug-ins that are off by default, all on one server, and some that are on by default. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';

interface Body {
  readonly message: string;
  readonly metadata: { readonly labels?: Record<string, string> };
  readonly spec: {
    readonly nodeName?: string;
    readonly nodeSelector?: Record<string, string>;
    readonly tolerations?: readonly object[];
    readonly containers: readonly { readonly imagePullPolicy: string }[];
    readonly volumes: readonly { readonly image?: { readonly pullPolicy: string } }[];
  };
}

const MERGE = 'application/merge-patch+json';

describe('admission plug-ins that are off by default', () => {
  let server: TestServer;
  let serial = 0;
  before(async () => {
    server = await startServer({
      config: {
        enabledAdmission: [
          'AlwaysPullImages',
          'DenyServiceExternalIPs',
          'EventRateLimit',
          'ExtendedResourceToleration',
          'LimitPodHardAntiAffinityTopology',
          'NamespaceAutoProvision',
          'NamespaceExists',
          'PodNodeSelector',
          'PodTolerationRestriction',
        ],
        admission: {
          podNodeSelector: {
            clusterDefault: { pool: 'general' },
            whitelists: new Map([['listed', { pool: 'general', disk: 'ssd' }]]),
          },
          podTolerations: { defaults: [{ key: 'cluster', operator: 'Exists' }], whitelist: [] },
          eventLimits: [
            { type: 'Namespace', qps: 0.001, burst: 2, cacheSize: 10 },
            { type: 'User', qps: 1_000, burst: 1_000, cacheSize: 10 },
          ],
        },
      },
    });
  });
  after(() => server.stop());
  const post = (path: string, body: unknown) => server.call<Body>('POST', path, { body });
  const newNamespace = async (name: string, annotations: Record<string, string> = {}) => {
    const made = await post('/api/v1/namespaces', { metadata: { name, annotations } });
    assert.equal(made.code, 201, made.text);
    await post(`/api/v1/namespaces/${name}/serviceaccounts`, { metadata: { name: 'default' } });
  };
  const pod = (namespace: string, spec: object = {}, container: object = {}) =>
    post(`/api/v1/namespaces/${namespace}/pods`, {
      metadata: { name: `p${++serial}` },
      spec: { containers: [{ name: 'c', image: 'i:1', ...container }], ...spec },
    });
  const refused = async (answer: ReturnType<typeof pod>, message: string) => {
    const { code, body } = await answer;
    assert.equal(code, 403, body.message);
    assert.equal(body.message, message.replace('POD', `pods "p${serial}" is forbidden`));
  };

  it('creates a missing namespace on a create, but not in a dry run', async () => {
    const map = { metadata: { name: 'm' } };
    assert.equal((await post('/api/v1/namespaces/made/configmaps?dryRun=All', map)).code, 404);
    assert.equal((await post('/api/v1/namespaces/made/configmaps', map)).code, 201);
    assert.equal((await server.call('GET', '/api/v1/namespaces/made')).code, 200);
    const gone = await server.call<Body>('DELETE', '/api/v1/namespaces/nowhere/configmaps');
    assert.equal(gone.code, 200, gone.text);
  });

  it('AlwaysPullImages sets the pull policy Always', async () => {
    await newNamespace('images');
    const made = await pod(
      'images',
      { volumes: [{ name: 'v', image: { reference: 'r', pullPolicy: 'Never' } }] },
      { imagePullPolicy: 'IfNotPresent' },
    );
    assert.equal(made.code, 201, made.text);
    assert.equal(made.body.spec.containers[0]?.imagePullPolicy, 'Always');
    assert.equal(made.body.spec.volumes[0]?.image?.pullPolicy, 'Always');
  });

  it('adds the node selector of the namespace or cluster to pods, and rejects labels outside the whitelist', async () => {
    await newNamespace('plain');
    assert.deepEqual((await pod('plain', { nodeSelector: { a: 'b' } })).body.spec.nodeSelector, {
      a: 'b',
      pool: 'general',
    });
    await refused(
      pod('plain', { nodeSelector: { pool: 'other' } }),
      'POD: pod node label selector conflicts with its namespace node label selector',
    );
    await newNamespace('own', { 'scheduler.alpha.kubernetes.io/node-selector': 'disk=ssd, zone=z' });
    assert.deepEqual((await pod('own')).body.spec.nodeSelector, { disk: 'ssd', zone: 'z' });
    await newNamespace('listed');
    assert.equal((await pod('listed', { nodeSelector: { disk: 'ssd' } })).code, 201);
    await refused(
      pod('listed', { nodeSelector: { zone: 'z' } }),
      'POD: pod node label selector labels conflict with its namespace whitelist',
    );
    await newNamespace('wrong', { 'scheduler.alpha.kubernetes.io/node-selector': 'a in (b)' });
    assert.equal((await pod('wrong')).code, 403);
  });

  it('adds tolerations of the namespace, rejects tolerations outside its whitelist, and removes redundant tolerations', async () => {
    const list = [
      { key: 'team', operator: 'Exists' },
      { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute' },
      { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute' },
      { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists' },
    ];
    await newNamespace('tolerant', {
      'scheduler.alpha.kubernetes.io/defaultTolerations': JSON.stringify([{ key: 'team', operator: 'Exists' }]),
      'scheduler.alpha.kubernetes.io/tolerationsWhitelist': JSON.stringify(list),
    });
    const usual = ['not-ready', 'unreachable'].map((name) => ({
      key: `node.kubernetes.io/${name}`,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 300,
    }));
    const narrow = { key: 'team', operator: 'Equal', value: 'x', effect: 'NoSchedule' };
    const made = await pod('tolerant', { tolerations: [narrow] }, { resources: { requests: { cpu: '1' } } });
    assert.deepEqual(made.body.spec.tolerations, [
      ...usual,
      { key: 'team', operator: 'Exists' },
      { key: 'node.kubernetes.io/memory-pressure', operator: 'Exists', effect: 'NoSchedule' },
    ]);
    await refused(
      pod('tolerant', { tolerations: [{ key: 'other', operator: 'Exists' }] }),
      'pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist',
    );
    assert.deepEqual((await pod('plain')).body.spec.tolerations, [...usual, { key: 'cluster', operator: 'Exists' }]);
    await newNamespace('broken', { 'scheduler.alpha.kubernetes.io/defaultTolerations': '{' });
    assert.equal((await pod('broken')).code, 403);
  });

  it('adds a toleration for the taint of a requested device', async () => {
    const gpu = { 'example.com/gpu': '1', cpu: '1' };
    const { tolerations = [] } = (await pod('plain', {}, { resources: { requests: gpu, limits: gpu } })).body.spec;
    assert.deepEqual(tolerations.at(-1), { key: 'example.com/gpu', operator: 'Exists', effect: 'NoSchedule' });
  });

  it('rejects required anti-affinity with a topology larger than a node', async () => {
    const spread = (topologyKey: string) => ({
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: { matchLabels: { a: 'b' } } }],
        },
      },
    });
    assert.equal((await pod('plain', spread('kubernetes.io/hostname'))).code, 201);
    await refused(
      pod('plain', spread('topology.kubernetes.io/zone')),
      'POD: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey topology.kubernetes.io/zone but only key kubernetes.io/hostname is allowed',
    );
  });

  it('rejects additional externalIPs of a service', async () => {
    const at = '/api/v1/namespaces/plain/services';
    const service = (name: string, externalIPs: string[]) =>
      post(at, { metadata: { name }, spec: { externalIPs, ports: [{ port: 80 }] } });
    const denied = await service('s', ['192.0.2.1']);
    assert.equal(denied.body.message, 'services "s" is forbidden: Use of external IPs is denied by admission control');
    assert.equal((await service('s', [])).code, 201);
    const patched = await server.call('PATCH', `${at}/s`, {
      body: { spec: { externalIPs: ['192.0.2.1'] } },
      type: MERGE,
    });
    assert.equal(patched.code, 403);
  });

  it('limits events per namespace without affecting other namespaces', async () => {
    await newNamespace('noisy');
    const event = (namespace: string) =>
      post(`/api/v1/namespaces/${namespace}/events`, {
        metadata: { name: `e${++serial}` },
        involvedObject: { kind: 'Pod', namespace, name: 'p' },
        reason: 'Test',
        type: 'Normal',
      });
    const answers = await Promise.all(Array.from({ length: 8 }, () => event('noisy')));
    const tooMany = answers.filter(({ code }) => code === 429);
    assert.equal(tooMany.length, 6, answers.map(({ code }) => code).join());
    assert.equal(answers.filter(({ code }) => code === 201).length, 2);
    assert.equal(tooMany[0]?.body.message, 'limit reached on type Namespace for key noisy');
    assert.equal((await event('plain')).code, 201);
  });
});

describe('admission plug-ins that are on by default', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
    await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { metadata: { name: 'default' } },
    });
  });
  after(() => server.stop());
  const post = (path: string, body: unknown) => server.call<Body>('POST', path, { body });

  it('allows the expansion of a claim only if the claim is bound and its class allows expansion', async () => {
    const classes = '/apis/storage.k8s.io/v1/storageclasses';
    await post(classes, { metadata: { name: 'grows' }, provisioner: 'x.example.com', allowVolumeExpansion: true });
    await post(classes, { metadata: { name: 'stays' }, provisioner: 'x.example.com' });
    const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
    const claim = (name: string, storageClassName: string) =>
      post(claims, {
        metadata: { name },
        spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage: '1Gi' } } },
      });
    const patch = (path: string, body: unknown) =>
      server.call<Body>('PATCH', `${claims}/${path}`, { body, type: MERGE });
    const grow = (name: string) => patch(name, { spec: { resources: { requests: { storage: '2Gi' } } } });
    await claim('a', 'grows');
    await claim('b', 'stays');
    assert.match((await grow('a')).text, /Only bound persistent volume claims can be expanded|is immutable/);
    for (const name of ['a', 'b']) {
      const bound = await patch(`${name}/status`, {
        status: { phase: 'Bound', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
      });
      assert.equal(bound.code, 200, bound.text);
    }
    assert.equal((await grow('a')).code, 200);
    assert.equal(
      (await grow('b')).body.message,
      'persistentvolumeclaims "b" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
    );
  });

  it('copies the zone label of the node to a bound pod without a zone label', async () => {
    const zone = 'topology.kubernetes.io/zone';
    const region = 'topology.kubernetes.io/region';
    await post('/api/v1/nodes', { metadata: { name: 'n', labels: { [zone]: 'z', [region]: 'r', other: 'x' } } });
    const pods = '/api/v1/namespaces/default/pods';
    const make = (name: string, labels: object, spec: object = {}) =>
      post(pods, { metadata: { name, labels }, spec: { containers: [{ name: 'c', image: 'i' }], ...spec } });
    await make('bound', { [zone]: 'mine', a: 'b' });
    const binding = { metadata: { name: 'bound' }, target: { kind: 'Node', name: 'n' } };
    assert.equal((await post(`${pods}/bound/binding`, binding)).code, 201);
    const found = await server.call<Body>('GET', `${pods}/bound`);
    assert.equal(found.body.spec.nodeName, 'n');
    assert.deepEqual(found.body.metadata.labels, { a: 'b', [region]: 'r', [zone]: 'mine' });
    const placed = await make('placed', {}, { nodeName: 'n' });
    assert.deepEqual(placed.body.metadata.labels, { [region]: 'r', [zone]: 'z' });
  });
});
