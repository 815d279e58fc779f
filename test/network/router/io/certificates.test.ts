import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { createCertificateVerifier, SecureContexts } from '../../../../src/network/router/io/certificates.ts';

function selfSigned(...key: string[]): { readonly certificate: string; readonly key: string } {
  const args = [
    'req',
    '-x509',
    '-newkey',
    ...key,
    '-nodes',
    '-subj',
    '/CN=x',
    '-days',
    '9',
    '-keyout',
    '-',
    '-out',
    '-',
  ];
  const text = execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const block = (label: string): string =>
    new RegExp(`-----BEGIN ${label}-----[^-]*-----END ${label}-----\n`).exec(text)?.[0] ?? '';
  return { certificate: block('CERTIFICATE'), key: block('PRIVATE KEY') };
}

test('rejects RSA keys of routes that are so large that signatures would block the event loop', () => {
  const verify = createCertificateVerifier();
  const contexts = new SecureContexts();
  const usual = selfSigned('rsa:2048');
  assert.equal(verify(usual), undefined);
  assert.ok(contexts.of(usual) !== undefined);
  const elliptic = selfSigned('ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1');
  assert.equal(verify(elliptic), undefined);
  assert.ok(contexts.of(elliptic) !== undefined);
  const large = selfSigned('rsa:4224');
  assert.match(verify(large) ?? '', /^spec\.tls\.key: .*a key of 4224 bits; use at most 4096$/);
  assert.equal(contexts.of(large), undefined);
});
