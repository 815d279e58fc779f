/** Malicious responses of token and authorization webhooks: what is cached of them is limited. */
import assert from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { TokenWebhookClient } from '../../../src/apiserver/authentication/token-webhook.ts';
import { AccessWebhookClient } from '../../../src/apiserver/authorization/access-webhook.ts';
import type { BackendConnector } from '../../../src/apiserver/port.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';

const endpoint = { url: 'https://127.0.0.1:1/' };

function answering(body: string | Buffer): { readonly backends: BackendConnector; readonly clock: typeof systemClock } {
  const backends: Pick<BackendConnector, 'request' | 'publicAuthorities'> = {
    publicAuthorities: '',
    request: async () =>
      Object.assign(Readable.from([Buffer.from(body)]), { statusCode: 200, headers: {} }) as unknown as IncomingMessage,
  };
  return { backends: backends as BackendConnector, clock: systemClock };
}

const review = (status: unknown): string => JSON.stringify({ kind: 'TokenReview', status });

test('rejects a user with megabytes of groups or extra', async () => {
  const many = Array.from({ length: 20_000 }, (_, index) => `group-${index}`);
  const hostile: readonly object[] = [
    { username: 'x'.repeat(1 << 20) },
    { username: 'u', uid: 'x'.repeat(1 << 20) },
    { username: 'u', groups: many },
    { username: 'u', extra: { scopes: many } },
    { username: 'u', extra: { ['k'.repeat(1 << 20)]: [] } },
  ];
  for (const user of hostile) {
    const client = new TokenWebhookClient(
      { endpoint, version: 'v1', cacheMs: 1000 },
      answering(review({ authenticated: true, user })),
      ['a'],
    );
    await assert.rejects(async () => client.authenticate('t', undefined), /status\.user: has \d+ characters of names/);
  }
  const odd =
    '{"status":{"authenticated":true,"user":{"username":"u","groups":[1,null,{}],"extra":{"__proto__":["p"],"a":5}}}}';
  const client = new TokenWebhookClient({ endpoint, version: 'v1', cacheMs: 1000 }, answering(odd), ['a']);
  const found = await client.authenticate('t', undefined);
  assert.deepEqual(found?.user.groups, ['system:authenticated']);
  assert.equal(({} as Record<string, unknown>)['0'], undefined);
});

test('treats deeply nested, invalid or too long responses as failures', async () => {
  for (const body of ['', '[', '"x"', '['.repeat(50_000) + ']'.repeat(50_000), 'x'.repeat(5 << 20)]) {
    const client = new TokenWebhookClient({ endpoint, version: 'v1', cacheMs: 1000 }, answering(body), ['a']);
    const outcome = await Promise.resolve()
      .then(() => client.authenticate('t', undefined))
      .catch(() => undefined);
    assert.equal(outcome, undefined, body.slice(0, 10));
  }
});

test('truncates the reason of an authorization decision before caching', async () => {
  const body = JSON.stringify({ status: { allowed: false, reason: 'r'.repeat(1 << 20) } });
  const metrics = { webhookCalled: () => {}, failedOpen: () => {}, conditions: () => {} };
  const client = new AccessWebhookClient(
    'w',
    { endpoint, version: 'v1', allowedMs: 1000, deniedMs: 1000 },
    { ...answering(body), log: silentLog, metrics: metrics as never },
  );
  const decision = await client.authorize({ name: 'u', groups: [] }, { path: '/x', verb: 'get' });
  assert.equal(decision.reason.length, 1024);
});
