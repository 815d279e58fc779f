import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compareSemver, parseSemver, type SemanticVersion } from '../../../src/base/versions/semver.ts';
import { generator } from '../../support/random.ts';

/** The pattern that semver.org recommends. */
const RECOMMENDED =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$/;

function parsed(text: string): SemanticVersion {
  const version = parseSemver(text);
  assert.ok(version !== undefined, text);
  return version;
}

test('accepts the same texts as the regular expression of semver.org', () => {
  const random = generator(9);
  const parts = ['0', '1', '10', '01', '.', '.', '.', '-', '+', 'a', 'rc', ' '];
  let accepted = 0;
  for (let run = 0; run < 100_000; run++) {
    const start = random() < 0.7 ? '1.2.3' : '';
    const rest = Array.from({ length: Math.floor(random() * 6) }, () => parts[Math.floor(random() * parts.length)]);
    const text = start + rest.join('');
    const expected = RECOMMENDED.exec(text);
    const version = parseSemver(text);
    assert.equal(version !== undefined, expected !== null, text);
    if (version === undefined || expected === null) continue;
    accepted++;
    assert.deepEqual(
      [String(version.major), String(version.minor), String(version.patch), version.pre.join('.')],
      [expected[1], expected[2], expected[3], expected[4] ?? ''],
    );
  }
  assert.ok(accepted > 1_000);
});

test('orders versions as in the examples of semver.org', () => {
  const ordered = [
    ...['0.9.9', '1.0.0-1', '1.0.0-2', '1.0.0-11', '1.0.0-A', '1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-alpha.beta'],
    ...['1.0.0-beta', '1.0.0-beta.2', '1.0.0-beta.11', '1.0.0-rc.1', '1.0.0', '1.0.1', '1.2.0', '1.10.0', '2.0.0'],
    ...['9007199254740993.0.0', '9007199254740994.0.0'],
  ];
  for (const [left, a] of ordered.entries())
    for (const [right, b] of ordered.entries())
      assert.equal(Math.sign(compareSemver(parsed(a), parsed(b))), Math.sign(left - right), `${a} and ${b}`);
});

test('the order of versions ignores build metadata', () => {
  assert.equal(compareSemver(parsed('1.0.0+a'), parsed('1.0.0+b')), 0);
});

test('rejects numbers above 64 bits and long texts', () => {
  assert.equal(parseSemver('12345678901234567890.0.0'), undefined);
  assert.equal(parseSemver(`1.0.0-${'a'.repeat(251)}`), undefined);
});
