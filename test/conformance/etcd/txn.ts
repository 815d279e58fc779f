import assert from 'node:assert/strict';
import { it } from 'node:test';
import { COMPACTED, endOf, FUTURE, keysOf, refused, revisionOf, type Subject } from './cluster.ts';
import type { Draft } from './messages.ts';

const put = (key: string, value = 'v'): Draft<'RequestOp'> => ({ request_put: { key, value } });
const get = (key: string, range_end = ''): Draft<'RequestOp'> => ({ request_range: { key, range_end } });
const del = (key: string, range_end = ''): Draft<'RequestOp'> => ({
  request_delete_range: { key, range_end, prev_kv: true },
});
const nested = (request_txn: Draft<'TxnRequest'>): Draft<'RequestOp'> => ({ request_txn });
const DUPLICATE = 'etcdserver: duplicate key given in txn request';
const TOO_MANY = 'etcdserver: too many operations in txn request';

export function txnConformance(subject: () => Subject): void {
  const holds = async (...compare: Draft<'Compare'>[]): Promise<boolean> =>
    (await subject().client.txn({ compare })).succeeded;

  it('compares every target with every operator, for values below, at and above the operand', async () => {
    const key = subject().fresh();
    const { client } = subject();
    const { ID } = await client.grant(0n, 60);
    const created = revisionOf(await client.put({ key, value: 'a' }));
    const modified = revisionOf(await client.put({ key, value: 'm', lease: ID }));
    const targets: ReadonlyArray<readonly [number, (offset: number) => Draft<'Compare'>]> = [
      [0, (offset) => ({ version: 2 + offset })],
      [1, (offset) => ({ create_revision: created + offset })],
      [2, (offset) => ({ mod_revision: modified + offset })],
      [3, (offset) => ({ value: 'lmn'[1 + offset] as string })],
      [4, (offset) => ({ lease: ID + BigInt(offset) })],
    ];
    for (const [target, operand] of targets) {
      for (const offset of [-1, 0, 1]) {
        const expected = [offset === 0, offset < 0, offset > 0, offset !== 0];
        for (const [result, want] of expected.entries()) {
          const is = await holds({ key, target, result, ...operand(offset) });
          assert.equal(is, want, `target ${target}, result ${result}, operand ${offset}`);
        }
      }
    }
    await client.call('etcdserverpb.Lease/LeaseRevoke', { ID });
  });

  it('treats a missing key as version 0, a missing operand as 0, and several comparisons as a conjunction', async () => {
    const key = subject().fresh();
    assert.equal(await holds({ key, target: 0, result: 0, version: 0 }), true);
    assert.equal(await holds({ key, target: 1, result: 0, create_revision: 0 }), true);
    assert.equal(await holds({ key, target: 2, result: 1, mod_revision: 0 }), false);
    assert.equal(await holds({ key, target: 4, result: 0, lease: 0n }), true);
    for (const result of [0, 1, 2, 3]) assert.equal(await holds({ key, target: 3, result, value: '' }), false);
    assert.equal(await holds({ key, target: 2, result: 0 }), true);
    assert.equal(await holds({ key, target: 0, result: 0 }, { key, target: 2, result: 1, mod_revision: 0 }), false);
    assert.equal(await holds(), true);
  });

  it('a comparison of a range holds if it holds for every key; an empty range counts as one missing key', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    await client.put({ key: `${prefix}a`, value: 'x' });
    await client.put({ key: `${prefix}b`, value: 'y' });
    const all = { key: prefix, range_end: endOf(prefix) };
    assert.equal(await holds({ ...all, target: 0, result: 0, version: 1 }), true);
    assert.equal(await holds({ ...all, target: 3, result: 0, value: 'x' }), false);
    assert.equal(await holds({ ...all, target: 3, result: 1, value: 'w' }), true);
    assert.equal(await holds({ ...all, target: 3, result: 3, value: 'y' }), false);
    const none = { key: `${prefix}m`, range_end: `${prefix}n` };
    assert.equal(await holds({ ...none, target: 0, result: 0, version: 0 }), true);
    assert.equal(await holds({ ...none, target: 1, result: 1, create_revision: 0 }), false);
    assert.equal(await holds({ ...none, target: 3, result: 3, value: 'w' }), false);
    assert.equal(await holds({ key: prefix, range_end: '\0', target: 2, result: 1, mod_revision: 0 }), true);
  });

  it('executes all operations in order in a single revision', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    const before = revisionOf(await client.put({ key: `${prefix}a`, value: '1' }));
    const answer = await client.txn({
      compare: [{ key: `${prefix}a`, target: 2, result: 0, mod_revision: before }],
      success: [
        get(prefix, endOf(prefix)),
        put(`${prefix}b`, '2'),
        get(prefix, endOf(prefix)),
        del(`${prefix}a`),
        get(prefix, endOf(prefix)),
        { request_range: { key: `${prefix}a`, revision: before } },
      ],
      failure: [put(`${prefix}never`)],
    });
    assert.equal(answer.succeeded, true);
    assert.equal(revisionOf(answer), before + 1);
    const [first, second, third, fourth, fifth, sixth] = answer.responses;
    assert.deepEqual(keysOf(first?.response_range?.kvs ?? []), [`${prefix}a`]);
    assert.equal(second?.response_put?.header?.revision, before + 1);
    assert.deepEqual(keysOf(third?.response_range?.kvs ?? []), [`${prefix}a`, `${prefix}b`]);
    assert.equal(third?.response_range?.kvs[1]?.mod_revision, before + 1);
    assert.deepEqual(
      [fourth?.response_delete_range?.deleted, fourth?.response_delete_range?.prev_kvs[0]?.value],
      [1, '1'],
    );
    assert.deepEqual(keysOf(fifth?.response_range?.kvs ?? []), [`${prefix}b`]);
    assert.equal(sixth?.response_range?.kvs[0]?.value, '1');
    for (const header of [first?.response_range?.header, fourth?.response_delete_range?.header]) {
      assert.deepEqual([header?.cluster_id, header?.member_id, header?.raft_term], [0n, 0n, 0]);
    }
  });

  it('executes the failure branch if a comparison does not hold; an empty branch writes nothing', async () => {
    const key = subject().fresh();
    const { client } = subject();
    const answer = await client.txn({
      compare: [{ key, target: 0, result: 1, version: 0 }],
      success: [put(key)],
      failure: [put(`${key}-other`, 'o')],
    });
    assert.equal(answer.succeeded, false);
    assert.equal((await client.range({ key: `${key}-other` })).kvs[0]?.value, 'o');
    const empty = await client.txn({});
    assert.deepEqual([empty.succeeded, empty.responses, revisionOf(empty)], [true, [], revisionOf(answer)]);
  });

  it('evaluates all comparisons of nested transactions before any operation is applied', async () => {
    const prefix = subject().fresh();
    const { client } = subject();
    const before = revisionOf(await client.put({ key: `${prefix}a`, value: '1' }));
    const answer = await client.txn({
      success: [
        put(`${prefix}a`, '2'),
        nested({
          compare: [{ key: `${prefix}a`, target: 3, result: 0, value: '1' }],
          success: [put(`${prefix}b`, 'then'), get(`${prefix}a`)],
          failure: [put(`${prefix}b`, 'else')],
        }),
        nested({ compare: [{ key: `${prefix}none`, target: 0, result: 1, version: 0 }], failure: [get(`${prefix}b`)] }),
      ],
    });
    const inner = answer.responses[1]?.response_txn;
    assert.equal(inner?.succeeded, true);
    assert.equal(inner?.responses[1]?.response_range?.kvs[0]?.value, '2');
    const other = answer.responses[2]?.response_txn;
    assert.equal(other?.succeeded, false);
    assert.equal(other?.responses[0]?.response_range?.kvs[0]?.value, 'then');
    const { kvs } = await client.range({ key: prefix, range_end: endOf(prefix) });
    assert.deepEqual(
      kvs.map((kv) => [kv.value, kv.mod_revision]),
      [
        ['2', before + 1],
        ['then', before + 1],
      ],
    );
  });

  it('rejects a possible second write of a key in every combination of branches', async () => {
    const p = subject().fresh();
    const { client } = subject();
    const bad: ReadonlyArray<readonly [string, Draft<'RequestOp'>[]]> = [
      ['two puts', [put(`${p}a`), put(`${p}a`)]],
      ['a put in a deleted range', [put(`${p}b`), del(`${p}a`, `${p}c`)]],
      ['a delete of a put key', [del(`${p}a`), put(`${p}a`)]],
      ['a put and a nested put', [put(`${p}a`), nested({ success: [put(`${p}a`)] })]],
      ['a put and a put in a nested failure branch', [put(`${p}a`), nested({ failure: [put(`${p}a`)] })]],
      ['a put and a nested delete', [put(`${p}b`), nested({ success: [del(`${p}a`, `${p}c`)] })]],
      ['a delete and a nested put', [del(`${p}a`, `${p}c`), nested({ success: [put(`${p}b`)] })]],
      ['two nested puts', [nested({ success: [put(`${p}a`)] }), nested({ success: [put(`${p}a`)] })]],
      [
        'a nested put behind a nested delete',
        [nested({ success: [del(`${p}a`)] }), nested({ success: [put(`${p}a`)] })],
      ],
    ];
    for (const [what, success] of bad) {
      await assert.rejects(client.txn({ success }), { message: DUPLICATE }, what);
      await assert.rejects(client.txn({ failure: success }), { message: DUPLICATE }, `${what}, in the other branch`);
    }
    const good: ReadonlyArray<Draft<'TxnRequest'>> = [
      { success: [put(`${p}a`)], failure: [put(`${p}a`)] },
      { success: [del(`${p}a`, `${p}c`), del(`${p}b`)] },
      { success: [put(`${p}c`), del(`${p}a`, `${p}c`)] },
      { success: [nested({ success: [put(`${p}a`)], failure: [put(`${p}a`)] })] },
      { success: [nested({ success: [put(`${p}a`)], failure: [del(`${p}a`)] })] },
      { success: [put(`${p}a`), get(`${p}a`)] },
    ];
    for (const request of good) await client.txn(request);
  });

  it('rejects more than 128 operations, and malformed nested operations', async () => {
    const p = subject().fresh();
    const { client } = subject();
    const many = (count: number): Draft<'RequestOp'>[] => Array.from({ length: count }, (_, i) => put(`${p}${i}`));
    assert.equal((await client.txn({ success: many(128) })).responses.length, 128);
    await refused(client.txn({ success: many(129) }), 3, TOO_MANY);
    await refused(client.txn({ failure: many(129) }), 3, TOO_MANY);
    const compare = Array.from({ length: 129 }, () => ({ key: p, target: 0, result: 0, version: 0 }));
    await refused(client.txn({ compare }), 3, TOO_MANY);
    await refused(client.txn({ success: [nested({ success: many(129) })] }), 3, TOO_MANY);
    await refused(client.txn({ success: [put('')] }), 3, 'etcdserver: key is not provided');
    await refused(client.txn({ failure: [get('')] }), 3, 'etcdserver: key is not provided');
    await refused(client.txn({ success: [del('')] }), 3, 'etcdserver: key is not provided');
    await refused(client.txn({ compare: [{ target: 0 }] }), 3, 'etcdserver: key is not provided');
    const both = { request_put: { key: p, value: 'v', ignore_value: true } };
    await refused(client.txn({ success: [both] }), 3, 'etcdserver: value is provided');
  });

  it('rolls back the transaction if an operation of the executed branch fails', async () => {
    const p = subject().fresh();
    const { client } = subject();
    const before = revisionOf(await client.put({ key: p, value: '1' }));
    const lease = { request_put: { key: `${p}b`, value: 'v', lease: 99n } };
    await refused(client.txn({ success: [put(`${p}a`), lease] }), 5, 'etcdserver: requested lease not found');
    const ignore = { request_put: { key: `${p}b`, ignore_value: true } };
    await refused(client.txn({ success: [put(`${p}a`), ignore] }), 3, 'etcdserver: key not found');
    const future = { request_range: { key: p, revision: before + 500 } };
    await refused(client.txn({ success: [put(`${p}a`), future] }), 11, FUTURE);
    await refused(client.txn({ success: [future] }), 11, FUTURE);
    await client.compact(before);
    const past = { request_range: { key: p, revision: before - 1 } };
    await refused(client.txn({ success: [put(`${p}a`), past] }), 11, COMPACTED);
    const now = await client.range({ key: p, range_end: endOf(p) });
    assert.deepEqual([now.count, revisionOf(now)], [1, before]);
    // In the other branch, the operation is not executed.
    await client.txn({ success: [put(`${p}a`)], failure: [lease, future] });
  });
}
