import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { der, parseDer, toDer } from '../../src/pki/der.ts';
import {
  createAuthority,
  createCertificateSigner,
  createSigningRequest,
  generateKey,
  lifetimeFrom,
  parseSigningRequest,
} from '../../src/pki/index.ts';

const run = promisify(execFile);
const NOW = Date.UTC(2026, 10, 20);
const order = (requestPem: string, usages = ['digital signature', 'client auth']) => ({
  signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
  requestPem,
  usages,
  notBeforeMs: NOW - 300_000,
  notAfterMs: NOW + 3_600_000,
});
const pem = (bytes: Uint8Array): string =>
  `-----BEGIN CERTIFICATE REQUEST-----\n${Buffer.from(bytes).toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`;
const bytesOf = (text: string): Buffer => Buffer.from(text.replaceAll(/-----[^-]+-----|\s/g, ''), 'base64');

let directory = '';
before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'csr-'));
});
after(() => rm(directory, { recursive: true }));

/** A request created by openssl. */
async function openssl(key: string[], extra: string[] = []): Promise<string> {
  const args = ['req', '-new', '-nodes', '-newkey', ...key, '-keyout', 'k.pem', '-out', 'r.pem', ...extra];
  await run('openssl', args, { cwd: directory });
  return readFile(join(directory, 'r.pem'), 'utf8');
}

test('parses and signs certificate requests of openssl with EC and RSA keys', async () => {
  const signer = createCertificateSigner(await createAuthority('openshift-signer', lifetimeFrom(NOW, 3650)));
  for (const key of [
    ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
    ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384'],
    ['rsa:2048'],
    ['ed25519'],
  ]) {
    const request = await openssl(key, [
      '-subj',
      '/O=system:nodes/CN=system:node:n1',
      '-addext',
      'subjectAltName=DNS:n1,IP:10.0.0.7,IP:fd00::1,email:a@b.c,URI:spiffe://x/y',
    ]);
    const facts = signer.inspect(request);
    assert.equal(facts.commonName, 'system:node:n1');
    assert.deepEqual(facts.organizations, ['system:nodes']);
    assert.deepEqual(facts.dnsNames, ['n1']);
    assert.deepEqual(facts.ipAddresses, ['10.0.0.7', 'fd00::1']);
    assert.deepEqual(facts.emailAddresses, ['a@b.c']);
    assert.deepEqual(facts.uris, ['spiffe://x/y']);
    assert.ok(facts.signatureValid && !facts.requestsCa);
    const certificate = new X509Certificate(await signer.sign(order(request)));
    assert.equal(certificate.subject, 'O=system:nodes\nCN=system:node:n1');
    assert.equal(certificate.ca, false);
    assert.equal(
      certificate.subjectAltName,
      'DNS:n1, email:a@b.c, IP Address:10.0.0.7, IP Address:FD00:0:0:0:0:0:0:1, URI:spiffe://x/y',
    );
    assert.equal(certificate.validToDate.getTime(), NOW + 3_600_000);
  }
});

test('creates certificate requests that openssl and the own parser accept', async () => {
  const request = createSigningRequest(
    await generateKey(),
    { commonName: 'system:node:n2', organizations: ['system:nodes'] },
    { dns: ['n2'], ips: ['10.0.0.9'] },
  );
  await writeFile(join(directory, 'own.pem'), request);
  const { stdout, stderr } = await run('openssl', ['req', '-verify', '-noout', '-text', '-in', 'own.pem'], {
    cwd: directory,
  });
  assert.match(stdout + stderr, /verify OK/);
  assert.match(stdout, /DNS:n2, IP Address:10\.0\.0\.9/);
  assert.equal(parseSigningRequest(request).signatureValid, true);
});

test('detects a certificate request with CA:TRUE and never signs it', async () => {
  const signer = createCertificateSigner(await createAuthority('s', lifetimeFrom(NOW, 3650)));
  const request = await openssl(
    ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'],
    ['-subj', '/CN=evil', '-addext', 'basicConstraints=critical,CA:TRUE'],
  );
  assert.equal(signer.inspect(request).requestsCa, true);
  await assert.rejects(signer.sign(order(request)), { code: 'invalid-request' });
});

test('rejects certificate requests with huge, small or unsupported keys without verifying them', async () => {
  const signer = createCertificateSigner(await createAuthority('s', lifetimeFrom(NOW, 3650)));
  const own = bytesOf(createSigningRequest(await generateKey(), { commonName: 'x' }));
  // The same request with a 16,384-bit modulus in place of its key.
  const giant = withKey(own, rsaSpki(16_384));
  const began = performance.now();
  const facts = signer.inspect(pem(giant));
  assert.ok(performance.now() - began < 2000);
  assert.equal(facts.keyType, 'rsa');
  assert.equal(facts.signatureValid, false);
  await assert.rejects(signer.sign(order(pem(giant))), { code: 'invalid-request', message: /16384 bits/ });
  const tiny = await openssl(['rsa:1024'], ['-subj', '/CN=x']);
  await assert.rejects(signer.sign(order(tiny)), { code: 'invalid-request', message: /1024 bits/ });
  const dsaLike = generateKeyPairSync('x25519').publicKey.export({ type: 'spki', format: 'der' });
  await assert.rejects(signer.sign(order(pem(withKey(own, dsaLike)))), { code: 'invalid-request' });
});

test('rejects a certificate request whose signature does not match its key or content', async () => {
  const signer = createCertificateSigner(await createAuthority('s', lifetimeFrom(NOW, 3650)));
  const own = bytesOf(createSigningRequest(await generateKey(), { commonName: 'system:node:a' }));
  const forged = Buffer.from(own);
  forged.write('system:node:b', forged.indexOf('system:node:a'), 'latin1');
  assert.equal(signer.inspect(pem(forged)).signatureValid, false);
  await assert.rejects(signer.sign(order(pem(forged))), { code: 'invalid-request', message: /signature/ });
});

test('rejects certificate requests with unsupported usages', async () => {
  const signer = createCertificateSigner(await createAuthority('s', lifetimeFrom(NOW, 3650)));
  const request = createSigningRequest(await generateKey(), { commonName: 'x' });
  await assert.rejects(signer.sign(order(request, ['cert sign'])), { code: 'invalid-request' });
});

test('rejects random bytes as a certificate request, with limited work and without a crash', async () => {
  const good = bytesOf(
    createSigningRequest(
      await generateKey(),
      { commonName: 'x', organizations: ['y'] },
      { dns: ['d'], ips: ['1.2.3.4'] },
    ),
  );
  for (const text of [
    '',
    'x',
    '-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----',
    pem(Buffer.alloc(0)),
    pem(Buffer.alloc(70_000, 0x30)),
    'A'.repeat(100_000),
  ]) {
    assert.throws(() => parseSigningRequest(text), { code: 'invalid-request' });
  }
  // The structure is nested 200 levels deep.
  let deep: Uint8Array = Buffer.from([0x30, 0x00]);
  for (let depth = 0; depth < 200; depth++) deep = toDer(der.sequence([{ ...parseShallow(deep) }]));
  assert.throws(() => parseSigningRequest(pem(deep)), { code: 'invalid-request', message: /deeper/ });
  // Every single damaged byte is either accepted or fails with the documented error code.
  for (let index = 0; index < good.length; index++) {
    for (const value of [0x00, 0xff, (good[index] ?? 0) ^ 0x01]) {
      const damaged = Buffer.from(good);
      damaged[index] = value;
      try {
        parseSigningRequest(pem(damaged));
      } catch (error) {
        assert.equal((error as { code?: string }).code, 'invalid-request', `byte ${index}: ${String(error)}`);
      }
    }
  }
  for (let length = 0; length < good.length; length += 7) {
    assert.throws(() => parseSigningRequest(pem(good.subarray(0, length))), { code: 'invalid-request' });
  }
});

/** Wraps bytes as an opaque constructed element without recursing into them. */
function parseShallow(bytes: Uint8Array): ReturnType<typeof der.sequence> {
  const inner = Buffer.from(bytes);
  const element = der.octets(inner.subarray(inner.length > 129 ? (inner[1] === 0x81 ? 3 : 4) : 2));
  return { ...element, type: 16 as never, constructed: false, tagClass: 0x20 as never };
}

function rsaSpki(bits: number): Buffer {
  const modulus = Buffer.alloc(bits / 8, 0xab);
  const rsa = der.sequence([der.integer(modulus), der.integer(Buffer.from([1, 0, 1]))]);
  return toDer(der.sequence([der.sequence([der.oid('1.2.840.113549.1.1.1'), der.null()]), der.bits(toDer(rsa))]));
}

function withKey(request: Buffer, spki: Buffer): Buffer {
  const outer = parseDer(request);
  const info = (outer.value as unknown as { value: unknown[] }[])[0];
  assert.ok(info !== undefined);
  info.value[2] = parseDer(spki);
  return toDer(outer);
}
