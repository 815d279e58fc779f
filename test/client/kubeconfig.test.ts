import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parse } from 'yaml';
import { parseKubeconfig } from '../../src/client/index.ts';

const pem = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';
const base64 = Buffer.from(pem).toString('base64');

const config = `
apiVersion: v1
kind: Config
current-context: admin
clusters:
- name: local
  cluster:
    server: https://127.0.0.1:8443
    certificate-authority-data: ${base64}
    certificate-authority: ignored.crt
    tls-server-name: kubernetes
- name: remote
  cluster: { server: 'https://example.test/prefix', insecure-skip-tls-verify: true }
contexts:
- name: admin
  context: { cluster: local, user: admin, namespace: shop }
- name: token
  context: { cluster: remote, user: token }
- name: nobody
  context: { cluster: remote, user: '' }
- name: broken
  context: { cluster: missing, user: admin }
users:
- name: admin
  user: { client-certificate: admin.crt, client-key: /etc/admin.key }
- name: token
  user: { token: abc, tokenFile: /run/token }
- name: half
  user: { client-certificate: a.crt }
- name: exec
  user: { exec: { command: aws } }
`;

describe('kubeconfig', () => {
  it('uses the current context and prefers inline data to files', () => {
    assert.deepEqual(parseKubeconfig(parse(config)), {
      contextName: 'admin',
      server: 'https://127.0.0.1:8443',
      tlsServerName: 'kubernetes',
      ca: { data: pem },
      cert: { file: 'admin.crt' },
      key: { file: '/etc/admin.key' },
      namespace: 'shop',
    });
  });

  it('a kubeconfig can be read with a context other than the current context', () => {
    assert.deepEqual(parseKubeconfig(parse(config), { context: 'token' }), {
      contextName: 'token',
      server: 'https://example.test/prefix',
      insecureSkipTlsVerify: true,
      token: 'abc',
      tokenFile: '/run/token',
    });
    assert.equal(parseKubeconfig(parse(config), { context: 'nobody' }).token, undefined);
  });

  const refused: readonly (readonly [string, unknown, RegExp])[] = [
    ['a kubeconfig that is not a mapping', [], /kubeconfig must be a mapping/],
    ['a document of another kind', { kind: 'Pod' }, /kind must be Config/],
    ['a missing current-context', { kind: 'Config' }, /current-context is empty/],
    ['an unknown context', { 'current-context': 'x' }, /contexts has no entry named "x"/],
    [
      'a context with the name __proto__',
      { 'current-context': '__proto__' },
      /contexts has no entry named "__proto__"/,
    ],
    [
      'an unknown cluster',
      parse(config.replace('current-context: admin', 'current-context: broken')),
      /clusters has no entry named "missing"/,
    ],
    [
      'a client certificate without a key',
      parse(config.replace('user: admin, namespace', 'user: half, namespace')),
      /users\[half\]\.client-key is missing/,
    ],
    [
      'an exec plug-in',
      parse(config.replace('user: admin, namespace', 'user: exec, namespace')),
      /users\[exec\]\.exec is not supported/,
    ],
    [
      'authority data that is not PEM',
      parse(config.replace(base64, 'AAAA')),
      /certificate-authority-data is not base64 of PEM/,
    ],
    [
      'an invalid server URL',
      parse(config.replace('https://127.0.0.1:8443', 'nowhere')),
      /clusters\[local\]\.server is not a URL/,
    ],
    ['contexts that are not a list', { 'current-context': 'x', contexts: {} }, /contexts must be a list/],
  ];
  for (const [what, document, message] of refused) {
    it(`rejects ${what} and names the field`, () => {
      assert.throws(() => parseKubeconfig(document), message);
    });
  }
});
