/** Service account tokens beyond a plain TokenRequest. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { loadSigningKey, signToken } from '../../../src/apiserver/authentication/jwt.ts';
import { startServer, type TestServer } from '../harness.ts';

const AUTH = 'authentication.k8s.io/v1';
const ISSUER = 'https://now.example.com';
const pem = () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    private: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    public: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
};

describe('tokens of service accounts', () => {
  const [now, then] = [pem(), pem()];
  const old = loadSigningKey(then.private);
  let server: TestServer;
  let uid = '';
  const whoami = async (token: string): Promise<string> => {
    const { code, body } = await server.call<{ status: { userInfo: { username: string } } }>(
      'POST',
      `/apis/${AUTH}/selfsubjectreviews`,
      {
        as: null,
        headers: { authorization: `Bearer ${token}` },
        body: { apiVersion: AUTH, kind: 'SelfSubjectReview' },
      },
    );
    return code === 201 ? body.status.userInfo.username : String(code);
  };
  before(async () => {
    server = await startServer({
      config: {
        serviceAccounts: {
          signingKey: now.private,
          publicKeys: [now.public, then.public],
          issuer: ISSUER,
          otherIssuers: ['https://before.example.com'],
          jwksUri: 'https://keys.example.com/jwks',
          extendTokens: true,
          maxTokenSeconds: 7200,
        },
      },
    });
    const made = await server.call<{ metadata: { uid: string } }>(
      'POST',
      '/api/v1/namespaces/default/serviceaccounts',
      {
        body: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } },
      },
    );
    uid = made.body.metadata.uid;
  });
  after(() => server.stop());

  it('accepts tokens that an earlier key and issuer have signed, and publishes the old and the new key', async () => {
    const claims = (more: object = {}) => ({
      aud: [ISSUER],
      iss: 'https://before.example.com',
      sub: 'system:serviceaccount:default:robot',
      exp: Math.floor(Date.now() / 1000) + 600,
      'kubernetes.io': { namespace: 'default', serviceaccount: { name: 'robot', uid } },
      ...more,
    });
    assert.equal(await whoami(signToken(old, claims())), 'system:serviceaccount:default:robot');
    assert.equal(await whoami(signToken(old, claims({ iss: 'https://other.example.com' }))), '401');
    assert.equal(await whoami(signToken(old, claims({ aud: ['elsewhere'] }))), '401');
    const jwks = await server.call<{ keys: unknown[] }>('GET', '/openid/v1/jwks');
    assert.equal(jwks.body.keys.length, 2);
    const document = await server.call<{ issuer: string; jwks_uri: string }>(
      'GET',
      '/.well-known/openid-configuration',
    );
    assert.deepEqual([document.body.issuer, document.body.jwks_uri], [ISSUER, 'https://keys.example.com/jwks']);
    for (const answer of [jwks, document]) assert.equal(answer.headers['cache-control'], 'public, max-age=3600');
  });

  it('accepts a legacy token as long as its secret contains the token', async () => {
    const key = loadSigningKey(now.private);
    const token = signToken(key, {
      iss: 'kubernetes/serviceaccount',
      sub: 'system:serviceaccount:default:robot',
      'kubernetes.io/serviceaccount/namespace': 'default',
      'kubernetes.io/serviceaccount/secret.name': 'robot-token',
      'kubernetes.io/serviceaccount/service-account.name': 'robot',
      'kubernetes.io/serviceaccount/service-account.uid': uid,
    });
    assert.equal(await whoami(token), '401');
    const secrets = '/api/v1/namespaces/default/secrets';
    const body = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'robot-token', annotations: { 'kubernetes.io/service-account.name': 'robot' } },
      type: 'kubernetes.io/service-account-token',
      stringData: { token },
    };
    assert.equal((await server.call('POST', secrets, { body })).code, 201);
    assert.equal(await whoami(token), 'system:serviceaccount:default:robot');
    await server.call('PUT', `${secrets}/robot-token`, { body: { ...body, stringData: { token: `${token}x` } } });
    assert.equal(await whoami(token), '401');
    await server.call('PUT', `${secrets}/robot-token`, { body });
    assert.equal(await whoami(token), 'system:serviceaccount:default:robot');
    // The token cleaner needs the day of the last use, and can invalidate the token.
    const labelsOf = async () => {
      const { body: kept } = await server.call<{ metadata: { labels?: Record<string, string> } }>(
        'GET',
        `${secrets}/robot-token`,
      );
      return kept.metadata.labels ?? {};
    };
    const today = () => new Date().toISOString().slice(0, 10);
    const before = today();
    while ((await labelsOf())['kubernetes.io/legacy-token-last-used'] === undefined)
      await new Promise((resolve) => setTimeout(resolve, 5));
    assert.ok([before, today()].includes((await labelsOf())['kubernetes.io/legacy-token-last-used'] ?? ''));
    const label = (invalid: string | null) =>
      server.call('PATCH', `${secrets}/robot-token`, {
        raw: JSON.stringify({ metadata: { labels: { 'kubernetes.io/legacy-token-invalid-since': invalid } } }),
        type: 'application/merge-patch+json',
      });
    await label('2026-01-01');
    assert.equal(await whoami(token), '401');
    await label('');
    assert.equal(await whoami(token), 'system:serviceaccount:default:robot');
    const tracking = await server.call<{ data: { since: string } }>(
      'GET',
      '/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking',
    );
    assert.match(tracking.body.data.since, /^\d{4}-\d\d-\d\d$/);
    await server.call('DELETE', `${secrets}/robot-token`);
    assert.equal(await whoami(token), '401');
  });

  it('rejects a TokenRequest for another name or namespace, and returns the UID of the account', async () => {
    const ask = (metadata: object) =>
      server.call<{ message: string; metadata: { uid: string } }>(
        'POST',
        '/api/v1/namespaces/default/serviceaccounts/robot/token',
        { body: { apiVersion: AUTH, kind: 'TokenRequest', metadata, spec: {} } },
      );
    assert.equal((await ask({})).body.metadata.uid, uid);
    const name = await ask({ name: 'other' });
    assert.deepEqual(
      [name.code, name.body.message],
      [
        422,
        'TokenRequest.authentication.k8s.io "robot" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified',
      ],
    );
    const namespace = await ask({ namespace: 'other' });
    assert.deepEqual([namespace.code, /does not match the namespace/.test(namespace.body.message)], [400, true]);
  });

  it('rejects a TokenRequest with the UID of an earlier service account', async () => {
    const ask = (of: string) =>
      server.call<{ message: string }>('POST', '/api/v1/namespaces/default/serviceaccounts/robot/token', {
        body: { apiVersion: AUTH, kind: 'TokenRequest', metadata: { uid: of }, spec: {} },
      });
    assert.equal((await ask(uid)).code, 201);
    const { code, body } = await ask('former');
    assert.equal(code, 409);
    assert.equal(
      body.message,
      `Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "robot": the UID in the token request (former) does not match the UID of the service account (${uid})`,
    );
  });

  it('extends the one-hour token of a pod to a year with warnafter, and limits the lifetime of other tokens', async () => {
    const pod = await server.call<{ metadata: { uid: string } }>('POST', '/api/v1/namespaces/default/pods', {
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p' },
        spec: { serviceAccountName: 'robot', nodeName: 'absent', containers: [{ name: 'c', image: 'i' }] },
      },
    });
    const request = async (spec: object) => {
      const { body, headers } = await server.call<{ status: { token: string; expirationTimestamp: string } }>(
        'POST',
        '/api/v1/namespaces/default/serviceaccounts/robot/token',
        { body: { apiVersion: AUTH, kind: 'TokenRequest', spec } },
      );
      const payload = body.status.token.split('.')[1] ?? '';
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as {
        exp: number;
        iat: number;
        'kubernetes.io': { warnafter?: number; node?: object };
      };
      const reportedLife = Date.parse(body.status.expirationTimestamp) / 1000 - claims.iat;
      const { warnafter, node } = claims['kubernetes.io'];
      return {
        life: claims.exp - claims.iat,
        reportedLife,
        warnafter,
        node,
        iat: claims.iat,
        warning: headers['warning'],
      };
    };
    const reference = { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: pod.body.metadata.uid };
    const extended = await request({ expirationSeconds: 3607, boundObjectRef: reference });
    assert.deepEqual([extended.life, extended.reportedLife], [365 * 24 * 3600, 3607]);
    assert.equal(extended.warnafter, extended.iat + 3607);
    assert.deepEqual([extended.node, extended.warning], [{ name: 'absent' }, undefined]);
    assert.equal((await request({ expirationSeconds: 3607 })).life, 3607);
    assert.equal((await request({ expirationSeconds: 3607, audiences: ['x'], boundObjectRef: reference })).life, 3607);
    const long = await request({ expirationSeconds: 86_400 });
    assert.deepEqual([long.life, long.reportedLife], [7200, 7200]);
    assert.equal(long.warning, '299 - "requested expiration of 86400 seconds shortened to 7200 seconds"');
  });
});
