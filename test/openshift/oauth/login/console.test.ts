/** Login of the web console: requests of the browser, and attacks on them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { hashSync } from 'bcryptjs';
import { systemClock } from '../../../../src/host/process/process.ts';
import type { Answer } from '../../../apiserver/harness.ts';
import { form, type LoginTestServer, newVerifier, startLoginServer, whoami } from '../harness.ts';

const LINK = '/hyperedge/console-link';
const TOKENS = '/apis/oauth.openshift.io/v1/oauthaccesstokens';
const CODES = '/apis/oauth.openshift.io/v1/oauthauthorizetokens';

describe('login to the console', () => {
  let server: LoginTestServer;
  let skewMs = 0;
  let laterMs = 0;
  let origin = '';
  let callback = '';

  before(async () => {
    server = await startLoginServer({
      console: true,
      identityProviders: [],
      clock: {
        nowMs: () => systemClock.nowMs() + skewMs,
        monotonicMs: () => systemClock.monotonicMs() + laterMs,
        setTimer: (delayMs, run) => systemClock.setTimer(delayMs, run),
      },
    });
    origin = `https://127.0.0.1:${server.port}`;
    callback = `${origin}/console/callback`;
    const data = { kubeadmin: Buffer.from(hashSync('aaaaa-bbbbb-ccccc-ddddd', 6)).toString('base64') };
    const body = { metadata: { name: 'kubeadmin' }, data };
    assert.equal((await server.call('POST', '/api/v1/namespaces/kube-system/secrets', { body })).code, 201);
  });
  after(() => server.stop());

  const newLink = async (): Promise<string> => {
    const { code, body, text } = await server.call<{ url: string; seconds: number }>('POST', LINK);
    assert.equal(code, 201, text);
    assert.equal(body.seconds, 60);
    const [, secret = ''] = /^https:\/\/192\.0\.2\.10:6443\/console\/#login=([\w-]{43})$/.exec(body.url) ?? [];
    assert.notEqual(secret, '', body.url);
    return secret;
  };
  const post = (path: string, headers: Record<string, string>, body?: object): Promise<Answer> =>
    server.call('POST', path, { as: null, headers, ...(body === undefined ? {} : { body }) });
  const redeem = (secret: string, headers: Record<string, string> = {}): Promise<Answer> =>
    post('/oauth/console/redeem', { 'x-csrf-token': '1', origin, ...headers }, { secret });
  const cookieOf = (answer: Answer): string =>
    /^__Host-ssn=[^;]*/.exec(String(answer.headers['set-cookie']))?.[0] ?? '';
  const query = (fields: Record<string, string>): string =>
    new URLSearchParams({ client_id: 'console', response_type: 'code', redirect_uri: callback, ...fields }).toString();
  const authorize = (cookie: string, fields: Record<string, string>): Promise<Answer> =>
    server.call('GET', `/oauth/authorize?${query(fields)}`, { as: null, headers: { cookie } });
  const exchange = (code: string, fields: Record<string, string>): Promise<Answer<{ access_token: string }>> =>
    server.call(
      'POST',
      '/oauth/token',
      form({ grant_type: 'authorization_code', client_id: 'console', code, redirect_uri: callback, ...fields }),
    );
  const login = async (): Promise<{ cookie: string; token: string }> => {
    const cookie = cookieOf(await redeem(await newLink()));
    const { verifier, challenge } = newVerifier();
    const answer = await authorize(cookie, { code_challenge: challenge, code_challenge_method: 'S256', state: 's' });
    assert.equal(answer.code, 302, answer.text);
    const target = new URL(String(answer.headers.location));
    assert.deepEqual([`${target.origin}${target.pathname}`, target.searchParams.get('state')], [callback, 's']);
    const exchanged = await exchange(target.searchParams.get('code') ?? '', { code_verifier: verifier });
    assert.equal(exchanged.code, 200, exchanged.text);
    return { cookie, token: exchanged.body.access_token };
  };

  it('a one-time login link issues a token for kube:admin', async () => {
    const { token } = await login();
    assert.equal(await whoami(server, token), 'kube:admin');
  });

  it('accepts a one-time login link once, and only within 60 s of monotonic time', async () => {
    const secret = await newLink();
    assert.equal((await redeem(secret)).code, 204);
    const again = await redeem(secret);
    assert.deepEqual([again.code, again.headers['set-cookie']], [401, undefined]);
    const late = await newLink();
    laterMs += 60_001;
    skewMs -= 3_600_000;
    assert.equal((await redeem(late)).code, 401);
    skewMs += 3_600_000;
  });

  it('accepts only one of many simultaneous uses of a login link', async () => {
    const secret = await newLink();
    const codes = (await Promise.all(Array.from({ length: 8 }, () => redeem(secret)))).map(({ code }) => code);
    assert.equal(codes.filter((code) => code === 204).length, 1, codes.join());
    laterMs += 600_000;
  });

  it('keeps at most 32 authorization codes of a user, so that a session cannot fill the store', async () => {
    const { cookie } = await login();
    const { verifier, challenge } = newVerifier();
    let code = '';
    for (let i = 0; i < 40; i++) {
      const answer = await authorize(cookie, { code_challenge: challenge, code_challenge_method: 'S256' });
      code = new URL(String(answer.headers.location)).searchParams.get('code') ?? '';
    }
    const { body } = await server.call<{ items: object[] }>('GET', CODES);
    assert.equal(body.items.length, 32);
    assert.equal((await exchange(code, { code_verifier: verifier })).code, 200, 'the newest code');
  });

  it('issues login links only to cluster administrators', async () => {
    assert.equal((await server.call('POST', LINK, { as: null })).code, 401);
    assert.equal((await server.call('POST', LINK, { headers: { 'impersonate-user': 'dev' } })).code, 403);
    assert.equal((await server.call('GET', LINK)).code, 405);
  });

  it('rejects cross-site login requests, and a client address that sent many wrong secrets', async () => {
    const secret = await newLink();
    assert.equal((await post('/oauth/console/redeem', {}, { secret })).code, 403);
    assert.equal((await redeem(secret, { origin: 'https://evil.example' })).code, 403);
    assert.equal((await redeem(secret, { 'sec-fetch-site': 'cross-site' })).code, 403);
    const asForm = await server.call('POST', '/oauth/console/redeem', form({ secret }, { 'x-csrf-token': '1' }));
    assert.equal(asForm.code, 401);
    for (const path of ['renew', 'revoke', 'logout'])
      assert.equal((await post(`/oauth/console/${path}`, {})).code, 403);
    const codes: number[] = [];
    for (let attempt = 0; attempt < 14; attempt++)
      codes.push((await redeem(randomBytes(32).toString('base64url'))).code);
    assert.equal(codes.at(-1), 429, codes.join());
    // Wrong secrets have not used up the link.
    laterMs += 30_000;
    assert.equal((await redeem(secret)).code, 204);
    laterMs += 600_000;
  });

  it('sends authorization codes only to the registered redirect URI', async () => {
    const { cookie } = await login();
    const { challenge } = newVerifier();
    for (const redirect of [
      'https://evil.example/console/callback',
      `${origin}/console/callback/../../evil`,
      `${origin}/console/callback?x=1`,
      `${origin}.evil.example/console/callback`,
      `https://kube@127.0.0.1:${server.port}/console/callback`,
      `//evil.example/console/callback`,
      'javascript:alert(1)',
    ]) {
      const fields = { redirect_uri: redirect, code_challenge: challenge, code_challenge_method: 'S256' };
      const answer = await authorize(cookie, fields);
      assert.deepEqual([answer.code, answer.headers.location], [400, undefined], redirect);
    }
    const then = '/login?then=https%3A%2F%2Fevil.example';
    assert.doesNotMatch((await server.call('GET', then, { as: null })).text, /evil/);
  });

  it('sends authorization codes to the host of the console route while the route exists', async () => {
    const { cookie } = await login();
    const { challenge } = newVerifier();
    const uri = 'https://console-openshift-console.apps.example.com/console/callback';
    const ask = async (fields: Record<string, string> = {}): Promise<number> => {
      const key = { code_challenge: challenge, code_challenge_method: 'S256' };
      return (await authorize(cookie, { redirect_uri: uri, ...key, ...fields })).code;
    };
    const registered = async (): Promise<readonly string[]> => {
      const path = '/apis/oauth.openshift.io/v1/oauthclients/console';
      return (await server.call<{ redirectURIs: string[] }>('GET', path)).body.redirectURIs;
    };
    assert.equal(await ask(), 400);
    const routes = '/apis/route.openshift.io/v1/namespaces/openshift-console/routes';
    await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'openshift-console' } } });
    const labels = { 'console.hyperedge.dev/managed': 'true' };
    const body = {
      metadata: { name: 'console', labels },
      spec: { host: new URL(uri).hostname, to: { kind: 'Service', name: 'console' } },
    };
    assert.equal((await server.call('POST', routes, { body })).code, 201);
    assert.equal(await ask(), 302);
    const own = 'https://192.0.2.10:6443/console/callback';
    assert.deepEqual(await registered(), [own, uri]);
    assert.equal(await ask({ redirect_uri: uri.replace('/console/', '/auth/') }), 400);
    assert.equal((await server.call('DELETE', `${routes}/console`)).code, 200);
    assert.equal(await ask(), 400);
    assert.deepEqual(await registered(), [own]);
  });

  it('rejects an authorization code without its PKCE code verifier', async () => {
    const { cookie } = await login();
    const { verifier, challenge } = newVerifier();
    const codeOf = async (fields: Record<string, string>): Promise<string> =>
      new URL(String((await authorize(cookie, fields)).headers.location)).searchParams.get('code') ?? '';
    const withKey = { code_challenge: challenge, code_challenge_method: 'S256' };
    assert.equal((await exchange(await codeOf(withKey), {})).code, 400);
    assert.equal((await exchange(await codeOf(withKey), { code_verifier: newVerifier().verifier })).code, 400);
    // A code that was issued without a key cannot be exchanged by adding one.
    assert.equal((await exchange(await codeOf({}), { code_verifier: verifier })).code, 400);
    const used = await codeOf(withKey);
    const first = await exchange(used, { code_verifier: verifier });
    assert.equal((await exchange(used, { code_verifier: verifier })).code, 400);
    assert.equal(await whoami(server, first.body.access_token), '401');
  });

  it('extends the session only for a token of the console with full scope', async () => {
    const { token } = await login();
    const renew = (given: string) => post('/oauth/console/renew', { authorization: `Bearer ${given}`, origin });
    const renewed = await renew(token);
    assert.equal(renewed.code, 204);
    assert.notEqual(cookieOf(renewed), '');
    assert.equal((await renew(`sha256~${randomBytes(32).toString('base64url')}`)).code, 401);
    const { verifier, challenge } = newVerifier();
    const fields = { scope: 'user:info', code_challenge: challenge, code_challenge_method: 'S256' };
    const narrow = await authorize(cookieOf(renewed), fields);
    const code = new URL(String(narrow.headers.location)).searchParams.get('code') ?? '';
    const { body } = await exchange(code, { code_verifier: verifier });
    const refused = await renew(body.access_token);
    assert.deepEqual([refused.code, refused.headers['set-cookie']], [401, undefined]);
  });

  it('a logout from the console revokes the token and ends the session', async () => {
    const { token } = await login();
    const count = async () => (await server.call<{ items: unknown[] }>('GET', TOKENS)).body.items.length;
    const before = await count();
    const out = await post('/oauth/console/logout', { authorization: `Bearer ${token}`, origin });
    assert.equal(out.code, 204);
    assert.match(String(out.headers['set-cookie']), /^__Host-ssn=; .*Max-Age=0/);
    assert.equal(await count(), before - 1);
    assert.equal(await whoami(server, token), '401');
    assert.equal((await post('/oauth/console/renew', { authorization: `Bearer ${token}`, origin })).code, 401);
  });
});
