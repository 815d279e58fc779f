/** Chains of authorizers: order, match conditions and changes at run time. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { compileAccessConditions } from '../../../src/apiserver/authorization/conditions.ts';
import { Authorization } from '../../../src/apiserver/authorization/index.ts';
import type { Authorizer } from '../../../src/apiserver/config/server-config.ts';
import type { Action } from '../../../src/apiserver/core/authorization/types.ts';
import { createHttp } from '../../../src/apiserver/io/http/index.ts';
import { silentLog } from '../../../src/base/log.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { WebhookServer } from '../admission/webhook-server.ts';

const reading: Action = {
  verb: 'get',
  group: '',
  resource: 'pods',
  subresource: '',
  namespace: 'default',
  name: '',
};
const user = { name: 'ann', groups: ['dev', 'system:authenticated'] };

describe('conditions of authorization webhooks', () => {
  const spec = {
    resourceAttributes: { namespace: 'a', verb: 'get', resource: 'pods' },
    user: 'ann',
    groups: ['dev', 'system:authenticated'],
    extra: { scope: ['x'] },
  };
  const path = { nonResourceAttributes: { path: '/healthz', verb: 'get' }, user: 'ann', groups: [] };

  it('conditions of authorization webhooks access the request attributes as upstream presents them', () => {
    const yes = [
      'has(request.resourceAttributes)',
      '!has(request.nonResourceAttributes)',
      "request.resourceAttributes.namespace == 'a' && request.resourceAttributes.subresource == ''",
      "request.user == 'ann' && 'dev' in request.groups && request.uid == ''",
      "request.extra['scope'] == ['x']",
      "!('system:serviceaccounts' in request.groups)",
    ];
    for (const source of yes) assert.equal(compileAccessConditions([source]).hold(spec), true, source);
    assert.equal(compileAccessConditions(["request.nonResourceAttributes.path == '/healthz'"]).hold(path), true);
    assert.equal(compileAccessConditions(yes).hold(path), false);
  });

  it('a match condition that is false takes precedence over a match condition whose evaluation fails', () => {
    const fails = "request.resourceAttributes.name == 'x'";
    assert.throws(
      () => compileAccessConditions(['true', fails]).hold(path),
      /cel evaluation error: expression '.*' resulted in 'no such key: resourceAttributes'/,
    );
    assert.equal(compileAccessConditions([fails, 'false']).hold(path), false);
  });

  it('conditions of authorization webhooks are rejected if they do not compile', () => {
    for (const source of ['request.nothing', "'text'", 'object.x', "authorizer.path('/')", 'request.user ==']) {
      assert.throws(
        () => compileAccessConditions(['true', source]),
        /^Error: matchConditions\[1\]\.expression: /,
        source,
      );
    }
  });
});

describe('the chain of authorizers', () => {
  let hooks: WebhookServer;
  let requested: string[] = [];
  before(async () => {
    hooks = await WebhookServer.start();
    hooks.on('/yes', (review) => {
      requested.push((review as unknown as { spec: { user: string } }).spec.user);
      return JSON.stringify({ status: { allowed: true, reason: 'said so' } });
    });
    hooks.on('/no', () => JSON.stringify({ status: { allowed: false, denied: true, reason: 'never' } }));
    hooks.on('/broken', () => 'nonsense');
  });
  after(() => hooks.stop());
  const webhook = (path: string, more: object = {}): Authorizer => ({
    type: 'Webhook',
    webhook: {
      endpoint: {
        url: `https://127.0.0.1:${hooks.port}${path}`,
        ca: Buffer.from(hooks.caBundle, 'base64').toString(),
      },
      version: 'v1',
      allowedMs: 0,
      deniedMs: 0,
      ...more,
    },
  });
  let chain: readonly Authorizer[] = [];
  const authorization = new Authorization(() => chain, {
    backends: createHttp().backends,
    clock: systemClock,
    log: silentLog,
  });
  const decide = async (...authorizers: Authorizer[]) => {
    requested = [];
    chain = authorizers;
    return authorization.authorize(user, reading);
  };

  it('calls authorizers in order until one decides', async () => {
    assert.deepEqual(await decide(webhook('/yes'), { type: 'AlwaysDeny' }), {
      allowed: true,
      reason: 'said so',
    });
    assert.equal((await decide(webhook('/no'), { type: 'AlwaysAllow' })).reason, 'never');
    assert.equal((await decide({ type: 'RBAC' }, webhook('/yes'))).allowed, true);
    assert.equal((await decide({ type: 'RBAC' })).allowed, false);
    assert.equal((await decide(webhook('/broken'), webhook('/yes'))).allowed, true);
  });

  it('calls a webhook only for requests that match its conditions', async () => {
    const only = (source: string, more: object = {}): Authorizer =>
      webhook('/yes', { conditions: compileAccessConditions([source]), ...more });
    assert.equal((await decide(only("request.user == 'ann'"))).allowed, true);
    assert.deepEqual(requested, ['ann']);
    assert.equal((await decide(only("request.user == 'bob'"))).allowed, false);
    assert.deepEqual(requested, []);
    assert.equal((await decide(only("request.user == 'bob'"), { type: 'AlwaysAllow' })).allowed, true);
  });

  it('the chain of authorizers applies the failure policy of a webhook', async () => {
    const failing = { conditions: compileAccessConditions(["request.nonResourceAttributes.path == '/'"]) };
    const allow: Authorizer = { type: 'AlwaysAllow' };
    assert.equal((await decide(webhook('/yes', { ...failing, failurePolicy: 'NoOpinion' }), allow)).allowed, true);
    assert.equal((await decide(webhook('/yes', { ...failing, failurePolicy: 'Deny' }), allow)).allowed, false);
    assert.equal((await decide(webhook('/broken', { failurePolicy: 'Deny' }), allow)).allowed, false);
    assert.equal((await decide(webhook('/broken', { failurePolicy: 'NoOpinion' }), allow)).allowed, true);
  });

  it('a reload of the chain takes effect at once, also for cached decisions', async () => {
    const info = { resource: false, verb: 'get', path: '/x', query: new URLSearchParams() };
    chain = [{ type: 'AlwaysAllow' }, { type: 'RBAC' }];
    const require = async () => authorization.requireRequest(user, info as never);
    await require();
    chain = [{ type: 'RBAC' }];
    await assert.rejects(require(), /forbidden: User "ann" cannot get path "\/x"/);
    chain = [webhook('/yes'), { type: 'RBAC' }];
    await require();
    assert.equal(authorization.hasWebhook, true);
  });
});
