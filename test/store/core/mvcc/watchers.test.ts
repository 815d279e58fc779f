import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Change, DecidedRevision } from '../../../../src/store/core/mvcc/machine.ts';
import { isDelete } from '../../../../src/store/core/mvcc/version.ts';
import { Watchers, type WatchTarget } from '../../../../src/store/core/mvcc/watchers.ts';
import { seededRandom } from '../../../client/clocks.ts';

it('delivers the same changes to watches as a check of every change against every watch', () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const { random } = seededRandom(seed);
    const below = (bound: number): number => Math.floor(random() * bound);
    const key = (): string => 'abcde'.charAt(below(5)) + '-0'.charAt(below(2));
    const change = (revision: number, sub: number): Change => {
      const version = below(4);
      const stored = {
        key: key(),
        revision,
        sub,
        createRevision: 1,
        version,
        lease: 0n,
        kv: undefined,
        size: 0,
        pool: 0 as const,
      };
      return { version: stored, previous: undefined, field: Buffer.alloc(0) };
    };
    const watchers = new Watchers<WatchTarget>();
    const standing = new Set<WatchTarget>();
    for (let i = 0; i < 40; i += 1) {
      const single = below(3) === 0;
      const watcher = {
        start: below(4) === 0 ? '' : key(),
        end: single || below(4) === 0 ? undefined : key(),
        single,
        next: 10 + below(4),
        noPut: below(4) === 0,
        noDelete: below(4) === 0,
      };
      watchers.add(watcher);
      standing.add(watcher);
      if (below(4) > 0) continue;
      const gone = [...standing][below(standing.size)] as WatchTarget;
      watchers.remove(gone);
      standing.delete(gone);
    }
    const revisions: DecidedRevision[] = [10, 11, 12].map((revision) => ({
      revision,
      changes: Array.from({ length: 1 + below(3) }, (_, sub) => change(revision, sub)),
    }));
    const expected = [...standing].map((watcher) => {
      const { start, end, single, next, noPut, noDelete } = watcher;
      const heard = revisions
        .flatMap(({ changes }) => changes)
        .filter(({ version }) => {
          const inside = single
            ? version.key === start
            : version.key >= start && (end === undefined || version.key < end);
          return inside && version.revision >= next && !(isDelete(version) ? noDelete : noPut);
        });
      return { watcher, heard };
    });
    const matched = watchers.match(revisions);
    for (const { watcher, heard } of expected)
      assert.deepEqual(matched.get(watcher) ?? [], heard, `seed ${seed}: ${JSON.stringify(watcher)}`);
    assert.equal(matched.size, expected.filter(({ heard }) => heard.length > 0).length, `seed ${seed}`);
  }
});
