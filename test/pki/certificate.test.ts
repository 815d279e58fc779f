import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { createAuthority, issue, lifetimeFrom } from '../../src/pki/index.ts';
import { bytesToIp, ipToBytes } from '../../src/pki/subject-names.ts';

const run = promisify(execFile);
const NOW = Date.UTC(2026, 10, 20);

test('a leaf certificate has the requested subject, names and usages, and a valid chain to its CA', async () => {
  const ca = await createAuthority('openshift-signer', lifetimeFrom(NOW, 3650));
  const leaf = await issue(ca, {
    subject: { commonName: 'system:node:n1', organizations: ['system:nodes', 'lab'] },
    usages: ['server', 'client'],
    names: { dns: ['n1', 'n1.lab'], ips: ['10.0.0.7', 'fd00::1', '::ffff:1.2.3.4'] },
    validity: lifetimeFrom(NOW, 730),
  });
  const certificate = new X509Certificate(leaf.certPem);
  assert.equal(certificate.subject, 'O=system:nodes\nO=lab\nCN=system:node:n1');
  assert.equal(certificate.ca, false);
  assert.equal(certificate.checkHost('n1.lab'), 'n1.lab');
  for (const ip of ['10.0.0.7', 'fd00::1', '::ffff:1.2.3.4']) assert.equal(certificate.checkIP(ip), ip);
  assert.equal(certificate.checkIP('10.0.0.8'), undefined);
  assert.deepEqual(certificate.keyUsage?.toSorted(), ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
  assert.ok(certificate.checkIssued(ca.certificate) && certificate.verify(ca.certificate.publicKey));
  assert.ok(certificate.checkPrivateKey(createPrivateKey(leaf.keyPem)));
  assert.ok(ca.certificate.ca && ca.certificate.verify(ca.certificate.publicKey));
});

test('openssl verifies the chain of an issued certificate', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'pki-'));
  try {
    const ca = await createAuthority('etcd-signer', lifetimeFrom(NOW, 3650));
    const leaf = await issue(ca, {
      subject: { commonName: 'h1' },
      usages: ['server'],
      names: { dns: ['h1'], ips: [] },
      validity: lifetimeFrom(NOW, 730),
    });
    await writeFile(join(directory, 'ca.crt'), ca.certPem);
    await writeFile(join(directory, 'leaf.crt'), leaf.certPem);
    const args = [
      'verify',
      '-x509_strict',
      '-purpose',
      'sslserver',
      '-verify_hostname',
      'h1',
      '-CAfile',
      'ca.crt',
      'leaf.crt',
    ];
    const { stdout } = await run('openssl', args, { cwd: directory });
    assert.match(stdout, /leaf\.crt: OK/);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test('issued server and client certificates complete a mutual TLS handshake', async () => {
  const ca = await createAuthority('openshift-signer', lifetimeFrom(Date.now(), 3650));
  const validity = lifetimeFrom(Date.now(), 730);
  const server = await issue(ca, {
    subject: { commonName: 's' },
    usages: ['server'],
    names: { dns: [], ips: ['127.0.0.1'] },
    validity,
  });
  const client = await issue(ca, {
    subject: { commonName: 'system:admin', organizations: ['system:masters'] },
    usages: ['client'],
    validity,
  });
  let seen: string | undefined;
  const listener = createServer(
    { cert: server.certPem, key: server.keyPem, ca: ca.certPem, requestCert: true, rejectUnauthorized: true },
    (socket: TLSSocket) => {
      seen = socket.getPeerX509Certificate()?.subject;
      socket.end();
    },
  ).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  try {
    const socket = connect({
      port: (listener.address() as AddressInfo).port,
      host: '127.0.0.1',
      ca: ca.certPem,
      cert: client.certPem,
      key: client.keyPem,
    });
    await once(socket.resume(), 'close');
    assert.equal(seen, 'O=system:masters\nCN=system:admin');
  } finally {
    listener.close();
  }
});

test('issues certificates with an imported RSA CA key, and renews the CA with the same key', async () => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const old = await createAuthority('site-ca', lifetimeFrom(NOW, 10), privateKey);
  const leaf = await issue(old, { subject: { commonName: 'x' }, usages: ['client'], validity: lifetimeFrom(NOW, 5) });
  const renewed = await createAuthority('site-ca', lifetimeFrom(NOW, 3650), privateKey);
  const certificate = new X509Certificate(leaf.certPem);
  assert.ok(certificate.checkIssued(renewed.certificate) && certificate.verify(renewed.certificate.publicKey));
});

test('certificates issued while the clock is years behind are valid at the correct time', () => {
  const epoch = lifetimeFrom(0, 730);
  assert.ok(epoch.notBeforeMs < 0 && epoch.notAfterMs > Date.UTC(2027, 11, 1));
  const today = lifetimeFrom(NOW, 730);
  assert.ok(today.notBeforeMs <= 0, 'a clock may start in 1970');
});

test('a leaf certificate never outlives its CA', async () => {
  const ca = await createAuthority('short', lifetimeFrom(NOW, 1));
  const leaf = await issue(ca, { subject: { commonName: 'x' }, usages: ['client'], validity: lifetimeFrom(NOW, 730) });
  assert.equal(new X509Certificate(leaf.certPem).validTo, ca.certificate.validTo);
});

test('converts IP addresses to bytes and back', () => {
  for (const ip of [
    '0.0.0.0',
    '255.1.2.3',
    '::',
    '::1',
    'fd00::',
    '2001:db8::1:0:0:1',
    'fe80::1',
    '1:2:3:4:5:6:7:8',
    '1::',
  ]) {
    assert.equal(bytesToIp(ipToBytes(ip)), ip);
  }
  assert.equal(ipToBytes('::ffff:10.0.0.1').toString('hex'), `${'00'.repeat(10)}ffff0a000001`);
  assert.throws(() => ipToBytes('10.0.0'), { code: 'bad-address' });
  assert.throws(() => bytesToIp(Buffer.alloc(5)), { code: 'bad-address' });
});
