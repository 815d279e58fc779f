import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  displayLabelSelector,
  formatFieldSelector,
  formatLabelSelector,
  labelSelectorOf,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
  requiredFieldValue,
  selectorOfLabels,
  storedSelectorOf,
  storedSelectorOfLabels,
} from '../../src/base/selector.ts';

/** Text, canonical form, matching labels, other labels. Cases of k8s.io/apimachinery/pkg/labels/selector_test.go. */
const LABELS: readonly [string, string, Record<string, string>[], Record<string, string>[]][] = [
  ['', '', [{}, { a: 'b' }], []],
  ['x=y', 'x=y', [{ x: 'y' }], [{ x: 'z' }, {}]],
  ['x==y', 'x=y', [{ x: 'y' }], [{}]],
  ['x=y,z=w', 'x=y,z=w', [{ x: 'y', z: 'w' }], [{ x: 'y' }]],
  ['x!=y', 'x!=y', [{}, { x: 'z' }], [{ x: 'y' }]],
  ['x', 'x', [{ x: '' }], [{ y: 'x' }]],
  ['!x', '!x', [{}], [{ x: '' }]],
  ['x in (b,a)', 'x in (a,b)', [{ x: 'a' }, { x: 'b' }], [{ x: 'c' }, {}]],
  ['x notin (a,b)', 'x notin (a,b)', [{ x: 'c' }, {}], [{ x: 'a' }]],
  ['x=', 'x=', [{ x: '' }], [{}, { x: 'a' }]],
  ['x= , y', 'x=,y', [{ x: '', y: '1' }], [{ x: '' }]],
  ['x in (,a)', 'x in (,a)', [{ x: '' }, { x: 'a' }], [{}]],
  ['x>1', 'x>1', [{ x: '2' }], [{ x: '1' }, { x: 'abc' }, {}]],
  ['x<7', 'x<7', [{ x: '6' }], [{ x: '7' }]],
  [' b = c , a in ( d ) ', 'a in (d),b=c', [{ a: 'd', b: 'c' }], [{ b: 'c' }]],
  ['example.com/a', 'example.com/a', [{ 'example.com/a': '' }], [{}]],
];

test('parses, prints and matches label selectors like upstream', () => {
  for (const [text, canonical, yes, no] of LABELS) {
    const selector = parseLabelSelector(text);
    assert.equal(formatLabelSelector(selector), canonical, text);
    assert.deepEqual(parseLabelSelector(canonical), selector, text);
    for (const labels of yes) assert.ok(matchesLabels(selector, labels), `${text} ${JSON.stringify(labels)}`);
    for (const labels of no) assert.ok(!matchesLabels(selector, labels), `${text} ${JSON.stringify(labels)}`);
  }
});

test('rejects malformed label selectors', () => {
  for (const text of [
    'x in',
    'x in (',
    'x in ()',
    'x in (a b)',
    'a,',
    ',a',
    'a b',
    '=a',
    'x=a=b',
    'a!b',
    '!',
    'x>a',
    'a/b/c',
    'x=%',
    `${'a'.repeat(64)}=b`,
    'a'.repeat(70000),
  ]) {
    assert.throws(() => parseLabelSelector(text), { code: 'selector-invalid' }, text.slice(0, 80));
  }
});

test('treats labels with names of prototype members as plain data', () => {
  assert.ok(!matchesLabels(parseLabelSelector('constructor'), {}));
  assert.ok(!matchesLabels(parseLabelSelector('toString'), {}));
  assert.ok(matchesLabels(parseLabelSelector('!constructor'), {}));
});

test('converts label selectors of the API to requirements', () => {
  assert.ok(!matchesLabels(labelSelectorOf(undefined), { a: 'b' }), 'an absent selector selects nothing');
  assert.ok(matchesLabels(labelSelectorOf({}), { a: 'b' }), 'an empty selector selects everything');
  const selector = labelSelectorOf({
    matchLabels: { app: 'x' },
    matchExpressions: [
      { key: 'tier', operator: 'In', values: ['b', 'a'] },
      { key: 'old', operator: 'DoesNotExist' },
    ],
  });
  assert.equal(formatLabelSelector(selector), 'app=x,!old,tier in (a,b)');
  assert.ok(matchesLabels(selector, { app: 'x', tier: 'a' }));
  assert.throws(() => labelSelectorOf({ matchExpressions: [{ key: 'a', operator: 'Near' }] }), {
    message: '"Near" is not a valid label selector operator',
  });
  assert.equal(displayLabelSelector(labelSelectorOf({})), '<none>');
  assert.ok(matchesLabels(selectorOfLabels({}), { a: 'b' }));
});

test('parses and matches field selectors', () => {
  const selector = parseFieldSelector('metadata.name=a\\,b,spec.nodeName!=n1,status.phase==Running');
  assert.deepEqual(selector, [
    { field: 'metadata.name', operator: '=', value: 'a,b' },
    { field: 'spec.nodeName', operator: '!=', value: 'n1' },
    { field: 'status.phase', operator: '=', value: 'Running' },
  ]);
  assert.equal(formatFieldSelector(selector), 'metadata.name=a\\,b,spec.nodeName!=n1,status.phase=Running');
  const object: Record<string, string> = { 'metadata.name': 'a,b', 'spec.nodeName': 'n2', 'status.phase': 'Running' };
  assert.ok(matchesFields(selector, (field) => object[field] ?? ''));
  assert.ok(!matchesFields(selector, (field) => (field === 'spec.nodeName' ? 'n1' : (object[field] ?? ''))));
  assert.equal(requiredFieldValue(selector, 'metadata.name'), 'a,b');
  assert.equal(requiredFieldValue(selector, 'spec.nodeName'), undefined);
  assert.deepEqual(parseFieldSelector(''), []);
  for (const text of ['abc', 'a=b=c', 'a=b\\x']) {
    assert.throws(() => parseFieldSelector(text), { code: 'selector-invalid' }, text);
  }
});

test('a selector with many values matches without a linear comparison', () => {
  const values = Array.from({ length: 100_000 }, (_, index) => `v${index}`);
  const selector = labelSelectorOf({ matchExpressions: [{ key: 'a', operator: 'In', values }] });
  for (const value of ['v0', 'v99999', 'v9', 'v500']) assert.ok(matchesLabels(selector, { a: value }), value);
  for (const value of ['', 'v', 'v100000', 'w']) assert.ok(!matchesLabels(selector, { a: value }), value);
  const beginMs = performance.now();
  for (let index = 0; index < 20_000; index++) matchesLabels(selector, { a: `x${index}` });
  // A comparison with each value takes more than a second.
  assert.ok(performance.now() - beginMs < 500, `${performance.now() - beginMs} ms`);
});

test('the selector of a stored object is parsed once', () => {
  const object = { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'In', values: ['d'] }] };
  assert.equal(storedSelectorOf(object), storedSelectorOf(object));
  assert.deepEqual(storedSelectorOf(object), labelSelectorOf(object));
  assert.deepEqual(storedSelectorOf({}), labelSelectorOf({}));
  assert.deepEqual(storedSelectorOf(undefined), labelSelectorOf(undefined));
  assert.equal(storedSelectorOfLabels(object.matchLabels), storedSelectorOfLabels(object.matchLabels));
  assert.deepEqual(storedSelectorOfLabels(object.matchLabels), selectorOfLabels(object.matchLabels));
  assert.deepEqual(storedSelectorOfLabels(undefined), selectorOfLabels(undefined));
  const invalid = { matchExpressions: [{ key: 'a', operator: 'Other' }] };
  for (let round = 0; round < 2; round++) assert.throws(() => storedSelectorOf(invalid), /not a valid label selector/);
});
