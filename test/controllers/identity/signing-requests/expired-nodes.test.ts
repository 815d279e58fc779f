/** Tests with a real API server that a node with an expired client certificate can only request a new certificate. */
import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { CLIENT_KEY } from '../../../../src/api/kinds/identity/certificatesigningrequests/expired-nodes.ts';
import { resources } from '../../../../src/api/resources.ts';
import { type ApiClient, createApiClient } from '../../../../src/client/index.ts';
import { systemClock as clock } from '../../../../src/host/process/process.ts';
import { CLIENT_SIGNER, requestSignature } from '../../../../src/kubelet/index.ts';
import { createAuthority, issue, type KeyPair } from '../../../../src/pki/certificate.ts';
import { kubeletCertificates, nodeFiles } from '../../../../src/pki/index.ts';
import { startServer } from '../../../apiserver/harness.ts';
import { type ControlPlane, startControlPlane } from '../../harness.ts';

const DAY_MS = 24 * 3600 * 1000;
const PAST = { notBeforeMs: 0, notAfterMs: Date.now() - 400 * DAY_MS };
let plane: ControlPlane;
let directory = '';
const opened: ApiClient[] = [];
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-expired-'));
  plane = await startControlPlane({ api: await startServer() });
});
after(async () => {
  for (const client of opened) await client.close();
  await plane.stop();
  await plane.api.stop();
  await rm(directory, { recursive: true, force: true });
});

const ofNode = (name: string) => ({
  subject: { commonName: `system:node:${name}`, organizations: ['system:nodes'] },
  usages: ['client'] as const,
  validity: PAST,
});

function clientOf({ certPem, keyPem }: KeyPair): ApiClient {
  const client = createApiClient({
    server: plane.api.url,
    ca: plane.api.ca.certPem,
    cert: certPem,
    key: keyPem,
    userAgent: 'kubelet/test',
    log: plane.log,
    clock,
  });
  opened.push(client);
  return client;
}

function keyOf({ certPem }: KeyPair): string {
  const spki = new X509Certificate(certPem).publicKey.export({ type: 'spki', format: 'der' });
  return `sha256:${createHash('sha256').update(spki).digest('hex')}`;
}

/** PEM certificate. Rejects with 'closed' when it is not approved in time. */
async function renew(pair: KeyPair, name: string, forMs: number): Promise<string> {
  const order = await kubeletCertificates(nodeFiles(join(directory, keyOf(pair))), 'client', name).request({
    dns: [],
    ips: [],
  });
  const deps = { client: clientOf(pair), clock, signal: AbortSignal.timeout(forMs), onWaiting: () => {} };
  return requestSignature({ signerName: CLIENT_SIGNER, ...order }, deps);
}

test('a node can renew its expired certificate with the certificate itself, but cannot read objects', async () => {
  const pair = await issue(plane.api.ca, ofNode('old'));
  await plane.addNode('old', (node) => {
    Object.assign(node.metadata ?? {}, { annotations: { [CLIENT_KEY]: keyOf(pair) } });
  });
  const client = clientOf(pair);
  await assert.rejects(client.resource(resources.pods).list(), { reason: 'Forbidden' });
  await assert.rejects(client.resource(resources.secrets).list(), { reason: 'Forbidden' });
  await assert.rejects(client.resource(resources.nodes).get('old'), { reason: 'Forbidden' });
  const renewed = new X509Certificate(await renew(pair, 'old', 8_000));
  assert.equal(renewed.subject, 'O=system:nodes\nCN=system:node:old');
  assert.ok(renewed.validToDate.getTime() > Date.now());
});

test('does not renew an older copy of the certificate, another node name or a deleted Node', async () => {
  const [last, copy] = await Promise.all([issue(plane.api.ca, ofNode('kept')), issue(plane.api.ca, ofNode('kept'))]);
  await plane.addNode('kept', (node) => {
    Object.assign(node.metadata ?? {}, { annotations: { [CLIENT_KEY]: keyOf(last) } });
  });
  await assert.rejects(renew(copy, 'kept', 1_500), { code: 'closed' });
  await assert.rejects(renew(last, 'old', 1_500), { code: 'closed' });
  const gone = await issue(plane.api.ca, ofNode('gone'));
  await assert.rejects(renew(gone, 'gone', 1_500), { code: 'closed' });
});

test('rejects an expired certificate of a user or of another CA', async () => {
  const user = await issue(plane.api.ca, {
    subject: { commonName: 'alice', organizations: ['system:masters'] },
    usages: ['client'],
    validity: PAST,
  });
  const foreign = await issue(
    await createAuthority('other-ca', { ...PAST, notAfterMs: Date.now() + DAY_MS }),
    ofNode('old'),
  );
  const serving = await issue(plane.api.ca, { ...ofNode('old'), usages: ['server'] });
  for (const pair of [user, foreign, serving]) {
    await assert.rejects(clientOf(pair).resource(resources.nodes).get('old'), { reason: 'Unauthorized' });
    await assert.rejects(renew(pair, 'old', 1_500), { reason: 'Unauthorized' });
  }
});
