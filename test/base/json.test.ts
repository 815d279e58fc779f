import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exactInteger, integerOf, parseJson } from '../../src/base/json.ts';
import { Choices } from '../core/patch/choices.ts';

const MAX = 2n ** 63n - 1n;
const MIN = -(2n ** 63n);

/** A dumb reader of the numbers of a text: one by one, in order. */
function numbersOf(text: string): string[] {
  return [...text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""').matchAll(/-?\d[\d.eE+-]*/g)].map(([number]) => number);
}

/** What upstream's decoder keeps of a number, as it prints it again. */
function keptOf(source: string): string {
  if (/^-?\d+$/.test(source)) {
    const exact = BigInt(source);
    if (exact <= MAX && exact >= MIN) return String(exact);
  }
  return JSON.stringify(Number(source));
}

test('integers of 64 bits come out as they went in, and every other number as a double does', () => {
  for (const [source, kept] of [
    ['9007199254740991', '9007199254740991'],
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['9223372036854775807', '9223372036854775807'],
    ['-9223372036854775808', '-9223372036854775808'],
    // What Go reads to a double, and prints as JavaScript does.
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

test('wherever a long integer stands it is found, and what a text says is left alone', () => {
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
    // All but the numbers is what JSON.parse says.
    const blank = (each: string): string =>
      each.replaceAll(/("(?:[^"\\]|\\.)*")|-?\d[\d.eE+-]*/g, (_, quoted) => quoted ?? '0');
    assert.equal(blank(printed), blank(JSON.stringify(JSON.parse(text))), text);
    if (expected.some((each) => each.length > 16)) long += 1;
  }
  assert.ok(long > 500, `only ${long} had a long integer`);
});

test('keys that are names of prototypes stay data beside long integers', () => {
  const parsed = parseJson('{"__proto__":9007199254740993,"constructor":{"prototype":9007199254740993}}') as object;
  assert.deepEqual(Object.keys(parsed), ['__proto__', 'constructor']);
  assert.equal(Object.getPrototypeOf(parsed), Object.prototype);
  assert.equal(JSON.stringify(parsed), '{"__proto__":9007199254740993,"constructor":{"prototype":9007199254740993}}');
});

test('a long run of digits is looked at once', () => {
  // Looked at from each of its places anew this would take minutes.
  const text = `"${'1'.repeat(3_000_000)}"`;
  assert.equal((parseJson(text) as string).length, 3_000_000);
  assert.throws(() => parseJson('[1234567890123456'), SyntaxError);
});

test('a BigInt stands only where a number would be rounded', () => {
  assert.equal(exactInteger(9007199254740992, '9007199254740993'), 9007199254740993n);
  assert.equal(exactInteger(1e18, '1e18'), 1e18);
  assert.equal(exactInteger(1e21, `1${'0'.repeat(21)}`), 1e21);
  assert.equal(integerOf(5n), 5);
  assert.equal(integerOf(-(2n ** 53n)), -(2n ** 53n));
});
