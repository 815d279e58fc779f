/** Who is believed: kube-apiserver's flags and AuthenticationConfiguration. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { authenticationOf } from '../../../src/roles/api-authentication.ts';
import { ApiValues, readApiArguments } from '../../../src/roles/config/apiserver/index.ts';
import { parseAuthentication } from '../../../src/roles/config/authentication.ts';

const HEAD = 'apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n';
const JWT = `${HEAD}jwt:
- issuer: {url: "https://a.example.com", audiences: [x]}
  claimMappings: {username: {claim: sub, prefix: "a:"}, groups: {claim: g, prefix: ""}}
  claimValidationRules: [{claim: hd, requiredValue: lab}]
`;

describe('authentication flags', () => {
  let directory = '';
  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'authn-'));
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    await writeFile(join(directory, 'sa.key'), privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
    await writeFile(join(directory, 'authn.yaml'), JWT);
    await writeFile(
      join(directory, 'hook.kubeconfig'),
      JSON.stringify({
        'current-context': 'c',
        contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
        clusters: [{ name: 'k', cluster: { server: 'https://hook.example.com/authorize' } }],
        users: [{ name: 'u', user: { token: 't' } }],
      }),
    );
  });
  after(() => rm(directory, { recursive: true }));
  const read = (...argv: string[]) => {
    const values = new ApiValues((path) => join(directory, path));
    const always = ['--service-account-signing-key-file=sa.key', '--service-account-issuer=https://i.example.com'];
    readApiArguments([...always, ...argv], values);
    return authenticationOf(values, { referredToBy: 'test', ownHost: false });
  };

  it('prefixes names with the issuer unless they are addresses or told otherwise', async () => {
    const oidc = ['--oidc-issuer-url=https://id.example.com', '--oidc-client-id=me'];
    const prefixOf = async (...more: string[]) => (await read(...oidc, ...more)).tokenIssuers?.[0]?.username.prefix;
    assert.equal(await prefixOf(), 'https://id.example.com#');
    assert.equal(await prefixOf('--oidc-username-claim=email'), '');
    assert.equal(await prefixOf('--oidc-username-prefix=-'), '');
    assert.equal(await prefixOf('--oidc-username-prefix=id:'), 'id:');
    const { tokenIssuers } = await read(...oidc, '--oidc-required-claim=a=1', '--oidc-required-claim=b=2,3');
    assert.deepEqual(
      [...(tokenIssuers?.[0]?.requiredClaims ?? [])],
      [
        ['a', '1'],
        ['b', '2,3'],
      ],
    );
  });

  it('lets strangers in as upstream does, never where everybody may do everything', async () => {
    assert.equal((await read('--authorization-mode=RBAC')).anonymous, 'all');
    assert.equal((await read('--authorization-mode=RBAC', '--anonymous-auth=false')).anonymous, 'none');
    assert.equal((await read()).anonymous, 'none');
  });

  it('refuses what would let in more than was meant', async () => {
    const cases: [string[], RegExp][] = [
      [['--oidc-issuer-url=http://id.example.com', '--oidc-client-id=me'], /--oidc-issuer-url: .* is not an https/],
      [['--oidc-issuer-url=https://id.example.com'], /--oidc-client-id: is missing/],
      [
        ['--oidc-issuer-url=https://i', '--oidc-client-id=me', '--oidc-signing-algs=none'],
        /--oidc-signing-algs: "none"/,
      ],
      [
        ['--oidc-issuer-url=https://i', '--oidc-client-id=me', '--oidc-signing-algs=HS256'],
        /--oidc-signing-algs: "HS256"/,
      ],
      [
        ['--oidc-issuer-url=https://i', '--oidc-client-id=me', '--authentication-config=authn.yaml'],
        /exclude each other/,
      ],
      [['--authorization-mode=Webhook,RBAC'], /--authorization-webhook-config-file: is missing/],
      [['--authorization-mode=RBAC,RBAC'], /given twice/],
      [['--service-account-max-token-expiration=5m'], /shorter than an hour/],
    ];
    for (const [argv, message] of cases) await assert.rejects(read(...argv), message);
  });

  it('reads whom to ask from a kubeconfig, and issuers from a file', async () => {
    const config = await read('--authorization-mode=Webhook', '--authorization-webhook-config-file=hook.kubeconfig');
    const webhook = {
      endpoint: { url: 'https://hook.example.com/authorize', token: 't' },
      version: 'v1',
      allowedMs: 300_000,
      deniedMs: 30_000,
    };
    assert.deepEqual(config.authorizers, [{ type: 'Webhook', webhook }]);
    const [issuer] = (await read('--authentication-config=authn.yaml')).tokenIssuers ?? [];
    assert.equal(issuer?.url, 'https://a.example.com');
    assert.deepEqual(issuer?.username, { claim: 'sub', prefix: 'a:' });
    assert.deepEqual([...(issuer?.requiredClaims ?? [])], [['hd', 'lab']]);
  });

  it('refuses files that say what is not understood, naming the line', () => {
    const parse = (text: string) => () => parseAuthentication(text, 'f.yaml');
    assert.throws(
      parse(JWT.replace('{claim: sub, prefix: "a:"}', '{expression: "claims.sub"}')),
      /f\.yaml:5: .*unknown field/,
    );
    assert.throws(parse(JWT.replace('https://a', 'http://a')), /give an https:\/\/ address/);
    assert.throws(parse(JWT.replace('[x]', '[x, y]')), /audienceMatchPolicy: is missing/);
    assert.throws(parse(JWT.replace('[x]', '[]')), /audiences: is empty/);
    assert.throws(
      parse(
        `${JWT}- issuer: {url: "https://a.example.com", audiences: [x]}\n  claimMappings: {username: {claim: a, prefix: ""}}\n`,
      ),
      /given twice/,
    );
    assert.deepEqual(
      parseAuthentication(`${HEAD}anonymous: {enabled: true, conditions: [{path: /healthz}]}\n`, 'f').anonymous,
      {
        enabled: true,
        paths: ['/healthz'],
      },
    );
  });
});
