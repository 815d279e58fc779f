import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  addQuantity,
  canonicalQuantity,
  compareQuantity,
  formatQuantity,
  parseBytes,
  parseMillicores,
  parseQuantity,
  quantityOf,
  subtractQuantity,
  tryParseQuantity,
} from '../../src/base/quantity.ts';

/** Canonical forms as kubectl 1.32 prints them (`kubectl create quota --hard=cpu=… --dry-run=client -o yaml`). */
const CANONICAL: readonly (readonly [string | number, string])[] = [
  ['1000m', '1'],
  ['0.5', '500m'],
  ['1024Mi', '1Gi'],
  ['1e3', '1e3'],
  ['0.0001', '100u'],
  ['1.5Gi', '1536Mi'],
  ['100000000000000000000', '100E'],
  ['1E', '1E'],
  ['12e6', '12e6'],
  ['0.1Gi', '107374182400m'],
  ['1024Ki', '1Mi'],
  ['3e-9', '3e-9'],
  ['1e21', '1e21'],
  ['1e22', '10e21'],
  ['1e-12', '1e-9'],
  ['-0.0000000001', '-1n'],
  ['.5', '500m'],
  ['5.', '5'],
  ['9Ei', '9223372036854775807'],
  ['1.5e3', '1500'],
  ['0.5Ki', '512'],
  ['1.1Ki', '1126400m'],
  ['0Ki', '0'],
  ['-1Ki', '-1Ki'],
  ['-1.5Ki', '-1536'],
  [2, '2'],
  [0.25, '250m'],
];

test("formats quantities in upstream's canonical form", () => {
  for (const [text, canonical] of CANONICAL) assert.equal(canonicalQuantity(text), canonical, String(text));
});

test("rejects invalid quantities with upstream's message", () => {
  for (const text of ['', 'a', '1..2', '1e3.5', '--1', '0x10', '1 Gi', '1'.repeat(200)]) {
    assert.throws(() => parseQuantity(text), { code: 'quantity-invalid', message: /^quantities must match/ }, text);
  }
  for (const text of ['1K', '1ki', '1Kii', '1e999999999']) {
    assert.throws(() => parseQuantity(text), { message: "unable to parse quantity's suffix" }, text);
  }
  assert.equal(tryParseQuantity({}), undefined);
});

test('formats quantities idempotently without changing the value', () => {
  let seed = 20_26;
  const next = (bound: number): number => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % bound;
  };
  const suffixes = ['', 'n', 'u', 'm', 'k', 'M', 'G', 'T', 'P', 'E', 'Ki', 'Mi', 'Gi', 'Ti', 'e3', 'e-3', 'E2'];
  for (let round = 0; round < 3000; round++) {
    const text = `${next(2) === 0 ? '' : '-'}${next(5000)}${next(2) === 0 ? '' : `.${next(1000)}`}${suffixes[next(suffixes.length)]}`;
    const quantity = parseQuantity(text);
    const canonical = formatQuantity(quantity);
    assert.equal(parseQuantity(canonical).nanos, quantity.nanos, text);
    assert.equal(canonicalQuantity(canonical), canonical, text);
  }
});

test('rounds bytes and millicores up', () => {
  assert.equal(parseBytes('128Mi'), 134217728);
  assert.equal(parseBytes('1m'), 1);
  assert.equal(parseMillicores('0.0001'), 1);
  assert.equal(parseMillicores('1.5'), 1500);
  assert.equal(parseBytes('-1500m'), -2);
  assert.equal(parseBytes('100E'), Number.MAX_SAFE_INTEGER);
});

test('adds, subtracts and compares quantities of different units', () => {
  const a = parseQuantity('1Gi');
  const b = parseQuantity('512Mi');
  assert.equal(formatQuantity(addQuantity(a, b)), '1536Mi');
  assert.equal(formatQuantity(subtractQuantity(a, b)), '512Mi');
  assert.equal(formatQuantity(addQuantity(quantityOf(0), b)), '512Mi');
  assert.equal(compareQuantity(parseQuantity('1'), parseQuantity('1000m')), 0);
  assert.ok(compareQuantity(parseQuantity('1Ki'), parseQuantity('1k')) > 0);
});
