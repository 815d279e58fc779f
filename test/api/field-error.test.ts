import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldError, invalid } from '../../src/api/meta/field-error.ts';

test('shows a duplicate error once in the message and twice in the causes', () => {
  const twice = fieldError.required('spec.a');
  const error = invalid({ group: '', kind: 'Pod' }, 'p', [twice, twice]);
  assert.equal(error.message, 'Pod "p" is invalid: spec.a: Required value');
  assert.equal(error.details?.causes?.length, 2);
  const both = invalid({ group: '', kind: 'Pod' }, 'p', [twice, fieldError.required('spec.b'), twice]);
  assert.equal(both.message, 'Pod "p" is invalid: [spec.a: Required value, spec.b: Required value]');
});

test('thousands of field errors quote the start of a large value only once', () => {
  const list = Array.from({ length: 200_000 }, (_, index) => ({ name: `n${index}`, value: null }));
  const beginMs = performance.now();
  const errors = Array.from({ length: 10_000 }, () => fieldError.invalid('spec.a', list, 'must be short'));
  const { message } = invalid({ group: '', kind: 'Pod' }, 'p', errors);
  // Serializing the list for each error takes minutes.
  assert.ok(performance.now() - beginMs < 1000, `${performance.now() - beginMs} ms`);
  const start = JSON.stringify(list).slice(0, 4096);
  assert.equal(message, `Pod "p" is invalid: spec.a: Invalid value: ${start}…: must be short`);
  const supported = list.map(({ name }) => name);
  assert.ok(fieldError.notSupported('spec.a', 'x', supported).message.length < 5000);
});

test('field errors quote values like JSON.stringify', () => {
  const values = [
    ...['a"\n\u2028', '', 0, -1.5, true, {}, [], [[]], { a: undefined, b: [undefined, null, { 'c"': 'd' }] }],
    ...[new Date(0), { at: new Date(0) }, 'x'.repeat(5000), ['x'.repeat(5000)], { a: { b: ['\ud800'] }, c: 1 }],
  ];
  for (const value of values) {
    const text = JSON.stringify(value);
    const shown = text.length > 4096 ? `${text.slice(0, 4096)}…` : text;
    assert.equal(fieldError.duplicate('a', value).message, `Duplicate value: ${shown}`);
  }
});
