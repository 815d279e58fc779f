import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Slots } from '../../../src/base/concurrency/slots.ts';

test('slots limit the number of concurrent tasks, and start waiting tasks in order, also after failures', async () => {
  const slots = new Slots(2);
  const order: number[] = [];
  let running = 0;
  let most = 0;
  const task = (index: number) => async (): Promise<number> => {
    order.push(index);
    most = Math.max(most, ++running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    if (index % 2 === 1) throw new Error(`task ${index}`);
    return index;
  };
  const settled = await Promise.allSettled([0, 1, 2, 3, 4, 5].map((index) => slots.run(task(index))));
  assert.deepEqual(
    settled.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.message)),
    [0, 'task 1', 2, 'task 3', 4, 'task 5'],
  );
  assert.deepEqual(order, [0, 1, 2, 3, 4, 5]);
  assert.equal(most, 2);
  assert.equal(await slots.run(task(6)), 6);
});
