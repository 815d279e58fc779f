import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../../src/api/meta/object.ts';
import { generateValue } from '../../../../src/openshift/templates/core/expression.ts';
import { processTemplate, type TemplateBody } from '../../../../src/openshift/templates/core/index.ts';

function sequence(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

const processed = (template: TemplateBody) => {
  const result = processTemplate(template, sequence(1));
  assert.ok('processed' in result, JSON.stringify(result));
  return result.processed;
};

const refused = (template: TemplateBody): string => {
  const result = processTemplate(template, sequence(1));
  assert.ok('errors' in result);
  return result.errors.map(({ field, message }) => `${field}: ${message}`).join('; ');
};

/** Oracle: replaces references in the serialized object as text. */
function replaced(object: JsonObject, values: Readonly<Record<string, string>>): JsonObject {
  let text = JSON.stringify(object);
  for (const [name, value] of Object.entries(values)) text = text.replaceAll(`"\${{${name}}}"`, value);
  for (const [name, value] of Object.entries(values)) text = text.replaceAll(`\${${name}}`, value);
  return JSON.parse(text) as JsonObject;
}

test('replaces template parameters with the same result as a text replacement', () => {
  const random = sequence(7);
  const values = { A: 'alpha', B_2: '17', C: 'true' };
  const texts = ['${A}', 'x-${B_2}-${A}', '${{B_2}}', '${{C}}', '${UNKNOWN}', 'plain', '$A {A}', '${A}${A}'];
  const pick = (): string => texts[Math.floor(random() * texts.length)] ?? '';
  for (let round = 0; round < 200; round++) {
    const object: JsonObject = {
      kind: pick(),
      metadata: { name: pick(), annotations: { [`k-\${A}`]: pick() } },
      spec: { list: [pick(), { deep: [pick(), 1, null, false] }] },
    };
    const parameters = Object.entries(values).map(([name, value]) => ({ name, value }));
    assert.deepEqual(processed({ objects: [object], parameters }).objects, [replaced(object, values)]);
  }
});

test('generates parameter values with the characters and length of the from expression', () => {
  const expected: readonly [string, RegExp][] = [
    ['[a-z]{8}', /^[a-z]{8}$/],
    ['user[A-Z0-9]{3}', /^user[A-Z0-9]{3}$/],
    ['[\\w]{20}', /^\w{20}$/],
    ['[\\d]{4}-[\\a]{255}', /^\d{4}-[a-zA-Z0-9]{255}$/],
    ['[\\A]{5}', /^[^a-zA-Z0-9\s]{5}$/],
    ['[ab-]{6}', /^[ab-]{6}$/],
    ['[a-z]', /^\[a-z\]$/],
  ];
  for (const [expression, pattern] of expected) {
    const generated = generateValue(expression, sequence(3));
    assert.ok('value' in generated, expression);
    assert.match(generated.value, pattern);
  }
});

test('rejects a from expression that exceeds the limits, and names its field', () => {
  const from = (text: string): string =>
    refused({ parameters: [{ name: 'P', generate: 'expression', from: text }], objects: [] });
  assert.match(from('[a-z]{999999}'), /^parameters\[0\]\.from: .*range must be within \[1-255\]/);
  assert.match(from('[a-z]{0}'), /range must be within/);
  assert.match(from('[z-a]{3}'), /invalid range specified: z-a/);
  assert.match(from('[\\x]{3}'), /malformed expression/);
  assert.match(from('[a-z]{255}'.repeat(20)), /at most 4096 characters/);
  assert.match(refused({ parameters: [{ name: 'P', generate: 'guess' }] }), /^parameters\[0\]\.generate: .*expression/);
});

test('rejects a required template parameter without a value', () => {
  const problem = refused({ parameters: [{ name: 'N', required: true }], objects: [] });
  assert.match(problem, /^parameters\[0\]: .*parameter N is required and must be specified/);
});

test("adds the template's labels to every object, and removes namespaces that are not set by a parameter", () => {
  const { objects, labels, message } = processed({
    message: 'password is ${P}',
    labels: { 'app-${P}': '${P}' },
    parameters: [{ name: 'P', value: 'x' }],
    objects: [
      { kind: 'A', metadata: { name: 'a', namespace: 'other', labels: { own: '1' } } },
      { kind: 'B', metadata: { name: 'b', namespace: '${P}' } },
      { kind: 'C' },
    ],
  });
  assert.equal(message, 'password is x');
  assert.deepEqual(labels, { 'app-x': 'x' });
  assert.deepEqual(objects, [
    { kind: 'A', metadata: { name: 'a', labels: { own: '1', 'app-x': 'x' } } },
    { kind: 'B', metadata: { name: 'b', namespace: 'x', labels: { 'app-x': 'x' } } },
    { kind: 'C', metadata: { labels: { 'app-x': 'x' } } },
  ]);
});

test('rejects a template whose output would exceed the limit, before allocating the output', () => {
  assert.match(refused({ objects: Array.from({ length: 10_000 }, () => ({ kind: 'A' })) }), /^objects: .*1000/);
  const value = 'v'.repeat(100_000);
  const objects = [{ kind: 'A', data: { text: '${V}'.repeat(100_000) } }];
  assert.match(refused({ parameters: [{ name: 'V', value }], objects }), /^objects\[0\]: .*at most/);
});

test('processes a template object with a key named __proto__ without changing a prototype', () => {
  const object = JSON.parse('{"__proto__":{"x":"${P}"}}') as JsonObject;
  const [result] = processed({ parameters: [{ name: 'P', value: '1' }], objects: [object] }).objects;
  assert.equal(JSON.stringify(result), '{"__proto__":{"x":"1"}}');
});

test('limits the total length of all values that a template generates', () => {
  let drawn = 0;
  const counting = (): number => {
    drawn += 1;
    return 0.5;
  };
  const many = (from: string, count: number): TemplateBody => ({
    parameters: Array.from({ length: count }, (_, index) => ({ name: `P${index}`, generate: 'expression', from })),
  });
  const within = processTemplate(many('[a-z]{200}', 200), counting);
  assert.ok('processed' in within);
  for (const template of [many('[a]{255}'.repeat(16), 1_500), many('[\\w\\a\\A\\d]{1}', 6_000)]) {
    drawn = 0;
    const result = processTemplate(template, counting);
    assert.ok('errors' in result);
    assert.match(result.errors[0]?.message ?? '', /must have and generate at most 65536 characters/);
    assert.ok(drawn <= 65_536, `${drawn} random numbers`);
  }
});

test("counts the template's labels for each object towards the output limit", () => {
  const labels = Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`label-${index}`, 'v'.repeat(63)]));
  const objects = Array.from({ length: 1_000 }, () => ({ kind: 'ConfigMap' }));
  assert.match(refused({ labels, objects }), /at most 3145728 characters/);
});
