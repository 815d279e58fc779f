import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { parseAuthentication } from '../../../src/apiserver/config/authentication.ts';
import { ApiValues, readApiArguments } from '../../../src/apiserver/config/index.ts';
import { silentLog } from '../../../src/base/log.ts';
import { authenticationOf, followIdentities } from '../../../src/host/apiserver/authentication.ts';

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
      { mode: 0o600 },
    );
  });
  after(() => rm(directory, { recursive: true }));
  const read = (...argv: string[]) => {
    const values = new ApiValues((path) => join(directory, path));
    const always = ['--service-account-signing-key-file=sa.key', '--service-account-issuer=https://i.example.com'];
    readApiArguments([...always, ...argv], values);
    return authenticationOf(values, { referredToBy: 'test', ownHost: false });
  };

  it('uses the configured JWKS URL, or derives the URL from the external hostname', async () => {
    const uri = async (...argv: string[]) => (await read(...argv)).serviceAccounts.jwksUri;
    assert.equal(await uri(), undefined);
    assert.equal(await uri('--external-hostname=api.example.com'), 'https://api.example.com:6443/openid/v1/jwks');
    assert.equal(await uri('--external-hostname=api.example.com:443'), 'https://api.example.com:443/openid/v1/jwks');
    const given = '--service-account-jwks-uri=https://keys.example.com/jwks';
    assert.equal(await uri('--external-hostname=api.example.com', given), 'https://keys.example.com/jwks');
  });

  it('prefixes user names with the issuer, except for e-mail addresses and given prefixes', async () => {
    const oidc = ['--oidc-issuer-url=https://id.example.com', '--oidc-client-id=me'];
    const prefixOf = async (...more: string[]) => {
      const username = (await read(...oidc, ...more)).tokenIssuers?.[0]?.username;
      return username !== undefined && 'claim' in username ? username.prefix : undefined;
    };
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

  it('allows anonymous requests as upstream does, except with AlwaysAllow', async () => {
    assert.equal((await read('--authorization-mode=RBAC')).anonymous, 'all');
    assert.equal((await read('--authorization-mode=RBAC', '--anonymous-auth=false')).anonymous, 'none');
    assert.equal((await read()).anonymous, 'none');
  });

  it('rejects settings that would authenticate more clients than intended', async () => {
    const cases: [string[], RegExp][] = [
      [['--oidc-issuer-url=http://id.example.com', '--oidc-client-id=me'], /--oidc-issuer-url: .* is not an https/],
      [['--oidc-issuer-url=https://id.example.com'], /--oidc-client-id: is required/],
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
      [['--authorization-mode=Webhook,RBAC'], /--authorization-webhook-config-file: is required/],
      [['--authorization-mode=RBAC,RBAC'], /given twice/],
      [['--service-account-max-token-expiration=5m'], /shorter than an hour/],
    ];
    for (const [argv, message] of cases) await assert.rejects(read(...argv), message);
  });

  it('reads a token webhook from a kubeconfig, and issuers from an AuthenticationConfiguration file', async () => {
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

  it('reads expressions of claim mappings and rejects invalid and unsafe expressions', () => {
    const file = (mappings: string, rest = ''): string =>
      `${HEAD}jwt:\n- issuer: {url: "https://a.example.com", audiences: [x]}\n  claimMappings:\n    ${mappings}\n${rest}`;
    const parse = (mappings: string, rest?: string) => parseAuthentication(file(mappings, rest), 'f.yaml').issuers[0];
    const found = parse(
      'username: {expression: claims.sub}\n    groups: {expression: \'claims.roles.split(",")\'}\n    uid: {claim: sub}\n    extra: [{key: lab.test/rig, valueExpression: claims.rig}]',
      "  claimValidationRules:\n  - {expression: claims.hd == 'lab', message: not ours}\n  - {claim: a, requiredValue: b}\n  userValidationRules:\n  - {expression: \"!user.username.startsWith('system:')\"}\n",
    );
    assert.ok(found && 'source' in found.username);
    assert.equal(found.username.source, 'claims.sub');
    assert.deepEqual(found.uid, { claim: 'sub' });
    assert.deepEqual(
      found.extra?.map(({ key }) => key),
      ['lab.test/rig'],
    );
    assert.deepEqual(
      found.claimRules?.map(({ message }) => message),
      ['not ours'],
    );
    assert.deepEqual([...(found.requiredClaims ?? [])], [['a', 'b']]);
    assert.equal(found.userRules?.length, 1);
    const ok = 'username: {claim: sub, prefix: ""}';
    const cases: [string, string, RegExp][] = [
      [
        'username: {claim: sub, expression: claims.sub}',
        '',
        /jwt\[0\]\.claimMappings\.username: give either claim or expression/,
      ],
      ['username: {claim: sub}', '', /username\.prefix: is missing; give ""/],
      ['username: {expression: claims.sub, prefix: a}', '', /username\.prefix: belongs to a claim/],
      ['username: {expression: claim.sub}', '', /username\.expression: .*undeclared reference to 'claim'/],
      ['username: {expression: "1"}', '', /username\.expression: must evaluate to string but got int/],
      [
        `${ok}\n    groups: {expression: "[1]"}`,
        '',
        /groups\.expression: must evaluate to string or list\(string\) but got list\(int\)/,
      ],
      [
        `${ok}\n    extra: [{key: rig, valueExpression: claims.rig}]`,
        '',
        /extra\[0\]\.key: "rig" is not a path below a domain/,
      ],
      [
        `${ok}\n    extra: [{key: a.k8s.io/x, valueExpression: claims.rig}]`,
        '',
        /a domain that is reserved for Kubernetes/,
      ],
      [`${ok}\n    extra: [{key: a.b/X, valueExpression: claims.rig}]`, '', /not in lower case/],
      [ok, '  claimValidationRules: [{claim: a, expression: "true"}]\n', /claimValidationRules\[0\]: give either/],
      [ok, '  claimValidationRules: [{claim: a, message: b}]\n', /message: belongs to an expression/],
      [
        ok,
        '  userValidationRules: [{expression: claims.a}]\n',
        /userValidationRules\[0\]\.expression: .*undeclared reference to 'claims'/,
      ],
      [ok, '  userValidationRules: [{expression: user.name}]\n', /undefined field 'name'/],
      ['username: {expression: claims.email}', '', /claims\.email_verified must be used/],
      ['username: {expression: "claims[\'email\']"}', '', /claims\.email_verified must be used/],
    ];
    for (const [mappings, rest, message] of cases) assert.throws(() => parse(mappings, rest), message, mappings + rest);
    parse('username: {expression: "claims.?email_verified.orValue(true) ? claims.email : \'\'"}');
    parse('username: {expression: claims.email}', '  claimValidationRules: [{expression: claims.email_verified}]\n');
  });

  it('reloads the authentication configuration when its file changes', async () => {
    const file = join(directory, 'followed.yaml');
    await writeFile(file, JWT);
    const values = new ApiValues((path) => join(directory, path));
    readApiArguments(['--authentication-config=followed.yaml', '--anonymous-auth=false'], values);
    const surroundings = { referredToBy: 'test', ownHost: false };
    const followed = await followIdentities(values, [{ type: 'RBAC' }], surroundings, silentLog);
    assert.ok(followed);
    followed.stop();
    assert.equal(followed.current.tokenIssuers?.length, 1);
    assert.equal(followed.current.anonymous, 'none');
    await writeFile(file, `${HEAD}anonymous: {enabled: true, conditions: [{path: /livez}]}\n`);
    await followed.refresh();
    assert.deepEqual(followed.current, { anonymous: 'paths', anonymousPaths: ['/livez'], tokenIssuers: [] });
  });

  it('rejects invalid authentication configuration files with the line', () => {
    const parse = (text: string) => () => parseAuthentication(text, 'f.yaml');
    assert.throws(
      parse(JWT.replace('{claim: sub, prefix: "a:"}', '{expresion: "claims.sub"}')),
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
