/** Compares the linear-time matcher with the JavaScript engine's own, for patterns that the engine handles quickly. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { compileRegexp } from '../../../src/base/regexp/index.ts';

/** A small deterministic random number generator. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
}

function pattern(random: (below: number) => number, depth = 0): string {
  const below = (): string => pattern(random, depth + 1);
  switch (random(depth > 3 ? 3 : 10)) {
    case 3:
      return below() + below();
    case 4:
      return `(${below()}|${below()})`;
    case 5:
      return `(?:${below()})${'*+?'[random(3)] ?? ''}${random(4) === 0 ? '?' : ''}`;
    case 6:
      return ['[ab]', '[^a]', '[a-c]', '\\w', '\\d', '\\s'][random(6)] ?? '';
    case 7: {
      const least = random(2);
      return `(?:${below()}){${least},${least + random(3)}}`;
    }
    case 8:
      return ['^', '$', '.', '\\b', '\\B'][random(5)] + below();
    default:
      return 'abc'[random(3)] ?? '';
  }
}

it('finds the same matches as the JavaScript engine for random patterns and texts', () => {
  const random = numbers(20261121);
  for (let round = 0; round < 10_000; round++) {
    const source = pattern(random);
    const theirs = new RegExp(source, 'u');
    const ours = compileRegexp(source);
    for (let text = 0; text < 4; text++) {
      const subject = Array.from({ length: random(9) }, () => 'abcd 1'[random(6)]).join('');
      const expected = theirs.exec(subject);
      const found = ours.exec(subject);
      const place = `${source} in ${JSON.stringify(subject)}`;
      assert.equal(ours.test(subject), expected !== null, place);
      assert.equal(found?.start, expected?.index, place);
      // Go and JavaScript differ for repeated groups that can match the empty text.
      const same = !/\)[*+?{]/.test(source);
      if (same && expected !== null) assert.equal(found?.end, expected.index + expected[0].length, place);
    }
  }
});

it('matches patterns quickly for which the JavaScript engine takes exponential time', () => {
  const began = performance.now();
  for (const source of ['^(a+)+$', '^(a|a)*$', '(x+x+)+y', '^(([a-z])+.)+[A-Z]([a-z])+$']) {
    assert.equal(compileRegexp(source).test(`${'a'.repeat(20_000)}!`), false, source);
  }
  assert.ok(performance.now() - began < 2_000);
});

it('a regular expression fails quickly for a very large pattern and text', () => {
  const began = performance.now();
  // Each character leads to a different set of hundreds of states.
  const hard = compileRegexp('(a|b)*a(a|b){900}c');
  const text = Array.from({ length: 100_000 }, (_, index) => ((index * index) % 7 < 3 ? 'a' : 'b')).join('');
  assert.throws(() => hard.test(text), /too long to be matched/);
  assert.throws(() => hard.exec(text), /too long to be matched/);
  assert.throws(() => compileRegexp('a.*b|a').all('a'.repeat(100_000)), /too long to be matched/);
  assert.ok(performance.now() - began < 5_000);
  assert.equal(compileRegexp('^[^,]+$').test('漢字かな'.repeat(250_000)), true);
});

it('regular expressions support the syntax of RE2', () => {
  const cases: [string, string, boolean][] = [
    ['^[[:alpha:]_]+$', 'ab_c', true],
    ['^\\pL+$', 'äbc', true],
    ['^\\p{Greek}+$', 'αβγ', true],
    ['(?i)hello', 'HeLLo', true],
    ['^\\Qa.b\\E$', 'a.b', true],
    ['^\\Qa.b\\E$', 'axb', false],
    ['\\Aab\\z', 'ab', true],
    ['^.$', '\u{1F600}', true],
    ['^\\x41\\x{42}\\103$', 'ABC', true],
    ['(?s)^.$', '\n', true],
    ['^.$', '\n', false],
    ['(?m)^b$', 'a\nb\nc', true],
    ['^a{,2}$', 'a{,2}', true],
    ['^(?P<year>\\d{4})-(?<month>\\d\\d)$', '2026-11', true],
    ['', 'anything', true],
  ];
  for (const [source, text, expected] of cases) assert.equal(compileRegexp(source).test(text), expected, source);
});

it("rejects what RE2 rejects, with Go's messages", () => {
  const cases: [string, RegExp][] = [
    ['(?=a)', /invalid or unsupported Perl syntax: `\(\?=`/],
    ['(a)\\1', /invalid escape sequence: `\\1`/],
    ['a**', /invalid nested repetition operator/],
    ['*a', /missing argument to repetition operator: `\*`/],
    ['(a', /missing closing \)/],
    ['a)', /unexpected \)/],
    ['[a', /missing closing \]/],
    ['a{1001}', /invalid repeat count/],
    ['[b-a]', /invalid character class range/],
    ['((a{1000}){1000}){1000}', /expression too large/],
    [`${'('.repeat(1000)}a${')'.repeat(1000)}`, /nests too deeply/],
  ];
  for (const [source, message] of cases) assert.throws(() => compileRegexp(source), message, source);
});

it('a regular expression returns groups and all matches', () => {
  const match = compileRegexp('(a+)(b)?').exec('xaac');
  assert.deepEqual(match, { start: 1, end: 3, groups: ['aa', undefined] });
  assert.deepEqual(
    compileRegexp('a*')
      .all('baac')
      .map(({ start, end }) => [start, end]),
    [
      [0, 0],
      [1, 3],
      [4, 4],
    ],
  );
});
