import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { CertificateSigningRequest } from '../../../src/api/generated/certificates/v1.ts';
import { resources } from '../../../src/api/resources.ts';
import { createSigningRequest, generateKey } from '../../../src/pki/index.ts';
import { type ControlPlane, eventually, startControlPlane } from '../harness.ts';

const GRACE_MS = 1_200;
let plane: ControlPlane;
const beating = new Map<string, NodeJS.Timeout>();
before(async () => {
  plane = await startControlPlane({
    controllers: { nodeMonitorGracePeriodMs: GRACE_MS, nodeStartupGracePeriodMs: GRACE_MS },
  });
});
after(async () => {
  for (const timer of beating.values()) clearInterval(timer);
  await plane.stop();
});

const leases = () => plane.of(resources.leases);

async function startBeating(name: string): Promise<void> {
  const renewTime = (): string => new Date().toISOString().replace('Z', '000Z');
  await leases().create({ metadata: { name, namespace: 'kube-node-lease' }, spec: { renewTime: renewTime() } });
  const beat = (): void => {
    leases()
      .patch(name, 'kube-node-lease', 'merge', { spec: { renewTime: renewTime() } })
      .catch(() => {});
  };
  beating.set(name, setInterval(beat, 200));
}

function stopBeating(name: string): void {
  clearInterval(beating.get(name));
  beating.delete(name);
}

const taintsOf = async (name: string): Promise<string[]> =>
  ((await plane.of(resources.nodes).get(name)).spec?.taints ?? [])
    .map((taint) => `${taint.key}:${taint.effect}`)
    .sort();
const readyOf = async (name: string): Promise<string | undefined> =>
  (await plane.of(resources.nodes).get(name)).status?.conditions?.find((each) => each.type === 'Ready')?.status;

test('marks a silent node Unknown, taints it, and evicts its pods when their tolerations expire', async () => {
  await plane.addNode('alive');
  await startBeating('alive');
  await plane.addNode('silent');
  await startBeating('silent');
  const tolerant = (seconds: number | undefined) => ({
    key: 'node.kubernetes.io/unreachable',
    operator: 'Exists',
    effect: 'NoExecute',
    ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
  });
  for (const [name, tolerations] of [
    ['soon', [tolerant(1)]],
    ['never', [tolerant(undefined)]],
  ] as const) {
    await plane.of(resources.pods).create({
      metadata: { name, namespace: 'default' },
      spec: { nodeName: 'silent', containers: [{ name: 'c', image: 'i' }], tolerations: [...tolerations] },
    });
  }
  await new Promise((resolve) => setTimeout(resolve, GRACE_MS + 300));
  assert.equal(await readyOf('silent'), 'True');
  assert.deepEqual(await taintsOf('silent'), []);
  stopBeating('silent');
  await eventually(async () => (await readyOf('silent')) === 'Unknown', 'Unknown');
  await eventually(
    async () =>
      (await taintsOf('silent')).join() ===
      'node.kubernetes.io/unreachable:NoExecute,node.kubernetes.io/unreachable:NoSchedule',
    'the taints',
  );
  const pods = plane.of(resources.pods);
  await eventually(
    async () => !(await pods.list({ namespace: 'default' })).items.some((pod) => pod.metadata?.name === 'soon'),
    'the eviction',
  );
  const never = await pods.get('never', 'default');
  assert.equal(never.metadata?.deletionTimestamp, undefined);
  assert.equal(never.status?.conditions?.find((each) => each.type === 'Ready')?.status, 'False');
  assert.equal(await readyOf('alive'), 'True');
});

test('evicts no pods when no node reports', async () => {
  stopBeating('alive');
  await eventually(async () => (await readyOf('alive')) === 'Unknown', 'Unknown');
  await eventually(
    async () => (await taintsOf('silent')).join() === 'node.kubernetes.io/unreachable:NoSchedule',
    'the NoExecute taint taken away',
  );
  await eventually(
    async () => (await taintsOf('alive')).join() === 'node.kubernetes.io/unreachable:NoSchedule',
    'the NoSchedule taint alone',
  );
});

test('taints a cordoned node, and removes the taint again', async () => {
  await plane.addNode('third');
  await startBeating('third');
  const nodes = plane.of(resources.nodes);
  await nodes.patch('third', undefined, 'merge', { spec: { unschedulable: true } });
  await eventually(
    async () => (await taintsOf('third')).includes('node.kubernetes.io/unschedulable:NoSchedule'),
    'taint',
  );
  await nodes.patch('third', undefined, 'merge', { spec: { unschedulable: null } });
  await eventually(async () => (await taintsOf('third')).length === 0, 'no taint');
});

test('assigns each node a separate pod range', async () => {
  const items = (await plane.of(resources.nodes).list()).items;
  const cidrs = items.map((node) => node.spec?.podCIDR ?? '');
  assert.equal(new Set(cidrs).size, items.length);
  for (const cidr of cidrs) assert.match(cidr, /^10\.12\d\.\d+\.0\/23$/);
});

async function request(
  as: { name: string; groups: string[] },
  name: string,
  more: Partial<NonNullable<CertificateSigningRequest['spec']>> & {
    commonName?: string;
    dns?: string[];
    ips?: string[];
  },
): Promise<void> {
  const { commonName = 'system:node:fresh', dns = [], ips = [], ...spec } = more;
  const subject = { commonName, organizations: ['system:nodes'] };
  const pem = createSigningRequest(await generateKey(), subject, { dns, ips });
  const client = await plane.clientAs(as.name, ...as.groups);
  await client.resource(resources.certificateSigningRequests).create({
    metadata: { name },
    spec: {
      request: Buffer.from(pem).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
      ...spec,
    },
  });
}

const certificate = (name: string) =>
  eventually(async () => {
    const found = await plane.of(resources.certificateSigningRequests).get(name);
    return (found.status?.certificate ?? '') !== '' && found;
  }, `the certificate ${name}`);

async function staysPending(name: string): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 400));
  const found = await plane.of(resources.certificateSigningRequests).get(name);
  assert.equal(found.status?.conditions, undefined);
}

const bootstrapper = { name: 'bootstrapper', groups: ['system:bootstrappers'] };

test('issues a certificate to a bootstrap identity for a new node, but not for a ready node', async () => {
  await plane.of(resources.clusterRoleBindings).create({
    metadata: { name: 'test-bootstrap' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:node-bootstrapper' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:bootstrappers' }],
  });
  await plane.of(resources.clusterRoleBindings).create({
    metadata: { name: 'test-approve' },
    roleRef: {
      apiGroup: 'rbac.authorization.k8s.io',
      kind: 'ClusterRole',
      name: 'system:certificates.k8s.io:certificatesigningrequests:nodeclient',
    },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:bootstrappers' }],
  });
  await request(bootstrapper, 'new-node', {});
  const signed = await certificate('new-node');
  assert.match(Buffer.from(signed.status?.certificate ?? '', 'base64').toString(), /BEGIN CERTIFICATE/);
  await request(bootstrapper, 'takeover', { commonName: 'system:node:third' });
  await staysPending('takeover');
});

const ofThird = { name: 'system:node:third', groups: ['system:nodes'] };
const serving = {
  commonName: 'system:node:third',
  signerName: 'kubernetes.io/kubelet-serving',
  usages: ['digital signature', 'server auth'],
};

test('puts the address that the API server observed into a serving certificate, not addresses that the node reports', async () => {
  await request(ofThird, 'serving', { ...serving, dns: ['third'], ips: ['127.0.0.1'] });
  const { spec } = await certificate('serving');
  assert.deepEqual(spec?.extra?.['hyperedge.dev/source-address'], ['127.0.0.1']);
  const third = await plane.of(resources.nodes).get('third');
  assert.equal(third.metadata?.annotations?.['hyperedge.dev/approved-addresses'], 'third,127.0.0.1');
  await request(ofThird, 'reported', { ...serving, ips: ['192.0.2.1'] });
  await staysPending('reported');
  await request(ofThird, 'service', { ...serving, dns: ['kubernetes.default.svc'] });
  await staysPending('service');
});

test('lets an administrator, but not a node, declare further addresses', async () => {
  await request(ofThird, 'declared', { ...serving, ips: ['192.0.2.99'] });
  await staysPending('declared');
  const annotations = { 'hyperedge.dev/serving-addresses': '192.0.2.99' };
  const node = (await plane.clientAs(ofThird.name, ...ofThird.groups)).resource(resources.nodes);
  await assert.rejects(
    node.patch('third', undefined, 'merge', { metadata: { annotations } }),
    /is not allowed to modify annotations: hyperedge.dev\/serving-addresses/,
  );
  await plane.of(resources.nodes).patch('third', undefined, 'merge', { metadata: { annotations } });
  await certificate('declared');
});

test('sets the condition Failed on an approved request that violates the rules, and does not sign the request', async () => {
  await request({ name: 'system:admin', groups: ['system:masters'] }, 'bad', {
    usages: ['digital signature', 'server auth'],
  });
  const requests = plane.of(resources.certificateSigningRequests);
  const pending = await requests.get('bad');
  await requests.update(
    { ...pending, status: { conditions: [{ type: 'Approved', status: 'True', reason: 'Test', message: 'by hand' }] } },
    { subresource: 'approval' },
  );
  const failed = await eventually(async () => {
    const found = await requests.get('bad');
    return found.status?.conditions?.find((condition) => condition.type === 'Failed');
  }, 'Failed');
  assert.match(failed.message ?? '', /usages/);
});
