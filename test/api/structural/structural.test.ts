/** Schemas of custom resources without an API server. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { JsonObject, JsonValue } from '../../../src/api/meta/object.ts';
import { applyDefaults } from '../../../src/api/structural/defaults.ts';
import { validateSchema } from '../../../src/api/structural/definition-rules.ts';
import { parseJsonPath } from '../../../src/api/structural/json-paths.ts';
import { pruneUnknownFields } from '../../../src/api/structural/prune.ts';
import { parseSchema } from '../../../src/api/structural/schema.ts';
import { validateLists, validateValue } from '../../../src/api/structural/validate.ts';

const of = (properties: JsonValue, more: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...more });
const schema = (raw: JsonObject) => parseSchema(raw, 's').schema;
const messages = (raw: JsonObject, value: JsonValue, old?: JsonValue): string[] =>
  validateValue(schema(raw), value, old).map((each) => `${each.field}: ${each.message}`);

/** A simple, slow implementation of pruning as an oracle: keeps each leaf whose path is known. */
function prunedSlowly(raw: JsonValue | undefined, value: JsonValue, root: boolean): JsonValue {
  const known = (raw ?? {}) as Record<string, JsonValue>;
  if (Array.isArray(value)) {
    if (known['items'] === undefined && known['x-kubernetes-preserve-unknown-fields'] === true) return value;
    return value.map((item) => prunedSlowly(known['items'], item, false));
  }
  if (typeof value !== 'object' || value === null) return value;
  const entries: [string, JsonValue][] = [];
  for (const [name, below] of Object.entries(value)) {
    const property = Object.entries((known['properties'] ?? {}) as JsonObject).find(([each]) => each === name);
    if (root && ['apiVersion', 'kind', 'metadata'].includes(name)) entries.push([name, below]);
    else if (property !== undefined) entries.push([name, prunedSlowly(property[1], below, false)]);
    else if (known['additionalProperties'] !== undefined) {
      entries.push([name, prunedSlowly(known['additionalProperties'], below, false)]);
    } else if (known['x-kubernetes-preserve-unknown-fields'] === true) entries.push([name, below]);
  }
  return Object.fromEntries(entries);
}

function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
}

const NAMES = ['a', 'b', 'c', 'toString', 'constructor'];

function randomSchema(random: (below: number) => number, depth: number): JsonObject {
  const below = (): JsonObject => randomSchema(random, depth + 1);
  switch (depth > 3 ? random(2) : random(6)) {
    case 0:
      return { type: 'string' };
    case 1:
      return { type: 'integer' };
    case 2:
      return { type: 'array', items: below() };
    case 3:
      return { type: 'object', additionalProperties: below() };
    case 4:
      return { ...of({ a: below() }), 'x-kubernetes-preserve-unknown-fields': true };
    default:
      return of(Object.fromEntries(NAMES.filter(() => random(2) === 0).map((name) => [name, below()])));
  }
}

function randomValue(random: (below: number) => number, depth: number): JsonValue {
  switch (depth > 4 ? random(3) : random(7)) {
    case 0:
      return 'text';
    case 1:
      return random(100);
    case 2:
      return null;
    case 3:
      return Array.from({ length: random(3) }, () => randomValue(random, depth + 1));
    default:
      return Object.fromEntries(
        NAMES.filter(() => random(2) === 0).map((name) => [name, randomValue(random, depth + 1)]),
      );
  }
}

describe('pruning by structural schemas', () => {
  it('pruning keeps the same fields as a reference implementation', () => {
    const random = numbers(7);
    for (let round = 0; round < 3_000; round++) {
      const raw = of({ spec: randomSchema(random, 0), status: randomSchema(random, 0) });
      const value = { kind: 'X', spec: randomValue(random, 0), status: randomValue(random, 0), other: 1 };
      const expected = prunedSlowly(raw, value, true);
      pruneUnknownFields(schema(raw), value);
      assert.deepEqual(value, expected);
    }
  });

  it('pruning treats names of prototype members like other names', () => {
    const value = JSON.parse('{"spec":{"__proto__":{"polluted":1},"constructor":{"x":1},"ok":1}}') as JsonObject;
    const dropped = pruneUnknownFields(schema(of({ spec: of({ ok: { type: 'integer' } }) })), value);
    assert.deepEqual(dropped, ['spec.__proto__', 'spec.constructor']);
    assert.equal(JSON.stringify(value), '{"spec":{"ok":1}}');
    const open = parseSchema(
      JSON.parse('{"type":"object","properties":{"__proto__":{"type":"object","default":{"polluted":true}}}}'),
      's',
    );
    const target: JsonObject = {};
    applyDefaults(open.schema, target);
    assert.equal(JSON.stringify(target), '{"__proto__":{"polluted":true}}');
    assert.equal(({} as JsonObject)['polluted'], undefined);
  });
});

describe('defaulting by structural schemas', () => {
  const raw = of({
    a: { type: 'string', default: 'x' },
    n: { type: 'string', nullable: true, default: 'y' },
    gone: { type: 'string' },
    o: { ...of({ in: { type: 'integer', default: 1 } }), default: {} },
    list: { type: 'array', items: of({ p: { type: 'string', default: 'TCP' } }) },
  });
  const cases: [JsonObject, JsonObject][] = [
    [{}, { a: 'x', n: 'y', o: { in: 1 } }],
    [
      { a: null, n: null, gone: null },
      { a: 'x', n: null, o: { in: 1 } },
    ],
    [
      { list: [{}, { p: 'UDP' }], o: { in: 2 } },
      { a: 'x', n: 'y', list: [{ p: 'TCP' }, { p: 'UDP' }], o: { in: 2 } },
    ],
  ];
  it('defaulting fills absent fields and disallowed nulls, and is idempotent', () => {
    for (const [value, expected] of cases) {
      applyDefaults(schema(raw), value);
      assert.deepEqual(value, expected);
      applyDefaults(schema(raw), value);
      assert.deepEqual(value, expected);
    }
  });
});

/** A simple implementation of defaulting as an oracle: builds a new document from the schema and the value. */
function defaultedSlowly(raw: JsonObject, value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    const items = raw['items'] as JsonObject | undefined;
    if (items === undefined) return value;
    return value.map((item) =>
      defaultedSlowly(
        items,
        item === null && 'default' in items && items['nullable'] !== true ? (items['default'] ?? null) : item,
      ),
    );
  }
  if (typeof value !== 'object' || value === null) return value;
  const properties = (raw['properties'] ?? {}) as Record<string, JsonObject>;
  const result = new Map<string, JsonValue>(Object.entries(value));
  for (const name of new Set([...result.keys(), ...Object.keys(properties)])) {
    const below = Object.hasOwn(properties, name)
      ? properties[name]
      : (raw['additionalProperties'] as JsonObject | undefined);
    if (below === undefined) continue;
    const known = result.get(name);
    const nullable = below['nullable'] === true;
    const declared = Object.hasOwn(properties, name);
    const absent = known === undefined || (known === null && !nullable);
    if (absent && 'default' in below && (declared || known === null)) result.set(name, below['default'] ?? null);
    else if (known === null && !nullable) result.delete(name);
    const now = result.get(name);
    if (now !== undefined) result.set(name, defaultedSlowly(below, structuredClone(now)));
  }
  return Object.fromEntries(result);
}

it('sets the same defaults as a reference implementation for random schemas and values', () => {
  const random = numbers(11);
  const withDefaults = (raw: JsonObject): JsonObject => {
    const copy: JsonObject = { ...raw };
    if (random(3) === 0) copy['nullable'] = true;
    if (random(3) === 0)
      copy['default'] =
        raw['type'] === 'object' ? {} : raw['type'] === 'array' ? [] : raw['type'] === 'integer' ? 7 : 'd';
    for (const name of ['items', 'additionalProperties']) {
      if (copy[name] !== undefined) copy[name] = withDefaults(copy[name] as JsonObject);
    }
    const properties = copy['properties'] as Record<string, JsonObject> | undefined;
    if (properties !== undefined)
      copy['properties'] = Object.fromEntries(
        Object.entries(properties).map(([name, each]) => [name, withDefaults(each)]),
      );
    return copy;
  };
  for (let round = 0; round < 3_000; round++) {
    const raw = of({ spec: withDefaults(randomSchema(random, 0)) });
    const value = { spec: randomValue(random, 0) };
    const expected = defaultedSlowly(raw, value);
    applyDefaults(schema(raw), value);
    assert.deepEqual(value, expected, JSON.stringify(raw));
  }
});

describe('validation by structural schemas', () => {
  it("validation reports upstream's errors", () => {
    const cases: [JsonObject, JsonValue, string[]][] = [
      [of({}, { required: ['a'] }), {}, ['a: Required value']],
      [
        of({ a: { type: 'string', enum: ['x', 'y'] } }),
        { a: 'z' },
        ['a: Unsupported value: "z": supported values: "x", "y"'],
      ],
      [of({ a: { type: 'string', maxLength: 2 } }), { a: 'äbc' }, ['a: Too long: may not be more than 2 bytes']],
      [
        of({ a: { type: 'string', minLength: 2 } }),
        { a: 'x' },
        ['a: Invalid value: "x": a in body should be at least 2 chars long'],
      ],
      [
        of({ a: { type: 'array', maxItems: 1, items: { type: 'integer' } } }),
        { a: [1, 2] },
        ['a: Too many: 2: must have at most 1 items'],
      ],
      [
        of({ a: { type: 'array', items: { type: 'integer' } } }),
        { a: [1, 'x'] },
        ['a[1]: Invalid value: "string": a[1] in body must be of type integer: "string"'],
      ],
      [
        of({ a: { type: 'integer', multipleOf: 5 } }),
        { a: 7 },
        ['a: Invalid value: 7: a in body should be a multiple of 5'],
      ],
      [
        of({ a: { type: 'number', minimum: 0, exclusiveMinimum: true } }),
        { a: 0 },
        ['a: Invalid value: 0: a in body should be greater than 0'],
      ],
      [
        of({ a: { type: 'string', format: 'date-time' } }),
        { a: 'x' },
        ['a: Invalid value: "x": a in body must be of type date-time: "x"'],
      ],
      [
        of({ a: { type: 'string' } }),
        { a: null },
        ['a: Invalid value: "null": a in body must be of type string: "null"'],
      ],
      [of({ a: { type: 'string', nullable: true } }), { a: null }, []],
      [
        of({ a: { 'x-kubernetes-int-or-string': true } }),
        { a: true },
        ['a: Invalid value: "boolean": a in body must be of type integer,string: "boolean"'],
      ],
      [
        of({ a: { type: 'object', additionalProperties: { type: 'integer' } } }),
        { a: { k: 'v' } },
        ['a.k: Invalid value: "string": a.k in body must be of type integer: "string"'],
      ],
      [
        of({
          a: of(
            { x: { type: 'string' }, y: { type: 'string' } },
            { oneOf: [{ required: ['x'] }, { required: ['y'] }] },
          ),
        }),
        { a: {} },
        [
          '<nil>: Invalid value: "": "a" must validate one and only one schema (oneOf). Found none valid',
          'a.x: Required value',
        ],
      ],
      [
        of({ a: { type: 'string', not: { enum: ['no'] } } }),
        { a: 'no' },
        ['<nil>: Invalid value: "": "a" must not validate the schema (not)'],
      ],
      [
        of({ a: { type: 'string', anyOf: [{ pattern: '^x' }, { pattern: '^y' }] } }),
        { a: 'z' },
        [
          '<nil>: Invalid value: "": "a" must validate at least one schema (anyOf)',
          'a: Invalid value: "z": a in body should match \'^x\'',
        ],
      ],
      [
        of({ a: { type: 'string', allOf: [{ minLength: 3 }] } }),
        { a: 'z' },
        [
          'a: Invalid value: "z": a in body should be at least 3 chars long',
          '<nil>: Invalid value: "": "a" must validate all the schemas (allOf). None validated',
        ],
      ],
    ];
    for (const [raw, value, expected] of cases) assert.deepEqual(messages(raw, value), expected);
  });

  it('validation checks the formats of strings', () => {
    const cases: [string, string, string][] = [
      ['date-time', '2026-11-21T10:00:00Z', '2026-13-21T10:00:00Z'],
      ['date', '2024-02-29', '2023-02-29'],
      ['ipv4', '10.0.0.1', '10.0.0.256'],
      ['ipv6', '::1', '10.0.0.1'],
      ['cidr', '10.0.0.0/8', '10.0.0.0/33'],
      ['uuid', '123e4567-e89b-12d3-a456-426614174000', '123'],
      ['uuid4', '123e4567-e89b-42d3-a456-426614174000', '123e4567-e89b-12d3-a456-426614174000'],
      ['byte', 'YWJj', 'YWJ'],
      ['duration', '1h30m', 'soon'],
      ['email', 'a@example.com', 'nobody'],
      ['hostname', 'a.example.com', '-a'],
      ['uri', 'https://example.com/x', 'example'],
      ['mac', '00:00:5e:00:53:01', '00:00'],
      ['isbn', '978-0321751041', '978-0321751042'],
      ['isbn10', '0321751043', '0321751044'],
      ['creditcard', '4111 1111 1111 1111', '4111 1111 1111 1112'],
      ['hexcolor', '#fff', '#ff'],
      ['rgbcolor', 'rgb(1, 2, 3)', 'rgb(1,2,256)'],
      ['ssn', '123-45-6789', '1'],
      ['bsonobjectid', '507f1f77bcf86cd799439011', 'x'],
      ['k8s-short-name', 'a-b', 'A'],
      ['k8s-long-name', 'a.b', 'a..b'],
    ];
    for (const [format, good, bad] of cases) {
      const raw = of({ a: { type: 'string', format } });
      assert.deepEqual(messages(raw, { a: good }), [], format);
      assert.equal(messages(raw, { a: bad }).length, 1, format);
    }
    assert.deepEqual(messages(of({ a: { type: 'string', format: 'nobody-knows' } }), { a: 'x' }), []);
  });

  it('accepts unchanged invalid values on update', () => {
    const raw = of({
      a: { type: 'string', maxLength: 1 },
      b: { type: 'string' },
      l: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
        items: of({ k: { type: 'string' }, v: { type: 'integer', maximum: 1 } }),
      },
    });
    const old = { a: 'long', b: 'x', l: [{ k: 'one', v: 5 }] };
    assert.deepEqual(messages(raw, { ...old, b: 'y' }, old), []);
    assert.equal(messages(raw, { ...old, a: 'longer' }, old).length, 1);
    assert.deepEqual(
      messages(
        raw,
        {
          ...old,
          l: [
            { k: 'two', v: 1 },
            { k: 'one', v: 5 },
          ],
        },
        old,
      ),
      [],
    );
    assert.equal(messages(raw, { ...old, l: [{ k: 'two', v: 5 }] }, old).length, 1);
  });

  it('accepts reordered items of lists of type map on update', () => {
    const items = of({ k: { type: 'string' }, v: { type: 'integer' } });
    const keyed = {
      type: 'array',
      maxItems: 1,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['k'],
      items,
    };
    const raw = of({ m: { ...of({ l: keyed }), maxProperties: 0 }, plain: { type: 'array', maxItems: 1, items } });
    const [a, b] = [
      { k: 'a', v: 1 },
      { k: 'b', v: 2 },
    ];
    const old = { m: { l: [a, b] }, plain: [a, b] };
    assert.deepEqual(messages(raw, { ...old, m: { l: [b, a] } }, old), []);
    assert.equal(messages(raw, { ...old, m: { l: [b, { ...a, v: 2 }] } }, old).length, 2);
    assert.equal(messages(raw, { ...old, m: { l: [b, a, a] } }, old).length, 2);
    assert.equal(messages(raw, { ...old, plain: [b, a] }, old).length, 1);
  });

  it('validation finds duplicates in sets and maps', () => {
    const raw = of({
      set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
      map: {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
        items: of({ k: { type: 'string' } }),
      },
    });
    assert.deepEqual(
      validateLists(schema(raw), { set: ['a', 'b', 'a'], map: [{ k: 'x' }, { k: 'x' }] }).map(
        (each) => `${each.field}: ${each.message}`,
      ),
      ['set[2]: Duplicate value: "a"', 'map[1]: Duplicate value: {"k":"x"}'],
    );
  });
});

describe('structural schemas', () => {
  const wrong = (raw: JsonObject): string[] =>
    validateSchema(parseSchema(raw, 's'), 's').found.map((each) => `${each.field}: ${each.message}`);
  it('structural schemas may have defaults with unknown fields in embedded metadata only', () => {
    const meta = { ...of({ name: { type: 'string' } }), default: { name: 'a', odd: 1 } };
    const resource = (more: JsonObject) => ({
      ...of({ metadata: meta, ...more }),
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    });
    assert.deepEqual(wrong(of({ a: resource({}) })), []);
    const elsewhere = { ...of({ b: { type: 'string' } }), default: { odd: 1 } };
    assert.match(
      wrong(of({ a: resource({ spec: elsewhere }) })).join(),
      /\[spec\]\.default: .*must not have unknown fields/,
    );
    // A resource embedded in metadata is checked like other embedded resources.
    assert.match(
      wrong(of({ a: resource({ metadata: of({ c: resource({ spec: elsewhere }) }) }) })).join(),
      /must not have unknown fields/,
    );
  });
  it('distinguishes structural schemas from other schemas', () => {
    const cases: [JsonObject, RegExp][] = [
      [{}, /^s\.type: Required value: must not be empty at the root$/],
      [{ type: 'array', items: { type: 'string' } }, /s\.type: Invalid value: "array": must be object at the root/],
      [of({ a: {} }), /s\.properties\[a\]\.type: Required value: must not be empty for specified object fields/],
      [of({ a: { type: 'array' } }), /s\.properties\[a\]\.items: Required value: must be specified/],
      [of({ a: { type: 'array', items: [] } }), /items must be a schema object and not an array/],
      [of({ a: { type: 'string', $ref: '#/x' } }), /\$ref is not supported/],
      [of({ a: { type: 'array', items: { type: 'string' }, uniqueItems: true } }), /uniqueItems cannot be set to true/],
      [
        of({}, { additionalProperties: { type: 'string' } }),
        /s\.additionalProperties: Forbidden: must not be used at the root/,
      ],
      [
        of({ a: { type: 'object', additionalProperties: { type: 'string' }, properties: { b: { type: 'string' } } } }),
        /additionalProperties and properties are mutual exclusive/,
      ],
      [
        of({ a: { type: 'string', anyOf: [{ type: 'string', minLength: 1 }] } }),
        /anyOf\[0\]\.type: Forbidden: must be empty to be structural/,
      ],
      // These keywords are pointers in Go, so every value except null counts as given.
      ...[false, '', [], {}, 0].map((value): [JsonObject, RegExp] => [
        of({ a: { type: 'string', anyOf: [{ default: value }] } }),
        /s\.properties\[a\]\.anyOf\[0\]\.default: Forbidden: must be undefined to be structural/,
      ]),
      [
        of({ a: { type: 'string', not: { externalDocs: {} } } }),
        /s\.properties\[a\]\.not\.externalDocs: Forbidden: must be undefined to be structural/,
      ],
      [
        of({ a: { type: 'array', items: { type: 'string' }, allOf: [{ 'x-kubernetes-list-type': '' }] } }),
        /allOf\[0\]\.x-kubernetes-list-type: Forbidden: must be undefined to be structural/,
      ],
      [
        of({ metadata: { type: 'object', additionalProperties: false } }),
        /must not specify anything other than name and generateName/,
      ],
      [
        of({
          a: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer', default: '' }, { type: 'string' }] },
        }),
        /anyOf\[0\]\.type: Forbidden: must be empty to be structural/,
      ],
      [
        of({ a: of({}) }, { anyOf: [{ properties: { a: { properties: { b: { minLength: 1 } } } } }] }),
        /s\.properties\[a\]\.properties\[b\]: Required value: because it is defined in s\.anyOf\[0\]\.properties\[a\]\.properties\[b\]/,
      ],
      [
        of({ a: { type: 'string', pattern: '(' } }),
        /must be a valid regular expression, but isn't: error parsing regexp: missing closing \)/,
      ],
      [of({ a: { type: 'string', default: 5 } }), /s\.properties\[a\]\.default: Invalid value: "integer"/],
      [of({ a: { ...of({}), default: { b: 1 } } }), /must not have unknown fields/],
      [
        of({ a: { type: 'array', 'x-kubernetes-list-type': 'map', items: of({}) } }),
        /x-kubernetes-list-map-keys: Required value/,
      ],
      [
        of({ a: { 'x-kubernetes-int-or-string': true, 'x-kubernetes-preserve-unknown-fields': true } }),
        /must be false if x-kubernetes-int-or-string is true/,
      ],
      [
        of({ a: { type: 'object', 'x-kubernetes-embedded-resource': true } }),
        /must not be empty if x-kubernetes-embedded-resource is true/,
      ],
      [
        of({ metadata: of({ labels: { type: 'object' } }) }),
        /must not specify anything other than name and generateName/,
      ],
      [of({ a: { type: 'object', 'x-kubernetes-preserve-unknown-fields': false } }), /must be true or undefined/],
      [of({ a: { type: 'object', additionalProperties: { type: 'strong' } } }), /Unsupported value: "strong"/],
      [of({ a: { type: 'string', minLength: 'x' } }), /must be a number/],
    ];
    for (const [raw, expected] of cases) {
      const found = wrong(raw);
      assert.ok(
        found.some((each) => expected.test(each)),
        `${JSON.stringify(raw)}: ${found.join('; ')}`,
      );
    }
    assert.deepEqual(
      wrong(of({ a: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] } })),
      [],
    );
  });

  it('the parser of structural schemas limits the schema size', () => {
    let deep: JsonObject = { type: 'string' };
    for (let level = 0; level < 400; level++) deep = of({ a: deep });
    assert.ok(wrong(deep).some((each) => /must not nest deeper than 64 levels/.test(each)));
    const wide = of(
      Object.fromEntries(Array.from({ length: 60_000 }, (_, index) => [`p${index}`, { type: 'string' }])),
    );
    assert.ok(wrong(wide).some((each) => /must not have more than/.test(each)));
  });

  it('the parser of structural schemas limits the work for nested alternatives', () => {
    let raw: JsonObject = { minLength: 1 };
    for (let level = 0; level < 30; level++) raw = { anyOf: [raw, raw] };
    // The schema is parsed once for each place, which exceeds the limit.
    const found = wrong(of({ a: { type: 'string', ...raw } }));
    assert.ok(found.some((each) => /must not have more than/.test(each)));
  });
});

describe('JSON paths', () => {
  const value = {
    status: {
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'Other', status: 'False' },
      ],
      'a.b': 1,
      m: { x: 1, y: 2 },
    },
  };
  it('JSON paths return values', () => {
    const cases: [string, JsonValue[]][] = [
      ['.status.conditions[?(@.type=="Ready")].status', ['True']],
      [".status.conditions[?(@.type=='Ready')].status", ['True']],
      ['.status.conditions[*].type', ['Ready', 'Other']],
      ['.status.conditions[-1].type', ['Other']],
      ['.status.conditions[0:1].type', ['Ready']],
      ["['status']['a.b']", [1]],
      ['.status.a\\.b', [1]],
      ['.status.m.*', [1, 2]],
      ['..x', [1]],
      ['.status.toString', []],
      ['.', [value]],
    ];
    for (const [path, expected] of cases) assert.deepEqual(parseJsonPath(path).all(value), expected, path);
  });
  it('JSON paths are rejected if they are invalid', () => {
    for (const path of ['.a[', '.a[x]', '.a b', '{.a}', '.a[?(x)]', `.a[?(@${' '.repeat(1_000_000)}]`])
      assert.throws(() => parseJsonPath(path), path);
  });
});
