import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Conversation } from './client.ts';
import { endOf, revisionOf, type Subject } from './cluster.ts';
import type { Draft, Message } from './messages.ts';

type Watch = Conversation<'etcdserverpb.Watch/Watch'>;

const shown = (events: ReadonlyArray<Message<'Event'>>): unknown[] =>
  events.map((event) => [event.type === 1 ? 'delete' : 'put', event.kv?.key.at(-1), event.kv?.value]);

/** Reads until `count` events have been received. */
async function events(watch: Watch, count: number): Promise<Message<'Event'>[]> {
  const found: Message<'Event'>[] = [];
  while (found.length < count) found.push(...(await watch.next()).events);
  assert.equal(found.length, count);
  return found;
}

export function watchConformance(subject: () => Subject): void {
  const open = async (create: Draft<'WatchCreateRequest'>): Promise<Watch> => {
    const { client } = subject();
    // Waits until this member has all writes: without a start revision, a watch on a lagging member also reports older
    // events.
    await client.range({ key: '/none' });
    const watch = client.watch();
    watch.send({ create_request: create });
    const created = await watch.next();
    assert.deepEqual([created.created, created.canceled, created.events], [true, false, []]);
    return watch;
  };
  /** Asserts that nothing more is received and the stream stays open. */
  const silent = async (watch: Watch): Promise<void> => {
    const before = watch.received.length;
    await new Promise((resolve) => setTimeout(resolve, 150));
    assert.deepEqual([watch.received.length, watch.status], [before, undefined]);
  };

  it('a watch reports events after its creation; a delete event has the revision of the delete', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    await client.put({ key: `${prefix}a`, value: 'before' });
    const watch = await open({ key: prefix, range_end: endOf(prefix) });
    const put = await client.put({ key: `${prefix}a`, value: '1' });
    const answer = await watch.next();
    assert.deepEqual(shown(answer.events), [['put', 'a', '1']]);
    assert.equal(answer.events[0]?.prev_kv, undefined);
    assert.equal(answer.events[0]?.kv?.version, 2);
    assert.ok(revisionOf(answer) >= revisionOf(put));
    const removed = await client.delete({ key: `${prefix}a` });
    const [gone] = (await watch.next()).events;
    assert.deepEqual(
      [gone?.type, gone?.kv?.mod_revision, gone?.kv?.create_revision, gone?.kv?.version, gone?.kv?.value],
      [1, revisionOf(removed), 0, 0, ''],
    );
    await client.put({ key: `${prefix.slice(0, -1)}0`, value: 'outside' });
    await silent(watch);
    watch.cancel();
  });

  it('a watch from a past revision reports every event once, in order, with previous values', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    const first = revisionOf(await client.put({ key: `${prefix}a`, value: '1' }));
    await client.put({ key: `${prefix}b`, value: '1' });
    await client.put({ key: `${prefix}a`, value: '2' });
    await client.delete({ key: prefix, range_end: endOf(prefix) });
    const watch = await open({ key: prefix, range_end: endOf(prefix), start_revision: first, prev_kv: true });
    await client.put({ key: `${prefix}a`, value: '3' });
    const all = await events(watch, 6);
    assert.deepEqual(shown(all), [
      ['put', 'a', '1'],
      ['put', 'b', '1'],
      ['put', 'a', '2'],
      ['delete', 'a', ''],
      ['delete', 'b', ''],
      ['put', 'a', '3'],
    ]);
    assert.deepEqual(
      all.map((event) => event.prev_kv?.value),
      [undefined, undefined, '1', '2', '1', undefined],
    );
    watch.cancel();
    const middle = await open({ key: prefix, range_end: endOf(prefix), start_revision: first + 2, prev_kv: true });
    assert.equal((await events(middle, 4))[0]?.prev_kv?.value, '1');
    middle.cancel();
  });

  it('a watch starts at a future revision', async () => {
    const key = subject().fresh();
    const { client } = subject();
    const now = revisionOf(await client.put({ key, value: '0' }));
    const watch = await open({ key, start_revision: now + 3 });
    for (const value of ['1', '2', '3', '4']) await client.put({ key, value });
    const heard = await events(watch, 2);
    assert.deepEqual(
      heard.map((event) => [event.kv?.value, event.kv?.mod_revision]),
      [
        ['3', now + 3],
        ['4', now + 4],
      ],
    );
    watch.cancel();
  });

  it('a watch from a compacted revision is cancelled with the compaction revision', async () => {
    const key = subject().fresh();
    const { client } = subject();
    const first = revisionOf(await client.put({ key, value: '1' }));
    const second = revisionOf(await client.put({ key, value: '2' }));
    await client.compact(second);
    const watch = await open({ key, start_revision: first });
    const refusal = await watch.next();
    assert.deepEqual(
      [refusal.canceled, refusal.compact_revision, refusal.created, refusal.cancel_reason, refusal.watch_id],
      [true, second, false, '', 0],
    );
    // The stream continues, and a watch may start at the compaction revision itself.
    watch.send({ create_request: { key, start_revision: second } });
    assert.equal((await watch.next()).created, true);
    assert.deepEqual(
      (await events(watch, 1)).map((event) => event.kv?.value),
      ['2'],
    );
    watch.cancel();
  });

  it('a watch filters puts and deletes, also in history', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    const start = revisionOf(await client.put({ key: `${prefix}a`, value: '1' }));
    await client.delete({ key: `${prefix}a` });
    const range = { key: prefix, range_end: endOf(prefix), start_revision: start };
    const puts = await open({ ...range, filters: [1] });
    const deletes = await open({ ...range, filters: [0] });
    const neither = await open({ ...range, filters: [0, 1] });
    await client.put({ key: `${prefix}b`, value: '2' });
    await client.delete({ key: `${prefix}b` });
    assert.deepEqual(shown(await events(puts, 2)), [
      ['put', 'a', '1'],
      ['put', 'b', '2'],
    ]);
    assert.deepEqual(shown(await events(deletes, 2)), [
      ['delete', 'a', ''],
      ['delete', 'b', ''],
    ]);
    await silent(neither);
    assert.equal(neither.received.length, 1);
    for (const watch of [puts, deletes, neither]) watch.cancel();
  });

  it('reports the events of a revision in one response, in the order of the operations', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    const watch = await open({ key: prefix, range_end: endOf(prefix) });
    await client.put({ key: `${prefix}z`, value: 'old' });
    await watch.next();
    await client.txn({
      success: [
        { request_put: { key: `${prefix}c`, value: '1' } },
        { request_delete_range: { key: `${prefix}z` } },
        { request_txn: { success: [{ request_put: { key: `${prefix}a`, value: '2' } }] } },
        { request_put: { key: `${prefix}b`, value: '3' } },
      ],
    });
    const answer = await watch.next();
    assert.deepEqual(shown(answer.events), [
      ['put', 'c', '1'],
      ['delete', 'z', ''],
      ['put', 'a', '2'],
      ['put', 'b', '3'],
    ]);
    const late = await open({
      key: prefix,
      range_end: endOf(prefix),
      start_revision: answer.events[0]?.kv?.mod_revision ?? 0,
    });
    assert.deepEqual(shown((await late.next()).events), shown(answer.events));
    watch.cancel();
    late.cancel();
  });

  it('assigns watch IDs or accepts given watch IDs, and rejects duplicates', async () => {
    const key = subject().fresh();
    const watch = subject().client.watch();
    const created = async (watch_id: number): Promise<Message<'WatchResponse'>> =>
      watch.send({ create_request: { key, watch_id } }).next();
    assert.equal((await created(0)).watch_id, 0);
    assert.equal((await created(0)).watch_id, 1);
    assert.equal((await created(2)).watch_id, 2);
    assert.equal((await created(7)).watch_id, 7);
    assert.equal((await created(0)).watch_id, 3);
    const twice = await created(7);
    assert.deepEqual(
      [twice.watch_id, twice.created, twice.canceled, twice.cancel_reason],
      [-1, true, true, 'mvcc: duplicate watch ID provided on the WatchStream'],
    );
    const gone = await watch.send({ cancel_request: { watch_id: 7 } }).next();
    assert.deepEqual([gone.watch_id, gone.canceled, gone.cancel_reason], [7, true, '']);
    assert.equal((await created(7)).watch_id, 7);
    watch.cancel();
  });

  it('a watch of an empty range is rejected, and an empty key counts as the first key', async () => {
    const { client } = subject();
    const watch = client.watch();
    const refusal = await watch.send({ create_request: { key: 'b', range_end: 'a' } }).next();
    assert.deepEqual(
      [refusal.watch_id, refusal.created, refusal.canceled, refusal.cancel_reason],
      [-1, true, true, 'mvcc: watcher range is empty'],
    );
    const same = await watch.send({ create_request: { key: 'b', range_end: 'b' } }).next();
    assert.equal(same.canceled, true);
    // Wait until this member has all previous writes.
    await client.range({ key: '/none' });
    const everything = await watch.send({ create_request: { range_end: '\0' } }).next();
    assert.deepEqual([everything.created, everything.canceled], [true, false]);
    const key = subject().fresh();
    await client.put({ key, value: 'v' });
    assert.equal((await watch.next()).events[0]?.kv?.key, key);
    watch.cancel();
  });

  it('cancels one of many watches on a stream and ignores the cancellation of an unknown watch', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    const watch = client.watch();
    for (let i = 1; i <= 50; i += 1) {
      watch.send({ create_request: { key: `${prefix}${i}`, watch_id: i } });
      assert.equal((await watch.next()).watch_id, i);
    }
    watch.send({ cancel_request: { watch_id: 4711 } }).send({ cancel_request: { watch_id: 20 } });
    const gone = await watch.next();
    assert.deepEqual([gone.watch_id, gone.canceled, gone.events], [20, true, []]);
    for (const i of [19, 20, 21]) await client.put({ key: `${prefix}${i}`, value: String(i) });
    assert.deepEqual([(await watch.next()).watch_id, (await watch.next()).watch_id], [19, 21]);
    // The watches continue when the client closes its side of the stream.
    watch.end();
    await client.put({ key: `${prefix}30`, value: '30' });
    assert.equal((await watch.next()).watch_id, 30);
    watch.cancel();
  });

  it('reports progress on request, at a revision not older than the delivered events', async () => {
    const key = subject().fresh();
    const { client } = subject();
    const watch = await open({ key });
    await client.put({ key, value: '1' });
    await watch.next();
    const elsewhere = revisionOf(await client.put({ key: subject().fresh(), value: '1' }));
    watch.send({ progress_request: {} });
    let progress = await watch.next();
    // A lagging member may respond too early, so the request is repeated.
    for (let i = 0; i < 50 && revisionOf(progress) < elsewhere; i += 1) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      progress = await watch.send({ progress_request: {} }).next();
    }
    assert.deepEqual([progress.watch_id, progress.events, progress.created, progress.canceled], [-1, [], false, false]);
    assert.ok(revisionOf(progress) >= elsewhere);
    watch.cancel();
  });

  it('fragments a response that is too large only if the watch allows it', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    const value = 'x'.repeat(900_000);
    const watch = await open({ key: prefix, range_end: endOf(prefix), fragment: true, prev_kv: true });
    const whole = await open({ key: prefix, range_end: endOf(prefix), prev_kv: true });
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await client.put({ key: prefix + name, value });
    assert.equal((await events(watch, 6)).length, 6);
    await events(whole, 6);
    await client.delete({ key: prefix, range_end: endOf(prefix) });
    const parts: Message<'WatchResponse'>[] = [];
    do parts.push(await watch.next());
    while (parts.at(-1)?.fragment === true);
    assert.ok(parts.length > 1);
    assert.equal(parts.flatMap((part) => part.events).length, 6);
    assert.equal(new Set(parts.flatMap((part) => part.events).map((event) => event.kv?.mod_revision)).size, 1);
    // Two of these values fit in a request of 1.5 MiB plus gRPC's overhead.
    assert.deepEqual(
      parts.map((part) => [part.events.length, part.fragment]),
      [
        [2, true],
        [2, true],
        [2, false],
      ],
    );
    const one = await whole.next();
    assert.deepEqual([one.events.length, one.fragment], [6, false]);
    watch.cancel();
    whole.cancel();
  });

  it('delivers all events in order to a slow reader without delaying other readers', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    const slow = await open({ key: prefix, range_end: endOf(prefix) });
    const quick = await open({ key: prefix, range_end: endOf(prefix) });
    slow.pause();
    const value = 'y'.repeat(100_000);
    for (let i = 0; i < 200; i += 1) await client.put({ key: `${prefix}${i % 7}`, value });
    const heard = await events(quick, 200);
    slow.resume();
    const late = await events(slow, 200);
    const revisions = (all: typeof heard): Array<number | undefined> => all.map((event) => event.kv?.mod_revision);
    assert.deepEqual(revisions(late), revisions(heard));
    assert.deepEqual(
      revisions(heard),
      [...revisions(heard)].sort((a, b) => (a ?? 0) - (b ?? 0)),
    );
    slow.cancel();
    quick.cancel();
  });
}
