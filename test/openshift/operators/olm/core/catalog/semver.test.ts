import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareSemver } from '../../../../../../src/base/versions/semver.ts';
import { parseRange, parseVersion } from '../../../../../../src/openshift/operators/olm/core/catalog/semver.ts';
import { generator } from '../../../../../support/random.ts';

const version = (text: string) => {
  const parsed = parseVersion(text);
  assert.ok(parsed, text);
  return parsed;
};

test('orders versions as semver.org specifies', () => {
  // The versions are those of the list in section 11 of semver.org.
  const ordered =
    '1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0'.split(' ');
  for (const [index, low] of ordered.entries())
    for (const high of ordered.slice(index + 1)) {
      assert.ok(compareSemver(version(low), version(high)) < 0, `${low} < ${high}`);
      assert.ok(compareSemver(version(high), version(low)) > 0, `${high} > ${low}`);
    }
  assert.equal(compareSemver(version('1.0.0+a'), version('v1.0.0+b')), 0);
});

test('rejects invalid versions and version ranges', () => {
  for (const text of ['', '1', '1.2', '01.2.3', '1.2.3-01', '1.2.3-', 'a.b.c', '9'.repeat(400), '-1.0.0'])
    assert.equal(parseVersion(text), undefined, text);
  for (const text of [
    '',
    '   ',
    '||',
    '>=',
    '>=1.0.0 ||',
    '~1.0.0',
    '^1.0.0',
    '>=1.0.0 <',
    'x',
    `>=1.0.0${' '.repeat(300)}`,
  ])
    assert.equal(parseRange(text), undefined, text);
});

test('a version range includes pre-releases by their order, unlike in npm', () => {
  assert.equal(parseRange('>=1.0.0 <2.0.0')?.includes(version('1.5.0-beta')), true);
  assert.equal(parseRange('<1.0.0')?.includes(version('1.0.0-rc.1')), true);
});

test('a version range contains exactly the versions between its bounds in a sorted list', () => {
  const random = generator(17);
  const numbers = [0, 1, 2];
  const suffixes = ['-1', '-2', '-alpha', '-alpha.1', '-alpha.1.0', '-alpha.b', '-rc.2', '-rc.10', ''];
  const ordered = numbers.flatMap((major) =>
    numbers.flatMap((minor) =>
      numbers.flatMap((patch) => suffixes.map((suffix) => `${major}.${minor}.${patch}${suffix}`)),
    ),
  );
  const compare: Readonly<Record<string, (a: number, b: number) => boolean>> = {
    '>=': (a, b) => a >= b,
    '<=': (a, b) => a <= b,
    '>': (a, b) => a > b,
    '<': (a, b) => a < b,
    '!=': (a, b) => a !== b,
    '=': (a, b) => a === b,
    '': (a, b) => a === b,
  };
  const place = (): number => Math.floor(random() * ordered.length);
  for (let round = 0; round < 3000; round++) {
    const alternatives = Array.from({ length: 1 + Math.floor(random() * 2) }, () =>
      Array.from({ length: 1 + Math.floor(random() * 2) }, () => {
        const operators = Object.keys(compare);
        return { operator: operators[Math.floor(random() * operators.length)] ?? '', bound: place() };
      }),
    );
    const text = alternatives
      .map((terms) =>
        terms.map(({ operator, bound }) => `${operator}${random() < 0.3 ? ' ' : ''}${ordered[bound]}`).join(' '),
      )
      .join(random() < 0.5 ? '||' : ' || ');
    const range = parseRange(text);
    assert.ok(range, text);
    for (let each = 0; each < 5; each++) {
      const at = place();
      const wanted = alternatives.some((terms) => terms.every(({ operator, bound }) => compare[operator]?.(at, bound)));
      assert.equal(range.includes(version(ordered[at] ?? '')), wanted, `${ordered[at]} in ${text}`);
    }
  }
});

test('a version range accepts x for any number', () => {
  for (const [text, inside, outside] of [
    ['1.2.x', '1.2.9', '1.3.0'],
    ['1.x', '1.9.0', '2.0.0'],
    ['>1.2.x', '1.3.0', '1.2.9'],
    ['<=1.2.x', '1.2.9', '1.3.0'],
    ['>=1.2', '1.2.0', '1.1.9'],
    ['!=1.2.x', '1.3.0', '1.2.1'],
    ['!=1.2.3 >1.0.0', '1.2.4', '1.2.3'],
  ] as const) {
    assert.equal(parseRange(text)?.includes(version(inside)), true, `${inside} in ${text}`);
    assert.equal(parseRange(text)?.includes(version(outside)), false, `${outside} not in ${text}`);
  }
});
