import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { createCertificateAuthenticator } from '../../../src/apiserver/authentication/certificates.ts';

/**
 * An authority and a certificate of user bob in group dev with the subject attribute `1.3.6.1.4.1.57683.2=uid-of-bob`,
 * both valid until 2126.
 */
const AUTHORITY = `-----BEGIN CERTIFICATE-----
MIIBcTCCARegAwIBAgIUQZxXAX9mJ3OWwvuM0znDKzb2OL4wCgYIKoZIzj0EAwIw
DTELMAkGA1UEAwwCY2EwIBcNMjYxMTIyMDUxOTI1WhgPMjEyNjEwMjkwNTE5MjVa
MA0xCzAJBgNVBAMMAmNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtflPWJol
aqSWBXDUATqPEAiFWCFq7KqZ7a0m/8yILni9zl9+xjbiDG+bPT2k/9HUE+9QJ3tz
JvrVlKpxM69vuqNTMFEwHQYDVR0OBBYEFHCbZBJP/+mXuwySeLchmtkMH1MRMB8G
A1UdIwQYMBaAFHCbZBJP/+mXuwySeLchmtkMH1MRMA8GA1UdEwEB/wQFMAMBAf8w
CgYIKoZIzj0EAwIDSAAwRQIgfNcMwiTwo6PxX/0MxbeBHC5Bj063QOlZlpSovJgz
5b8CIQClBKepP2s8+gpoE2iA0RVRwOXowlznnn3N8xtDhQzemA==
-----END CERTIFICATE-----
`;
const BOB = `-----BEGIN CERTIFICATE-----
MIIBQTCB5wIUC98tfVZXkIvyRJq4LVjaxRBGKbwwCgYIKoZIzj0EAwIwDTELMAkG
A1UEAwwCY2EwIBcNMjYxMTIyMDUxOTQyWhgPMjEyNjEwMjkwNTE5NDJaMDcxDDAK
BgNVBAoMA2RldjEMMAoGA1UEAwwDYm9iMRkwFwYJKwYBBAGDwlMCDAp1aWQtb2Yt
Ym9iMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAErNeM2DAIjsSQJ8/z5izqCRoO
y3c6UwdHPIT4EuOZ3JxbruI5z3raHGA2UI9KVOi8xAVMZPrqKpfb9byZHG8+izAK
BggqhkjOPQQDAgNJADBGAiEAujpfIPVP3D7YmwbVs/aB6p4h8utvDXVfC9uMFd9d
qYoCIQCBa3YT/lqmMfqpvH7NHRCx6z6Zn21niQdxD8fkN2/POw==
-----END CERTIFICATE-----
`;

test('a certificate contains user, groups and UID, and identifies the credential', () => {
  const { raw } = new X509Certificate(BOB);
  const authenticator = createCertificateAuthenticator(AUTHORITY);
  assert.deepEqual(
    authenticator.authenticate(
      { peerChain: [raw], peerRefused: false, remoteAddress: '192.0.2.1' },
      Date.parse('2030-01-01'),
    ),
    {
      name: 'bob',
      uid: 'uid-of-bob',
      groups: ['dev', 'system:authenticated'],
      extra: {
        'authentication.kubernetes.io/credential-id': [`X509SHA256=${createHash('sha256').update(raw).digest('hex')}`],
      },
    },
  );
});
