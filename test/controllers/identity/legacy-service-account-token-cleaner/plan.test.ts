import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod, Secret } from '../../../../src/api/generated/core/v1.ts';
import { planLegacyToken } from '../../../../src/controllers/identity/legacy-service-account-token-cleaner/plan.ts';

const NOW = Date.parse('2026-06-01T00:00:00Z');
const secret = (labels: Record<string, string> = {}, created = '2020-01-01T00:00:00Z', name = 'token'): Secret => ({
  type: 'kubernetes.io/service-account-token',
  metadata: {
    name,
    namespace: 'ns',
    creationTimestamp: created,
    labels: Object.fromEntries(Object.entries(labels).map(([key, day]) => [`kubernetes.io/legacy-token-${key}`, day])),
    annotations: { 'kubernetes.io/service-account.name': 'sa', 'kubernetes.io/service-account.uid': 'u' },
  },
});
const kindOf = (given: Secret, since: string | undefined = '2020-01-01', pods: Pod[] = [], uid = 'u'): string =>
  planLegacyToken(
    given,
    { since, pods, account: () => ({ metadata: { name: 'sa', uid }, secrets: [{ name: 'token' }] }) },
    NOW,
  ).kind;

test('invalidates a generated token after a year without use and deletes it after another year', () => {
  assert.equal(kindOf(secret()), 'invalidate');
  assert.equal(kindOf(secret({ 'last-used': '2026-01-01' })), 'keep');
  assert.equal(kindOf(secret({ 'last-used': '2024-01-01' })), 'invalidate');
  assert.equal(kindOf(secret({ 'last-used': '2024-01-01', 'invalid-since': '2026-01-01' })), 'keep');
  assert.equal(kindOf(secret({ 'last-used': '2024-01-01', 'invalid-since': '2025-02-01' })), 'delete');
  // Used after its invalidation: an administrator temporarily removed the label.
  assert.equal(kindOf(secret({ 'last-used': '2025-03-01', 'invalid-since': '2025-02-01' })), 'invalidate');
  assert.equal(kindOf(secret({ 'last-used': 'yesterday' })), 'keep');
});

test('keeps recent, mounted and manually created tokens, and all tokens until uses were recorded for a year', () => {
  assert.equal(kindOf(secret({}, '2026-05-01T00:00:00Z')), 'keep');
  assert.equal(kindOf(secret(), '2026-01-01'), 'keep');
  assert.equal(kindOf(secret(), ''), 'keep');
  assert.equal(kindOf(secret({}, undefined, 'by-hand')), 'keep');
  assert.equal(kindOf(secret(), undefined, [], 'another'), 'keep');
  const pod = (namespace: string, spec: object): Pod => ({
    metadata: { namespace },
    spec: { containers: [], ...spec },
  });
  const mounted = { volumes: [{ name: 'v', secret: { secretName: 'token' } }] };
  const used = {
    containers: [{ name: 'c', env: [{ name: 'T', valueFrom: { secretKeyRef: { name: 'token', key: 't' } } }] }],
  };
  assert.equal(kindOf(secret(), undefined, [pod('ns', mounted)]), 'keep');
  assert.equal(kindOf(secret(), undefined, [pod('ns', used)]), 'keep');
  assert.equal(kindOf(secret(), undefined, [pod('other', mounted)]), 'invalidate');
});
