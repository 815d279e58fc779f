/** Evictions with disruption budgets. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { Pod } from '../../../src/api/generated/core/v1.ts';
import type { PodDisruptionBudget } from '../../../src/api/generated/policy/v1.ts';
import type { Status } from '../../../src/api/meta/status.ts';
import { startServer, type TestServer } from '../harness.ts';

const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const PODS = '/api/v1/namespaces/default/pods';
const VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget.";

describe('evictions', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer();
    await server.call('POST', '/api/v1/namespaces/default/serviceaccounts', {
      body: { metadata: { name: 'default' } },
    });
  });
  after(() => server.stop());
  beforeEach(async () => {
    await server.call('DELETE', BUDGETS);
    await server.call('DELETE', `${PODS}?gracePeriodSeconds=0`);
  });

  const podNamed = async (
    name: string,
    { ready = true, phase = 'Running', labels = { app: 'web' } as object } = {},
  ) => {
    const spec = { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] };
    const made = await server.call('POST', PODS, { body: { metadata: { name, labels }, spec } });
    assert.equal(made.code, 201, made.text);
    const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False' }];
    await patch(`${PODS}/${name}/status`, { status: { phase, conditions } });
  };
  const patch = async (path: string, body: object) => {
    const answer = await server.call('PATCH', path, {
      raw: JSON.stringify(body),
      type: 'application/merge-patch+json',
    });
    assert.equal(answer.code, 200, answer.text);
  };
  /** A budget with a status as the disruption controller writes it. */
  const budgetWith = async (name: string, status: object, spec: object = {}) => {
    const selector = { matchLabels: { app: 'web' } };
    const body = { metadata: { name }, spec: { minAvailable: 1, selector, ...spec } };
    const made = await server.call('POST', BUDGETS, { body });
    assert.equal(made.code, 201, made.text);
    await patch(`${BUDGETS}/${name}/status`, {
      status: { observedGeneration: 1, expectedPods: 2, desiredHealthy: 1, ...status },
    });
  };
  const budget = async (name: string) => (await server.call<PodDisruptionBudget>('GET', `${BUDGETS}/${name}`)).body;
  const evict = (name: string, { query = '', deleteOptions = {}, version = 'v1' } = {}) =>
    server.call<Status>('POST', `${PODS}/${name}/eviction${query}`, {
      body: { apiVersion: `policy/${version}`, kind: 'Eviction', metadata: { name }, deleteOptions },
    });
  const codeOf = async (name: string): Promise<number> => (await server.call('GET', `${PODS}/${name}`)).code;

  it('the eviction API allows as many evictions as the disruption budget', async () => {
    for (const name of ['a', 'b']) await podNamed(name);
    await budgetWith('web', { disruptionsAllowed: 1, currentHealthy: 2 });
    const dry = await evict('a', { query: '?dryRun=All' });
    assert.deepEqual([dry.code, (await budget('web')).status?.disruptionsAllowed], [201, 1], dry.text);

    const done = await evict('a', { version: 'v1beta1', deleteOptions: { gracePeriodSeconds: 5 } });
    assert.deepEqual(
      [done.code, done.body],
      [201, { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 }],
    );
    const { metadata, status } = (await server.call<Pod>('GET', `${PODS}/a`)).body;
    assert.equal(metadata?.deletionGracePeriodSeconds, 5);
    const { lastTransitionTime, ...target } =
      status?.conditions?.find((each) => each.type === 'DisruptionTarget') ?? {};
    assert.deepEqual(target, {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
    });
    assert.ok(lastTransitionTime);
    const counted = (await budget('web')).status;
    assert.deepEqual([counted?.disruptionsAllowed, Object.keys(counted?.disruptedPods ?? {})], [0, ['a']]);

    const refused = await evict('b');
    assert.equal(refused.code, 429);
    assert.equal(refused.body.message, VIOLATED);
    const needs = 'The disruption budget web needs 1 healthy pods and has 2 currently';
    assert.deepEqual(refused.body.details?.causes, [{ reason: 'DisruptionBudget', message: needs }]);
    assert.equal((await server.call<Pod>('GET', `${PODS}/b`)).body.metadata?.deletionTimestamp, undefined);
  });

  it('one of several concurrent evictions is allowed if one disruption is left', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `p${index}`);
    for (const name of names) await podNamed(name);
    await budgetWith('web', { disruptionsAllowed: 3, currentHealthy: 8 });
    const codes = await Promise.all(names.map(async (name) => (await evict(name)).code));
    assert.equal(codes.filter((code) => code === 201).length, 3);
    assert.equal(codes.filter((code) => code === 429).length, 5);
    assert.equal((await budget('web')).status?.disruptionsAllowed, 0);
  });

  it('evictions require an observed budget, and fail if two budgets select the pod', async () => {
    await podNamed('a');
    await budgetWith('web', { disruptionsAllowed: 1, currentHealthy: 2 });
    await patch(`${BUDGETS}/web`, { spec: { minAvailable: 2 } });
    const early = await evict('a');
    assert.deepEqual([early.code, early.body.details?.retryAfterSeconds], [429, 10]);
    assert.match(early.body.details?.causes?.[0]?.message ?? '', /web is still being processed by the server\.$/);
    await budgetWith('more', { disruptionsAllowed: 1, currentHealthy: 2 });
    const two = await evict('a');
    assert.equal(two.code, 500);
    assert.match(two.body.message ?? '', /^This pod has more than one PodDisruptionBudget/);
  });

  it('evictions of pods that are not running need no budget', async () => {
    await podNamed('waits', { phase: 'Pending', ready: false });
    await podNamed('ended', { phase: 'Succeeded' });
    await podNamed('other', { labels: { app: 'other' } });
    await budgetWith('web', { disruptionsAllowed: 0, currentHealthy: 1 });
    for (const name of ['waits', 'ended', 'other']) {
      const done = await evict(name, { deleteOptions: { gracePeriodSeconds: 0 } });
      assert.equal(done.code, 201, done.text);
      assert.equal(await codeOf(name), 404, name);
    }
    assert.deepEqual((await budget('web')).status?.disruptedPods ?? {}, {});
  });

  it('evictions of unready pods follow unhealthyPodEvictionPolicy', async () => {
    await podNamed('ill', { ready: false });
    await budgetWith('web', { disruptionsAllowed: 0, currentHealthy: 0 });
    assert.equal((await evict('ill')).code, 429);
    await patch(`${BUDGETS}/web/status`, { status: { currentHealthy: 1 } });
    assert.equal((await evict('ill')).code, 201);
    await server.call('DELETE', `${BUDGETS}/web`);
    await podNamed('ill-too', { ready: false });
    await budgetWith(
      'web',
      { disruptionsAllowed: 0, currentHealthy: 0 },
      { unhealthyPodEvictionPolicy: 'AlwaysAllow' },
    );
    assert.equal((await evict('ill-too')).code, 201);
  });

  it('evictions apply the caller’s preconditions, and require the name in the path', async () => {
    await podNamed('a');
    const wrong = await evict('a', { deleteOptions: { preconditions: { uid: 'another' } } });
    assert.equal(wrong.code, 409, wrong.text);
    assert.equal((await evict('a', { deleteOptions: { preconditions: { resourceVersion: '1' } } })).code, 409);
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'b' } };
    assert.equal((await server.call('POST', `${PODS}/a/eviction`, { body })).code, 400);
    const { resourceVersion } = (await server.call<Pod>('GET', `${PODS}/a`)).body.metadata ?? {};
    assert.equal((await evict('a', { deleteOptions: { preconditions: { resourceVersion } } })).code, 201);
    assert.equal((await evict('nobody')).code, 404);
  });
});
