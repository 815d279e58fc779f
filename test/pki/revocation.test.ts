import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import {
  createAuthority,
  createSelfSigned,
  isRevoked,
  issue,
  lifetimeFrom,
  parseRevocationList,
} from '../../src/pki/index.ts';

const run = promisify(execFile);
const NOW = Date.now();

test('reads serial numbers from certificate revocation lists of openssl in PEM and DER, and rejects invalid lists', async () => {
  const cwd = await mkdtemp(join(tmpdir(), 'crl-'));
  const openssl = (...args: string[]): Promise<unknown> => run('openssl', args, { cwd });
  try {
    const ca = await createAuthority('ca', lifetimeFrom(NOW, 10));
    const [kept, revoked] = await Promise.all(
      ['kept', 'revoked'].map(async (commonName) => {
        const { certPem } = await issue(ca, {
          subject: { commonName },
          usages: ['client'],
          validity: lifetimeFrom(NOW, 5),
        });
        await writeFile(join(cwd, `${commonName}.crt`), certPem);
        return new X509Certificate(certPem);
      }),
    );
    assert.ok(kept !== undefined && revoked !== undefined);
    await writeFile(join(cwd, 'ca.crt'), ca.certPem);
    await writeFile(join(cwd, 'ca.key'), ca.keyPem);
    await writeFile(join(cwd, 'index.txt'), '');
    await writeFile(join(cwd, 'crlnumber'), '01\n');
    await writeFile(
      join(cwd, 'conf'),
      '[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ndefault_md=sha256\ndefault_crl_days=2\ncrlnumber=crlnumber\n[v2]\nauthorityKeyIdentifier=keyid\n',
    );
    const by = ['-config', 'conf', '-cert', 'ca.crt', '-keyfile', 'ca.key'];
    await openssl('ca', ...by, '-gencrl', '-out', 'empty.pem');
    assert.equal(parseRevocationList(await readFile(join(cwd, 'empty.pem'))).size, 0);
    await openssl('ca', ...by, '-revoke', 'revoked.crt', '-crl_reason', 'keyCompromise');
    await openssl('ca', ...by, '-gencrl', '-crlexts', 'v2', '-out', 'crl.pem');
    await openssl('crl', '-in', 'crl.pem', '-outform', 'DER', '-out', 'crl.der');
    const der = await readFile(join(cwd, 'crl.der'));
    for (const bytes of [der, await readFile(join(cwd, 'crl.pem'))]) {
      const serials = parseRevocationList(bytes);
      assert.deepEqual([...serials], [BigInt(`0x${revoked.serialNumber}`)]);
      assert.deepEqual([isRevoked(revoked, serials), isRevoked(kept, serials)], [true, false]);
    }
    for (let length = 0; length < der.length; length += 7) {
      assert.throws(() => parseRevocationList(der.subarray(0, length)), { code: 'bad-der' }, `${length} bytes of it`);
    }
    for (const text of ['', 'x', ca.certPem, '-----BEGIN X509 CRL-----\n!\n-----END X509 CRL-----']) {
      assert.throws(() => parseRevocationList(Buffer.from(text)), { code: 'bad-der' });
    }
  } finally {
    await rm(cwd, { recursive: true });
  }
});

test('creates a self-signed certificate for the given names', async () => {
  const { certPem, keyPem } = await createSelfSigned(
    'me',
    { dns: ['localhost'], ips: ['::1'] },
    lifetimeFrom(NOW, 365),
  );
  const certificate = new X509Certificate(certPem);
  assert.ok(certificate.verify(certificate.publicKey));
  assert.deepEqual(
    [certificate.ca, certificate.checkHost('localhost'), certificate.checkIP('::1')],
    [false, 'localhost', '::1'],
  );
  assert.match(keyPem, /^-----BEGIN PRIVATE KEY-----/);
});
