import assert from 'node:assert/strict';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import {
  loadSigningKey,
  type ParsedToken,
  parseToken,
  signToken,
  verifyToken,
} from '../../../src/apiserver/authentication/jwt.ts';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/certificate.ts';
import { type CallOptions, startServer, type TestServer } from '../harness.ts';

interface Thing {
  message: string;
  metadata: { uid: string; name: string };
  status: {
    token: string;
    user: { username: string };
    userInfo: { username: string; groups: string[] };
    allowed: boolean;
    authenticated: boolean;
  };
}

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ACCOUNTS = '/api/v1/namespaces/default/serviceaccounts';
const PODS = '/api/v1/namespaces/default/pods';
const bearer = (token: string): CallOptions => ({ as: null, headers: { authorization: `Bearer ${token}` } });

describe('authentication of clients', () => {
  let server: TestServer;
  let proxyCa: Awaited<ReturnType<typeof createAuthority>>;
  const day = lifetimeFrom(Date.now(), 1);
  before(async () => {
    proxyCa = await createAuthority('front-proxy', day);
    server = await startServer({
      config: {
        requestHeader: { ca: proxyCa.certPem, allowedNames: ['aggregator'], uidHeaders: ['x-who-uid'] },
        staticTokens: 'secret,carol,u1,"dev,ops"\n',
      },
    });
    await server.call('POST', ACCOUNTS, { body: { metadata: { name: 'default' } } });
    await server.call('POST', ACCOUNTS, { body: { metadata: { name: 'robot' } } });
  });
  after(() => server.stop());
  const call = (method: string, path: string, options?: CallOptions) => server.call<Thing>(method, path, options);
  const whoami = async (options: CallOptions) =>
    call('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { ...options, body: {} });

  it('rejects requests without credentials, except for health', async () => {
    for (const path of ['/api', '/api/v1/pods', '/metrics', '/openapi/v2', '/apis/apps/v1', '/nothing']) {
      assert.equal((await call('GET', path, { as: null })).code, 401, path);
    }
    for (const path of ['/healthz', '/livez', '/readyz', '/version']) {
      assert.equal((await call('GET', path, { as: null })).code, 200, path);
    }
    assert.equal((await call('GET', '/healthz', bearer('wrong'))).code, 401);
  });

  it('reads user and groups only from certificates of the client authority', async () => {
    const bob = await server.user('bob', 'dev', 'ops');
    const { body } = await whoami({ as: bob });
    assert.equal(body.status.userInfo.username, 'bob');
    assert.deepEqual([...body.status.userInfo.groups].sort(), ['dev', 'ops', 'system:authenticated']);
    const foreign = await issue(await createAuthority('other', day), {
      subject: { commonName: 'system:admin', organizations: ['system:masters'] },
      usages: ['client'],
      validity: day,
    });
    assert.equal((await call('GET', '/api', { as: foreign })).code, 401);
    const proxyAsUser = await issue(proxyCa, {
      subject: { commonName: 'system:admin', organizations: ['system:masters'] },
      usages: ['client'],
      validity: day,
    });
    assert.equal((await call('GET', '/api', { as: proxyAsUser })).code, 401);
  });

  it('a request with an invalid certificate is rejected, not anonymous, unless it has a valid token', async () => {
    const subject = { commonName: 'bob' };
    const past = { notBeforeMs: Date.now() - 7_200_000, notAfterMs: Date.now() - 3_600_000 };
    const bad = {
      'another authority': await issue(await createAuthority('other', day), {
        subject,
        usages: ['client'],
        validity: day,
      }),
      'the front proxy’s authority': await issue(proxyCa, { subject, usages: ['client'], validity: day }),
      expired: await issue(server.ca, { subject, usages: ['client'], validity: past }),
    };
    for (const [what, as] of Object.entries(bad)) {
      assert.equal((await call('GET', '/healthz', { as })).code, 401, what);
      const { body } = await whoami({ as, headers: { authorization: 'Bearer secret' } });
      assert.equal(body.status.userInfo.username, 'carol', what);
    }
    const nameless = await issue(server.ca, {
      subject: { commonName: '', organizations: ['dev'] },
      usages: ['client'],
      validity: day,
    });
    assert.equal((await call('GET', '/healthz', { as: nameless })).code, 200);
  });

  it('trusts X-Remote-User only from the front proxy', async () => {
    const headers = { 'x-remote-user': 'dave', 'x-remote-group': 'dev' };
    assert.equal((await call('GET', '/api', { as: null, headers })).code, 401);
    const admin = await whoami({ headers });
    assert.equal(admin.body.status.userInfo.username, 'system:admin');
    const aggregator = await issue(proxyCa, {
      subject: { commonName: 'aggregator' },
      usages: ['client'],
      validity: day,
    });
    assert.equal((await whoami({ as: aggregator, headers })).body.status.userInfo.username, 'dave');
    const other = await issue(proxyCa, { subject: { commonName: 'somebody' }, usages: ['client'], validity: day });
    assert.equal((await call('GET', '/api', { as: other, headers })).code, 401);
  });

  it('accepts tokens of the static token file', async () => {
    const { body } = await whoami(bearer('secret'));
    assert.deepEqual(
      [body.status.userInfo.username, [...body.status.userInfo.groups].sort()],
      ['carol', ['dev', 'ops', 'system:authenticated']],
    );
  });

  it('issues tokens that become invalid when the object to which they are bound is deleted', async () => {
    const plain = await call('POST', `${ACCOUNTS}/robot/token`, { body: { spec: {} } });
    assert.equal(plain.code, 201);
    const me = await whoami(bearer(plain.body.status.token));
    assert.equal(me.body.status.userInfo.username, 'system:serviceaccount:default:robot');
    const created = await call('POST', PODS, {
      body: {
        metadata: { name: 'runner' },
        spec: { serviceAccountName: 'robot', containers: [{ name: 'c', image: 'i' }] },
      },
    });
    const reference = { kind: 'Pod', apiVersion: 'v1', name: 'runner', uid: created.body.metadata.uid };
    const bound = await call('POST', `${ACCOUNTS}/robot/token`, { body: { spec: { boundObjectRef: reference } } });
    const options = bearer(bound.body.status.token);
    assert.equal((await whoami(options)).code, 201);
    const review = await call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      body: { spec: { token: bound.body.status.token } },
    });
    assert.equal(review.body.status.authenticated, true);
    await call('DELETE', `${PODS}/runner`);
    assert.equal((await whoami(options)).code, 401);
    const after = await call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      body: { spec: { token: bound.body.status.token } },
    });
    assert.notEqual(after.body.status.authenticated, true);
    assert.equal((await whoami(bearer(plain.body.status.token))).code, 201);
    await call('DELETE', `${ACCOUNTS}/robot`);
    assert.equal((await whoami(bearer(plain.body.status.token))).code, 401);
    await call('POST', ACCOUNTS, { body: { metadata: { name: 'robot' } } });
    assert.equal(
      (await whoami(bearer(plain.body.status.token))).code,
      401,
      'a new account of the same name is another one',
    );
    assert.equal(
      (await call('POST', `${ACCOUNTS}/robot/token`, { body: { spec: { expirationSeconds: 60 } } })).code,
      422,
    );
    const elsewhere = await call('POST', `${ACCOUNTS}/robot/token`, { body: { spec: { audiences: ['vault'] } } });
    assert.equal((await whoami(bearer(elsewhere.body.status.token))).code, 401);
  });

  it('rejects a token bound to a deleted secret or node, also after another object takes the name', async () => {
    const objects: readonly [string, string, string][] = [
      ['Secret', '/api/v1/namespaces/default/secrets', 'holder'],
      ['Node', '/api/v1/nodes', 'holder'],
    ];
    for (const [kind, path, name] of objects) {
      const created = await call('POST', path, { body: { metadata: { name } } });
      const boundObjectRef = { kind, apiVersion: 'v1', name, uid: created.body.metadata.uid };
      const { body } = await call('POST', `${ACCOUNTS}/default/token`, { body: { spec: { boundObjectRef } } });
      const options = bearer(body.status.token);
      const review = async (audiences?: string[]) =>
        (
          await call('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
            body: { spec: { token: body.status.token, ...(audiences === undefined ? {} : { audiences }) } },
          })
        ).body.status.authenticated;
      assert.equal((await whoami(options)).code, 201, kind);
      assert.equal(await review(), true);
      assert.notEqual(await review(['vault']), true, 'another audience');
      await call('DELETE', `${path}/${name}`);
      assert.equal((await whoami(options)).code, 401, kind);
      await call('POST', path, { body: { metadata: { name } } });
      assert.equal((await whoami(options)).code, 401, `another ${kind}`);
      assert.notEqual(await review(), true);
      const stale = await call('POST', `${ACCOUNTS}/default/token`, { body: { spec: { boundObjectRef } } });
      assert.equal(stale.code, 409, 'the UID of the deleted object');
    }
  });

  it('rejects forged tokens', async () => {
    const good = (await call('POST', `${ACCOUNTS}/default/token`, { body: { spec: {} } })).body.status.token;
    const [head = '', payload = '', signature = ''] = good.split('.');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    const hmac = Buffer.from('{"alg":"HS256"}').toString('base64url');
    const more = Buffer.from(
      JSON.stringify({ ...JSON.parse(Buffer.from(payload, 'base64url').toString()), sub: 'system:admin' }),
    ).toString('base64url');
    for (const token of [
      `${none}.${payload}.`,
      `${none}.${payload}.${signature}`,
      `${hmac}.${payload}.${signature}`,
      `${head}.${more}.${signature}`,
      `${head}.${payload}`,
      'a.b.c',
      'x'.repeat(60_000),
    ]) {
      const { code } = await whoami(bearer(token)).catch(() => ({ code: 431 }));
      assert.ok(code === 401 || code === 431, `${token.slice(0, 40)} → ${code}`);
    }
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      .privateKey.export({ type: 'pkcs8', format: 'pem' })
      .toString();
    const forged = signToken(loadSigningKey(other), JSON.parse(Buffer.from(payload, 'base64url').toString()) as object);
    assert.equal((await whoami(bearer(forged))).code, 401);
  });

  it('signs and verifies service account tokens with RSA keys', () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    const key = loadSigningKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
    assert.equal(key.algorithm, 'RS256');
    assert.deepEqual(verifyToken(parsed(signToken(key, { a: 1 })), [key]), { a: 1 });
    assert.ok(createPrivateKey(privateKey.export({ type: 'pkcs8', format: 'pem' })).type === 'private');
  });

  it('a user with the permission to impersonate acts as another user', async () => {
    const bob = await server.user('bob');
    const headers = { 'impersonate-user': 'alice', 'impersonate-group': 'dev' };
    assert.equal((await call('GET', '/api', { as: bob, headers })).code, 403);
    const { body } = await whoami({ headers });
    assert.deepEqual(
      [body.status.userInfo.username, [...body.status.userInfo.groups].sort()],
      ['alice', ['dev', 'system:authenticated']],
    );
    await call('POST', `${RBAC}/clusterroles`, {
      body: {
        metadata: { name: 'as-alice' },
        rules: [{ verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['alice'] }],
      },
    });
    await call('POST', `${RBAC}/clusterrolebindings`, {
      body: {
        metadata: { name: 'as-alice' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'as-alice' },
        subjects: [{ kind: 'User', name: 'bob', apiGroup: 'rbac.authorization.k8s.io' }],
      },
    });
    assert.equal(
      (await whoami({ as: bob, headers: { 'impersonate-user': 'alice' } })).body.status.userInfo.username,
      'alice',
    );
    assert.equal((await call('GET', '/api', { as: bob, headers })).code, 403, 'the group was not granted');
    assert.equal((await call('GET', '/api', { as: bob, headers: { 'impersonate-user': 'system:admin' } })).code, 403);
  });
});

function parsed(token: string): ParsedToken {
  const found = parseToken(token);
  assert.ok(found);
  return found;
}
