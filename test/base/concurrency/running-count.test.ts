import assert from 'node:assert/strict';
import { it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { type Placed, UnderWay } from '../../../src/base/concurrency/running-count.ts';
import { generator } from '../../support/random.ts';

class Item implements Placed {
  place = -1;
}

const LARGE_BYTES = 8000;

class Large extends Item {
  readonly content = new Array<number>(LARGE_BYTES / 8).fill(0);
}

it('a running count contains the same items as a Set', () => {
  const random = generator(7);
  const items = Array.from({ length: 12 }, () => new Item());
  const ours = new UnderWay<Item>();
  const set = new Set<Item>();
  for (let step = 0; step < 5000; step++) {
    const item = items[Math.floor(random() * items.length)] as Item;
    const comes = random() < 0.5;
    if (comes) {
      ours.add(item);
      set.add(item);
    } else {
      ours.delete(item);
      set.delete(item);
    }
    assert.equal(ours.size, set.size);
    assert.deepEqual(new Set(ours.all()), set);
    for (const each of items) assert.equal(ours.has(each), set.has(each));
  }
});

it('deleted items of a running count are freed by a minor garbage collection, even in an old set', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: { type: 'major' | 'minor' }) => void;
  const ours = new UnderWay<Large>();
  // A Set of this size rebuilds its table every few additions.
  for (let index = 0; index < 16; index++) ours.add(new Large());
  collect({ type: 'major' });
  const before = process.memoryUsage().heapUsed;
  for (let round = 0; round < 8; round++) {
    for (let index = 0; index < 500; index++) {
      const [oldest] = ours.all();
      if (oldest !== undefined) ours.delete(oldest);
      ours.add(new Large());
    }
    collect({ type: 'minor' });
  }
  collect({ type: 'minor' });
  const keptBytes = process.memoryUsage().heapUsed - before;
  assert.ok(keptBytes < 1000 * LARGE_BYTES, `${keptBytes} bytes of ${4000 * LARGE_BYTES} are still there`);
});
