import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exactInteger, integerOf, parseJson } from '../../../src/base/json/json.ts';
import { Choices } from '../../apiserver/core/patch/choices.ts';

const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);

/** A simple extraction of the numbers in a text, in order. */
function numbersOf(text: string): string[] {
  return [...text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').matchAll(/-?\d[\d.eE+-]*/g)].map(([number]) => number);
}

/** The number as upstream's decoder would serialize it again. */
function keptOf(source: string): string {
  if (/^-?\d+$/.test(source)) {
    const exact = BigInt(source);
    if (exact <= MAX && exact >= MIN) return String(exact);
  }
  return JSON.stringify(Number(source));
}

test('preserves 64-bit integers and treats every other number as a double', () => {
  for (const [source, kept] of [
    ['9007199254740991', '9007199254740991'],
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    // Go decodes these to doubles, which it prints like JavaScript.
    ['9223372036854775808', '9223372036854776000'],
    ['18446744073709551615', '18446744073709552000'],
    ['9007199254740993.0', '9007199254740992'],
    ['1e18', '1000000000000000000'],
    ['-0', '0'],
  ] as const) {
    assert.equal(JSON.stringify(parseJson(source)), kept, source);
    assert.equal(JSON.stringify(parseJson(`{"a":[${source}]}`)), `{"a":[${kept}]}`);
  }
  assert.equal(typeof parseJson('9007199254740991'), 'number');
});

test('finds long integers at every position and leaves strings unchanged', () => {
  const choices = new Choices(20261122);
  const digits = (count: number): string => {
    let text = String(1 + choices.below(9));
    while (text.length < count) text += String(choices.below(10));
    return text;
  };
  const number = (): string => {
    const sign = choices.chance(0.3) ? '-' : '';
    const whole = digits(1 + choices.below(22));
    if (choices.chance(0.2)) return `${sign}${whole}.${digits(1 + choices.below(20))}`;
    return choices.chance(0.1) ? `${sign}${whole.slice(0, 3)}e${choices.below(20)}` : `${sign}${whole}`;
  };
  const string = (): string => {
    const parts = [
      () => digits(1 + choices.below(40)),
      () => ':',
      () => '-',
      () => '[',
      () => '\\"',
      () => 'é',
      () => 'ab',
    ];
    return `"${Array.from({ length: choices.below(5) }, () => choices.one(parts)()).join('')}"`;
  };
  const space = (): string => choices.one(['', '', '', ' ', '\n\t']);
  const value = (depth: number): string => {
    const kind = depth > 4 ? choices.below(3) : choices.below(6);
    if (kind < 2) return number();
    if (kind === 2) return choices.one([string(), 'true', 'null']);
    const items = Array.from({ length: choices.below(5) }, () => value(depth + 1));
    if (kind === 3) return `[${space()}${items.join(`,${space()}`)}]`;
    return `{${items.map((item, at) => `"k${at}${digits(choices.below(30) + 1)}"${space()}:${space()}${item}`).join(',')}}`;
  };
  let long = 0;
  for (let round = 0; round < 3000; round++) {
    const text = `${space()}${value(0)}${space()}`;
    const expected = numbersOf(text).map(keptOf);
    const parsed = parseJson(text);
    const printed = JSON.stringify(parsed);
    assert.deepEqual(numbersOf(printed), expected, text);
    // Everything except the numbers equals the result of JSON.parse.
    const blank = (each: string): string =>
      each.replaceAll(/("(?:[^"\\]|\\.)*")|-?\d[\d.eE+-]*/g, (_, quoted) => quoted ?? '0');
    assert.equal(blank(printed), blank(JSON.stringify(JSON.parse(text))), text);
    if (expected.some((each) => each.length > 16)) long += 1;
  }
  assert.ok(long > 500, `only ${long} had a long integer`);
});

test('keeps keys with names of prototype members as data in objects with long integers', () => {
  const parsed = parseJson('{"__proto__":9007199254740993,"constructor":{"prototype":9007199254740993}}') as object;
  assert.deepEqual(Object.keys(parsed), ['__proto__', 'constructor']);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
  assert.equal(JSON.stringify(parsed), '{"__proto__":9007199254740993,"constructor":{"prototype":9007199254740993}}');
});

test('the JSON scan reads a long sequence of digits only once', () => {
  // Scanning from each position would take minutes.
  const text = `"${'1'.repeat(3_000_000)}"`;
  assert.equal((parseJson(text) as string).length, 3_000_000);
  assert.throws(() => parseJson('[1234567890123456'), SyntaxError);
});

test('uses a BigInt only for integers that a double would not represent exactly', () => {
  assert.equal(exactInteger(9007199254740992, '9007199254740993'), 9007199254740993n);
  assert.equal(exactInteger(1e18, '1e18'), 1e18);
  assert.equal(exactInteger(1e21, `1${'0'.repeat(21)}`), 1e21);
  assert.equal(integerOf(5n), 5);
  assert.equal(integerOf(-(2n ** 53n)), -(2n ** 53n));
});
