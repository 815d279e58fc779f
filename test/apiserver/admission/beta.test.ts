/** Fields that beta versions default or do not require, as in kube-apiserver 1.20. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { createSigningRequest } from '../../../src/pki/signing-request.ts';
import { startServer, type TestServer } from '../harness.ts';

interface Body {
  message: string;
  metadata: { name: string };
  spec: { signerName: string; usages: string[] };
  webhooks: { sideEffects: string }[];
}

const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const NODE = { commonName: 'system:node:a', organizations: ['system:nodes'] };

describe('v1beta1 admission and certificate APIs', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
  });
  after(() => server.stop());

  const requests = '/apis/certificates.k8s.io';
  let serial = 0;
  const ask = (version: string, pem: string, spec: object) =>
    server.call<Body>('POST', `${requests}/${version}/certificatesigningrequests`, {
      body: {
        metadata: { name: `r${serial++}` },
        spec: { request: Buffer.from(pem).toString('base64'), ...spec },
      },
    });
  const client = { usages: ['digital signature', 'key encipherment', 'client auth'] };
  const serving = { usages: ['digital signature', 'server auth'] };
  const legacy = 'kubernetes.io/legacy-unknown';

  it('v1beta1 infers the signer of a certificate request without a signer name', async () => {
    const names = { dns: ['a.lab'], ips: [] };
    const cases = [
      [createSigningRequest(privateKey, NODE), client, 'kubernetes.io/kube-apiserver-client-kubelet'],
      [createSigningRequest(privateKey, NODE, names), serving, 'kubernetes.io/kubelet-serving'],
      [createSigningRequest(privateKey, NODE, names), client, legacy],
      [createSigningRequest(privateKey, { commonName: 'me' }), client, legacy],
      [createSigningRequest(privateKey, NODE), { ...client, signerName: 'lab.test/own' }, 'lab.test/own'],
    ] as const;
    for (const [pem, spec, signer] of cases) {
      const made = await ask('v1beta1', pem, spec);
      assert.equal(made.code, 201, made.text);
      assert.equal(made.body.spec.signerName, signer);
    }
    const garbage = '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n';
    assert.equal((await ask('v1beta1', garbage, client)).code, 422);
    const bare = await ask('v1beta1', createSigningRequest(privateKey, NODE), {});
    assert.deepEqual(bare.body.spec.usages, ['digital signature', 'key encipherment']);
    assert.equal(bare.body.spec.signerName, legacy);
    // Objects created in v1beta1 can be changed in v1.
    const path = `${requests}/v1/certificatesigningrequests/${bare.body.metadata.name}`;
    const options = { raw: '{"metadata":{"labels":{"a":"b"}}}', type: 'application/merge-patch+json' };
    assert.equal((await server.call('PATCH', path, options)).code, 200);
  });

  it('fields that are optional in v1beta1 are required in v1', async () => {
    const pem = createSigningRequest(privateKey, NODE);
    const silent = await ask('v1', pem, client);
    assert.match(silent.body.message, /spec\.signerName: Required value/);
    const old = await ask('v1', pem, { ...client, signerName: legacy });
    assert.match(old.body.message, /spec\.signerName: Invalid value: "kubernetes.io\/legacy-unknown": not allowed/);
    assert.match((await ask('v1', pem, { signerName: 'lab.test/own' })).body.message, /spec\.usages: Required value/);
  });

  it('a webhook of v1beta1 has unknown side effects unless its configuration declares them', async () => {
    const path = '/apis/admissionregistration.k8s.io';
    const webhook = (sideEffects?: string) => ({
      name: 'hook.lab.test',
      clientConfig: { url: 'https://127.0.0.1:1/' },
      rules: [],
      admissionReviewVersions: ['v1beta1'],
      ...(sideEffects === undefined ? {} : { sideEffects }),
    });
    const send = (method: string, version: string, name: string, effects?: string, revision?: string) =>
      server.call<Body & { metadata: { resourceVersion: string } }>(
        method,
        `${path}/${version}/validatingwebhookconfigurations${method === 'PUT' ? `/${name}` : ''}`,
        {
          body: {
            metadata: { name, ...(revision === undefined ? {} : { resourceVersion: revision }) },
            webhooks: [webhook(effects)],
          },
        },
      );
    const made = await send('POST', 'v1beta1', 'older');
    assert.equal(made.code, 201, made.text);
    assert.equal(made.body.webhooks[0]?.sideEffects, 'Unknown');
    for (const effects of [undefined, 'Unknown', 'Some']) {
      assert.match((await send('POST', 'v1', 'newer', effects)).body.message, /webhooks\[0\]\.sideEffects: /);
    }
    const kept = await send('PUT', 'v1', 'older', 'Some', made.body.metadata.resourceVersion);
    assert.equal(kept.code, 200, kept.text);
    const mended = await send('PUT', 'v1', 'older', 'None', kept.body.metadata.resourceVersion);
    assert.equal(mended.code, 200, mended.text);
    assert.equal((await send('PUT', 'v1', 'older', 'Some', mended.body.metadata.resourceVersion)).code, 422);
  });
});
