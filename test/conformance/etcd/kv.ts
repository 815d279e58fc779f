import assert from 'node:assert/strict';
import { it } from 'node:test';
import { COMPACTED, endOf, FUTURE, keysOf, refused, revisionOf, type Subject } from './cluster.ts';

/** Five keys whose order differs for every sort target. */
async function five(subject: Subject): Promise<{ prefix: string; revisions: number[] }> {
  const prefix = subject.fresh();
  const revisions: number[] = [];
  const write = async (name: string, value: string): Promise<void> => {
    revisions.push(revisionOf(await subject.client.put({ key: prefix + name, value })));
  };
  await write('c', '3');
  await write('a', '5');
  await write('e', '1');
  await write('b', '4');
  await write('d', '2');
  await write('a', '5a');
  await write('c', '3a');
  await write('c', '3b');
  return { prefix, revisions };
}

export function kvConformance(subject: () => Subject): void {
  it('range returns a key, a prefix, an interval or all keys from a key on', async () => {
    const { prefix } = await five(subject());
    const { client } = subject();
    assert.deepEqual(keysOf((await client.range({ key: `${prefix}b` })).kvs), [`${prefix}b`]);
    assert.deepEqual((await client.range({ key: `${prefix}zz` })).kvs, []);
    const all = await client.range({ key: prefix, range_end: endOf(prefix) });
    assert.deepEqual(
      keysOf(all.kvs),
      ['a', 'b', 'c', 'd', 'e'].map((name) => prefix + name),
    );
    assert.equal(all.count, 5);
    const between = await client.range({ key: `${prefix}b`, range_end: `${prefix}d` });
    assert.deepEqual(keysOf(between.kvs), [`${prefix}b`, `${prefix}c`]);
    const from = await client.range({ key: `${prefix}d`, range_end: '\0' });
    assert.deepEqual(keysOf(from.kvs).slice(0, 2), [`${prefix}d`, `${prefix}e`]);
    const backwards = await client.range({ key: `${prefix}d`, range_end: `${prefix}b` });
    assert.deepEqual([backwards.kvs, backwards.count], [[], 0]);
    const everything = await client.range({ key: '\0', range_end: '\0', count_only: true });
    assert.ok(everything.count >= 5);
  });

  it('range sorts by every target in every order', async () => {
    const { prefix } = await five(subject());
    const order = async (sort_target: number, sort_order: number): Promise<string> => {
      const answer = await subject().client.range({ key: prefix, range_end: endOf(prefix), sort_target, sort_order });
      return keysOf(answer.kvs)
        .map((key) => key.at(-1))
        .join('');
    };
    const expected: ReadonlyArray<readonly [target: number, ascending: string]> = [
      [0, 'abcde'],
      [2, 'caebd'],
      [3, 'ebdac'],
      [4, 'edcba'],
    ];
    for (const [target, ascending] of expected) {
      const descending = [...ascending].reverse().join('');
      assert.equal(await order(target, 1), ascending, `target ${target}`);
      assert.equal(await order(target, 2), descending, `target ${target}`);
      // If no order is given, etcd sorts by key, and by any other target in ascending order.
      assert.equal(await order(target, 0), ascending, `target ${target}`);
    }
    assert.match(await order(1, 1), /^[bde]{3}ac$/);
    assert.match(await order(1, 2), /^ca[bde]{3}$/);
  });

  it('range applies the limit, keys-only, count-only and the bounds of revisions', async () => {
    const { prefix, revisions } = await five(subject());
    const ask = { key: prefix, range_end: endOf(prefix) };
    const { client } = subject();
    const two = await client.range({ ...ask, limit: 2 });
    assert.deepEqual([keysOf(two.kvs).length, two.more, two.count], [2, true, 5]);
    const exact = await client.range({ ...ask, limit: 5 });
    assert.deepEqual([keysOf(exact.kvs).length, exact.more, exact.count], [5, false, 5]);
    const last = await client.range({ ...ask, limit: 1, sort_order: 2 });
    assert.deepEqual([keysOf(last.kvs), last.more], [[`${prefix}e`], true]);
    const keys = await client.range({ ...ask, keys_only: true });
    assert.ok(keys.kvs.every((kv) => kv.value === '' && kv.mod_revision > 0 && kv.version > 0));
    const byValue = await client.range({ ...ask, keys_only: true, sort_target: 4, sort_order: 1, limit: 1 });
    assert.deepEqual(keysOf(byValue.kvs), [`${prefix}e`]);
    const counted = await client.range({ ...ask, count_only: true, limit: 2 });
    assert.deepEqual([counted.kvs, counted.count, counted.more], [[], 5, false]);
    const newer = await client.range({ ...ask, min_mod_revision: revisions[5] ?? 0 });
    assert.deepEqual([keysOf(newer.kvs), newer.count], [[`${prefix}a`, `${prefix}c`], 5]);
    const older = await client.range({ ...ask, max_mod_revision: revisions[3] ?? 0 });
    assert.deepEqual(keysOf(older.kvs), [`${prefix}b`, `${prefix}e`]);
    const created = await client.range({
      ...ask,
      min_create_revision: revisions[1] ?? 0,
      max_create_revision: revisions[3] ?? 0,
      limit: 2,
    });
    assert.deepEqual([keysOf(created.kvs), created.more], [[`${prefix}a`, `${prefix}b`], true]);
  });

  it('range reads at a revision and rejects future revisions and empty keys', async () => {
    const { prefix, revisions } = await five(subject());
    const ask = { key: prefix, range_end: endOf(prefix) };
    const { client } = subject();
    const then = await client.range({ ...ask, revision: revisions[4] ?? 0 });
    assert.deepEqual(
      then.kvs.map((kv) => kv.value),
      ['5', '4', '3', '2', '1'],
    );
    assert.ok(revisionOf(then) >= (revisions[7] ?? 0));
    assert.equal((await client.range({ ...ask, revision: revisions[0] ?? 0 })).count, 1);
    assert.equal((await client.range({ ...ask, serializable: true, revision: revisions[4] ?? 0 })).count, 5);
    assert.equal((await client.range({ ...ask, revision: -5 })).count, 5);
    await refused(client.range({ ...ask, revision: (revisions[7] ?? 0) + 1000 }), 11, FUTURE);
    await refused(client.range({ key: '' }), 3, 'etcdserver: key is not provided');
  });

  it('put increases version and revision, returns the previous value, and can keep value and lease', async () => {
    const key = subject().fresh();
    const { client } = subject();
    const first = await client.put({ key, value: '1', prev_kv: true });
    assert.equal(first.prev_kv, undefined);
    const second = await client.put({ key, value: '2', prev_kv: true });
    assert.equal(second.prev_kv?.value, '1');
    assert.equal((await client.put({ key, value: '' })).prev_kv, undefined);
    const [empty] = (await client.range({ key })).kvs;
    assert.deepEqual(
      [empty?.value, empty?.version, empty?.create_revision, empty?.mod_revision],
      ['', 3, revisionOf(first), revisionOf(second) + 1],
    );
    const { ID } = await client.grant(0n, 60);
    await client.put({ key, value: '4', lease: ID });
    await client.put({ key, ignore_value: true });
    const [kept] = (await client.range({ key })).kvs;
    assert.deepEqual([kept?.value, kept?.lease, kept?.version], ['4', 0n, 5]);
    await client.put({ key, value: '6', lease: ID });
    await client.put({ key, value: '7', ignore_lease: true });
    await client.put({ key, ignore_value: true, ignore_lease: true });
    const [both] = (await client.range({ key })).kvs;
    assert.deepEqual([both?.value, both?.lease, both?.version], ['7', ID, 8]);
    await client.call('etcdserverpb.Lease/LeaseRevoke', { ID });
  });

  it("put rejects invalid requests with etcd's errors", async () => {
    const key = subject().fresh();
    const { client } = subject();
    await refused(client.put({ value: 'v' }), 3, 'etcdserver: key is not provided');
    await refused(client.put({ key, value: 'v', ignore_value: true }), 3, 'etcdserver: value is provided');
    await refused(client.put({ key, lease: 7n, ignore_lease: true }), 3, 'etcdserver: lease is provided');
    await refused(client.put({ key, ignore_value: true }), 3, 'etcdserver: key not found');
    await refused(client.put({ key, value: 'v', ignore_lease: true }), 3, 'etcdserver: key not found');
    await refused(client.put({ key, value: 'v', lease: 1234567n }), 5, 'etcdserver: requested lease not found');
    await refused(client.put({ key, value: 'v', lease: -3n }), 5, 'etcdserver: requested lease not found');
  });

  it('delete returns the count and previous values, and creates no revision if no key is deleted', async () => {
    const { prefix } = await five(subject());
    const { client } = subject();
    const nothing = await client.delete({ key: `${prefix}zz`, prev_kv: true });
    assert.deepEqual([nothing.deleted, nothing.prev_kvs], [0, []]);
    const before = revisionOf(nothing);
    const one = await client.delete({ key: `${prefix}c`, prev_kv: true });
    assert.deepEqual([one.deleted, one.prev_kvs[0]?.value, revisionOf(one)], [1, '3b', before + 1]);
    const [gone] = (await client.range({ key: `${prefix}c`, revision: before })).kvs;
    assert.equal(gone?.value, '3b');
    const rest = await client.delete({ key: prefix, range_end: endOf(prefix), prev_kv: true });
    assert.deepEqual([rest.deleted, keysOf(rest.prev_kvs).length, revisionOf(rest)], [4, 4, before + 2]);
    const again = await client.put({ key: `${prefix}c`, value: 'new' });
    const [fresh] = (await client.range({ key: `${prefix}c` })).kvs;
    assert.deepEqual([fresh?.version, fresh?.create_revision], [1, revisionOf(again)]);
    await refused(client.delete({ key: '' }), 3, 'etcdserver: key is not provided');
  });

  it('the store accepts keys and values of arbitrary bytes', async () => {
    const key = `${subject().fresh()}\0\xff\x80\n`;
    await subject().client.put({ key, value: '\0\xff\xfe' });
    const [kv] = (await subject().client.range({ key })).kvs;
    assert.deepEqual([kv?.key, kv?.value], [key, '\0\xff\xfe']);
  });

  it('compaction removes history, keeps the newest version, and is rejected twice at the same revision', async () => {
    const { prefix, revisions } = await five(subject());
    const { client } = subject();
    const at = revisions[6] ?? 0;
    const answer = await client.compact(at);
    assert.ok(revisionOf(answer) >= at);
    const ask = { key: `${prefix}c` };
    await refused(client.range({ ...ask, revision: at - 1 }), 11, COMPACTED);
    await refused(client.range({ ...ask, revision: 1 }), 11, COMPACTED);
    assert.equal((await client.range({ ...ask, revision: at })).kvs[0]?.value, '3a');
    assert.equal((await client.range(ask)).kvs[0]?.value, '3b');
    await refused(client.compact(at), 11, COMPACTED);
    await refused(client.compact(at - 1, false), 11, COMPACTED);
    await refused(client.compact(0), 11, COMPACTED);
    await refused(client.compact(at + 1000), 11, FUTURE);
    // A deleted key is removed completely once compaction has passed its deletion.
    const { client: other } = subject();
    const deleted = revisionOf(await other.delete({ key: `${prefix}b` }));
    await other.compact(deleted, false);
    assert.equal((await other.range({ key: `${prefix}b`, revision: deleted })).count, 0);
  });
}
