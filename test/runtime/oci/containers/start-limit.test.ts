import assert from 'node:assert/strict';
import { test } from 'node:test';
import { StartLimit } from '../../../../src/runtime/oci/containers/start-limit.ts';
import { ManualClock, settle } from '../../../client/clocks.ts';

test('container starts get slots in order, and a start that hangs keeps its slot for at most two seconds', async () => {
  const clock = new ManualClock();
  const limit = new StartLimit(2, clock);
  const got: string[] = [];
  const take = (name: string): Promise<() => void> =>
    limit.take('default').then((release) => {
      got.push(name);
      return release;
    });
  const first = take('a');
  for (const name of ['b', 'c', 'd', 'e']) void take(name);
  await settle();
  assert.deepEqual(got, ['a', 'b']);
  const release = await first;
  release();
  release();
  await settle();
  assert.deepEqual(got, ['a', 'b', 'c'], 'a place is given back once');
  await clock.advance(1_999);
  assert.equal(got.length, 3);
  await clock.advance(1);
  assert.deepEqual(got, ['a', 'b', 'c', 'd', 'e']);
});

test('a namespace with many hanging starts does not delay a start in another namespace by more than one slot', async () => {
  const clock = new ManualClock();
  const limit = new StartLimit(2, clock);
  const got: string[] = [];
  const take = (namespace: string): void =>
    void limit.take(namespace).then(() => {
      got.push(namespace);
    });
  for (let start = 0; start < 100; start += 1) take('hostile');
  take('a');
  take('b');
  await settle();
  assert.deepEqual(got, ['hostile', 'hostile']);
  await clock.advance(2_000);
  await clock.advance(2_000);
  assert.deepEqual(got.slice(2), ['hostile', 'a', 'b', 'hostile']);
});
