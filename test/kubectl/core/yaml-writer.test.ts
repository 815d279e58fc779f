/** The expected texts are what kubectl 1.36 prints for the same values. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { yamlText } from '../../../src/kubectl/core/yaml-writer.ts';

const LONG = 'words that are repeated until the line is longer than eighty columns, then they continue';

test('the YAML writer quotes texts as kubectl does', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['plain text', 'plain text'],
    ['', '""'],
    ['true', '"true"'],
    ['y', '"y"'],
    ['08', '"08"'],
    ['1_000', '"1_000"'],
    ['1e3', '"1e3"'],
    ['12:30', '"12:30"'],
    ['2026-01-31', '"2026-01-31"'],
    ['*/5', "'*/5'"],
    ['- a', "'- a'"],
    ['a: b', "'a: b'"],
    ['a:b', 'a:b'],
    ["it's", "it's"],
    ["'quoted'", "'''quoted'''"],
    ['a #b', "'a #b'"],
    [' a', "' a'"],
    ['tab\there', '"tab\\there"'],
    ['\u{1F600}', '"\\U0001F600"'],
    ['é', 'é'],
    ['\x1b[31m', '"\\e[31m"'],
  ];
  for (const [value, text] of cases) assert.equal(yamlText({ key: value }), `key: ${text}\n`);
});

test('writes multi-line text as a literal block unless a line ends with a space', () => {
  assert.equal(yamlText({ key: 'one\ntwo\n' }), 'key: |\n  one\n  two\n');
  assert.equal(yamlText({ key: 'one\ntwo' }), 'key: |-\n  one\n  two\n');
  assert.equal(yamlText({ key: 'one\n\n' }), 'key: |+\n  one\n\n');
  assert.equal(yamlText({ key: ' one\n' }), 'key: |2\n   one\n');
  assert.equal(yamlText({ key: 'one \ntwo' }), 'key: "one \\ntwo"\n');
});

test('the YAML writer folds long lines after eighty columns', () => {
  const expected = 'key: words that are repeated until the line is longer than eighty columns, then they\n  continue\n';
  assert.equal(yamlText({ key: LONG }), expected);
});

test('does not indent lists, and sorts keys with numbers by their value', () => {
  const value = { list: [{ b: 1, a: [] }, [1, [2]], 'x'], a10: 1, a9: null, empty: {} };
  assert.equal(yamlText(value), 'a9: null\na10: 1\nempty: {}\nlist:\n- a: []\n  b: 1\n- - 1\n  - - 2\n- x\n');
});

test('writes text that a parser reads back', () => {
  const parts = ['a', ' ', '\n', ':', '#', '-', "'", '"', '\\', '\t', '0', '*', '\u2028', '\r', '{', '~', LONG];
  let state = 1;
  const next = (limit: number): number => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return (state >> 8) % limit;
  };
  for (let round = 0; round < 2_000; round += 1) {
    const text = Array.from({ length: next(8) }, () => parts[next(parts.length)]).join('');
    const value = { outer: [{ text }, [text]], [`k${text}`]: { text } };
    assert.deepEqual(parse(yamlText(value), { version: '1.1' }), value, JSON.stringify(text));
  }
});
