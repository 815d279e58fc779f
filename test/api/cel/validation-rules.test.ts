/** x-kubernetes-validations, with the examples of the documentation of custom resource validation. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rulesOf } from '../../../src/api/cel/rule-run.ts';
import { validateRules } from '../../../src/api/cel/validation-rules.ts';
import type { JsonObject } from '../../../src/api/meta/object.ts';
import { parseSchema } from '../../../src/api/structural/schema.ts';

const str = (max = 64): JsonObject => ({ type: 'string', maxLength: max });
const int: JsonObject = { type: 'integer' };
const list = (items: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'array',
  maxItems: 16,
  items,
  ...more,
});
const map = (value: JsonObject): JsonObject => ({ type: 'object', maxProperties: 16, additionalProperties: value });
const obj = (properties: JsonObject, ...rules: (string | JsonObject)[]): JsonObject => ({
  type: 'object',
  properties,
  ...(rules.length === 0
    ? {}
    : { 'x-kubernetes-validations': rules.map((rule) => (typeof rule === 'string' ? { rule } : rule)) }),
});
const parse = (raw: JsonObject) => parseSchema(raw, 's').schema;
const issues = (raw: JsonObject): string[] =>
  validateRules(parse(raw), 's').map((each) => `${each.field}: ${each.message}`);
const judge = (raw: JsonObject, value: JsonObject, old?: JsonObject): string[] => {
  assert.deepEqual(issues(raw), []);
  const steps = rulesOf(parse(raw))(value, old);
  return (steps === undefined ? [] : judged(steps)).map((each) => `${each.field}: ${each.message}`);
};

const spec = {
  minReplicas: int,
  replicas: int,
  maxReplicas: int,
  name: str(),
  names: list(str()),
  stateCounts: map(int),
  listMap: list(obj({ key: str(), keyB: int }), {
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['key'],
  }),
  health: str(),
  created: { type: 'string', format: 'date-time' },
  ttl: { type: 'string', format: 'duration' },
  finished: { type: 'string', format: 'date-time' },
  ipAddr: str(),
  port: { 'x-kubernetes-int-or-string': true },
  set1: list(str(), { 'x-kubernetes-list-type': 'set' }),
  set2: list(str(), { 'x-kubernetes-list-type': 'set' }),
  foo: obj({ 'x-prop': int, namespace: str(), package: str(), a__b: int, nullable: { ...str(), nullable: true } }),
  data: { type: 'string', format: 'byte', maxLength: 64 },
  ratio: { type: 'number' },
};
const good: JsonObject = {
  minReplicas: 1,
  replicas: 2,
  maxReplicas: 3,
  name: 'my-name',
  names: ['a', 'b'],
  stateCounts: { Available: 2 },
  listMap: [
    { key: 'a', keyB: 1 },
    { key: 'b', keyB: 2 },
  ],
  health: 'ok',
  created: '2026-11-21T10:00:00Z',
  ttl: '2h',
  finished: '2026-11-21T11:00:00Z',
  ipAddr: '10.0.0.1',
  port: '80',
  set1: ['a'],
  set2: ['b'],
  foo: { 'x-prop': 1, namespace: 'n', a__b: 2, nullable: null },
  data: 'YWJj',
  ratio: 1,
};

/** Each of these rules is true for `good`. */
const HOLDING = [
  'self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas',
  "'Available' in self.stateCounts",
  '(size(self.names) == 0) != (size(self.stateCounts) == 0) || true',
  "self.name.startsWith('my-')",
  'self.set1.all(e, !(e in self.set2))',
  'self.created + self.ttl > self.finished',
  "self.health.startsWith('ok')",
  "self.listMap.exists(i, i.key == 'a' && i.keyB < 10)",
  "type(self.port) == string ? self.port.endsWith('0') : self.port == 1000",
  'self.foo.x__dash__prop == 1',
  "self.foo.__namespace__ == 'n'",
  "self.foo.namespace == 'n'",
  'has(self.foo.namespace) && !has(self.foo.__package__) && !has(self.foo.package)',
  'self.foo.a__underscores__b == 2',
  '!has(self.foo.nullable)',
  "self.data == b'abc'",
  'self.ratio == 1.0',
  'self.stateCounts.all(k, self.stateCounts[k] > 0)',
  'self.listMap.map(i, i.keyB).sum() == 3',
  'self.names.isSorted()',
  'ip(self.ipAddr).family() == 4',
  "self.names.all(n, n.matches('^[a-z]+$'))",
  'self.created.getFullYear() == 2026',
  'duration(self.ttl).getHours() == 2',
  'size(self.set1) + size(self.set2) == 2',
];

/** Runs all steps of an evaluation. */
function judged<T>(steps: Iterator<undefined, T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

describe('schema validation rules', () => {
  it('schema validation rules evaluate to true for valid objects', () => {
    for (const rule of HOLDING) {
      assert.deepEqual(judge(obj(spec, rule), good), [], rule);
      assert.equal(judge(obj(spec, `!(${rule})`), good).length, rule.endsWith('|| true') ? 1 : 1, rule);
    }
  });

  it('schema validation rules access the metadata of an embedded resource that its schema describes', () => {
    const metadata = obj({ name: str(), generateName: str(), namespace: str() });
    const embedded = (properties: JsonObject): JsonObject => ({
      ...obj({ apiVersion: str(), kind: str(), ...properties }, "self.metadata.namespace == 'n'"),
      'x-kubernetes-embedded-resource': true,
    });
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n' } };
    assert.deepEqual(judge(obj({ template: embedded({ metadata }) }), { template: object }), []);
    const undescribed = issues(obj({ template: embedded({ metadata: { type: 'object' } }) }));
    assert.match(undescribed.join(), /undefined field 'namespace'/);
  });

  it('schema validation rules support set and map lists', () => {
    const set = list(str(), { 'x-kubernetes-list-type': 'set' });
    const raw = (rule: string): JsonObject =>
      obj({ a: set, b: set, plain: list(str()), m: spec.listMap, n: spec.listMap }, rule);
    const value: JsonObject = {
      a: ['x', 'y'],
      b: ['y', 'x'],
      plain: ['y', 'x'],
      m: [
        { key: 'k', keyB: 1 },
        { key: 'l', keyB: 2 },
      ],
      n: [
        { key: 'l', keyB: 2 },
        { key: 'k', keyB: 1 },
      ],
    };
    const holding = [
      'self.a == self.b',
      'self.a != self.plain',
      'self.m == self.n',
      'size(self.a + self.b) == 2',
      "self.a + ['z', 'x'] == ['x', 'y', 'z']",
      'size(self.a + self.plain) == 2',
      'size(self.plain + self.a) == 4',
      'size(self.m + self.n) == 2',
    ];
    for (const rule of holding) assert.deepEqual(judge(raw(rule), value), [], rule);
  });

  it('schema validation rules have access only to name and generateName in the metadata of a resource', () => {
    const raw = obj({ spec: obj({ name: str() }) }, "self.metadata.name == self.spec.name && self.kind == 'X'");
    assert.deepEqual(judge(raw, { kind: 'X', metadata: { name: 'a' }, spec: { name: 'a' } }), []);
    assert.match(issues(obj({}, "self.metadata.labels['a'] == 'b'"))[0] ?? '', /undefined field 'labels'/);
  });

  it('schema validation rules report the failed rule, its path and the message', () => {
    const rules = (rule: JsonObject): string[] =>
      judge(obj({ spec: obj({ a: int, b: str() }, { rule: 'self.a > 5', ...rule }) }), { spec: { a: 1, b: 'x' } });
    assert.deepEqual(rules({}), ['spec: Invalid value: failed rule: self.a > 5']);
    assert.deepEqual(rules({ message: 'a must be large' }), ['spec: Invalid value: a must be large']);
    assert.deepEqual(rules({ messageExpression: "self.b + ' is too small'" }), ['spec: Invalid value: x is too small']);
    assert.deepEqual(rules({ message: 'fallback', messageExpression: 'self.b.substring(7)' }), [
      'spec: Invalid value: fallback',
    ]);
    assert.deepEqual(rules({ reason: 'FieldValueForbidden', message: 'no' }), ['spec: Forbidden: no']);
    assert.deepEqual(rules({ reason: 'FieldValueRequired', message: 'no', fieldPath: '.a' }), [
      'spec.a: Required value: no',
    ]);
    assert.deepEqual(rules({ reason: 'FieldValueDuplicate' }), ['spec: Duplicate value']);
    const missing = judge(obj({ spec: obj({ a: int }, 'self.a > 5') }), { spec: {} });
    assert.match(missing[0] ?? '', /no such key: a evaluating rule: self.a > 5/);
  });

  it('schema validation rules compare with the old value if the old value can be correlated', () => {
    const immutable = obj({
      spec: obj({
        a: { ...str(), 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'a is immutable' }] },
      }),
    });
    assert.deepEqual(judge(immutable, { spec: { a: 'x' } }), []);
    assert.deepEqual(judge(immutable, { spec: { a: 'x' } }, { spec: { a: 'x' } }), []);
    assert.deepEqual(judge(immutable, { spec: { a: 'y' } }, { spec: { a: 'x' } }), [
      'spec.a: Invalid value: "y": a is immutable',
    ]);
    assert.deepEqual(judge(immutable, { spec: { a: 'y' } }, { spec: {} }), []);
    const keyed = obj({
      l: list(obj({ k: str(), v: int }, 'self.v >= oldSelf.v'), {
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
      }),
    });
    assert.deepEqual(
      judge(
        keyed,
        {
          l: [
            { k: 'new', v: 0 },
            { k: 'a', v: 2 },
          ],
        },
        { l: [{ k: 'a', v: 1 }] },
      ),
      [],
    );
    assert.equal(judge(keyed, { l: [{ k: 'a', v: 0 }] }, { l: [{ k: 'a', v: 1 }] }).length, 1);
    const optional = obj({
      a: { ...str(), 'x-kubernetes-validations': [{ rule: "oldSelf.orValue('x') == self", optionalOldSelf: true }] },
    });
    assert.deepEqual(judge(optional, { a: 'x' }), []);
    assert.equal(judge(optional, { a: 'y' }).length, 1);
    const short = list(obj({ k: str() }), {
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
      'x-kubernetes-validations': [{ rule: 'size(self) < 2' }],
    });
    const swapped = { l: [{ k: 'b' }, { k: 'a' }] };
    assert.deepEqual(judge(obj({ l: short }), swapped, { l: [{ k: 'a' }, { k: 'b' }] }), []);
    assert.equal(judge(obj({ l: short }), swapped, { l: [{ k: 'a' }, { k: 'c' }] }).length, 1);
    assert.match(
      issues(obj({ l: list({ ...str(), 'x-kubernetes-validations': [{ rule: 'self == oldSelf' }] }) }))[0] ?? '',
      /oldSelf cannot be used on the uncorrelatable portion of the schema within s\.properties\[l\]/,
    );
  });

  it('schema validation rules are not evaluated for unchanged values', () => {
    const raw = obj({ a: { ...int, 'x-kubernetes-validations': [{ rule: 'self > 5' }] }, b: int });
    assert.deepEqual(judge(raw, { a: 1, b: 2 }, { a: 1, b: 1 }), []);
    assert.equal(judge(raw, { a: 2, b: 2 }, { a: 1, b: 1 }).length, 1);
  });

  it('schema validation rules are rejected if they do not compile or cost too much', () => {
    const cases: [JsonObject, RegExp][] = [
      [
        obj({ a: int }, 'self.b > 1'),
        /rule: Invalid value: {"Rule":"self\.b > 1",.*}: compilation failed: ERROR: <input>:1:5: undefined field 'b'/,
      ],
      [obj({ a: int }, 'self.a'), /cel expression must evaluate to a bool/],
      [obj({ a: int }, { rule: 'true', messageExpression: 'self.a' }), /messageExpression must evaluate to a string/],
      [obj({ a: int }, { rule: 'true', optionalOldSelf: true }), /may not be set if oldSelf is not used in rule/],
      [
        obj({ l: { type: 'array', items: { type: 'string' } } }, 'self.l.all(x, self.l.all(y, x == y))'),
        /estimated rule cost exceeds budget by factor of more than 100x \(try simplifying the rule/,
      ],
      [
        obj({
          l: { type: 'array', items: { type: 'string', 'x-kubernetes-validations': [{ rule: "self.contains('x')" }] } },
        }),
        /estimated rule cost exceeds budget/,
      ],
      [
        obj({ u: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }, 'has(self.u.x)'),
        /undefined field 'x'/,
      ],
    ];
    for (const [raw, message] of cases) assert.match(issues(raw).join('\n'), message);
    assert.deepEqual(
      issues(
        obj(
          { l: { type: 'array', maxItems: 10, items: { type: 'string', maxLength: 10 } } },
          'self.l.all(x, self.l.all(y, x == y))',
        ),
      ),
      [],
    );
    const many = Object.fromEntries(
      Array.from({ length: 400 }, (_, index) => [
        `p${index}`,
        {
          type: 'array',
          maxItems: 10_000,
          items: {
            type: 'string',
            maxLength: 200,
            'x-kubernetes-validations': [{ rule: "self.contains('abc') || self.contains('def')" }],
          },
        },
      ]),
    );
    assert.match(
      issues(obj(many as JsonObject)).join('\n'),
      /estimated rule cost total for entire OpenAPIv3 schema exceeds budget/,
    );
  });

  it('schema validation rules end an evaluation that exceeds the cost limit', () => {
    const raw = obj({ l: list(int) }, 'lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))');
    // The rule is rejected on write; if it is stored all the same, its evaluation is stopped.
    assert.notDeepEqual(issues(raw), []);
    const began = performance.now();
    const steps = rulesOf(parse(raw))({ l: [] }, undefined);
    assert.ok(steps);
    const found = judged(steps);
    assert.match(found[0]?.message ?? '', /call cost exceeds limit for rule/);
    assert.ok(performance.now() - began < 2_000);
  });
});
