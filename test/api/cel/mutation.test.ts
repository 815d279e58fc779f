/** The messages Object{…} and JSONPatch{…}, with the examples of the MutatingAdmissionPolicy documentation. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Budget, type Program } from '../../../src/api/cel/compiled-expression.ts';
import { ANY_READER, fromJson } from '../../../src/api/cel/documents.ts';
import { toJson } from '../../../src/api/cel/json.ts';
import { compile } from '../../../src/api/cel/language/compile.ts';
import { standardFunctions } from '../../../src/api/cel/library/index.ts';
import { misplacedTypes, mutationStructure } from '../../../src/api/cel/mutation.ts';
import { DYN, formatType } from '../../../src/api/cel/types.ts';
import type { Value } from '../../../src/api/cel/values.ts';
import type { JsonValue } from '../../../src/api/meta/object.ts';

const program = (source: string): Program =>
  compile(source, {
    functions: standardFunctions(),
    variables: new Map([['object', DYN]]),
    structure: mutationStructure,
  });
const object = { spec: { replicas: 2, paused: true }, list: [1, 2.5], none: null };
const run = (source: string): Value =>
  program(source).evaluate(() => fromJson(object, ANY_READER), new Budget(100_000));

it('converts CEL integers beyond 2^53 exactly, or to strings as protobuf does', () => {
  const values = ['[object.n + 1, 9007199254740991, -9007199254740992]', '9007199254740993u'].map((source) =>
    program(source).evaluate(() => fromJson({ n: 9007199254740992n }, ANY_READER), new Budget(1000)),
  );
  const safe = Number.MAX_SAFE_INTEGER;
  assert.deepEqual(
    values.map((value) => toJson(value)),
    [[9007199254740993n, safe, -9007199254740992n], 9007199254740993n],
  );
  assert.deepEqual(
    values.map((value) => toJson(value, 'text')),
    [['9007199254740993', safe, '-9007199254740992'], '9007199254740993'],
  );
});

describe('CEL messages', () => {
  it('CEL messages are converted to JSON', () => {
    const cases: [string, JsonValue][] = [
      ['Object{}', {}],
      ['Object{spec: Object.spec{replicas: object.spec.replicas + 1}}', { spec: { replicas: 3 } }],
      [
        'Object{a: [Object.a{n: 1}, Object.a{n: 2u,}], b: {"x-y": "z"}}',
        { a: [{ n: 1 }, { n: 2 }], b: { 'x-y': 'z' } },
      ],
      ['Object{?a: object.?spec.?replicas, ?b: object.?missing, `c-d`: 1.5}', { a: 2, 'c-d': 1.5 }],
      [
        'Object{namespace: "a", type: b"\\x00\\xff", d: duration("90s"), t: timestamp(0)}',
        {
          namespace: 'a',
          type: 'AP8=',
          d: '90s',
          t: '1970-01-01T00:00:00Z',
        },
      ],
      ['Object{copy: object.spec, list: object.list, none: null}', { copy: object.spec, list: [1, 2.5], none: null }],
      [
        '[JSONPatch{op: "add", path: "/a", value: Object.spec{x: true}}]',
        [{ op: 'add', path: '/a', value: { x: true } }],
      ],
      ['object.spec.paused ? [JSONPatch{op: "test"}] : []', [{ op: 'test' }]],
      ['!object.spec.paused ? [JSONPatch{op: "test"}] : []', []],
      ['[1, 2].map(n, Object.a{n: n})', [{ n: 1 }, { n: 2 }]],
    ];
    for (const [source, expected] of cases) assert.deepEqual(toJson(run(source)), expected, source);
  });

  it('CEL messages have selectable fields, and are equal if type and fields are equal', () => {
    const yes = [
      'Object{a: 1}.a == 1',
      'has(Object{a: 1}.a)',
      '!has(Object{}.a)',
      'JSONPatch{op: "add"}.op == "add"',
      '!has(JSONPatch{op: "add"}.value)',
      'Object{a: 1} == Object{a: 1}',
      'Object{a: 1} != Object{a: 2}',
      'dyn(Object.a{x: 1}) != dyn(Object.b{x: 1})',
      'dyn(Object.a{x: 1}) != dyn({"x": 1})',
      'JSONPatch{op: "add", value: 1} == JSONPatch{op: "add", value: 1}',
      'JSONPatch{} == JSONPatch{}',
    ];
    for (const source of yes) assert.equal(run(source), true, source);
  });

  it('CEL messages have the type of their name; unknown fields and wrong field types are rejected', () => {
    assert.equal(formatType(program('Object.spec.template{}').type), 'Object.spec.template');
    assert.equal(formatType(program('[JSONPatch{}] + []').type), 'list(JSONPatch)');
    const refused: [string, RegExp][] = [
      ['JSONPatch{ops: "add"}', /undefined field 'ops'/],
      ['JSONPatch{op: 1}', /expected type of field 'op' is 'string' but provided type is 'int'/],
      ['Objects{}', /undeclared reference to 'Objects'/],
      ['Object{a: 1', /missing '}' at '<EOF>'/],
      ['Object{true: 1}', /mismatched input 'true'/],
      ['Object{a 1}', /mismatched input '1'/],
    ];
    for (const [source, message] of refused) assert.throws(() => program(source), message, source);
  });

  it('reports CEL messages whose type name does not match their field path', () => {
    assert.deepEqual(
      misplacedTypes(run('Object{spec: Object.spec{a: [Object.spec.a{}], m: {"k": Object.spec.m{}}}}')),
      [],
    );
    assert.deepEqual(misplacedTypes(run('Object{spec: Object.specs{}}')), [
      'unexpected type name "Object.specs", expected "Object.spec", which matches field name path from root Object type',
    ]);
    assert.deepEqual(misplacedTypes(run('Object.spec.a{b: Object.spec.a.b{}}')), [], 'the first one gives the place');
    assert.equal(misplacedTypes(run('Object{a: [Object{}, Object{}]}')).length, 2);
    assert.throws(() => run('Object{a: [Object{}, Object.b{}]}'), /expected type 'Object' but found 'Object\.b'/);
  });

  it('CEL messages without a JSON form or above the size limit cause an error', () => {
    const wrong: [string, RegExp][] = [
      ['Object{a: 1.0 / 0.0}', /has no form in JSON/],
      ['Object{a: {1: 2}}', /map key 1 is not a string/],
      ['Object{a: quantity("1")}', /type kubernetes\.Quantity has no form/],
      ['Object{a: optional.none()}', /type optional has no form/],
      // An inexpensive expression with a result of 10^8 elements.
      [
        '[lists.range(100)].map(a, [lists.range(100).map(i, a)].map(b, [lists.range(100).map(i, b)].map(c, Object{a: lists.range(100).map(i, c)})[0])[0])[0]',
        /too large/,
      ],
    ];
    for (const [source, message] of wrong) assert.throws(() => toJson(run(source)), message, source);
  });
});
