import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { KubeObject } from '../../../../src/api/meta/object.ts';
import { PODS } from '../../../../src/console/data/api/resources.ts';
import { Feed } from '../../../../src/console/data/watch/feed.ts';
import { FeedPool } from '../../../../src/console/data/watch/pool.ts';
import { StreamLimit } from '../../../../src/console/data/watch/stream-limit.ts';
import { settle } from '../../../client/clocks.ts';
import { json, pod, podList, scene } from '../fake-api.ts';

const PATH = '/api/v1/pods';
const names = (feed: Feed<KubeObject>): string[] => feed.snapshot().items.map(({ metadata }) => metadata?.name ?? '');

async function started(...items: object[]) {
  const context = scene();
  context.server.answer = () => json(podList('10', ...items));
  const feed = new Feed<KubeObject>({ path: PATH }, context);
  feed.start();
  await settle();
  return { ...context, feed };
}

suite('a live collection', () => {
  test('a live collection lists, then watches from the revision of the list and applies events', async () => {
    const { feed, server } = await started(pod('a', '5'));
    assert.deepEqual(names(feed), ['a']);
    const [watch] = server.watches;
    assert.equal(watch?.url.searchParams.get('resourceVersion'), '10');
    assert.equal(watch?.url.searchParams.get('allowWatchBookmarks'), 'true');
    watch?.event('ADDED', pod('b', '11'));
    watch?.event('DELETED', pod('a', '12'));
    await settle();
    assert.deepEqual(names(feed), ['b']);
    feed.stop();
  });

  test('a watch resumes from the last event or bookmark after the server ends the stream', async () => {
    const { feed, server, clock } = await started(pod('a', '5'));
    server.watches[0]?.event('BOOKMARK', { metadata: { resourceVersion: '40' } });
    await settle();
    await clock.advance(3_000);
    server.watches[0]?.end();
    await settle();
    assert.equal(server.watches[1]?.url.searchParams.get('resourceVersion'), '40');
    assert.equal(server.requests.filter(({ url }) => !url.searchParams.has('watch')).length, 1, 'one list');
    feed.stop();
  });

  test('replaces the copy of a collection atomically after 410, without an intermediate empty state', async () => {
    const { feed, server, frame } = await started(pod('a', '5'), pod('b', '6'));
    frame();
    const seen: string[][] = [];
    feed.subscribe(({ items }) => seen.push(items.map(({ metadata }) => metadata?.name ?? '')));
    server.answer = () => json(podList('90', pod('b', '80'), pod('c', '85')));
    server.watches[0]?.event('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });
    frame();
    await settle();
    frame();
    assert.deepEqual(seen.at(-1), ['b', 'c']);
    assert.ok(seen.every((each) => each.length === 2));
    assert.equal(server.watches[1]?.url.searchParams.get('resourceVersion'), '90');
    assert.equal(feed.snapshot().state, 'live');
    feed.stop();
  });

  test('lists periodically while no stream is permitted, and watches when one becomes free', async () => {
    const context = { ...scene(), streams: new StreamLimit(1) };
    const { server, clock } = context;
    server.answer = () => json(podList('10', pod('a', '5')));
    const first = new Feed<KubeObject>({ path: PATH }, context);
    const second = new Feed<KubeObject>({ path: '/api/v1/secrets' }, context);
    first.start();
    await settle();
    second.start();
    await settle();
    assert.deepEqual(names(second), ['a']);
    assert.equal(second.snapshot().state, 'live');
    assert.equal(server.watches.length, 1, 'one watch');
    server.answer = () => json(podList('20', pod('b', '15')));
    await clock.advance(5_000);
    assert.deepEqual(names(second), ['b']);
    assert.equal(server.watches.length, 1, 'still one watch');
    first.stop();
    await clock.advance(10_000);
    assert.equal(server.watches[1]?.url.pathname, '/api/v1/secrets');
    second.stop();
  });

  test('keeps the copy while the server is down and retries with growing delays', async () => {
    const { feed, server, clock } = await started(pod('a', '5'));
    server.isDown = true;
    server.watches[0]?.fail();
    await settle();
    assert.equal(feed.snapshot().state, 'stale');
    assert.deepEqual(names(feed), ['a']);
    const before = server.requests.length;
    await clock.advance(60_000);
    const attempts = server.requests.length - before;
    assert.ok(attempts >= 4 && attempts <= 10, `${attempts} attempts in a minute`);
    server.isDown = false;
    await clock.advance(60_000);
    assert.equal(feed.snapshot().state, 'live');
    assert.equal(feed.snapshot().error, undefined);
    feed.stop();
  });

  test('reconnects if no data arrives for longer than the bookmark interval', async () => {
    const { feed, server, clock } = await started(pod('a', '5'));
    await clock.advance(80_000);
    assert.equal(server.watches.length, 1);
    await clock.advance(30_000);
    assert.equal(server.watches.length, 2);
    assert.ok(server.watches[0]?.isAborted);
    feed.stop();
  });

  test('reconnects at once after the computer was suspended', async () => {
    const { feed, server, clock } = await started(pod('a', '5'));
    let offsetMs = 0;
    const { nowMs } = clock;
    clock.nowMs = () => nowMs.call(clock) + offsetMs;
    await clock.advance(10_000);
    offsetMs = 3_600_000;
    await clock.advance(10_000);
    await clock.advance(1_000);
    assert.equal(server.watches.length, 2);
    feed.stop();
  });

  test('lists again if the server does not have the revision, as after a restored store', async () => {
    const { feed, server, clock } = await started(pod('a', '5'));
    server.answer = () => json(podList('3', pod('old', '2')));
    server.watches[0]?.event('ERROR', { kind: 'Status', code: 504, reason: 'Timeout', message: 'Too large version' });
    await settle();
    await clock.advance(2_000);
    assert.deepEqual(names(feed), ['old']);
    feed.stop();
  });

  test('reports a refused list and retries', async () => {
    const context = scene();
    context.server.answer = () => json({ kind: 'Status', code: 403, reason: 'Forbidden', message: 'no' }, 403);
    const feed = new Feed<KubeObject>({ path: PATH }, context);
    feed.start();
    await settle();
    assert.equal(feed.snapshot().state, 'failed');
    assert.equal(feed.snapshot().error?.reason, 'Forbidden');
    feed.stop();
    assert.equal(context.clock.pendingTimers, 0);
  });

  test('removes managed fields and the last applied configuration', async () => {
    const metadata = {
      name: 'a',
      namespace: 'n',
      managedFields: [{ manager: 'm' }],
      annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}', kept: 'yes' },
    };
    const { feed } = await started({ metadata });
    assert.deepEqual(feed.get('n/a')?.metadata, { name: 'a', namespace: 'n', annotations: { kept: 'yes' } });
    feed.stop();
  });

  test('combines 200 changes of 2,000 pods into one update per frame without losing a change', async () => {
    const pods = Array.from({ length: 2_000 }, (_, index) => pod(`p${index}`, '5'));
    const { feed, server, frame } = await started(...pods);
    frame();
    let updates = 0;
    feed.subscribe(() => updates++);
    for (let index = 0; index < 200; index++)
      server.watches[0]?.event('MODIFIED', pod(`p${index}`, String(100 + index), { round: '1' }));
    await settle();
    await settle();
    frame();
    assert.equal(updates, 1);
    const changed = feed.snapshot().items.filter(({ metadata }) => metadata?.labels?.['round'] === '1');
    assert.equal(changed.length, 200);
    assert.equal(feed.snapshot().items.length, 2_000);
    feed.stop();
  });
});

suite('shared feeds', () => {
  test('two views of the same collection share a watch, which ends when both views are closed', async () => {
    const context = scene();
    context.server.answer = () => json(podList('10'));
    const pool = new FeedPool(context);
    const first = pool.acquire(PODS, { namespace: 'n' });
    const second = pool.acquire(PODS, { namespace: 'n' });
    await settle();
    assert.equal(context.server.watches.length, 1);
    assert.equal(context.server.watches[0]?.url.pathname, '/api/v1/namespaces/n/pods');
    first.release();
    first.release();
    await context.clock.advance(11_000);
    assert.equal(context.server.watches[0]?.isAborted, false);
    second.release();
    await context.clock.advance(11_000);
    assert.equal(context.server.watches[0]?.isAborted, true);
    assert.equal(pool.size, 0);
    assert.equal(context.clock.pendingTimers, 0);
  });

  test('shared feeds end their watches while the page is hidden and resume without a new list', async () => {
    const context = scene();
    context.server.answer = () => json(podList('10', pod('a', '5')));
    const pool = new FeedPool(context);
    const { feed } = pool.acquire(PODS);
    await settle();
    pool.pause();
    await settle();
    assert.equal(feed.snapshot().state, 'paused');
    assert.ok(context.server.watches[0]?.isAborted);
    pool.resume();
    await settle();
    assert.equal(context.server.watches.length, 2);
    assert.equal(context.server.requests.filter(({ url }) => !url.searchParams.has('watch')).length, 1);
    assert.equal(feed.snapshot().state, 'live');
    pool.close();
  });
});
