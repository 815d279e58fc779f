import assert from 'node:assert/strict';
import { it } from 'node:test';
import { cloneJson, type JsonValue } from '../../../../src/apiserver/core/patch/document.ts';

it('a clone is equal to the document, shares no parts, and treats prototype names as plain data', () => {
  const text = '{"a":{"__proto__":{"b":[1,{"constructor":{"c":null}},[]]},"toString":"x"},"d":true,"e":{}}';
  const document = JSON.parse(text) as { a: { toString: string }; e: Record<string, JsonValue> };
  const copy = cloneJson(document as unknown as JsonValue);
  assert.equal(JSON.stringify(copy), text);
  const shared = new Set<unknown>();
  const visit = (value: JsonValue, found: (each: object) => void): void => {
    if (typeof value !== 'object' || value === null) return;
    found(value);
    for (const each of Object.values(value)) visit(each, found);
  };
  visit(document as unknown as JsonValue, (each) => shared.add(each));
  visit(copy, (each) => {
    assert.ok(!shared.has(each));
    assert.ok([Object.prototype, Array.prototype].includes(Object.getPrototypeOf(each)));
  });
  assert.equal(Object.hasOwn({}, 'b'), false);
});

it('a clone omits undefined fields, as JSON does', () => {
  const copy = cloneJson({ a: undefined as unknown as JsonValue, b: { c: undefined as unknown as JsonValue, d: 1 } });
  assert.deepEqual(Object.keys(copy), ['b']);
  assert.deepEqual(copy, { b: { d: 1 } });
});
