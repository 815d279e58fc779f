import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CatalogCopy } from '../../../../../src/api/kinds/nodes/nodes/catalog-report.ts';
import {
  copiesOf,
  editedVersion,
  firstVersion,
  missingPart,
} from '../../../../../src/openshift/operators/olm/core/index.ts';

const digest = (letter: string): string => `sha256:${letter.repeat(64)}`;
const [A, B, C] = ['a', 'b', 'c'].map((letter) => firstVersion(digest(letter))) as [
  CatalogCopy,
  CatalogCopy,
  CatalogCopy,
];
const report = (master: string, copy: CatalogCopy | undefined) => ({
  master,
  found: copy === undefined ? undefined : { digest: copy.digest, copy },
});

test('masters without a catalog copy or with an older one fetch the newest copy', () => {
  const next = editedVersion(A, B.digest);
  const { status, reason, message, wanted } = copiesOf(A.digest, [
    report('m1', A),
    report('m2', next),
    report('m3', undefined),
  ]);
  assert.deepEqual([status, reason], ['False', 'CopiesDiffer']);
  assert.match(message, /take sha256:bbbbbbbbbbbb: m1 has sha256:aaaaaaaaaaaa, m3 has none$/);
  assert.deepEqual([...wanted.keys()], ['m1', 'm3']);
  assert.equal(wanted.get('m1')?.digest, B.digest);
  assert.equal(missingPart(A, next), 'content');
  assert.equal(missingPart(next, A), undefined);
});

test('reports a conflict if a catalog was edited independently on two masters, and no master fetches a copy', () => {
  const [left, right] = [editedVersion(A, B.digest), editedVersion(A, C.digest)];
  const found = copiesOf(A.digest, [report('m1', A), report('m2', left), report('m3', right)]);
  assert.deepEqual([found.status, found.reason, found.wanted.size], ['False', 'CopiesConflict', 0]);
  assert.match(found.message, /sha256:bbbbbbbbbbbb on m2; sha256:cccccccccccc on m3; remove the directory/);
  const solved = copiesOf(A.digest, [report('m1', A), report('m2', left), report('m3', undefined)]);
  assert.deepEqual(
    [...solved.wanted].map(([master, copy]) => [master, copy.digest]),
    [
      ['m1', B.digest],
      ['m3', B.digest],
    ],
  );
});

test('a catalog copy whose edits were reverted counts as newer than the edited copy', () => {
  const back = editedVersion(editedVersion(A, B.digest), A.digest);
  assert.equal(missingPart(editedVersion(A, B.digest), back), 'content');
  assert.equal(missingPart(A, back), 'version');
  assert.equal(missingPart(back, A), undefined);
});

test('gives catalog copies with equal content but different history one common version', () => {
  const [left, right] = [editedVersion(editedVersion(A, B.digest), C.digest), editedVersion(A, C.digest)];
  const { status, wanted } = copiesOf(C.digest, [report('m1', left), report('m2', right)]);
  assert.deepEqual([status, wanted.size], ['True', 1]);
  const older = [left, right].find(({ version }) => version !== [...wanted.values()][0]?.version);
  assert.ok(older);
  const next = editedVersion([...wanted.values()][0] ?? C, B.digest);
  assert.equal(copiesOf(C.digest, [report('m1', next), report('m2', [...wanted.values()][0])]).reason, 'CopiesDiffer');
});

/** Masters edit, are offline, and fetch in random order. Only ancestors of the fetched version may disappear. */
test('replaces a catalog copy only by a copy that descends from it, in 300 random histories', () => {
  for (let seed = 1; seed <= 300; seed++) {
    let state = seed;
    const next = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return (state >>> 8) % below;
    };
    const masters = new Map<string, CatalogCopy | undefined>([
      ['m1', A],
      ['m2', undefined],
      ['m3', undefined],
    ]);
    /** Parents of each version, without the limit of ancestors. */
    const parents = new Map<string, string[]>();
    const names = [...masters.keys()];
    for (let step = 0; step < 40; step++) {
      const name = names[next(3)] ?? '';
      const own = masters.get(name);
      if (next(4) === 0 && own !== undefined) {
        const edited = editedVersion(own, digest('abcdef0123456789'[next(16)] ?? 'a'));
        parents.set(edited.version, [own.version, ...(parents.get(edited.version) ?? [])]);
        masters.set(name, edited);
        continue;
      }
      const seen = names.filter((each) => each === name || next(3) > 0);
      const { wanted } = copiesOf(
        undefined,
        seen.map((each) => report(each, masters.get(each))),
      );
      const newest = wanted.get(name);
      if (newest === undefined) continue;
      const missing = missingPart(own, newest);
      if (missing === undefined) continue;
      if (own !== undefined && missing === 'content') {
        const known = new Set<string>();
        const visit = (version: string): void => {
          if (known.has(version)) return;
          known.add(version);
          for (const each of parents.get(version) ?? []) visit(each);
        };
        visit(newest.version);
        assert.ok(known.has(own.version), `seed ${seed}`);
      }
      if (own !== undefined && missing === 'version')
        parents.set(newest.version, [own.version, ...(parents.get(newest.version) ?? [])]);
      masters.set(name, newest);
    }
  }
});
