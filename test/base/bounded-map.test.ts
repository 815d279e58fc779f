import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BoundedMap } from '../../src/base/bounded-map.ts';
import { generator } from '../support/random.ts';

/** Oracle: a list of entries, the oldest first. */
class ListMap {
  entries: (readonly [key: number, value: number])[] = [];
  readonly limit: number;

  constructor(limit: number) {
    this.limit = limit;
  }

  set(key: number, value: number): void {
    this.delete(key);
    this.entries.push([key, value]);
    if (this.entries.length > this.limit) this.entries.shift();
  }

  get(key: number): number | undefined {
    return this.entries.find(([each]) => each === key)?.[1];
  }

  delete(key: number): void {
    this.entries = this.entries.filter(([each]) => each !== key);
  }
}

test('a bounded map agrees with a list of entries after random operations', () => {
  const random = generator(4);
  for (const limit of [1, 2, 7, 64]) {
    const map = new BoundedMap<number, number>(limit);
    const list = new ListMap(limit);
    for (let step = 0; step < 20_000; step++) {
      const key = Math.floor(random() * limit * 3);
      const action = random();
      if (action < 0.7) {
        map.set(key, step);
        list.set(key, step);
      } else if (action < 0.9) {
        assert.equal(map.delete(key), list.get(key) !== undefined);
        list.delete(key);
      } else if (action < 0.901) {
        map.clear();
        list.entries = [];
      }
      assert.equal(map.size, list.entries.length);
      const probe = Math.floor(random() * limit * 3);
      assert.equal(map.get(probe), list.get(probe));
      assert.equal(map.has(probe), list.get(probe) !== undefined);
    }
  }
});

test('a bounded map evicts entries in constant time, independent of its size', () => {
  const microsOf = (limit: number): number => {
    const map = new BoundedMap<number, number>(limit);
    for (let key = 0; key < limit; key++) map.set(key, key);
    const began = process.cpuUsage();
    for (let key = limit; key < limit + 20_000; key++) map.set(key, key);
    const { user, system } = process.cpuUsage(began);
    return user + system;
  };
  microsOf(64);
  const small = Math.min(microsOf(64), microsOf(64), microsOf(64));
  const large = Math.min(microsOf(16_384), microsOf(16_384), microsOf(16_384));
  // An eviction that scans the gaps makes the large map more than a hundred times slower than the small one.
  assert.ok(large < Math.max(small, 2_000) * 20, `${large} µs instead of ${small} µs`);
});
