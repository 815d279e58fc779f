/** OpenID Connect, RequestHeader, mapping methods and limits. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { exportJWK, exportSPKI, generateKeyPair, SignJWT, UnsecuredJWT } from 'jose';
import type { KubeObject } from '../../../../src/api/meta/object.ts';
import type { LoginObjects } from '../../../../src/apiserver/server/login-port.ts';
import { silentLog } from '../../../../src/base/log.ts';
import { systemClock } from '../../../../src/host/process/process.ts';
import { acceptedRedirect, safePath } from '../../../../src/openshift/oauth/authorization/redirects.ts';
import type { IdentityProvider } from '../../../../src/openshift/oauth/index.ts';
import { FailureLimits } from '../../../../src/openshift/oauth/login/failure-limits.ts';
import type { LoginPorts } from '../../../../src/openshift/oauth/port.ts';
import { Discoveries } from '../../../../src/openshift/oauth/providers/discovery.ts';
import { Providers } from '../../../../src/openshift/oauth/providers/providers.ts';
import {
  authorize,
  CHALLENGING,
  form,
  implicitUri,
  type LoginTestServer,
  login,
  startLoginServer,
  whoami,
} from '../harness.ts';

const SHA = '{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=';
const file = (name: string, mappingMethod: string): IdentityProvider => ({
  name,
  mappingMethod,
  htpasswd: { file: `/${name}` },
});

/** OpenID provider that logs in every user as `sub`: the endpoints of the code flow with signed ID tokens. */
async function startOpenIdProvider() {
  let { privateKey, publicKey } = await generateKeyPair('ES256');
  const gone = await generateKeyPair('ES256');
  let nonce = '';
  const seen: URLSearchParams[] = [];
  const change = { claims: {} as Record<string, unknown>, signer: 'own' as 'own' | 'gone' | 'none' | 'symmetric' };
  const rotate = async (): Promise<void> => {
    ({ privateKey, publicKey } = await generateKeyPair('ES256'));
  };
  const server: Server = createServer((request, response) => {
    const address = server.address();
    const issuer = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
    const json = (value: unknown): void => void response.end(JSON.stringify(value));
    const url = new URL(request.url ?? '/', issuer);
    if (url.pathname === '/.well-known/openid-configuration')
      return json({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/keys`,
      });
    if (url.pathname === '/keys')
      return void exportJWK(publicKey).then((key) => json({ keys: [{ ...key, alg: 'ES256' }] }));
    if (url.pathname === '/authorize') {
      nonce = url.searchParams.get('nonce') ?? '';
      const target = new URL(url.searchParams.get('redirect_uri') ?? '');
      target.searchParams.set('code', 'the-code');
      target.searchParams.set('state', url.searchParams.get('state') ?? '');
      response.writeHead(302, { location: target.href });
      return void response.end();
    }
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      seen.push(new URLSearchParams(body));
      const claims = {
        nonce,
        preferred_username: 'olga',
        groups: ['staff', 'system:masters'],
        sub: '4711',
        iss: issuer,
        aud: 'hyperedge',
        exp: Math.floor(Date.now() / 1000) + 300,
        ...change.claims,
      };
      const { signer } = change;
      if (signer === 'none') return json({ id_token: new UnsecuredJWT(claims).encode() });
      const token = new SignJWT(claims);
      const signed =
        signer === 'symmetric'
          ? exportSPKI(publicKey).then((pem) => token.setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from(pem)))
          : token.setProtectedHeader({ alg: 'ES256' }).sign(signer === 'own' ? privateKey : gone.privateKey);
      void signed.then((text) => json({ id_token: text }));
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    issuer: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    server,
    seen,
    change,
    rotate,
  };
}

describe('identity providers', () => {
  let server: LoginTestServer;
  let openId: Awaited<ReturnType<typeof startOpenIdProvider>>;
  before(async () => {
    openId = await startOpenIdProvider();
    const claims = { groups: ['groups'] };
    server = await startLoginServer({
      identityProviders: [
        file('a', 'claim'),
        file('b', 'claim'),
        file('c', 'generate'),
        file('d', 'add'),
        file('e', 'lookup'),
        {
          name: 'sso',
          mappingMethod: 'claim',
          openID: { issuer: openId.issuer, clientID: 'hyperedge', clientSecretFile: '/secret', claims },
        },
      ],
      files: {
        '/a': `one:${SHA}`,
        '/b': `one:{SHA}${'A'.repeat(27)}=\ntwo:${SHA}`,
        '/c': `gen:${SHA}`,
        '/d': `add:${SHA}`,
        '/e': `look:${SHA}`,
        '/secret': 'client-secret\n',
      },
    });
  });
  after(async () => {
    await server.stop();
    openId.server.close();
  });
  const users = '/apis/user.openshift.io/v1/users';
  const create = (kind: string, plural: string, body: object) =>
    server.call('POST', `/apis/user.openshift.io/v1/${plural}`, {
      body: { apiVersion: 'user.openshift.io/v1', kind, ...body },
    });
  const claimed = (name: string) => create('User', 'users', { metadata: { name }, identities: ['other:x'] });

  const identities = async (): Promise<string[]> => {
    const { body } = await server.call<{ items: { metadata: { name: string } }[] }>(
      'GET',
      '/apis/user.openshift.io/v1/identities',
    );
    return body.items.map(({ metadata }) => metadata.name);
  };

  it('maps identities to users by the mapping methods claim, generate, add and lookup', async () => {
    assert.equal(await whoami(server, (await login(server, 'one', 'password')).token), 'one');
    for (const name of ['two', 'gen', 'add']) assert.equal((await claimed(name)).code, 201);
    await assert.rejects(login(server, 'two', 'password'), /401/);
    assert.equal(await whoami(server, (await login(server, 'gen', 'password')).token), 'gen2');
    assert.equal(await whoami(server, (await login(server, 'add', 'password')).token), 'add');
    const added = await server.call<{ identities: string[] }>('GET', `${users}/add`);
    assert.deepEqual(added.body.identities, ['other:x', 'd:add']);
    await assert.rejects(login(server, 'look', 'password'), /401/);
    assert.equal((await create('User', 'users', { metadata: { name: 'boss' } })).code, 201);
    const identity = { metadata: { name: 'e:look' }, providerName: 'e', providerUserName: 'look', user: {} };
    assert.equal((await create('Identity', 'identities', identity)).code, 201);
    const mapping = { identity: { name: 'e:look' }, user: { name: 'boss' } };
    assert.equal((await create('UserIdentityMapping', 'useridentitymappings', mapping)).code, 201);
    assert.equal(await whoami(server, (await login(server, 'look', 'password')).token), 'boss');
  });

  /** Follows the login at the provider like a browser, up to the callback. */
  const browse = async (then: string) => {
    const begin = await server.call('GET', `/login/sso?${new URLSearchParams([['then', then]]).toString()}`, {
      as: null,
    });
    const cookie = String(begin.headers['set-cookie']).split(';')[0] ?? '';
    const answer = await fetch(String(begin.headers.location), { redirect: 'manual' });
    const back = new URL(answer.headers.get('location') ?? '');
    return { cookie, path: `${back.pathname}${back.search}` };
  };

  it('logs in at an OpenID provider by the code flow, and adopts the groups of the ID token', async () => {
    const { cookie, path } = await browse('/oauth/token/request');
    assert.equal((await server.call('GET', path, { as: null })).code, 502, 'the state of another browser');
    const done = await server.call('GET', path, { as: null, headers: { cookie } });
    assert.deepEqual([done.code, done.headers.location], [302, '/oauth/token/request'], done.text);
    assert.equal(openId.seen.at(-1)?.get('code_verifier')?.length, 43);
    const session = (done.headers['set-cookie'] ?? []).map((each) => each.split(';')[0]).join('; ');
    const request = await server.call('GET', '/oauth/token/request', { as: null });
    const code = await server.call('GET', String(request.headers.location), { as: null, headers: { cookie: session } });
    const display = new URL(String(code.headers.location));
    const question = await server.call('GET', `${display.pathname}${display.search}`, { as: null });
    const csrf = String(question.headers['set-cookie']).split(';')[0] ?? '';
    const shown = await server.call(
      'POST',
      '/oauth/token/display',
      form({ code: display.searchParams.get('code') ?? '', csrf: csrf.slice(csrf.indexOf('=') + 1) }, { cookie: csrf }),
    );
    const [token = ''] = /sha256~[A-Za-z0-9_-]{43}/.exec(shown.text) ?? [];
    assert.equal(await whoami(server, token), 'olga');
    const groups = await server.call<{ items: { metadata: { name: string }; users: string[] }[] }>(
      'GET',
      '/apis/user.openshift.io/v1/groups',
    );
    assert.deepEqual(
      groups.body.items.map(({ metadata, users: names }) => [metadata.name, names]),
      [['staff', ['olga']]],
    );
  });

  it('rejects the ID token of another login, and accepts one signed with a rotated key', async () => {
    const now = Math.floor(Date.now() / 1000);
    const cases: readonly [Record<string, unknown>, typeof openId.change.signer, number][] = [
      [{ nonce: 'x' }, 'own', 502],
      [{ aud: 'other' }, 'own', 502],
      [{ aud: ['hyperedge', 'other'] }, 'own', 502],
      [{ aud: ['hyperedge', 'other'], azp: 'hyperedge' }, 'own', 302],
      [{ azp: 'other' }, 'own', 502],
      [{ exp: 1 }, 'own', 502],
      [{ exp: now - 240 }, 'own', 302],
      [{ exp: now - 400 }, 'own', 502],
      [{ nbf: now + 250 }, 'own', 302],
      [{ nbf: now + 400 }, 'own', 502],
      [{ iss: 'https://other.test' }, 'own', 502],
      [{ sub: '' }, 'own', 502],
      [{ sub: undefined }, 'own', 502],
      [{}, 'gone', 502],
      [{}, 'none', 502],
      [{}, 'symmetric', 502],
      [{}, 'own', 302],
    ];
    for (const [claims, signer, expected] of cases) {
      openId.change.claims = claims;
      openId.change.signer = signer;
      const { cookie, path } = await browse('/');
      const done = await server.call('GET', path, { as: null, headers: { cookie } });
      assert.equal(done.code, expected, `${JSON.stringify(claims)} ${signer}`);
    }
    openId.change.claims = {};
    await openId.rotate();
    const { cookie, path } = await browse('/');
    assert.equal((await server.call('GET', path, { as: null, headers: { cookie } })).code, 302, 'a rotated key');
  });

  it('maps different subject IDs of a provider to different identities', async () => {
    const { length: before } = (await identities()).filter((name) => name.startsWith('sso:'));
    const long = `https://accounts.example/${'x'.repeat(240)}`;
    const ids = ['a/b', 'YS9i', 'b64.YS9i', 'a/c', `${long}1`, `${long}2`, '\ud800', '\ud801', '..', 'auth0|7'];
    for (const [index, sub] of ids.entries()) {
      openId.change.claims = { sub, preferred_username: `user-${index}` };
      const { cookie, path } = await browse('/');
      assert.equal((await server.call('GET', path, { as: null, headers: { cookie } })).code, 302, sub);
      const user = await server.call<{ identities: string[] }>('GET', `${users}/user-${index}`);
      assert.equal(user.body.identities?.length, 1, `${sub}: logged in as another user`);
    }
    openId.change.claims = {};
    const names = (await identities()).filter((name) => name.startsWith('sso:'));
    assert.equal(names.length, before + ids.length);
    for (const ordinary of ['sso:YS9i', 'sso:auth0|7']) assert.ok(names.includes(ordinary), ordinary);
  });

  it('reads the discovery document of an OpenID provider only over TLS, checks its issuer, and caches it', async () => {
    let requested = 0;
    let nowMs = 0;
    const documentOf = (issuer: string, more: object = {}) => ({
      issuer,
      authorization_endpoint: `${issuer}/a`,
      token_endpoint: `${issuer}/t`,
      jwks_uri: `${issuer}/k`,
      ...more,
    });
    let document: object = {};
    const web = {
      request: async () => {
        requested++;
        return { status: 200, text: JSON.stringify(document) };
      },
    };
    const discoveries = new Discoveries(web, { ...systemClock, monotonicMs: () => nowMs });
    const bad: readonly [string, object][] = [
      ['http://sso.test', documentOf('http://sso.test')],
      ['ftp://sso.test', documentOf('ftp://sso.test')],
      ['', {}],
      ['https://sso.test', documentOf('https://other.test')],
      ['https://sso.test', documentOf('https://sso.test/')],
      ['https://sso.test', documentOf('https://sso.test', { token_endpoint: 'http://sso.test/t' })],
      ['https://sso.test', documentOf('https://sso.test', { authorization_endpoint: 'javascript:alert(1)' })],
      ['https://sso.test', documentOf('https://sso.test', { jwks_uri: undefined })],
    ];
    for (const [issuer, given] of bad) {
      document = given;
      await assert.rejects(discoveries.get(issuer, undefined), /issuer|https URL/, JSON.stringify(given));
    }
    document = documentOf('https://sso.test');
    requested = 0;
    await Promise.all([discoveries.get('https://sso.test', undefined), discoveries.get('https://sso.test', undefined)]);
    assert.equal(requested, 1);
    nowMs = 60_001;
    await discoveries.get('https://sso.test', undefined);
    assert.equal(requested, 2);
  });

  it('accepts the user header only in requests from the authenticating proxy', async () => {
    const ca = server.ca.certPem;
    const proxied = await startLoginServer({
      identityProviders: [
        {
          name: 'proxy',
          requestHeader: {
            caFile: '/ca',
            clientCommonNames: ['front'],
            headers: ['X-Remote-User'],
            challengeURL: ['https://sso.example/challenge?', '{query}'].join('$'),
          },
        },
      ],
      files: { '/ca': ca },
    });
    try {
      const query = new URLSearchParams({
        client_id: CHALLENGING,
        response_type: 'token',
        redirect_uri: implicitUri(proxied),
      }).toString();
      const ask = async (name: string | null) =>
        proxied.call('GET', `/oauth/authorize?${query}`, {
          as: name === null ? null : await proxied.user(name),
          headers: { 'x-remote-user': 'pat' },
        });
      for (const other of [null, 'other'])
        assert.equal((await ask(other)).headers.location, `https://sso.example/challenge?${query}`);
      const fragment = String((await ask('front')).headers.location).split('#')[1] ?? '';
      assert.equal(await whoami(proxied, new URLSearchParams(fragment).get('access_token') ?? ''), 'pat');
    } finally {
      await proxied.stop();
    }
  });

  it('rejects an unknown user after about the same time as a wrong password', async () => {
    const base = { client_id: CHALLENGING, response_type: 'token', redirect_uri: implicitUri(server) };
    const earlier = server.verifyCount();
    await authorize(server, 'one', 'wrong', base);
    const wrong = server.verifyCount() - earlier;
    await authorize(server, 'unknown', 'wrong', base);
    assert.equal(server.verifyCount() - earlier - wrong, wrong);
  });
});

describe('groups of an LDAP server', () => {
  it('ignores LDAP groups whose name component is escaped or multi-valued', async () => {
    const created: string[] = [];
    const objects = {
      freshen: async () => {},
      get: () => undefined,
      list: () => [],
      bootstrapUser: () => undefined,
      create: async (resource: string, object: KubeObject) => {
        if (resource.startsWith('groups.')) created.push(object.metadata?.name ?? '');
        return { ...object, metadata: { ...object.metadata, uid: 'u' } };
      },
    } as unknown as LoginObjects;
    const memberof = ['cn=staff,ou=groups,dc=example', 'cn=admins\\2c local,dc=example', 'CN=admins+ou=x,dc=example'];
    const entry = {
      dn: 'uid=dev,dc=example',
      values: new Map([
        ['uid', ['dev']],
        ['memberof', memberof],
      ]),
    };
    const ports = { ldap: { authenticate: async () => entry } } as unknown as LoginPorts;
    const configured = [{ name: 'ldap', ldap: { url: 'ldap://ldap.example' } }];
    const providers = new Providers({ objects, ports, log: silentLog, configured });
    assert.equal((await providers.checkPassword('dev', 'password'))?.name, 'dev');
    assert.deepEqual(created, ['staff']);
  });
});

describe('limits of failed logins', () => {
  it('failed logins are counted per source address and user, and expire by the monotonic clock', () => {
    let nowMs = 0;
    const limits = new FailureLimits(() => nowMs);
    for (let count = 0; count < 10; count++) limits.failed('10.0.0.1', 'dev');
    assert.equal(limits.waitSeconds('10.0.0.1', 'DEV'), 6);
    assert.equal(limits.waitSeconds('10.0.0.2', 'dev'), 0);
    assert.equal(limits.waitSeconds('10.0.0.1', 'ops'), 0);
    nowMs = 6_000;
    assert.equal(limits.waitSeconds('10.0.0.1', 'dev'), 0);
    for (let count = 0; count < 40; count++) limits.failed('2001:db8:0:1::1', `u${count}`);
    assert.ok(limits.waitSeconds('2001:db8:0:1:ffff::2', 'new') > 0);
  });

  it('failed logins from all addresses of an IPv6 /64 network count together, in any notation', () => {
    const limits = new FailureLimits(() => 0);
    for (let count = 0; count < 40; count++) limits.failed(`2001:db8::${(count + 1).toString(16)}`, `u${count}`);
    for (const address of ['2001:db8::ffff', '2001:DB8:0:0::1', '2001:db8:0:0:1:2:3:4', '2001:db8::1%eth0'])
      assert.ok(limits.waitSeconds(address, 'new') > 0, address);
    assert.equal(limits.waitSeconds('2001:db8:0:1::1', 'new'), 0);
    for (let count = 0; count < 40; count++) limits.failed('::ffff:192.0.2.1', `u${count}`);
    assert.ok(limits.waitSeconds('192.0.2.1', 'new') > 0);
    assert.equal(limits.waitSeconds('192.0.2.2', 'new'), 0);
  });

  it('successful logins and logins that could not be checked do not count as failed logins', () => {
    const limits = new FailureLimits(() => 0);
    for (let count = 0; count < 200; count++) {
      limits.failed('10.0.0.1', 'dev');
      if (count % 2 === 0) limits.succeeded('10.0.0.1', 'dev');
      else limits.unchecked('10.0.0.1', 'dev');
      assert.equal(limits.waitSeconds('10.0.0.1', 'dev'), 0);
    }
    for (let count = 0; count < 40; count++) limits.failed('10.0.0.1', `u${count}`);
    assert.ok(limits.waitSeconds('10.0.0.1', 'new') > 0);
  });
});

describe('redirects', () => {
  it('redirects only to paths of the server itself after a login', () => {
    assert.equal(safePath('/oauth/authorize?a=b'), '/oauth/authorize?a=b');
    for (const evil of ['', null, 'x', '//e', '/\\e', 'https://e/', '/x\r\nlocation: e', '/..//e', 'javascript:1'])
      assert.equal(safePath(evil), '/', String(evil));
    const more = [
      '\t//e',
      '/\t//e',
      '/\n/e',
      ' //e',
      '///e',
      '/.//e',
      '/x/..//e',
      '/./\\e',
      '//e@self.invalid/',
      '/\u0085/e',
    ];
    for (const evil of more) assert.equal(safePath(evil), '/', JSON.stringify(evil));
    // All other accepted paths lead to the server that responds.
    for (const path of ['/%2f%2fe', '/%5ce', '/@e', '/;//e', '/%09//e', '/x?then=//e', '/／／e', '/x#//e'])
      assert.equal(new URL(safePath(path), 'https://h1:8443/login').origin, 'https://h1:8443', path);
  });

  it('a redirect URI must match a registered URI, except for the port of a loopback address', () => {
    const client = { redirectURIs: ['http://127.0.0.1/callback', 'https://a.example/x'] };
    assert.equal(acceptedRedirect(client, 'http://127.0.0.1:9/callback'), 'http://127.0.0.1:9/callback');
    assert.equal(acceptedRedirect(client, 'https://a.example/x'), 'https://a.example/x');
    for (const other of [
      '',
      'https://a.example:444/x',
      'https://a.example/x/',
      'http://127.0.0.1:9/other',
      'http://127.0.0.1@evil.example/callback',
      'http://user@127.0.0.1:9/callback',
      'http://127.0.0.2:9/callback',
      'https://127.0.0.1:9/callback',
      'https://a.example/xy',
      'https://a.example/x?y',
      'https://a.example/x#y',
      'https://a.example/x/../y',
      'https://A.example/x',
      'https://a.example.evil.example/x',
      'https://a.example@evil.example/x',
      'https://a.example\\@evil.example/x',
      'https://evil.example/https://a.example/x',
      ' https://a.example/x',
      'https://a.example/x\r\nx: y',
      '//a.example/x',
      'http://127.0.0.1:9/callback/',
      'http://127.0.0.1:9/callback?x=1',
      'http://127.0.0.1:9/callback#x',
      'http://127.0.0.1:9\\@evil.example/callback',
      'http://127.0.0.1.evil.example:9/callback',
      'http://127.0.0.1:9/\tcallback',
      'javascript://127.0.0.1:9/callback',
      'http://localhost:9/callback',
    ])
      assert.equal(acceptedRedirect(client, other), undefined, other);
    assert.equal(acceptedRedirect({ redirectURIs: ['no URL'] }, 'http://127.0.0.1:9/x'), undefined);
  });
});
