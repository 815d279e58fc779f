import assert from 'node:assert/strict';
import { it } from 'node:test';
import { splitEvents } from '../../../../src/store/core/messages/event.ts';
import type { PutRequest, RequestOp } from '../../../../src/store/core/messages/kv.ts';
import { Machine } from '../../../../src/store/core/mvcc/machine.ts';

const put = (key: string, value: string): RequestOp => {
  const request: PutRequest = {
    key,
    value: Buffer.from(value),
    lease: 0n,
    prevKv: false,
    ignoreValue: false,
    ignoreLease: false,
  };
  return { kind: 'put', put: request };
};
const del = (key: string): RequestOp => ({ kind: 'delete', delete: { key, end: '', prevKv: false } });
const nested = (...success: RequestOp[]): RequestOp => ({ kind: 'txn', txn: { compares: [], success, failure: [] } });

it('keeps the log row of a revision that writes and deletes one key until compaction removes all its events', () => {
  const machine = new Machine({ currentBytes: 1 << 20, pastBytes: 1 << 20 });
  const rows = new Map<number, Buffer>();
  const write = (...success: RequestOp[]): number => {
    const { decided } = machine.decide({ compares: [], success, failure: [] });
    assert.ok(decided);
    rows.set(decided.revision, Buffer.concat(decided.changes.map(({ field }) => field)));
    machine.publish(decided.revision);
    return decided.revision;
  };
  write(put('a', '1'));
  const twice = write(nested(put('a', '2')), nested(del('a')));
  const last = write(put('b', '1'));
  const discarded = (revision: number) => {
    machine.compact(revision);
    return machine.collect(100).discarded;
  };
  // The delete at the compaction revision stays, and so does the other event in its row.
  assert.deepEqual(discarded(twice), [{ revision: 2 }]);
  const again = new Machine({ currentBytes: 1 << 20, pastBytes: 1 << 20 });
  for (const [revision, events] of rows) if (revision !== 2) again.load(revision, splitEvents(events));
  again.loaded(twice);
  assert.deepEqual(
    again.changes('a', 'b', twice, last, 10).map(({ version }) => [version.revision, version.version]),
    [
      [twice, 2],
      [twice, 0],
    ],
  );
  const gone = discarded(last);
  assert.equal(
    gone.every(({ revision, keys }) => revision === twice && (keys === undefined || keys.join() === 'a')),
    true,
  );
  assert.ok(gone.length > 0);
});
