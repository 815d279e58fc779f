/** Service accounts as OAuth clients, and attempts to misuse them. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { hashSync } from 'bcryptjs';
import type { Answer } from '../../../apiserver/harness.ts';
import { authorize, form, type LoginTestServer, type Parameters, startLoginServer, withToken } from '../harness.ts';

const ID = 'system:serviceaccount:shop:proxy';
const HOST = 'shop.apps.example.com';
const CALLBACK = `https://${HOST}/oauth/callback`;
const SCOPES = 'user:info user:check-access role:edit:shop:!';
const ANNOTATIONS = 'serviceaccounts.openshift.io';

describe('a service account as an OAuth client', () => {
  let server: LoginTestServer;
  before(async () => {
    server = await startLoginServer({
      identityProviders: [{ name: 'htpasswd', mappingMethod: 'claim', htpasswd: { file: '/users' } }],
      files: { '/users': `dev:${hashSync('password1', 4)}` },
    });
    for (const namespace of ['shop', 'other']) {
      await created('/api/v1/namespaces', { metadata: { name: namespace } });
      await created(`/api/v1/namespaces/${namespace}/serviceaccounts`, { metadata: { name: 'default' } });
    }
    await route('shop', 'front', HOST);
    await route('other', 'back', 'other.apps.example.com');
    await account('proxy', { 'oauth-redirectreference.main': reference('front') });
  });
  after(() => server.stop());

  const created = async (path: string, body: object): Promise<void> => {
    const answer = await server.call('POST', path, { body });
    assert.ok(answer.code < 300 || answer.code === 409, answer.text);
  };
  const route = async (namespace: string, name: string, host: string, admitted = 'True'): Promise<void> => {
    const path = `/apis/route.openshift.io/v1/namespaces/${namespace}/routes`;
    const object = {
      metadata: { name },
      spec: { host, to: { kind: 'Service', name: 'web' }, tls: { termination: 'edge' } },
    };
    await created(path, object);
    const status = { ingress: [{ host, routerName: 'default', conditions: [{ type: 'Admitted', status: admitted }] }] };
    const answer = await server.call('PATCH', `${path}/${name}/status`, {
      body: { status },
      type: 'application/merge-patch+json',
    });
    assert.equal(answer.code, 200, answer.text);
  };
  const reference = (name: string, more: object = {}): string =>
    JSON.stringify({ kind: 'OAuthRedirectReference', apiVersion: 'v1', reference: { kind: 'Route', name, ...more } });
  const account = (name: string, annotations: Record<string, string>): Promise<void> =>
    created('/api/v1/namespaces/shop/serviceaccounts', {
      metadata: {
        name,
        annotations: Object.fromEntries([
          [`${ANNOTATIONS}/oauth-want-challenges`, 'true'],
          ...Object.entries(annotations).map(([key, value]) => [`${ANNOTATIONS}/${key}`, value]),
        ]),
      },
    });
  const tokenOf = async (namespace: string, name: string, audiences?: string[]): Promise<string> => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const answer = await server.call<{ status: { token: string } }>('POST', path, {
      body: { spec: audiences === undefined ? {} : { audiences } },
    });
    assert.equal(answer.code, 201, answer.text);
    return answer.body.status.token;
  };
  const request = (fields: Parameters): Promise<Answer> =>
    authorize(server, 'dev', 'password1', {
      client_id: ID,
      response_type: 'code',
      redirect_uri: CALLBACK,
      scope: SCOPES,
      ...fields,
    });
  const errorOf = (answer: Answer): string =>
    answer.code === 302
      ? (new URL(String(answer.headers.location)).searchParams.get('error') ?? '')
      : String(answer.body['error']);
  const consent = async (client: string): Promise<void> => {
    const user = await server.call<{ metadata: { uid: string } }>('GET', '/apis/user.openshift.io/v1/users/dev');
    await created('/apis/oauth.openshift.io/v1/oauthclientauthorizations', {
      metadata: { name: `dev:${client}` },
      clientName: client,
      userName: 'dev',
      userUID: user.body.metadata.uid,
      scopes: SCOPES.split(' '),
    });
  };
  const exchange = (code: string, secret: string, fields: Parameters = {}) =>
    server.call<{ access_token: string; error?: string; scope?: string }>(
      'POST',
      '/oauth/token',
      form({
        grant_type: 'authorization_code',
        client_id: ID,
        client_secret: secret,
        redirect_uri: CALLBACK,
        code,
        ...fields,
      }),
    );

  it('requires the consent of the user, then issues a token with the scopes for a token of the account', async () => {
    const first = await request({});
    assert.equal(errorOf(first), 'access_denied', first.text);
    await consent(ID);
    const code = async (): Promise<string> => {
      const answer = await request({});
      assert.equal(answer.code, 302, answer.text);
      assert.ok(String(answer.headers.location).startsWith(CALLBACK));
      return new URL(String(answer.headers.location)).searchParams.get('code') ?? '';
    };
    const own = await tokenOf('shop', 'proxy');
    for (const wrong of ['', 'x', await tokenOf('shop', 'default'), await tokenOf('other', 'default')])
      assert.equal((await exchange(await code(), wrong)).code, 401);
    assert.equal((await exchange(await code(), await tokenOf('shop', 'proxy', ['vault']))).code, 401);
    assert.equal((await exchange(await code(), own, { redirect_uri: `${CALLBACK}/x` })).code, 400);
    const answer = await exchange(await code(), own);
    assert.equal(answer.code, 200, answer.text);
    assert.equal(answer.body.scope, SCOPES);
    const { access_token: token } = answer.body;
    assert.equal((await withToken(server, token, 'GET', '/apis/user.openshift.io/v1/users/~')).code, 200);
    assert.equal((await withToken(server, token, 'GET', '/api/v1/namespaces/other/pods')).code, 403);
    // A token of a user is not a secret of the client.
    assert.equal((await exchange(await code(), token)).code, 401);
  });

  it('grants no scopes beyond the identity and roles of its own namespace, and no implicit flow', async () => {
    for (const scope of [
      'user:full',
      'user:list-projects',
      'role:edit:other',
      'role:admin:*',
      'role:view:kube-system:!',
      '',
    ])
      assert.equal(errorOf(await request({ scope })), 'invalid_scope', scope);
    const implicit = await request({ response_type: 'token' });
    assert.match(String(implicit.headers.location), /#error=unauthorized_client/);
    assert.doesNotMatch(String(implicit.headers.location), /access_token/);
  });

  it('rejects redirects outside the admitted hosts of its routes', async () => {
    const rejected = [
      'https://other.apps.example.com/oauth/callback',
      `http://${HOST}/oauth/callback`,
      `https://${HOST}:8443/oauth/callback`,
      `https://${HOST}.evil.example/`,
      `https://evil.example/${HOST}`,
      `https://${HOST}@evil.example/`,
      `https://user:pass@${HOST}/`,
      `https://${HOST}/x#fragment`,
      `https://${HOST}/..%2fx`,
      `https://${HOST}\\@evil.example/`,
      'https://*.apps.example.com/',
      'javascript:alert(1)',
    ];
    for (const redirect_uri of rejected) assert.equal((await request({ redirect_uri })).code, 400, redirect_uri);
    assert.notEqual((await request({ redirect_uri: `https://${HOST}` })).code, 400);
  });

  it('accepts only routes of its own namespace that a router has admitted, and no wildcard hosts', async () => {
    await route('shop', 'pending', 'kubernetes.example.com', 'False');
    const cases: Record<string, Record<string, string>> = {
      absent: {},
      foreign: { 'oauth-redirectreference.a': reference('back') },
      named: { 'oauth-redirectreference.a': reference('back', { namespace: 'other' }) },
      moved: { 'oauth-redirectreference.a': reference('front', { namespace: 'other' }) },
      pending: { 'oauth-redirectreference.a': reference('pending') },
      service: { 'oauth-redirectreference.a': reference('front', { kind: 'Service' }) },
      wildcard: { 'oauth-redirecturi.a': 'https://*.apps.example.com/' },
      script: { 'oauth-redirecturi.a': 'javascript://x/%0aalert(1)' },
      broken: { 'oauth-redirecturi.a': 'https://', 'oauth-redirectreference.b': '{' },
    };
    for (const [name, annotations] of Object.entries(cases)) {
      await account(name, annotations);
      const answer = await request({ client_id: `system:serviceaccount:shop:${name}` });
      assert.equal(answer.code, 401, `${name}: ${answer.text}`);
    }
    for (const id of ['system:serviceaccount:shop', 'system:serviceaccount:shop:none', `${ID}:x`])
      assert.equal((await request({ client_id: id })).code, 401, id);
  });

  it('uses redirect URIs of annotations, also to replace parts of the URI of a route', async () => {
    await account('fixed', { 'oauth-redirecturi.a': 'https://app.example.org/back' });
    const fixed = (redirect_uri: string) => request({ client_id: 'system:serviceaccount:shop:fixed', redirect_uri });
    for (const good of ['https://app.example.org/back', 'https://app.example.org/back/x'])
      assert.equal((await fixed(good)).code, 302, good);
    for (const bad of [
      'https://app.example.org/',
      'https://app.example.org/backx',
      'https://app.example.org/back/../x',
    ])
      assert.equal((await fixed(bad)).code, 400, bad);
    await account('merged', {
      'oauth-redirecturi.a': '//:8443/login',
      'oauth-redirectreference.a': reference('front'),
    });
    const merged = (redirect_uri: string) => request({ client_id: 'system:serviceaccount:shop:merged', redirect_uri });
    assert.equal((await merged(`https://${HOST}:8443/login`)).code, 302);
    assert.equal((await merged(`https://${HOST}/login`)).code, 400);
  });
});
