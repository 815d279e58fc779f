/** Data for joining hosts on a real API server: tokens, signed cluster-info, settings and certificates. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { compactVerify } from 'jose';
import type { Secret } from '../../src/api/generated/core/v1.ts';
import { isApiError } from '../../src/api/meta/status.ts';
import { resources } from '../../src/api/resources.ts';
import { toNodeName } from '../../src/base/brand.ts';
import { type ApiClient, createApiClient } from '../../src/client/index.ts';
import { fetchClusterInfo, fetchRoles, receiveKeys } from '../../src/host/join/cluster-info.ts';
import { caHashOf, discover } from '../../src/host/join/discovery.ts';
import { checkIdentity } from '../../src/host/join/host-identity.ts';
import { groupsOf, parseToken } from '../../src/host/join/token-format.ts';
import { systemClock as clock } from '../../src/host/process/process.ts';
import { CertificateManager, CLIENT_SIGNER, requestSignature, SERVING_SIGNER } from '../../src/kubelet/index.ts';
import { kubeletCertificates, nodeFiles } from '../../src/pki/index.ts';
import { startServer } from '../apiserver/harness.ts';
import { type ControlPlane, eventually, startControlPlane } from './harness.ts';

const settings = {
  clusterCIDR: '10.128.0.0/14',
  serviceCIDR: '172.30.0.0/16',
  clusterDomain: 'cluster.local',
  ipFamilies: 'IPv4',
};
const token = parseToken('abcdef.0123456789abcdef', 'token');
const longToken = parseToken(`abcdef.0123456789abcdef${'x'.repeat(32)}`, 'token');
let plane: ControlPlane;
let directory = '';
const opened: ApiClient[] = [];
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-joining-'));
  const api = await startServer({ config: { bootstrapTokens: true } });
  plane = await startControlPlane({ api, clusterFacts: { publicUrl: api.url, settings } });
});
after(async () => {
  for (const client of opened) await client.close();
  await plane.stop();
  await plane.api.stop();
  await rm(directory, { recursive: true, force: true });
});

function clientWith(bearer: string): ApiClient {
  const client = createApiClient({
    server: plane.api.url,
    ca: plane.api.ca.certPem,
    token: bearer,
    userAgent: 'kubelet/test',
    log: plane.log,
    clock,
  });
  opened.push(client);
  return client;
}

const tokenSecret = (id: string, expiration: string): Secret => ({
  metadata: { name: `bootstrap-token-${id}`, namespace: 'kube-system' },
  type: 'bootstrap.kubernetes.io/token',
  stringData: {
    'token-id': id,
    'token-secret': token.stored,
    expiration,
    'usage-bootstrap-authentication': 'true',
    'usage-bootstrap-signing': 'true',
    'auth-extra-groups': groupsOf(['node']).join(),
  },
});
const inMs = (ms: number): string => new Date(Date.now() + ms).toISOString();
const signatureOf = async (id: string): Promise<string | undefined> =>
  (await plane.of(resources.configMaps).get('cluster-info', 'kube-public')).data?.[`jws-kubeconfig-${id}`];

test('signs cluster-info with a token, and serves only cluster-info without credentials', async () => {
  await plane.of(resources.secrets).create(tokenSecret('abcdef', inMs(3_600_000)));
  const signature = await eventually(() => signatureOf('abcdef'), 'the signature');
  const [header, , mac] = signature.split('.');
  const content = (await plane.of(resources.configMaps).get('cluster-info', 'kube-public')).data?.['kubeconfig'] ?? '';
  const jws = `${header}.${Buffer.from(content).toString('base64url')}.${mac}`;
  const verified = await compactVerify(jws, new TextEncoder().encode(token.stored));
  assert.deepEqual(verified.protectedHeader, { alg: 'HS256', kid: 'abcdef' });
  const { caPem } = await discover(plane.api.url, token, caHashOf(new X509Certificate(plane.api.ca.certPem)));
  assert.equal(caPem, plane.api.ca.certPem);
  const anonymous = clientWith('');
  await assert.rejects(
    anonymous.request('GET', '/api/v1/namespaces/kube-public/configmaps'),
    (error) => isApiError(error, 'Unauthorized') || isApiError(error, 'Forbidden'),
  );
});

test('deletes an expired token and its signature', async () => {
  await plane.of(resources.secrets).create(tokenSecret('expire', inMs(1_500)));
  await eventually(() => signatureOf('expire'), 'the signature');
  await eventually(async () => (await signatureOf('expire')) === undefined, 'no signature');
  await eventually(
    () =>
      plane
        .of(resources.secrets)
        .get('bootstrap-token-expire', 'kube-system')
        .then(
          () => false,
          (error: unknown) => isApiError(error, 'NotFound'),
        ),
    'no secret',
  );
  await assert.rejects(fetchRoles(clientWith('expire.0123456789abcdef'), token), {
    message: /is refused; it has expired/,
  });
});

test('lets a bootstrap token read roles and settings, but no secret', async () => {
  const client = clientWith(token.bearer);
  assert.deepEqual(await fetchRoles(client, token), ['node']);
  const { cluster, apiServers } = await fetchClusterInfo(client, plane.api.url);
  assert.deepEqual(cluster, { ...settings, ipFamilies: ['IPv4'] });
  assert.equal(apiServers.length, 1);
  await assert.rejects(client.resource(resources.secrets).get('bootstrap-token-abcdef', 'kube-system'), {
    reason: 'Forbidden',
  });
  await assert.rejects(receiveKeys(client, token), {
    message: /^join\.token: carries no keys, which a master needs; /,
  });
  await assert.rejects(receiveKeys(client, longToken), {
    message: /keys sealed for token abcdef no longer exist/,
  });
});

test('reserves names and machine IDs of Ready nodes, and releases them when a node is NotReady', async () => {
  const machine = (machineID: string, ready: boolean) => (node: import('../../src/api/generated/core/v1.ts').Node) => {
    const status = node.status ?? {};
    Object.assign(status, { nodeInfo: { machineID, kubeletVersion: 'v1.36.0' } });
    for (const each of status.conditions ?? []) each.status = ready ? 'True' : 'False';
  };
  await plane.addNode('taken', machine('m1', true));
  await plane.addNode('lost', machine('m2', false));
  const client = clientWith(token.bearer);
  await checkIdentity(client, toNodeName('fresh'), 'm3');
  await checkIdentity(client, toNodeName('taken'), 'm1');
  await checkIdentity(client, toNodeName('lost'), 'm9');
  await assert.rejects(checkIdentity(client, toNodeName('taken'), 'm3'), {
    message: /^node\.name: node taken exists and is Ready on another machine /,
  });
  await assert.rejects(checkIdentity(client, toNodeName('fresh'), 'm1'), {
    message: /^\/etc\/machine-id: node taken has the same machine-id, m1; /,
  });
});

test('approves certificates of a joining kubelet by token, but not for other names', async () => {
  const files = nodeFiles(directory);
  const certificates = kubeletCertificates(files, 'client', 'fresh');
  const signal = AbortSignal.timeout(8_000);
  const order = await certificates.request({ dns: [], ips: [] });
  assert.equal((await certificates.request({ dns: [], ips: [] })).digest, order.digest, 'a restart repeats it');
  const deps = { client: clientWith(token.bearer), clock, signal, onWaiting: () => {} };
  const pem = await requestSignature({ signerName: CLIENT_SIGNER, ...order }, deps);
  await certificates.save(pem, Date.now());
  assert.match(await readlink(files.clientCurrent), /^kubelet-client-\d{4}-[\d-]+\.pem$/);
  assert.equal(new X509Certificate(pem).subject, 'O=system:nodes\nCN=system:node:fresh');
  const pair = await readFile(files.clientCurrent, 'utf8');
  const kubelet = createApiClient({
    server: plane.api.url,
    ca: plane.api.ca.certPem,
    cert: pair,
    key: pair,
    userAgent: 'kubelet/test',
    log: plane.log,
    clock,
  });
  opened.push(kubelet);
  const serving = kubeletCertificates(files, 'server', 'fresh');
  const names = { dns: ['fresh.lab'], ips: ['192.0.2.7'] };
  const renewed = Promise.withResolvers<void>();
  const manager = new CertificateManager({
    signerName: SERVING_SIGNER,
    files: serving,
    client: kubelet,
    names: async () => names,
    onRenewed: renewed.resolve,
    clock,
    nowMs: Date.now,
    log: plane.log,
  });
  manager.start();
  try {
    await new Promise((resolve) => setTimeout(resolve, 700));
    assert.equal(await serving.current(), undefined, 'not before an administrator has declared these addresses');
    await plane.addNode('fresh', (node) => {
      Object.assign(node.metadata ?? {}, {
        annotations: { 'hyperedge.dev/serving-addresses': '192.0.2.7, fresh.lab' },
      });
      Object.assign(node.status ?? {}, {
        addresses: [
          { type: 'InternalIP', address: '192.0.2.7' },
          { type: 'Hostname', address: 'fresh.lab' },
        ],
      });
    });
    await renewed.promise;
    const current = await serving.current();
    assert.deepEqual({ dns: current?.dns, ips: current?.ips }, names);
    const served = new X509Certificate(await readFile(files.serverCurrent));
    const cluster = new X509Certificate(plane.api.ca.certPem);
    assert.match(served.issuer, /^CN=kubelet-serving-signer@[0-9a-f]{16}$/);
    assert.equal(served.verify(cluster.publicKey), false, 'the authority of the API server has not signed it');
  } finally {
    await manager.stop();
  }
  // A leaked token must not take over a live node.
  const thief = kubeletCertificates(nodeFiles(join(directory, 'thief')), 'client', 'taken');
  const stolen = requestSignature(
    { signerName: CLIENT_SIGNER, ...(await thief.request({ dns: [], ips: [] })) },
    { ...deps, signal: AbortSignal.timeout(2_000) },
  );
  await assert.rejects(stolen, { code: 'closed' });
});

test("does not approve a request of OKD's node-bootstrapper service account automatically", async () => {
  const account = await eventually(
    () => plane.of(resources.serviceAccounts).get('node-bootstrapper', 'openshift-infra'),
    'the account',
  );
  assert.ok(account.metadata?.uid);
  const { status } = await plane
    .of(resources.serviceAccounts)
    .createSubresource<{ status: { token: string } }>('node-bootstrapper', 'openshift-infra', 'token', {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec: { expirationSeconds: 3600 },
    });
  const client = clientWith(status.token);
  assert.equal((await fetchClusterInfo(client, plane.api.url)).cluster.clusterCIDR, '10.128.0.0/14');
  const certificates = kubeletCertificates(nodeFiles(join(directory, 'okd')), 'client', 'okd-node');
  const request = await certificates.request({ dns: [], ips: [] });
  const waiting = Promise.withResolvers<string>();
  const deps = { client, clock, signal: AbortSignal.timeout(20_000), onWaiting: waiting.resolve };
  const signed = requestSignature({ signerName: CLIENT_SIGNER, ...request }, deps);
  const name = await waiting.promise;
  const requests = plane.of(resources.certificateSigningRequests);
  const csr = await requests.get(name);
  const approved = { type: 'Approved', status: 'True', reason: 'KubectlApprove', message: 'by test' };
  await requests.update({ ...csr, status: { conditions: [approved] } }, { subresource: 'approval' });
  assert.match(await signed, /BEGIN CERTIFICATE/);
});
