/** Compares the resolver with an oracle that tries every set of versions. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Constraint } from '../../../../../src/openshift/operators/olm/core/catalog/blobs.ts';
import { parseVersion } from '../../../../../src/openshift/operators/olm/core/catalog/semver.ts';
import {
  type CandidateVersion,
  type Problem,
  resolve,
  type Wanted,
} from '../../../../../src/openshift/operators/olm/core/resolver.ts';
import { generator } from '../../../../support/random.ts';

interface Simple extends CandidateVersion {
  readonly major: number;
}

function member(owner: string, major: number, more: Partial<CandidateVersion> = {}): Simple {
  return {
    name: `${owner}.v${major}.0.0`,
    package: owner,
    version: parseVersion(`${major}.0.0`),
    provides: [],
    requires: [],
    catalog: 'ns/cat',
    channel: 'stable',
    installed: false,
    major,
    satisfies: (rule) => rule === `major == ${major}`,
    ...more,
  };
}

/**
 * Whether the set satisfies the constraint, which is a range `lo..hi` of a package or a kind. Independent of the
 * resolver.
 */
function satisfied(constraint: Constraint, set: readonly Simple[]): boolean {
  switch (constraint.type) {
    case 'gvk':
      return set.some(({ provides }) => provides.some((each) => each === constraint.gvk));
    case 'package': {
      const lowest = Number(/^>=(\d+)/.exec(constraint.range)?.[1]);
      const below = Number(/<(\d+)/.exec(constraint.range)?.[1] ?? 99);
      return set.some((each) => each.package === constraint.name && each.major >= lowest && each.major < below);
    }
    case 'cel':
      return set.some((each) => `major == ${each.major}` === constraint.rule);
    case 'none':
      return constraint.of.filter((each) => satisfied(each, set)).length === 0;
    case 'any':
      return constraint.of.filter((each) => satisfied(each, set)).length > 0;
    default:
      return constraint.of.filter((each) => satisfied(each, set)).length === constraint.of.length;
  }
}

function isValid(set: readonly Simple[], present: readonly Simple[]): boolean {
  for (const [index, a] of set.entries())
    for (const b of set.slice(index + 1)) {
      if (a.name === b.name || a.package === b.package) return false;
      if (new Set([...a.provides, ...b.provides]).size < a.provides.length + b.provides.length) return false;
    }
  return set.every((each) =>
    each.requires.every(
      (constraint) => (each.installed && !satisfied(constraint, present)) || satisfied(constraint, set),
    ),
  );
}

/** Ranks of the options in the best set; undefined if there is no solution. */
function best(pool: readonly Simple[], wanted: readonly Wanted[], fixed: readonly Simple[]): number[] | undefined {
  const present = [...fixed, ...wanted.flatMap(({ options }) => options.filter((each) => each.installed) as Simple[])];
  let found: number[] | undefined;
  for (let bits = 0; bits < 2 ** pool.length; bits++) {
    const set = [...fixed, ...pool.filter((_, index) => (bits >> index) & 1)];
    const ranks = wanted.map(({ options }) => options.findIndex((each) => set.includes(each as Simple)));
    if (ranks.includes(-1)) continue;
    // An installed version that is no option of a subscription is kept; an option that was not selected is removed.
    if (
      set.some(
        (each) => each.installed && !fixed.includes(each) && !wanted.some(({ options }) => options.includes(each)),
      )
    )
      continue;
    if (!isValid(set, present)) continue;
    if (found === undefined || ranks.join() < found.join()) found = ranks;
  }
  return found;
}

function randomProblem(random: () => number): { problem: Problem; pool: Simple[]; fixed: Simple[] } {
  const below = (limit: number): number => Math.floor(random() * limit);
  const owners = ['a', 'b', 'c', 'd'];
  const kinds = ['g/v1/X', 'g/v1/Y', 'g/v1/Z'];
  const leaf = (): Constraint => {
    if (random() < 0.1) return { type: 'cel', rule: `major == ${below(3)}`, message: '' };
    return random() < 0.5
      ? { type: 'gvk', gvk: kinds[below(3)] ?? '' }
      : { type: 'package', name: owners[below(4)] ?? '', range: `>=${below(3)}.0.0 <${2 + below(2)}.0.0` };
  };
  const constraint = (): Constraint =>
    random() < 0.75
      ? leaf()
      : { type: (['all', 'any', 'none'] as const)[below(3)] ?? 'any', of: [leaf(), leaf()], message: '' };
  const some = <T>(make: () => T, chance: number): T[] => (random() < chance ? [make()] : []);
  const pool = owners.flatMap((owner) =>
    Array.from({ length: 1 + below(2) }, (_, index) =>
      member(owner, index + below(2), {
        name: `${owner}.v${index}`,
        provides: some(() => kinds[below(3)] ?? '', 0.4),
        requires: [...some(constraint, 0.5), ...some(constraint, 0.2)],
      }),
    ),
  );
  const fixed = some(
    () =>
      member('f', 1, {
        installed: true,
        provides: some(() => kinds[below(3)] ?? '', 0.5),
        requires: some(constraint, 0.4),
      }),
    0.4,
  );
  const wanted = owners.slice(0, 1 + below(2)).map((owner): Wanted => {
    const options = pool.filter((each) => each.package === owner).reverse();
    const stay = some(
      () => member(owner, 0, { name: `${owner}.old`, installed: true, requires: some(constraint, 0.5) }),
      0.4,
    );
    pool.push(...stay);
    return { name: owner, options: [...options, ...stay], reason: 'none' };
  });
  const offered = pool.filter((each) => !each.installed);
  return { pool, fixed, problem: { wanted, fixed, candidates: () => offered } };
}

test('the operator resolver finds the same solution as an exhaustive search', () => {
  const counts = { yes: 0, no: 0 };
  for (let seed = 1; seed <= 3000; seed++) {
    const { problem, pool, fixed } = randomProblem(generator(seed));
    const expected = best(pool, problem.wanted, fixed);
    const result = resolve(problem);
    const chosen = 'chosen' in result ? (result.chosen as readonly Simple[]) : undefined;
    const about = `seed ${seed}`;
    if (chosen === undefined) {
      assert.equal(expected, undefined, `${about}: ${'failure' in result ? result.failure : ''}`);
      counts.no += 1;
      continue;
    }
    const present = [
      ...fixed,
      ...problem.wanted.flatMap(({ options }) => options.filter((each) => each.installed) as Simple[]),
    ];
    assert.ok(isValid(chosen, present), about);
    const ranks = problem.wanted.map(({ options }) => options.findIndex((each) => chosen.includes(each as Simple)));
    assert.deepEqual(ranks, expected, about);
    assert.deepEqual(resolve(problem), result, `${about}: the same again`);
    counts.yes += 1;
  }
  assert.ok(counts.yes > 500 && counts.no > 300, JSON.stringify(counts));
});

test('the operator resolver stops a search that exceeds the step limit', () => {
  // Every version of each package requires another package, and the last one does not exist.
  const pool = Array.from({ length: 12 }, (_, owner) =>
    Array.from({ length: 10 }, (_each, major) =>
      member(`p${owner}`, major, { requires: [{ type: 'package', name: `p${owner + 1}`, range: '>=0.0.0' }] }),
    ),
  ).flat();
  const first = pool.filter((each) => each.package === 'p0');
  const result = resolve({
    wanted: [{ name: 's', options: first, reason: '' }],
    fixed: [],
    candidates: (constraint) =>
      pool.filter((each) => constraint.type === 'package' && each.package === constraint.name),
    maxSteps: 20_000,
  });
  assert.ok('failure' in result);
  assert.match(result.failure, /resolution was aborted after 20000 steps/);
});

test('a failed operator resolution names the missing requirement', () => {
  const web = member('web', 1, { requires: [{ type: 'package', name: 'db', range: '>=2.0.0' }] });
  const result = resolve({
    wanted: [{ name: 'web', options: [web], reason: '' }],
    fixed: [],
    candidates: () => [member('db', 1)],
  });
  assert.ok('failure' in result);
  assert.equal(
    result.failure,
    'constraints not satisfiable: bundle web.v1.0.0 requires an operator with package: db and with version in range: >=2.0.0',
  );
});

test('a failed operator resolution names the invalid CEL rule and its error', () => {
  const failureOf = (message: string): string => {
    const constraint = { type: 'cel', rule: 'properties.exists(', message } as const;
    const web = member('web', 1, { requires: [constraint] });
    const result = resolve({
      wanted: [{ name: 'web', options: [web], reason: '' }],
      fixed: [],
      candidates: () => [member('db', 1)],
      mistakeIn: () => 'no end',
    });
    return 'failure' in result ? result.failure : '';
  };
  assert.match(
    failureOf(''),
    /requires an operator whose properties satisfy the rule properties.exists\(, which is invalid: no end/,
  );
  assert.match(failureOf('needs a certified one'), /whose properties satisfy "needs a certified one"/);
});
