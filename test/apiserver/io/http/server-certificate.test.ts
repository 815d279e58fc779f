/** Certificates that OpenSSL and Go judge differently, such as those of operators' webhooks. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import forge from 'node-forge';
import { createHttp } from '../../../../src/apiserver/io/http/index.ts';
import type { BackendRequest } from '../../../../src/apiserver/port.ts';

const HOST = 'hooks.test.svc';
const { backends } = createHttp();

interface Pair {
  readonly key: string;
  readonly certificate: string;
}

interface Shape {
  readonly name?: string;
  readonly issuer?: string;
  readonly signer?: string;
  readonly isAuthority?: boolean;
  readonly usage?: 'serverAuth' | 'clientAuth';
  readonly endsMs?: number;
}

const attributes = (name: string | undefined): forge.pki.CertificateField[] =>
  name === undefined ? [] : [{ name: 'commonName', value: name }];

/** Creates a certificate, without names by default. */
function made({ name, issuer, signer, isAuthority = false, usage, endsMs = Date.now() + 3_600_000 }: Shape): Pair {
  const options = { privateKeyEncoding: { type: 'pkcs1', format: 'pem' } } as const;
  const { privateKey: key } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    ...options,
  });
  const certificate = forge.pki.createCertificate();
  const own = forge.pki.privateKeyFromPem(key);
  certificate.publicKey = forge.pki.setRsaPublicKey(own.n, own.e);
  certificate.validity.notBefore = new Date(endsMs - 7_200_000);
  certificate.validity.notAfter = new Date(endsMs);
  certificate.setSubject(attributes(name));
  certificate.setIssuer(attributes(issuer));
  certificate.setExtensions([
    ...(isAuthority ? [{ name: 'basicConstraints', cA: true }] : []),
    ...(usage === undefined ? [] : [{ name: 'extKeyUsage', [usage]: true }]),
    ...(isAuthority ? [] : [{ name: 'subjectAltName', altNames: [{ type: 2, value: HOST }] }]),
  ]);
  certificate.sign(forge.pki.privateKeyFromPem(signer ?? key), forge.md.sha256.create());
  return { key, certificate: forge.pki.certificateToPem(certificate) };
}

let server: Server;
let authority: Pair;

before(async () => {
  authority = made({ isAuthority: true, issuer: 'Somebody' });
  server = createServer((_, response) => response.end('answer'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
after(() => {
  server.closeAllConnections();
  server.close();
});

/** Response of a server with the certificate `shown` to a client that trusts `trusted`. */
async function answer(shown: Pair, trusted: string, serverName = HOST): Promise<string> {
  server.setSecureContext({ cert: shown.certificate, key: shown.key });
  const request: BackendRequest = {
    network: 'cluster',
    scheme: 'https',
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    method: 'POST',
    path: '/',
    headers: {},
    tls: { authority: trusted, serverName },
    allowAddress: () => true,
    connectTimeoutMs: 5_000,
    signal: new AbortController().signal,
  };
  return text(await backends.request(request, Buffer.from('body')));
}

const UNKNOWN = {
  code: 'connect-failed',
  message: /: tls: failed to verify certificate: x509: certificate signed by unknown authority$/,
};

test('accepts a server certificate without subject names that a trusted key has signed', async () => {
  const leaf = made({ signer: authority.key });
  assert.equal(await answer(leaf, authority.certificate), 'answer');
  assert.equal(await answer(made({ signer: authority.key, usage: 'serverAuth' }), authority.certificate), 'answer');
  const other = made({ isAuthority: true, issuer: 'Somebody' });
  assert.equal(await answer(leaf, `${other.certificate}${authority.certificate}`), 'answer');
  await assert.rejects(answer(leaf, other.certificate), UNKNOWN, 'another authority without a name');
});

test('rejects untrusted, expired and misused server certificates without subject names', async () => {
  const trusted = authority.certificate;
  await assert.rejects(answer(made({}), trusted), UNKNOWN, 'it signed itself');
  await assert.rejects(answer(made({ signer: authority.key }), trusted, 'other.test'), UNKNOWN, 'for somebody else');
  await assert.rejects(answer(made({ signer: authority.key, endsMs: Date.now() - 60_000 }), trusted), {
    code: 'connect-failed',
  });
  await assert.rejects(answer(made({ signer: authority.key, usage: 'clientAuth' }), trusted), {
    code: 'connect-failed',
  });
  const leaf = made({ signer: authority.key });
  const signedByLeaf = made({ signer: leaf.key });
  await assert.rejects(answer(signedByLeaf, leaf.certificate), UNKNOWN, 'signed by what is no authority');
});

test('accepts a server certificate that is in the bundle, even if another CA has signed the certificate', async () => {
  const root = made({ name: 'root', issuer: 'root', isAuthority: true });
  const between = made({ name: 'between', issuer: 'root', signer: root.key, isAuthority: true });
  const leaf = made({ name: 'leaf', issuer: 'between', signer: between.key });
  assert.equal(await answer(leaf, between.certificate), 'answer');
  await assert.rejects(answer(leaf, root.certificate), UNKNOWN, 'the one between is not shown');
});
