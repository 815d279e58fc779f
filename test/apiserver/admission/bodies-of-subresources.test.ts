/** Webhooks change the bodies of subresources before values are derived from them. */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { after, afterEach, before, describe, it } from 'node:test';
import { startServer, type TestServer } from '../harness.ts';
import { configure, patchOf, unconfigure, WebhookServer } from './webhook-server.ts';

const AUTH = 'authentication.k8s.io/v1';
const TOKEN = '/api/v1/namespaces/default/serviceaccounts/robot/token';
const PODS = '/api/v1/namespaces/default/pods';

const keys = () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    signingKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    publicKeys: [publicKey.export({ type: 'spki', format: 'pem' }).toString()],
  };
};

interface Answer {
  readonly message: string;
  readonly spec: { readonly audiences: readonly string[]; readonly expirationSeconds: number };
  readonly status: { readonly token: string };
  readonly metadata: { readonly uid: string; readonly deletionGracePeriodSeconds?: number };
}

describe('bodies of subresources', () => {
  let server: TestServer;
  let hooks: WebhookServer;
  let reference: object;
  before(async () => {
    hooks = await WebhookServer.start();
    server = await startServer({
      config: {
        serviceAccounts: { ...keys(), issuer: 'https://a.example.com', extendTokens: true, maxTokenSeconds: 3600 },
      },
    });
    const account = { metadata: { name: 'robot' } };
    await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', { body: account });
    const pod = await server.call<Answer>('POST', PODS, {
      body: {
        metadata: { name: 'p' },
        spec: { serviceAccountName: 'robot', nodeName: 'n', containers: [{ name: 'c', image: 'i' }] },
      },
    });
    reference = { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: pod.body.metadata.uid };
  });
  after(async () => {
    await server.stop();
    await hooks.stop();
  });
  afterEach(() => unconfigure(server));

  const token = async (spec: object) => {
    const answer = await server.call<Answer>('POST', TOKEN, { body: { apiVersion: AUTH, kind: 'TokenRequest', spec } });
    if (answer.code !== 201) return { code: answer.code, message: answer.body.message };
    const claims = JSON.parse(Buffer.from(answer.body.status.token.split('.')[1] ?? '', 'base64url').toString());
    return { code: 201, life: claims.exp - claims.iat, aud: claims.aud, spec: answer.body.spec };
  };
  const onTokens = async (type: 'Mutating' | 'Validating', path: string) =>
    configure(server, type, 'a', {
      ...hooks.hook(path),
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['serviceaccounts/token'] }],
    });

  it('a token has the audiences and lifetime that a webhook has set', async () => {
    hooks.on('/narrow', () =>
      patchOf(
        { op: 'replace', path: '/spec/audiences', value: ['narrow'] },
        { op: 'replace', path: '/spec/expirationSeconds', value: 900 },
      ),
    );
    await onTokens('Mutating', '/narrow');
    const { life, aud, spec } = await token({ audiences: ['wide'], expirationSeconds: 3000 });
    assert.deepEqual([life, aud], [900, ['narrow']]);
    assert.deepEqual([spec?.audiences, spec?.expirationSeconds], [['narrow'], 900]);
  });

  it('a subresource body that a webhook changed is validated', async () => {
    hooks.on('/short', () => patchOf({ op: 'replace', path: '/spec/expirationSeconds', value: 5 }));
    await onTokens('Mutating', '/short');
    const { code, message } = await token({ audiences: ['wide'] });
    assert.equal(code, 422);
    assert.match(message ?? '', /may not specify a duration less than 10 minutes/);
  });

  it('validating webhooks receive the body of a subresource with defaults', async () => {
    hooks.on('/see', () => ({ allowed: true }));
    await onTokens('Validating', '/see');
    assert.equal((await token({})).code, 201);
    const [seen] = hooks.take('/see');
    assert.ok(seen !== undefined);
    const { spec } = seen.object as unknown as { spec: { audiences: string[]; expirationSeconds: number } };
    assert.equal(spec.expirationSeconds, 3600);
    assert.equal(spec.audiences.length > 0, true);
  });

  it('the lifetime of a pod token that a webhook has shortened is not extended', async () => {
    assert.equal((await token({ audiences: [], expirationSeconds: 3607, boundObjectRef: reference })).life, 3600);
  });

  it('an eviction has the grace period that a webhook has set', async () => {
    hooks.on('/grace', () => patchOf({ op: 'add', path: '/deleteOptions', value: { gracePeriodSeconds: 7 } }));
    await configure(server, 'Mutating', 'a', {
      ...hooks.hook('/grace'),
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods/eviction'] }],
    });
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p', namespace: 'default' } };
    assert.equal((await server.call('POST', `${PODS}/p/eviction`, { body })).code, 201);
    const { metadata } = (await server.call<Answer>('GET', `${PODS}/p`)).body;
    assert.equal(metadata.deletionGracePeriodSeconds, 7);
  });
});
