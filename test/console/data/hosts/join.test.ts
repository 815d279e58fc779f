import assert from 'node:assert/strict';
import { createHash, X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';
import type { ConfigMap } from '../../../../src/api/generated/core/v1.ts';
import type { AnyObject } from '../../../../src/console/data/api/resources.ts';
import { addressProblem, createJoinCommand, listTokens, revokeToken } from '../../../../src/console/data/hosts/join.ts';
import { nodeRevisions, revisionViews, tookText } from '../../../../src/console/data/hosts/revisions.ts';
import { caHash, publicKeyInfo } from '../../../../src/console/data/hosts/spki.ts';
import { createAuthority, lifetimeFrom } from '../../../../src/pki/index.ts';
import { FakeApi, json } from '../fake-api.ts';

const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const { certPem: ca } = await createAuthority('test-ca', lifetimeFrom(Date.now(), 10));
const hash = (pem: string): string =>
  `sha256:${createHash('sha256')
    .update(new X509Certificate(pem).publicKey.export({ type: 'spki', format: 'der' }))
    .digest('hex')}`;

const kubeconfig = (server: string): string =>
  JSON.stringify({
    clusters: [{ name: '', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
  });

/** A cluster that signs each new token unless `isSigned` is false. */
function cluster(server: string, isSigned = true) {
  const fake = new FakeApi();
  const secrets: { metadata: { name: string }; stringData: Record<string, string> }[] = [];
  fake.answer = (url, { method, body }) => {
    if (method === 'POST') {
      secrets.push(JSON.parse(String(body)));
      return json({});
    }
    const signatures = isSigned
      ? secrets.map(({ stringData }) => [`jws-kubeconfig-${stringData['token-id']}`, 'x'])
      : [];
    if (url.pathname.endsWith('/configmaps/cluster-info'))
      return json({ data: { kubeconfig: kubeconfig(server), ...Object.fromEntries(signatures) } });
    return json({
      items: [{ metadata: { name: 'bootstrap-token-abc123' } }, { metadata: { name: 'bootstrap-token-../x' } }],
    });
  };
  let next = 0;
  const context = {
    api: fake.api,
    nowMs: () => NOW_MS,
    bytes: (length: number) => Uint8Array.from({ length }, () => next++ % 256),
    sleep: () => Promise.resolve(),
  };
  return { fake, secrets, context };
}

suite('a join command', () => {
  test('a join command contains a node token of the cluster and the hash of its CA', async () => {
    const { fake, secrets, context } = cluster('https://192.0.2.10:8443');
    const { command, expires } = await createJoinCommand(context, 4);
    const [secret] = secrets;
    const { 'token-id': id, 'token-secret': key, ...rest } = secret?.stringData ?? {};
    assert.equal(
      command,
      `hyperedge install --join https://192.0.2.10:8443 --token ${id}.${key} --ca-hash ${hash(ca)}`,
    );
    assert.match(`${id}.${key}`, /^[a-z0-9]{6}\.[a-z0-9]{16}$/);
    assert.equal(expires, '2026-01-01T04:00:00Z');
    assert.deepEqual(rest, {
      description: 'created in the console',
      expiration: expires,
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': 'system:bootstrappers:hyperedge:node',
    });
    // The secret is in a body only, never in an address.
    for (const { url } of fake.requests) assert.ok(!url.href.includes(key ?? '-'), url.href);
  });

  test('a join command is not created with an invalid address, or if cluster-info has no signature', async () => {
    for (const server of ['https://a;reboot', 'https://$(reboot):1', 'http://192.0.2.1', 'https://a b']) {
      const { secrets, context } = cluster(server);
      await createJoinCommand(context, 1).then(
        ({ command }) => assert.match(command, /--join https:\/\/[\w.:-]+ --token/),
        (error: Error) => assert.match(error.message, /has no server/),
      );
      assert.ok(secrets.every((each) => !JSON.stringify(each).includes('reboot')));
    }
    await assert.rejects(createJoinCommand(cluster('https://a:1', false).context, 1), /is not signed/);
    assert.match(addressProblem('https://127.0.0.1:8443') ?? '', /address of the host itself/);
    assert.equal(addressProblem('https://192.0.2.1:8443'), undefined);
  });

  test('lists join tokens without their secrets, and revokes a token by deletion', async () => {
    const { fake, context } = cluster('https://a:1');
    assert.deepEqual(await listTokens(context.api), [{ id: 'abc123', created: '' }]);
    const accept = new Headers(fake.requests[0]?.request.headers).get('accept');
    assert.match(accept ?? '', /PartialObjectMetadataList/);
    fake.answer = () => json({ kind: 'Status', code: 404, reason: 'NotFound' }, 404);
    await revokeToken(context.api, 'abc123');
  });
});

suite('public key of a certificate', () => {
  test('the public key of a certificate has the hash that node:crypto computes', async () => {
    assert.equal(await caHash(ca), hash(ca));
  });

  test('the parser of public keys rejects truncated, oversized and malformed certificates', () => {
    const der = new X509Certificate(ca).raw;
    for (let length = 0; length < 200; length += 7)
      assert.throws(() => publicKeyInfo(der.subarray(0, length)), /certificate: /, `${length}`);
    assert.throws(() => publicKeyInfo(Uint8Array.of(0x30, 0x84, 0xff, 0xff, 0xff, 0xff)), /not allowed/);
    assert.throws(() => publicKeyInfo(Uint8Array.of(0x30, 0x80)), /not allowed/);
    assert.throws(() => publicKeyInfo(new Uint8Array(70_000)), /too large/);
  });
});

suite('revisions of host configuration', () => {
  test('revisions show the state of each host', () => {
    const nodeStatuses = [
      { nodeName: 'a', currentRevision: 3, targetRevision: 4 },
      { nodeName: 'b', currentRevision: 3, lastFailedRevision: 4, lastFailedRevisionErrors: ['boom'] },
    ];
    assert.deepEqual(nodeRevisions({ status: { nodeStatuses } } as AnyObject), [
      { node: 'a', current: 3, target: 4, failed: 0, errors: [] },
      { node: 'b', current: 3, target: 0, failed: 4, errors: ['boom'] },
    ]);
  });

  test('revisions are sorted by number, and other config maps are ignored', () => {
    const map = (name: string, settings: string): ConfigMap => ({
      metadata: { name },
      data: { status: 'good', settings },
    });
    const views = revisionViews([
      map('revision-status-9', '{"a":1}'),
      map('revision-status-10', 'not json'),
      map('kube-root-ca.crt', ''),
    ]);
    assert.deepEqual(
      views.map(({ number, settings }) => [number, settings]),
      [
        [10, 'not json'],
        [9, '{\n  "a": 1\n}'],
      ],
    );
  });

  test('the duration of an update is the time between its start and its end', () => {
    assert.equal(tookText('2026-01-01T00:00:00Z', '2026-01-01T00:02:05Z'), '2m 5s');
    assert.equal(tookText('2026-01-01T00:00:00Z', ''), '');
  });
});
