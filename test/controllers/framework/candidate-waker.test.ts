import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject } from '../../../src/api/meta/object.ts';
import { candidateWaker } from '../../../src/controllers/framework/candidate-waker.ts';

function setUp(count: number) {
  const objects: KubeObject[] = Array.from({ length: count }, (_, index) => ({
    metadata: { name: `c${index}`, namespace: index % 2 === 0 ? 'even' : 'odd' },
  }));
  const woken = new Set<string>();
  const timers: (() => void)[] = [];
  const waker = candidateWaker(
    { after: (delayMs, task) => void (delayMs === 0 && timers.push(() => void task())) },
    { list: (namespace) => objects.filter(({ metadata }) => [undefined, metadata?.namespace].includes(namespace)) },
    ({ metadata }) => void woken.add(metadata?.name ?? ''),
  );
  return { woken, timers, waker };
}

test('wakes the concerned candidates of the namespace in the same turn', () => {
  const { woken, timers, waker } = setUp(6);
  waker('even', ({ metadata }) => metadata?.name !== 'c2');
  assert.deepEqual([...woken], ['c0', 'c4']);
  waker(undefined, ({ metadata }) => metadata?.name === 'c1');
  assert.deepEqual([...woken], ['c0', 'c4', 'c1']);
  for (const run of timers) run();
  assert.equal(woken.size, 3, 'no other candidate is woken in the next turn');
});

test('wakes all candidates of a namespace in the next turn instead of comparing them with many changes', () => {
  const { woken, timers, waker } = setUp(4_000);
  let compared = 0;
  const change = (namespace: string): void =>
    waker(namespace, () => {
      compared += 1;
      return false;
    });
  for (let changes = 0; changes < 1_000; changes++) change('even');
  assert.ok(compared <= 12_000, `${compared} comparisons`);
  assert.equal(woken.size, 0);
  assert.equal(timers.length, 1);
  timers.pop()?.();
  assert.equal(woken.size, 2_000, 'only candidates of the namespace with the changes');
  woken.clear();
  compared = 0;
  change('odd');
  assert.equal(compared, 2_000, 'the next turn compares again');
});
