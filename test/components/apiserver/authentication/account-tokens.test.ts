/** Service accounts' tokens of other kinds than a plain TokenRequest's. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { loadSigningKey, signToken } from '../../../../src/components/apiserver/authentication/jwt.ts';
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

  it('takes the tokens that were signed before keys and issuer changed, and publishes both keys', async () => {
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

  it('takes a token that is kept in a secret as long as the secret holds it', async () => {
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
    await server.call('DELETE', `${secrets}/robot-token`);
    assert.equal(await whoami(token), '401');
  });

  it('gives no token for an account of the same name that was there before', async () => {
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

  it('extends the hour of a pod’s token to a year, tells the hour, and cuts what is too long', async () => {
    const pod = await server.call<{ metadata: { uid: string } }>('POST', '/api/v1/namespaces/default/pods', {
      body: {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p' },
        spec: { serviceAccountName: 'robot', containers: [{ name: 'c', image: 'i' }] },
      },
    });
    const request = async (spec: object) => {
      const { body } = await server.call<{ status: { token: string; expirationTimestamp: string } }>(
        'POST',
        '/api/v1/namespaces/default/serviceaccounts/robot/token',
        { body: { apiVersion: AUTH, kind: 'TokenRequest', spec } },
      );
      const payload = body.status.token.split('.')[1] ?? '';
      const claims = JSON.parse(Buffer.from(payload, 'base64url').toString()) as {
        exp: number;
        iat: number;
        'kubernetes.io': { warnafter?: number };
      };
      const said = Date.parse(body.status.expirationTimestamp) / 1000 - claims.iat;
      return { life: claims.exp - claims.iat, said, warnafter: claims['kubernetes.io'].warnafter, iat: claims.iat };
    };
    const reference = { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: pod.body.metadata.uid };
    const extended = await request({ expirationSeconds: 3607, boundObjectRef: reference });
    assert.deepEqual([extended.life, extended.said], [365 * 24 * 3600, 3607]);
    assert.equal(extended.warnafter, extended.iat + 3607);
    assert.equal((await request({ expirationSeconds: 3607 })).life, 3607);
    assert.equal((await request({ expirationSeconds: 3607, audiences: ['x'], boundObjectRef: reference })).life, 3607);
    const long = await request({ expirationSeconds: 86_400 });
    assert.deepEqual([long.life, long.said], [7200, 7200]);
  });
});
