import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ApiError } from '../../../../src/api/meta/status.ts';
import { Access } from '../../../../src/console/data/api/access.ts';
import { applyManifest, lineOfField } from '../../../../src/console/data/api/apply.ts';
import { kindOf, kindsOf, servedKinds } from '../../../../src/console/data/api/discovery.ts';
import { CONFIG_MAPS } from '../../../../src/console/data/api/resources.ts';
import { compareCells, matchesFilter, type TableColumn, tableSource } from '../../../../src/console/data/api/table.ts';
import { diffLines, hunks } from '../../../../src/console/data/manifests/diff.ts';
import { Feed } from '../../../../src/console/data/watch/feed.ts';
import { ManualClock, settle } from '../../../client/clocks.ts';
import { FakeApi, json, scene } from '../fake-api.ts';

const manifest = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'n', uid: 'u', resourceVersion: '7', managedFields: [] },
  data: { a: '1' },
};

suite('errors of API requests', () => {
  test('request errors contain the message of a Status, the text of another body, or the broken connection', async () => {
    const server = new FakeApi();
    server.answer = () => json({ kind: 'Status', reason: 'Forbidden', message: 'not yours' }, 403);
    await assert.rejects(server.api.json('/x'), { name: 'ApiError', reason: 'Forbidden', message: 'not yours' });
    server.answer = () => new Response('bad gateway', { status: 502 });
    await assert.rejects(server.api.json('/x'), { message: 'bad gateway', httpCode: 502 });
    server.isDown = true;
    await assert.rejects(server.api.json('/x'), { reason: 'ServiceUnavailable' });
  });
});

suite('access reviews', () => {
  const question = { verb: 'delete', group: 'apps', resource: 'deployments', namespace: 'n' };

  test('access reviews share one request and explain a refusal', async () => {
    const server = new FakeApi();
    server.answer = () => json({ status: { allowed: false } });
    const access = new Access(server.api, new ManualClock());
    const [first, second] = await Promise.all([access.check(question), access.check(question)]);
    assert.equal(server.requests.length, 1);
    assert.deepEqual(first, second);
    assert.equal(first.allowed, false);
    assert.match(first.reason, /You may not delete deployments\.apps in namespace n\./);
  });

  test('access reviews are repeated after a minute and after a failure', async () => {
    const server = new FakeApi();
    const clock = new ManualClock();
    const access = new Access(server.api, clock);
    server.isDown = true;
    assert.equal((await access.check(question)).allowed, false);
    server.isDown = false;
    server.answer = () => json({ status: { allowed: true } });
    assert.equal((await access.check(question)).allowed, true);
    await access.check(question);
    assert.equal(server.requests.length, 2);
    await clock.advance(61_000);
    await access.check(question);
    assert.equal(server.requests.length, 3);
  });
});

suite('server-side apply', () => {
  test('server-side apply sends the manifest without fields that the server sets', async () => {
    const server = new FakeApi();
    server.answer = () => json(manifest);
    const result = await applyManifest(server.api, CONFIG_MAPS, manifest, { dryRun: true });
    assert.equal(result.outcome, 'applied');
    const [sent] = server.requests;
    assert.equal(sent?.url.pathname, '/api/v1/namespaces/n/configmaps/a');
    assert.equal(sent?.url.searchParams.get('dryRun'), 'All');
    assert.equal(sent?.url.searchParams.get('force'), null);
    assert.deepEqual(JSON.parse(String(sent?.request.body)), {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', namespace: 'n' },
      data: { a: '1' },
    });
  });

  test('an apply returns conflicts with manager and field', async () => {
    const server = new FakeApi();
    const cause = { reason: 'FieldManagerConflict', message: 'conflict with "kubectl" using v1', field: '.data.a' };
    server.answer = () =>
      json({ kind: 'Status', reason: 'Conflict', message: 'Apply failed', details: { causes: [cause] } }, 409);
    const result = await applyManifest(server.api, CONFIG_MAPS, manifest);
    assert.deepEqual(result, {
      outcome: 'conflict',
      conflicts: [{ manager: 'kubectl', field: '.data.a' }],
      message: 'Apply failed',
    });
  });

  test('an apply returns validation errors and throws other failures', async () => {
    const server = new FakeApi();
    const causes = [{ field: 'spec.x', message: 'required' }];
    server.answer = () => json({ kind: 'Status', reason: 'Invalid', message: 'invalid', details: { causes } }, 422);
    const result = await applyManifest(server.api, CONFIG_MAPS, manifest);
    assert.deepEqual(result, { outcome: 'invalid', causes, message: 'invalid' });
    server.answer = () => json({ kind: 'Status', reason: 'Forbidden', message: 'no' }, 403);
    await assert.rejects(applyManifest(server.api, CONFIG_MAPS, manifest), ApiError);
  });

  test('finds the line of a field in a manifest', () => {
    const yaml = 'kind: Pod\nspec:\n  containers:\n    - name: a\n      image: x\n    - name: b\n      image: y\n';
    assert.equal(lineOfField(yaml, 'spec.containers[1].image'), 7);
    assert.equal(lineOfField(yaml, 'spec.containers[0].name'), 4);
    assert.equal(lineOfField(yaml, 'spec.containers[1].ports'), 6);
    assert.equal(lineOfField(yaml, 'status'), undefined);
  });
});

suite('tables of objects', () => {
  const columns = [{ name: 'Name', type: 'string' }];
  const row = (name: string, version: string) => ({
    cells: [name],
    object: { metadata: { name, namespace: 'n', resourceVersion: version } },
  });

  test('tables are updated live for every kind', async () => {
    const context = scene();
    let seen: readonly TableColumn[] = [];
    context.server.answer = () =>
      json({ kind: 'Table', metadata: { resourceVersion: '9' }, columnDefinitions: columns, rows: [row('a', '5')] });
    const feed = new Feed(
      tableSource('/apis/x/v1/things', {}, (each) => {
        seen = each;
      }),
      context,
    );
    feed.start();
    await settle();
    assert.deepEqual(
      seen.map(({ name, priority }) => [name, priority]),
      [['Name', 0]],
    );
    context.server.watches[0]?.event('ADDED', { kind: 'Table', rows: [row('b', '11')] });
    await settle();
    assert.deepEqual(
      feed.snapshot().items.map(({ cells }) => cells[0]),
      ['a', 'b'],
    );
    context.server.watches[0]?.fail();
    await settle();
    await context.clock.advance(2_000);
    assert.equal(context.server.watches[1]?.url.searchParams.get('resourceVersion'), '11');
    feed.stop();
  });

  test('tables sort durations by length and names by number', () => {
    assert.deepEqual(['2d', '5m', '3h10m'].toSorted(compareCells), ['5m', '3h10m', '2d']);
    assert.deepEqual(['pod-10', 'pod-9'].toSorted(compareCells), ['pod-9', 'pod-10']);
    assert.ok(compareCells(2, 10) < 0);
  });

  test('a filter matches rows of tables that contain all its words', () => {
    assert.ok(matchesFilter(['web-1', 'Running'], 'run web'));
    assert.ok(!matchesFilter(['web-1', 'Running'], 'web pending'));
    assert.ok(matchesFilter([], ' '));
  });
});

suite('discovery of kinds', () => {
  const groups = (name: string, ...resources: object[]) => ({
    items: [
      {
        metadata: { name },
        versions: [
          { version: 'v1', resources },
          { version: 'v1beta1', resources },
        ],
      },
    ],
  });
  const pods = { resource: 'pods', responseKind: { kind: 'Pod' }, scope: 'Namespaced', verbs: ['get', 'list'] };

  test('lists each kind once, in its preferred version', async () => {
    const server = new FakeApi();
    server.answer = ({ pathname }) =>
      json(pathname === '/api' ? groups('', pods) : groups('x', { ...pods, resource: 'reviews', verbs: ['create'] }));
    const kinds = await servedKinds(server.api);
    assert.deepEqual(
      kinds.map(({ kind, version }) => `${kind} ${version}`),
      ['Pod v1'],
    );
    assert.equal(kinds[0]?.namespaced, true);
  });

  test('finds the kind of a manifest in the version of the manifest', () => {
    const kinds = kindsOf(groups('apps', { ...pods, resource: 'deployments', responseKind: { kind: 'Deployment' } }));
    assert.equal(kindOf(kinds, 'apps/v1beta1', 'Deployment')?.version, 'v1beta1');
    assert.equal(kindOf(kinds, 'v1', 'Deployment'), undefined);
  });
});

suite('differences of lines', () => {
  test('differences of lines show changed lines with their context', () => {
    const before = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].join('\n');
    const after = ['a', 'b', 'c', 'x', 'e', 'f', 'g', 'h'].join('\n');
    assert.deepEqual(
      hunks(diffLines(before, after), 1).map(({ kind, text }) => kind + text),
      [' c', '-d', '+x', ' e'],
    );
    assert.deepEqual(hunks(diffLines(before, before)), []);
  });
});
