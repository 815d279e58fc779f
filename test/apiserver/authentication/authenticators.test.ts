/** Bootstrap tokens, OIDC issuers, and webhooks for authentication and authorization. */

import assert from 'node:assert/strict';
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import { after, before, describe, it } from 'node:test';
import { compileClaimExpression, type IdentitySettings } from '../../../src/apiserver/index.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/index.ts';
import { type Answer, startServer, type TestServer } from '../harness.ts';

const base64url = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const AUTH = 'authentication.k8s.io/v1';

interface Whoami {
  readonly status: {
    readonly userInfo: { readonly username: string; readonly groups: string[]; readonly uid?: string };
  };
}

/** Starts one server that acts as issuer and as all webhooks. */
async function startPeer() {
  const day = lifetimeFrom(Date.now(), 1);
  const ca = await createAuthority('peer-ca', day);
  const pair = await issue(ca, {
    subject: { commonName: 'peer' },
    usages: ['server'],
    names: { dns: ['localhost'], ips: ['127.0.0.1'] },
    validity: day,
  });
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-384' });
  const requested: Record<string, number> = {};
  const peer = { url: '', ca: ca.certPem, rsa, ec, requests: requested, published: ['rsa'], up: true, close: () => {} };
  const server: Server = createServer({ cert: pair.certPem, key: pair.keyPem }, (request, response) => {
    const path = request.url ?? '';
    requested[path] = (requested[path] ?? 0) + 1;
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = chunks.length === 0 ? undefined : JSON.parse(Buffer.concat(chunks).toString());
      const answer = peer.up ? answerOf(path, body) : undefined;
      response.writeHead(answer === undefined ? 403 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(answer ?? {}));
    });
  });
  const answerOf = (path: string, body: { spec: Record<string, never> } | undefined): object | undefined => {
    switch (path) {
      case '/.well-known/openid-configuration':
        return { issuer: peer.url, jwks_uri: `${peer.url}/keys` };
      case '/keys':
        return {
          keys: [
            { ...rsa.publicKey.export({ format: 'jwk' }), kid: 'rsa', use: 'sig', alg: 'RS256' },
            { ...ec.publicKey.export({ format: 'jwk' }), kid: 'ec', use: 'sig' },
          ].filter(({ kid }) => peer.published.includes(kid)),
        };
      case '/tokens': {
        const { token } = (body?.spec ?? {}) as unknown as { token: string };
        return {
          status:
            token === 'hooked' ? { authenticated: true, user: { username: 'hank', uid: '7', groups: ['g'] } } : {},
        };
      }
      case '/access': {
        const spec = (body?.spec ?? {}) as unknown as {
          user: string;
          resourceAttributes?: { verb: string; resource: string };
        };
        if (spec.user !== 'hank') return { status: { allowed: false } };
        if (spec.resourceAttributes?.resource === 'secrets')
          return { status: { allowed: false, denied: true, reason: 'never' } };
        return { status: { allowed: spec.resourceAttributes?.verb === 'list', reason: 'only lists' } };
      }
      default:
        return undefined;
    }
  };
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  peer.url = `https://localhost:${(server.address() as { port: number }).port}`;
  peer.close = () => {
    server.close();
    server.closeAllConnections();
  };
  return peer;
}

function token(claims: object, key: KeyObject, header: { alg: string; kid?: string }): string {
  const input = `${base64url(header)}.${base64url(claims)}`;
  const hash = `sha${header.alg.slice(2)}`;
  const signature = sign(hash, Buffer.from(input), { key, dsaEncoding: 'ieee-p1363' });
  return `${input}.${signature.toString('base64url')}`;
}

describe('credentials verified by other servers', () => {
  let server: TestServer;
  let peer: Awaited<ReturnType<typeof startPeer>>;
  const identities: { current: IdentitySettings } = { current: {} };
  const whoami = (secret: string): Promise<Answer<Whoami>> =>
    server.call('POST', `/apis/${AUTH}/selfsubjectreviews`, {
      as: null,
      headers: bearer(secret),
      body: { apiVersion: AUTH, kind: 'SelfSubjectReview' },
    });
  const claims = (more: object = {}) => ({
    iss: peer.url,
    aud: ['hyper', 'other'],
    exp: Math.floor(Date.now() / 1000) + 600,
    sub: 'u1',
    email: 'ann@example.com',
    email_verified: true,
    team: ['a', 'b'],
    hd: 'example.com',
    ...more,
  });
  const good = (more: object = {}): string => token(claims(more), peer.rsa.privateKey, { alg: 'RS256', kid: 'rsa' });

  before(async () => {
    peer = await startPeer();
    identities.current = {
      tokenIssuers: [
        {
          url: peer.url,
          ca: peer.ca,
          audiences: ['hyper'],
          algorithms: ['RS256', 'ES384'],
          username: { claim: 'email', prefix: 'oidc:' },
          groups: { claim: 'team', prefix: 'team:' },
          requiredClaims: new Map([['hd', 'example.com']]),
        },
      ],
    };
    server = await startServer({
      identities,
      config: {
        bootstrapTokens: true,
        tokenWebhook: { endpoint: { url: `${peer.url}/tokens`, ca: peer.ca }, version: 'v1', cacheMs: 60_000 },
        authorizers: [
          {
            type: 'Webhook',
            webhook: {
              endpoint: { url: `${peer.url}/access`, ca: peer.ca },
              version: 'v1',
              allowedMs: 60_000,
              deniedMs: 60_000,
            },
          },
          { type: 'RBAC' },
        ],
      },
    });
  });
  after(async () => {
    await server.stop();
    peer.close();
  });

  it('accepts ID tokens of the issuer, and maps their claims', async () => {
    const { code, body } = await whoami(good());
    assert.equal(code, 201);
    assert.equal(body.status.userInfo.username, 'oidc:ann@example.com');
    assert.deepEqual(body.status.userInfo.groups, ['team:a', 'team:b', 'system:authenticated']);
  });

  it('limits key requests to an issuer for any sequence of tokens', async () => {
    const before = peer.requests['/keys'] ?? 0;
    const elliptic = token(claims({ sub: 'late' }), peer.ec.privateKey, { alg: 'ES384', kid: 'ec' });
    assert.equal((await whoami(elliptic)).code, 401);
    assert.equal((await whoami(elliptic)).code, 401);
    // The minimum interval has not passed, so tokens with invented key IDs cause no request.
    assert.equal(peer.requests['/keys'], before);
  });

  it('rejects ID tokens with wrong audience, time, format or signature', async () => {
    const none = `${base64url({ alg: 'none' })}.${base64url(claims())}.`;
    const hmac = token(claims(), peer.rsa.privateKey, { alg: 'RS256', kid: 'rsa' }).replace(
      /^[^.]+/,
      base64url({ alg: 'HS256', kid: 'rsa' }),
    );
    const otherKey = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
    const [head, , signature] = good().split('.');
    const bad: Record<string, string> = {
      none,
      'none with a signature': `${base64url({ alg: 'none' })}.${base64url(claims())}.AAAA`,
      hmac,
      'wrong audience': good({ aud: 'elsewhere' }),
      expired: good({ exp: 1 }),
      'no end': good({ exp: undefined }),
      'not yet': good({ nbf: Math.floor(Date.now() / 1000) + 3600 }),
      'wrong issuer': good({ iss: 'https://evil.example.com' }),
      'required claim': good({ hd: 'evil.example.com' }),
      'no name': good({ email: undefined }),
      'address not verified': good({ email_verified: false }),
      'groups of another type': good({ team: { a: 1 } }),
      'another key': token(claims(), otherKey, { alg: 'RS256', kid: 'rsa' }),
      'algorithm not allowed': token(claims(), peer.rsa.privateKey, { alg: 'RS512', kid: 'rsa' }),
      'exchanged claims': `${head}.${base64url(claims({ email: 'root@example.com' }))}.${signature}`,
    };
    for (const [what, secret] of Object.entries(bad)) assert.equal((await whoami(secret)).code, 401, what);
  });

  it('calls the token webhook once for an unknown token while the response is cached', async () => {
    const { code, body } = await whoami('hooked');
    assert.equal(code, 201);
    assert.equal(body.status.userInfo.username, 'hank');
    const received = peer.requests['/tokens'] ?? 0;
    assert.equal((await whoami('hooked')).code, 201);
    assert.equal((await whoami('nobody')).code, 401);
    assert.equal((await whoami('nobody')).code, 401);
    assert.equal(peer.requests['/tokens'], received + 1);
    peer.up = false;
    assert.equal((await whoami('while it is down')).code, 401);
    assert.equal((await whoami('hooked')).code, 201);
    peer.up = true;
    assert.equal((await whoami('while it is down')).code, 401);
  });

  it('reviews tokens of all kinds for the requested audiences', async () => {
    const review = async (secret: string, audiences?: string[]) => {
      const { body } = await server.call<{ status: { authenticated?: boolean; audiences?: string[] } }>(
        'POST',
        `/apis/${AUTH}/tokenreviews`,
        {
          body: {
            apiVersion: AUTH,
            kind: 'TokenReview',
            spec: { token: secret, ...(audiences === undefined ? {} : { audiences }) },
          },
        },
      );
      return body.status;
    };
    assert.equal((await review('hooked')).authenticated, true);
    assert.equal((await review(good())).authenticated, true);
    assert.equal((await review('bogus')).authenticated, undefined);
    assert.equal((await review(good(), ['somebody-else'])).authenticated, undefined);
  });

  it('accepts bootstrap tokens with their groups until they expire', async () => {
    const put = (id: string, more: Record<string, string>) =>
      server.call('POST', '/api/v1/namespaces/kube-system/secrets', {
        body: {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: `bootstrap-token-${id}` },
          type: 'bootstrap.kubernetes.io/token',
          stringData: {
            'token-id': id,
            'token-secret': '0123456789abcdef',
            'usage-bootstrap-authentication': 'true',
            ...more,
          },
        },
      });
    const hour = 3_600_000;
    await put('aaaaaa', {
      expiration: new Date(Date.now() + hour).toISOString(),
      'auth-extra-groups': 'system:bootstrappers:lab',
    });
    await put('bbbbbb', { expiration: new Date(Date.now() - hour).toISOString() });
    await put('cccccc', { 'usage-bootstrap-authentication': 'false' });
    await put('dddddd', { 'auth-extra-groups': 'system:masters' });
    await put('eeeeee', { 'token-id': 'ffffff' });
    await put('gggggg', { expiration: 'whenever' });
    const { code, body } = await whoami('aaaaaa.0123456789abcdef');
    assert.equal(code, 201);
    assert.equal(body.status.userInfo.username, 'system:bootstrap:aaaaaa');
    assert.deepEqual(body.status.userInfo.groups, [
      'system:bootstrappers',
      'system:bootstrappers:lab',
      'system:authenticated',
    ]);
    assert.equal((await whoami('aaaaaa.0123456789abcdee')).code, 401);
    for (const id of ['bbbbbb', 'cccccc', 'dddddd', 'eeeeee', 'gggggg', 'zzzzzz'])
      assert.equal((await whoami(`${id}.0123456789abcdef`)).code, 401, id);
    await server.call('DELETE', '/api/v1/namespaces/kube-system/secrets/bootstrap-token-aaaaaa');
    assert.equal((await whoami('aaaaaa.0123456789abcdef')).code, 401);
  });

  it('maps responses of the authorization webhook to allowed, no opinion and denied', async () => {
    const as = (path: string) => server.call<{ message: string }>('GET', path, { as: null, headers: bearer('hooked') });
    assert.equal((await as('/api/v1/namespaces/default/pods')).code, 200);
    const single = await as('/api/v1/namespaces/default/pods/x');
    assert.equal(single.code, 403);
    assert.match(single.body.message, /only lists/);
    const rbac = 'rbac.authorization.k8s.io';
    await server.call('POST', `/apis/${rbac}/v1/clusterrolebindings`, {
      body: {
        apiVersion: `${rbac}/v1`,
        kind: 'ClusterRoleBinding',
        metadata: { name: 'hank' },
        roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'cluster-admin' },
        subjects: [{ apiGroup: rbac, kind: 'User', name: 'hank' }],
      },
    });
    assert.equal((await as('/api/v1/namespaces/default/pods/x')).code, 404);
    const never = await as('/api/v1/namespaces/default/secrets');
    assert.equal(never.code, 403);
    assert.match(never.body.message, /never/);
    const review = await server.call<{ status: { allowed: boolean } }>(
      'POST',
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      {
        body: {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: { user: 'hank', resourceAttributes: { verb: 'list', resource: 'secrets' } },
        },
      },
    );
    assert.equal(review.body.status.allowed, false);
  });

  it('uses a changed identity configuration for the next request, including expressions', async () => {
    const before = identities.current;
    const one = good({ sub: 'changing' });
    assert.equal((await whoami(one)).body.status.userInfo.username, 'oidc:ann@example.com');
    const [issuer] = before.tokenIssuers ?? [];
    assert.ok(issuer);
    const { groups: _groups, ...rest } = issuer;
    identities.current = {
      anonymous: 'paths',
      anonymousPaths: ['/livez'],
      tokenIssuers: [
        {
          ...rest,
          username: compileClaimExpression("'cel:' + claims.sub", 'text'),
          userRules: [
            { expression: compileClaimExpression("user.username != 'cel:barred'", 'user rule'), message: '' },
          ],
        },
      ],
    };
    const { status } = (await whoami(one)).body;
    assert.equal(status.userInfo.username, 'cel:changing', 'what was remembered is forgotten');
    assert.deepEqual(status.userInfo.groups, ['system:authenticated']);
    assert.equal((await whoami(good({ sub: 'barred' }))).code, 401);
    assert.equal((await server.call('GET', '/livez', { as: null })).code, 200);
    assert.equal((await server.call('GET', '/version', { as: null })).code, 401);
    identities.current = {};
    assert.equal((await whoami(one)).code, 401);
    assert.equal((await server.call('GET', '/livez', { as: null })).code, 200);
    identities.current = before;
    assert.equal((await whoami(one)).body.status.userInfo.username, 'oidc:ann@example.com');
  });
});
