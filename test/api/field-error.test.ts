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
