/** First contact with valid and invalid servers over real TLS. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { after, test } from 'node:test';
import { CompactSign } from 'jose';
import { caHashOf, discover, discoverPinned } from '../../../src/host/join/discovery.ts';
import { parseToken } from '../../../src/host/join/token-format.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/index.ts';
import { slack } from '../../support/slack.ts';

const token = parseToken('abcdef.0123456789abcdef', 'token');
const servers: Server[] = [];
after(() => {
  for (const server of servers) server.close();
});

const authority = await createAuthority('openshift-signer', lifetimeFrom(Date.now(), 10));
const other = await createAuthority('other', lifetimeFrom(Date.now(), 10));
const hash = caHashOf(authority.certificate);

async function sign(content: string, secret: string): Promise<string> {
  const text = new TextEncoder();
  const jws = await new CompactSign(text.encode(content))
    .setProtectedHeader({ alg: 'HS256', kid: token.id })
    .sign(text.encode(secret));
  const [header, , signature] = jws.split('.');
  return `${header}..${signature}`;
}

function kubeconfig(caPem: string): string {
  const cluster = { server: 'https://x:8443', 'certificate-authority-data': Buffer.from(caPem).toString('base64') };
  return JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters: [{ name: '', cluster }] });
}

async function serve(status: number, body: string): Promise<string> {
  const pair = await issue(other, {
    subject: { commonName: 'x' },
    usages: ['server'],
    validity: lifetimeFrom(Date.now(), 1),
  });
  const server = createServer({ cert: pair.certPem, key: pair.keyPem }, (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const answer = async (content: string, data: Record<string, string> = {}): Promise<string> =>
  serve(200, JSON.stringify({ kind: 'ConfigMap', data: { kubeconfig: content, ...data } }));

test('trusts the CA if token and hash match, independent of the certificate of the connection', async () => {
  const content = kubeconfig(authority.certPem);
  const url = await answer(content, { 'jws-kubeconfig-abcdef': await sign(content, token.stored) });
  const { caPem, serverMs } = await discover(url, token, hash);
  assert.equal(caPem, authority.certPem);
  assert.ok(Math.abs((serverMs ?? 0) - Date.now()) < 5_000);
});

test('rejects an unknown token, a wrong secret and a forged kubeconfig', async () => {
  const content = kubeconfig(authority.certPem);
  const forged = kubeconfig(other.certPem);
  await assert.rejects(discover(await answer(content), token, hash), {
    message: /^join\.token: the cluster has no token abcdef; it has expired or was revoked: /,
  });
  const signature = await sign(content, 'fedcba9876543210');
  await assert.rejects(discover(await answer(content, { 'jws-kubeconfig-abcdef': signature }), token, hash), {
    message: /^join\.token: the secret of token abcdef is wrong, /,
  });
  const own = await sign(content, token.stored);
  await assert.rejects(discover(await answer(forged, { 'jws-kubeconfig-abcdef': own }), token, hash), {
    message: /^join\.token: /,
  });
});

test('rejects a CA with another hash, even if the token signs it', async () => {
  const content = kubeconfig(other.certPem);
  const url = await answer(content, { 'jws-kubeconfig-abcdef': await sign(content, token.stored) });
  await assert.rejects(discover(url, token, hash), {
    message: new RegExp(`^join\\.caHash: the CA of ${url} has ${caHashOf(other.certificate)}, not ${hash}; `),
  });
});

test('reports servers that do not answer or are not a cluster', async () => {
  await assert.rejects(discover(await serve(403, '{}'), token, hash), {
    code: 'not-a-cluster',
    message: /^join\.server: .* is not an API server that can be joined: status 403/,
  });
  await assert.rejects(discover(await serve(200, '<html>'), token, hash), { code: 'not-a-cluster' });
  await assert.rejects(discover(await serve(200, '{"data":{"kubeconfig":7}}'), token, hash), { code: 'not-a-cluster' });
  await assert.rejects(discover(await serve(503, '{}'), token, hash), { code: 'unreachable' });
  await assert.rejects(discover('https://127.0.0.1:1', token, hash), {
    message:
      /^join\.server: https:\/\/127\.0\.0\.1:1 does not answer: connect ECONNREFUSED .*check address, cable, firewall$/,
  });
});

test('a host that offers itself trusts only the pinned certificate of a bundle', async () => {
  const bundle = `${other.certPem}\n${authority.certPem}`;
  const { caPem } = await discoverPinned(await answer(kubeconfig(bundle)), hash);
  assert.equal(caPem.trim(), authority.certPem.trim());
  const wrong = `sha256:${'0'.repeat(64)}`;
  await assert.rejects(discoverPinned(await answer(kubeconfig(bundle)), wrong), {
    code: 'bad-ca-hash',
    message: /^offer\.caHash: https:.* has no CA with sha256:0+; compare/,
  });
  await assert.rejects(discoverPinned(await answer('{"clusters":'), hash), { code: 'bad-ca-hash' });
  await assert.rejects(discoverPinned(await answer('[]'), hash), { code: 'bad-ca-hash' });
});

test('rejects a bundle with expensive parsing immediately, signed or pinned', async () => {
  const bomb = '-----BEGIN CERTIFICATE-----'.repeat(25_000);
  const content = kubeconfig(bomb);
  const url = await answer(content, { 'jws-kubeconfig-abcdef': await sign(content, token.stored) });
  const began = performance.now();
  await assert.rejects(discover(url, token, hash), { code: 'not-a-cluster' });
  await assert.rejects(discoverPinned(url, hash), { code: 'bad-ca-hash' });
  assert.ok(performance.now() - began < 3_000 * slack(), `${performance.now() - began} ms`);
});
