import assert from 'node:assert/strict';
import { it } from 'node:test';
import { ValueCache } from '../../../../src/store/core/mvcc/value-cache.ts';
import { PoolId, type Version } from '../../../../src/store/core/mvcc/version.ts';
import { seededRandom } from '../../../client/clocks.ts';

const LIMITS = { currentBytes: 500, pastBytes: 200 };

function made(revision: number, size: number): Version {
  const kv = Buffer.alloc(size);
  return { key: 'k', revision, sub: 0, createRevision: 1, version: 1, lease: 0n, kv, size, pool: PoolId.none };
}

it('evicts the oldest values beyond the cache limit, but never values that are not stored on disk yet', () => {
  for (let seed = 1; seed <= 20; seed += 1) {
    const { random } = seededRandom(seed);
    const below = (bound: number): number => Math.floor(random() * bound);
    const cache = new ValueCache(LIMITS);
    const versions: Version[] = [];
    for (let step = 0; step < 5000; step += 1) {
      const any = versions[below(versions.length)];
      const what = below(8);
      if (what < 4 || any === undefined) {
        const version = made(step + 1, 1 + below(20));
        versions.push(version);
        cache.addCurrent(version);
      } else if (what === 4) cache.supersede(any);
      else if (what === 5) cache.reinstate(any);
      else if (what === 6) {
        cache.forget(any);
        versions.splice(versions.indexOf(any), 1);
      } else if (any.kv === undefined) {
        any.kv = Buffer.alloc(any.size);
        cache.addCurrent(any);
      }
      if (below(20) === 0) cache.stored = step + 1;
    }
    const of = (pool: PoolId): Version[] => versions.filter((version) => version.pool === pool);
    const bytes = (some: readonly Version[]): number => some.reduce((sum, { size }) => sum + size, 0);
    const [current, past] = [of(PoolId.current), of(PoolId.past)];
    assert.equal(cache.bytes, bytes(current) + bytes(past), `seed ${seed}`);
    assert.ok([...current, ...past].every(({ kv }) => kv !== undefined));
    assert.ok(versions.every(({ kv, revision }) => kv !== undefined || revision <= cache.stored));
    cache.stored = 5000;
    cache.addCurrent(made(5001, 1));
    assert.ok(bytes(of(PoolId.current)) < LIMITS.currentBytes, `seed ${seed}`);
  }
});

it('the value cache evicts values in the order in which they were added', () => {
  const cache = new ValueCache({ currentBytes: 10, pastBytes: 10 });
  cache.stored = 100;
  const versions = Array.from({ length: 12 }, (_, i) => made(i + 1, 1));
  for (const version of versions.slice(0, 10)) cache.addCurrent(version);
  cache.forget(versions[1] as Version);
  for (const version of versions.slice(10)) cache.addCurrent(version);
  // One place was free. To store the other value, the first value was dropped, not the second, which had already been
  // removed.
  assert.deepEqual(
    versions.filter(({ kv }) => kv === undefined).map(({ revision }) => revision),
    [1],
  );
});
