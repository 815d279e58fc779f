/** Password logins like those of `oc login -u`, and their tokens. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { hashSync } from 'bcryptjs';
import { systemClock } from '../../../../src/host/process/process.ts';
import { eventually } from '../../../controllers/harness.ts';
import {
  authorize,
  CHALLENGING,
  exchange,
  form,
  implicitUri,
  type LoginTestServer,
  login,
  newVerifier,
  startLoginServer,
  whoami,
  withToken,
} from '../harness.ts';

const TOKENS = '/apis/oauth.openshift.io/v1/oauthaccesstokens';
const OWN_TOKENS = '/apis/oauth.openshift.io/v1/useroauthaccesstokens';
const USERS = '/apis/user.openshift.io/v1/users';
// Hashes of "password1" with bcrypt, apr1 (`openssl passwd -apr1`) and SHA.
const FILE = [
  `dev:${hashSync('password1', 6)}`,
  'old:$apr1$abcdefgh$QLvgL9Maogn2kBtlvaQ0J.',
  `sha:{SHA}${createHash('sha1').update('password1').digest('base64')}`,
].join('\n');

const nameOf = (token: string): string =>
  `sha256~${createHash('sha256').update(token.slice('sha256~'.length)).digest('base64url')}`;

describe('oc login', () => {
  let server: LoginTestServer;
  let skewMs = 0;
  /** Offset of the clock, with which failures of earlier tests have expired. */
  let forgivenMs = 0;
  const lines: string[] = [];
  const sink = { accept: (line: string) => void lines.push(line), close: async () => {} };
  before(async () => {
    server = await startLoginServer({
      audit: { policy: { omitStages: ['RequestReceived'], rules: [{ level: 'Metadata' }] }, sinks: [sink] },
      identityProviders: [{ name: 'htpasswd', mappingMethod: 'claim', htpasswd: { file: '/users' } }],
      files: { '/users': FILE },
      clock: {
        nowMs: () => systemClock.nowMs() + skewMs,
        monotonicMs: () => systemClock.monotonicMs() + forgivenMs,
        setTimer: (delayMs, callback) => systemClock.setTimer(delayMs, callback),
      },
    });
  });
  after(() => server.stop());

  it('publishes OAuth metadata with the host name of the request and S256 as the only challenge method', async () => {
    const { code, body } = await server.call<Record<string, unknown>>(
      'GET',
      '/.well-known/oauth-authorization-server',
      { as: null },
    );
    assert.equal(code, 200);
    assert.equal(body['issuer'], `https://127.0.0.1:${server.port}`);
    assert.deepEqual(body['code_challenge_methods_supported'], ['S256']);
  });

  it('sends a basic authentication challenge only to clients that set X-CSRF-Token', async () => {
    const query = new URLSearchParams({
      client_id: CHALLENGING,
      response_type: 'token',
      redirect_uri: implicitUri(server),
    }).toString();
    const requested = await server.call('GET', `/oauth/authorize?${query}`, {
      as: null,
      headers: { 'x-csrf-token': '1' },
    });
    assert.deepEqual([requested.code, requested.headers['www-authenticate']], [401, 'Basic realm="openshift"']);
    const page = await server.call('GET', `/oauth/authorize?${query}`, { as: null });
    assert.deepEqual([page.code, page.headers['www-authenticate']], [401, undefined]);
    const implicit = await authorize(server, 'dev', 'password1', {
      client_id: CHALLENGING,
      response_type: 'token',
      redirect_uri: implicitUri(server),
    });
    const [address, fragment] = String(implicit.headers.location).split('#');
    assert.equal(address, implicitUri(server));
    const fields = new URLSearchParams(fragment);
    assert.deepEqual([fields.get('token_type'), fields.get('expires_in')], ['Bearer', '86400']);
    assert.equal(await whoami(server, fields.get('access_token') ?? ''), 'dev');
  });

  it('issues tokens by the implicit flow only to the client openshift-challenging-client', async () => {
    const redirectURI = 'https://tool.apps.example.com/callback';
    for (const client of [
      { metadata: { name: 'tool' }, secret: 'a-secret-of-the-tool', grantMethod: 'auto', redirectURIs: [redirectURI] },
    ])
      assert.equal((await server.call('POST', '/apis/oauth.openshift.io/v1/oauthclients', { body: client })).code, 201);
    const ask = (client_id: string, redirect_uri: string) =>
      authorize(server, 'dev', 'password1', { client_id, response_type: 'token', redirect_uri });
    const refused = await ask('tool', redirectURI);
    const fragment = new URLSearchParams(String(refused.headers.location).split('#')[1]);
    assert.deepEqual([fragment.get('error'), fragment.get('access_token')], ['unauthorized_client', null]);
    const browser = await ask('openshift-browser-client', `https://127.0.0.1:${server.port}/oauth/token/display`);
    assert.match(String(browser.headers.location), /#error=unauthorized_client/);
  });

  it('the OAuthClient of the console exists only while the console has a route', async () => {
    const clients = '/apis/oauth.openshift.io/v1/oauthclients';
    const uri = 'https://console-openshift-console.apps.example.com/auth/callback';
    const ask = () =>
      authorize(server, 'dev', 'password1', { client_id: 'console', response_type: 'code', redirect_uri: uri });
    assert.equal((await server.call('GET', `${clients}/console`)).code, 404);
    // Earlier releases created the client `console` even if the host had no owner.
    const orphan = { metadata: { name: 'console' }, secret: 's', grantMethod: 'auto', redirectURIs: [uri] };
    assert.equal((await server.call('POST', clients, { body: orphan })).code, 201);
    assert.equal((await ask()).code, 401);
    assert.equal((await server.call('GET', `${clients}/console`)).code, 404);
    const body = {
      metadata: { name: 'console' },
      spec: { host: new URL(uri).hostname, to: { kind: 'Service', name: 'console' } },
    };
    const routes = (namespace: string) => `/apis/route.openshift.io/v1/namespaces/${namespace}/routes`;
    for (const name of ['openshift-console', 'tenant'])
      await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name } } });
    const used = await server.call<{ message: string }>('POST', routes('tenant'), { body });
    assert.equal(used.code, 422);
    assert.match(used.body.message, /spec.host: Forbidden: .* is reserved for namespaces openshift-/);
    assert.equal((await server.call('POST', routes('openshift-console'), { body })).code, 201);
    assert.equal((await ask()).code, 302);
    const found = await server.call<{ redirectURIs: string[] }>('GET', `${clients}/console`);
    assert.deepEqual(found.body.redirectURIs, [uri]);
  });

  it('records the time at which an update adds a host to an Ingress, and drops times written by clients', async () => {
    const claims = 'hyperedge.dev/host-claims';
    const path = '/apis/networking.k8s.io/v1/namespaces/default/ingresses';
    const body = {
      metadata: { name: 'claims', annotations: { [claims]: '{"host:b.test":"2000-01-01T00:00:00Z"}' } },
      spec: { rules: [{ host: 'a.test' }] },
    };
    type Found = { metadata: { annotations?: Record<string, string> } };
    const made = await server.call<Found>('POST', path, { body });
    assert.equal(made.body.metadata.annotations, undefined);
    const patch = (change: object) =>
      server.call<Found>('PATCH', `${path}/claims`, { body: change, type: 'application/merge-patch+json' });
    const moved = await patch({ spec: { rules: [{ host: 'a.test' }, { host: 'b.test' }] } });
    const record = moved.body.metadata.annotations?.[claims] ?? '';
    assert.match(record, /^\{"host:b\.test":"20\d\d-.*Z"\}$/);
    const again = await patch({ metadata: { annotations: null } });
    assert.equal(again.body.metadata.annotations?.[claims], record);
  });

  it('issues a token by the authorization code flow, and stores only the hash of the token', async () => {
    const hashed = server.verifyMs();
    const began = performance.now();
    const { token } = await login(server, 'dev', 'password1');
    const ms = performance.now() - began - (server.verifyMs() - hashed);
    console.log(`login: ${ms.toFixed(1)} ms from password to token beyond the hash`);
    assert.match(token, /^sha256~[A-Za-z0-9_-]{43}$/);
    assert.equal(await whoami(server, token), 'dev');
    const stored = await server.call('GET', TOKENS);
    assert.ok(stored.text.includes(nameOf(token)));
    assert.ok(!stored.text.includes(token.slice('sha256~'.length)));
    const user = await withToken<{ groups: string[]; identities: string[] }>(server, token, 'GET', `${USERS}/~`);
    assert.deepEqual(user.body.identities, ['htpasswd:dev']);
    assert.deepEqual(user.body.groups, ['system:authenticated', 'system:authenticated:oauth']);
  });

  it('users/~ returns a generated User object if the user has no stored one', async () => {
    const { body } = await server.call<{ metadata: { name: string }; groups: string[] }>('GET', `${USERS}/~`);
    assert.equal(body.metadata.name, 'system:admin');
    assert.ok(body.groups.includes('system:masters'));
  });

  it('a change of a Group object applies immediately to logged-in users', async () => {
    const { token } = await login(server, 'dev', 'password1');
    const groups = async () =>
      (await withToken<{ groups: string[] }>(server, token, 'GET', `${USERS}/~`)).body.groups.includes('devs');
    assert.equal(await groups(), false);
    const group = { apiVersion: 'user.openshift.io/v1', kind: 'Group', metadata: { name: 'devs' }, users: ['dev'] };
    assert.equal((await server.call('POST', '/apis/user.openshift.io/v1/groups', { body: group })).code, 201);
    assert.equal(await groups(), true);
  });

  it('deletes a token at logout, and lists only tokens of the requesting user', async () => {
    const [mine, other] = [await login(server, 'dev', 'password1'), await login(server, 'sha', 'password1')];
    const list = await withToken<{ items: { userName: string }[] }>(server, mine.token, 'GET', OWN_TOKENS);
    assert.equal(list.code, 200);
    assert.deepEqual([...new Set(list.body.items.map(({ userName }) => userName))], ['dev']);
    for (const method of ['GET', 'DELETE'])
      assert.equal((await withToken(server, mine.token, method, `${OWN_TOKENS}/${nameOf(other.token)}`)).code, 404);
    assert.equal((await withToken(server, mine.token, 'DELETE', `${OWN_TOKENS}/${nameOf(mine.token)}`)).code, 200);
    assert.equal(await whoami(server, mine.token), '401');
    assert.equal(await whoami(server, other.token), 'sha');
  });

  it('the permissions of a token are limited to its scopes', async () => {
    const { token } = await login(server, 'dev', 'password1', 'user:info');
    assert.equal(await whoami(server, token), 'dev');
    const own = await withToken<{ message: string }>(server, token, 'GET', OWN_TOKENS);
    assert.equal(own.code, 403);
    assert.match(own.body.message, /scopes \[user:info\] prevent this action/);
    assert.equal((await withToken(server, token, 'GET', '/apis')).code, 200);
  });

  it('rejects a replayed authorization code and revokes its token', async () => {
    const { token, code, verifier } = await login(server, 'dev', 'password1');
    const again = await exchange(server, code, verifier);
    assert.deepEqual([again.code, again.body.error], [400, 'invalid_grant']);
    assert.equal(await whoami(server, token), '401');
  });

  it('rejects every form of PKCE downgrade', async () => {
    const base = { client_id: CHALLENGING, response_type: 'code', redirect_uri: implicitUri(server) };
    const { verifier, challenge } = newVerifier();
    for (const more of [
      {},
      { code_challenge: challenge },
      { code_challenge: verifier, code_challenge_method: 'plain' },
    ]) {
      const answer = await authorize(server, 'dev', 'password1', { ...base, ...more });
      assert.equal(new URL(String(answer.headers.location)).searchParams.get('error'), 'invalid_request');
    }
    for (const wrong of ['', newVerifier().verifier]) {
      const answer = await authorize(server, 'dev', 'password1', {
        ...base,
        code_challenge: challenge,
        code_challenge_method: 'S256',
      });
      const code = new URL(String(answer.headers.location)).searchParams.get('code') ?? '';
      assert.equal((await exchange(server, code, wrong)).code, 400);
    }
  });

  it('the login never redirects to a URI that the OAuth client did not register', async () => {
    const own = implicitUri(server);
    for (const target of [
      'https://evil.example/oauth/token/implicit',
      `${own}/../x`,
      `${own}?x=1`,
      own.replace('127.0.0.1', 'evil.example'),
      `https://127.0.0.1:${server.port}@evil.example/oauth/token/implicit`,
      'javascript:alert(1)',
    ]) {
      const answer = await authorize(server, 'dev', 'password1', {
        client_id: CHALLENGING,
        response_type: 'token',
        redirect_uri: target,
      });
      assert.deepEqual([answer.code, answer.headers.location], [400, undefined], target);
    }
  });

  it('rejects tokens of a deleted user, even after the user is created again', async () => {
    const { token } = await login(server, 'sha', 'password1');
    assert.equal(await whoami(server, token), 'sha');
    assert.equal((await server.call('DELETE', `${USERS}/sha`)).code, 200);
    assert.equal(await whoami(server, token), '401');
    await server.call('DELETE', '/apis/user.openshift.io/v1/identities/htpasswd:sha');
    const again = await login(server, 'sha', 'password1');
    assert.equal(await whoami(server, again.token), 'sha');
    assert.equal(await whoami(server, token), '401');
  });

  it('expires tokens by age, and accepts logins when the clock was set forward or back', async () => {
    const { token } = await login(server, 'dev', 'password1');
    skewMs = 86_401_000;
    assert.equal(await whoami(server, token), '401');
    const later = await login(server, 'dev', 'password1');
    assert.equal(await whoami(server, later.token), 'dev');
    skewMs = -10 * 365 * 86_400_000;
    const earlier = await login(server, 'dev', 'password1');
    assert.equal(await whoami(server, earlier.token), 'dev');
    skewMs = 0;
  });

  it('the login page works without scripts, and redirects only to paths of the server itself', async () => {
    const { verifier, challenge } = newVerifier();
    const then = `/oauth/authorize?${new URLSearchParams({
      client_id: 'openshift-cli-client',
      response_type: 'code',
      redirect_uri: 'http://127.0.0.1:45678/callback',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    }).toString()}`;
    const first = await server.call('GET', then, { as: null });
    assert.equal(first.headers.location, `/login?${new URLSearchParams([['then', then]]).toString()}`);
    const page = await server.call('GET', String(first.headers.location), { as: null });
    const cookie = String(page.headers['set-cookie']).split(';')[0] ?? '';
    const csrf = cookie.slice(cookie.indexOf('=') + 1);
    assert.ok(page.text.includes(csrf) && !/<script/i.test(page.text));
    // Another host of the domain, such as a route, cannot set a cookie of this name.
    assert.match(String(page.headers['set-cookie']), /^__Host-csrf=[^;]+; Path=\/; Secure; HttpOnly; SameSite=Lax$/);
    const tossed = form(
      { then, username: 'dev', password: 'password1', csrf: 'A'.repeat(43) },
      { cookie: `csrf=${'A'.repeat(43)}` },
    );
    assert.equal((await server.call('POST', '/login', tossed)).code, 403);
    const post = (fields: Record<string, string>, to = then) =>
      server.call(
        'POST',
        '/login',
        form(
          Object.fromEntries([['then', to], ['username', 'dev'], ['password', 'password1'], ...Object.entries(fields)]),
          { cookie },
        ),
      );
    assert.equal((await post({ csrf: 'x' })).code, 403);
    for (const evil of ['//evil.example', 'https://evil.example', '/\\evil.example', '/%0d%0a/../..//evil', '\t//evil'])
      assert.match(String((await post({ csrf }, evil)).headers.location), /^\/(?![/\\])/, evil);
    const done = await post({ csrf });
    assert.deepEqual([done.code, done.headers.location], [302, then]);
    assert.match(String(done.headers['set-cookie']), /^__Host-ssn=[^;]+; Path=\/; Secure; HttpOnly; SameSite=Lax$/);
    const session = String(done.headers['set-cookie']).split(';')[0] ?? '';
    const granted = await server.call('GET', then, { as: null, headers: { cookie: session } });
    const target = new URL(String(granted.headers.location));
    assert.equal(target.origin + target.pathname, 'http://127.0.0.1:45678/callback');
    const token = await server.call<{ access_token: string }>(
      'POST',
      '/oauth/token',
      form({
        grant_type: 'authorization_code',
        client_id: 'openshift-cli-client',
        code: target.searchParams.get('code') ?? '',
        redirect_uri: 'http://127.0.0.1:45678/callback',
        code_verifier: verifier,
      }),
    );
    assert.equal(await whoami(server, token.body.access_token), 'dev');
    const twice = {
      ...form({}),
      raw: 'grant_type=authorization_code&client_id=a&client_id=openshift-cli-client&code=x',
    };
    assert.equal((await server.call<{ error: string }>('POST', '/oauth/token', twice)).body.error, 'invalid_request');
  });

  it('expires tokens that are unused for the inactivity timeout of the cluster or of the OAuth client', async () => {
    const configure = (tokenConfig: object | null) =>
      server.call('PATCH', '/apis/config.openshift.io/v1/oauths/cluster', {
        body: { spec: { tokenConfig } },
        type: 'application/merge-patch+json',
      });
    const client = (change: object) =>
      server.call('PATCH', `/apis/oauth.openshift.io/v1/oauthclients/${CHALLENGING}`, {
        body: change,
        type: 'application/merge-patch+json',
      });
    assert.equal((await configure({ accessTokenInactivityTimeout: '10m' })).code, 200);
    const { token } = await login(server, 'dev', 'password1');
    skewMs = 500_000;
    assert.equal(await whoami(server, token), 'dev', 'a use within the limit');
    // The use is recorded after the response.
    await eventually(async () => {
      const stored = await server.call<{ inactivityTimeoutSeconds: number }>('GET', `${TOKENS}/${nameOf(token)}`);
      return stored.body.inactivityTimeoutSeconds > 1_000;
    }, 'the recorded use');
    skewMs = 1_000_000;
    assert.equal(await whoami(server, token), 'dev', 'the limit counts from the last use');
    skewMs = 1_700_000;
    assert.equal(await whoami(server, token), '401');
    assert.equal((await client({ accessTokenInactivityTimeoutSeconds: 0, accessTokenMaxAgeSeconds: 100 })).code, 200);
    const short = await login(server, 'dev', 'password1');
    // Creation times have whole seconds, so the token is up to one second older than the login.
    skewMs += 90_000;
    assert.equal(await whoami(server, short.token), 'dev');
    skewMs += 11_000;
    assert.equal(await whoami(server, short.token), '401', 'the age of the client counts before that of the cluster');
    await client({ accessTokenInactivityTimeoutSeconds: null, accessTokenMaxAgeSeconds: null });
    await configure(null);
    skewMs = 0;
  });

  it('a role scope grants the permissions of the role in its namespace, without access to credentials', async () => {
    await server.call('POST', '/api/v1/namespaces', { body: { metadata: { name: 'shop' } } });
    await server.call('POST', '/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings', {
      body: {
        metadata: { name: 'admin' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'admin' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'dev' }],
      },
    });
    const codes = async (scope: string): Promise<number[]> => {
      const { token } = await login(server, 'dev', 'password1', scope);
      const found: number[] = [];
      for (const path of ['shop/pods', 'shop/secrets', 'default/pods'])
        found.push((await withToken(server, token, 'GET', `/api/v1/namespaces/${path}`)).code);
      return found;
    };
    assert.deepEqual(await codes('role:view:shop'), [200, 403, 403]);
    assert.deepEqual(await codes('role:admin:shop'), [200, 403, 403]);
    assert.deepEqual(await codes('role:admin:shop:!'), [200, 200, 403]);
    assert.deepEqual(await codes('role:admin:*'), [200, 403, 403]);
    assert.deepEqual(await codes('role:view:default'), [403, 403, 403], 'a scope gives no rights');
    assert.deepEqual(await codes('user:full'), [200, 200, 403]);
    const { challenge } = newVerifier();
    const refused = await authorize(server, 'dev', 'password1', {
      client_id: CHALLENGING,
      response_type: 'code',
      redirect_uri: implicitUri(server),
      scope: 'role:view',
      code_challenge: challenge,
      code_challenge_method: 'S256',
    });
    assert.match(String(refused.headers.location), /error=invalid_scope/);
  });

  it("an access review considers the scopes in the review or, by default, those of the caller's token", async () => {
    const review = async (scopes: readonly string[] | undefined, token?: string): Promise<unknown> => {
      const body = {
        apiVersion: 'authorization.openshift.io/v1',
        kind: 'LocalSubjectAccessReview',
        namespace: 'shop',
        verb: 'list',
        resourceAPIGroup: '',
        resource: 'secrets',
        ...(token === undefined ? { user: 'dev' } : {}),
        ...(scopes === undefined ? {} : { scopes }),
      };
      const path = '/apis/authorization.openshift.io/v1/namespaces/shop/localsubjectaccessreviews';
      const options =
        token === undefined ? { body } : { body, as: null, headers: { authorization: `Bearer ${token}` } };
      const answer = await server.call('POST', path, options);
      return answer.code === 201 ? answer.body['allowed'] : answer.text;
    };
    assert.equal(await review(undefined), true);
    assert.equal(await review(['role:view:shop']), false);
    assert.equal(await review(['role:admin:shop:!']), true);
    assert.equal(await review([]), true, 'no scopes narrow nothing');
    const { token } = await login(server, 'dev', 'password1', 'user:check-access role:view:shop');
    assert.equal(await review(undefined, token), false, 'those of the token');
    assert.equal(await review([], token), true, 'an empty list leaves them out');
  });

  it('OAuth requests are subject to flow control and audited without authorization codes', async () => {
    const { code } = await login(server, 'dev', 'password1');
    await server.call('GET', `/oauth/token/implicit?code=${code}`, { as: null });
    const own = lines.map((line) => JSON.parse(line)).filter(({ requestURI }) => /^\/oauth\//.test(requestURI));
    const seen = own.map(({ verb, requestURI, responseStatus, user }) => [
      ...[verb, requestURI.split('?')[0], responseStatus?.code, user.username],
    ]);
    for (const wanted of [
      ['get', '/oauth/authorize', 302, 'system:anonymous'],
      ['post', '/oauth/token', 200, 'system:anonymous'],
    ])
      assert.ok(
        seen.some((each) => each.join() === wanted.join()),
        `${wanted.join(' ')} in ${JSON.stringify(seen.slice(-4))}`,
      );
    assert.ok(!lines.some((line) => line.includes(code)));
    const dispatched = async (): Promise<number> => {
      const { text } = await server.call('GET', '/metrics');
      const found = text.matchAll(/^apiserver_flowcontrol_dispatched_requests_total\{.*\} (\d+)$/gm);
      return [...found].reduce((sum, [, count]) => sum + Number(count), 0);
    };
    const before = await dispatched();
    for (let count = 0; count < 5; count++) await server.call('GET', '/oauth/authorize', { as: null });
    assert.ok((await dispatched()) - before >= 5, 'requests of logins are dispatched by flow control');
  });

  it('accepts the login kubeadmin until its secret is deleted', async () => {
    const password = 'abcde-fghij-klmno-pqrst';
    const secret = (hash: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'kubeadmin', namespace: 'kube-system' },
      data: { kubeadmin: Buffer.from(hash).toString('base64') },
    });
    const secrets = '/api/v1/namespaces/kube-system/secrets';
    assert.equal((await server.call('POST', secrets, { body: secret(hashSync(password, 6)) })).code, 201);
    const { token } = await login(server, 'kubeadmin', password);
    assert.equal(await whoami(server, token), 'kube:admin');
    assert.equal((await withToken(server, token, 'GET', secrets)).code, 200);
    await server.call('DELETE', `${secrets}/kubeadmin`);
    assert.equal(await whoami(server, token), '401');
    await assert.rejects(login(server, 'kubeadmin', password), /401/);
    assert.equal((await server.call('POST', secrets, { body: secret(hashSync('short', 6)) })).code, 201);
    await assert.rejects(login(server, 'kubeadmin', 'short'), /401/);
    await server.call('DELETE', `${secrets}/kubeadmin`);
  });

  it('limits failed logins per source address and user without locking the user out from other addresses', async () => {
    const base = { client_id: CHALLENGING, response_type: 'token', redirect_uri: implicitUri(server) };
    forgivenMs = 3_600_000;
    const codes: number[] = [];
    for (let attempt = 0; attempt < 12; attempt++) codes.push((await authorize(server, 'victim', 'wrong', base)).code);
    assert.deepEqual([codes[0], codes.at(-1)], [401, 429]);
    assert.equal((await authorize(server, 'dev', 'password1', base)).code, 302);
  });
});
