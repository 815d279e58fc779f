/** Request bodies in every format, from valid documents to arbitrary bytes. */
import { stringify } from 'yaml';
import type { JsonObject } from '../../../src/api/meta/object.ts';
import { encodeMessage, envelope, hasMessage } from '../../../src/apiserver/http/protobuf/encode.ts';
import type { Choices } from '../../apiserver/core/patch/choices.ts';
import { damaged, KEYS, mutated, object, TEXTS, value } from './values.ts';

export interface Body {
  readonly type: string;
  readonly bytes: Buffer;
}

const YAML_TRICKS = [
  'a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d]\n',
  'a: &a\n  b: *a\n',
  '<<: {kind: X}\n',
  'x: &x {a: 1}\ny:\n  <<: *x\n',
  'a: !!js/function "function(){}"\n',
  'a: !!binary aGk=\n',
  'a: !<tag:yaml.org,2002:str> 1\n',
  '? [complex, key]\n: value\n',
  '? {a: 1}\n: value\n',
  'a: .inf\nb: .nan\nc: 0o17\nd: 0xFF\ne: 1_000\n',
  'on: off\nyes: no\n',
  '---\na: 1\n---\nb: 2\n',
  '%YAML 1.1\n---\na: 1\n',
  '%TAG ! tag:x,2000:\n---\na: !x 1\n',
  'a:\t1\n\tb: 2\n',
  'a: |\n  text\n  more\nb: >-\n  folded\n\n  text\n',
  'a: "\\x00\\uD800"\n',
  '__proto__: {polluted: 1}\nconstructor: {prototype: {polluted: 1}}\n',
  `${'['.repeat(3000)}`,
  `${'a: {'.repeat(3000)}`,
  `${'- '.repeat(3000)}x`,
  `${'a:\n '.repeat(10)}`,
  'a: 1\na: 2\n',
  '{a: 1, a: 2}',
  '- 1\n- 2\n',
  '"just text"',
  '*undefined',
  '&a',
  '!',
  '#only a comment',
  '...',
] as const;

export function jsonBody(choices: Choices, document: object): Body {
  const text = choices.chance(0.03) ? value(choices) : mutated(choices, document);
  return {
    type: choices.one(['application/json', 'application/json', 'application/json; charset=utf-8', '', 'text/json']),
    bytes: damaged(choices, text),
  };
}

export function yamlBody(choices: Choices, document: object): Body {
  let text: string;
  if (choices.chance(0.3)) text = choices.one(YAML_TRICKS);
  else if (choices.chance(0.5)) text = stringify(document);
  else text = stringify(document) + choices.one(YAML_TRICKS);
  return {
    type: choices.one(['application/yaml', 'text/yaml', 'application/x-yaml']),
    bytes: damaged(choices, text, 0.3),
  };
}

function varint(number: number): number[] {
  const bytes: number[] = [];
  for (let rest = number; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) + 128);
  }
}

/** Fields that are unknown to the type or have another wire type. */
function wire(choices: Choices, depth = 0): Buffer {
  const parts: Buffer[] = [];
  for (let count = choices.below(5); count > 0; count--) {
    const field = choices.one([0, 1, 2, 3, 15, 16, 536_870_911]);
    const form = choices.below(8);
    parts.push(Buffer.from(varint(field * 8 + form)));
    if (form === 2) {
      const inner = depth < 6 ? wire(choices, depth + 1) : Buffer.from('x');
      parts.push(Buffer.from(varint(choices.chance(0.1) ? 2 ** choices.below(40) : inner.length)), inner);
    } else if (form === 0)
      parts.push(Buffer.from(choices.chance(0.2) ? Array<number>(11).fill(0xff) : varint(choices.below(1 << 20))));
    else parts.push(Buffer.alloc(choices.one([0, 4, 8]), 0xff));
  }
  return Buffer.concat(parts);
}

export function protobufBody(choices: Choices, document: JsonObject, typeName: string): Body | undefined {
  if (!hasMessage(typeName)) return undefined;
  const apiVersion = String(document['apiVersion']);
  const kind = String(document['kind']);
  const message = choices.chance(0.1) ? wire(choices) : encodeMessage(typeName, document);
  const grown = choices.chance(0.2) ? Buffer.concat([message, wire(choices)]) : message;
  return {
    type: 'application/vnd.kubernetes.protobuf',
    bytes: damaged(choices, envelope(apiVersion, kind, grown), 0.5),
  };
}

function pointer(choices: Choices): string {
  if (choices.chance(0.1)) return choices.one(['', '/', 'x', '//', '/~', '/~2', `/${'a/'.repeat(1000)}`]);
  const segments = Array.from({ length: 1 + choices.below(4) }, () =>
    choices.one([
      'metadata',
      'labels',
      'spec',
      'data',
      'annotations',
      'containers',
      'template',
      'finalizers',
      '0',
      '1',
      '-',
      '-1',
      '01',
      '1e1',
      '99999999999',
      'a~1b',
      'a~0b',
      ...KEYS,
    ]),
  );
  return `/${segments.join('/')}`;
}

function jsonPatch(choices: Choices): string {
  const roll = choices.below(40);
  if (roll === 0)
    return `[${Array.from({ length: choices.one([9_999, 10_001]) }, () => '{"op":"test","path":"","value":1}').join(',')}]`;
  if (roll === 1) {
    const copies = Array.from({ length: 25 }, () => ({ op: 'copy', from: '/metadata', path: '/metadata/annotations' }));
    return JSON.stringify([{ op: 'add', path: '/metadata/annotations', value: { a: 'x'.repeat(5000) } }, ...copies]);
  }
  if (roll === 2) return value(choices);
  const operations = Array.from({ length: 1 + choices.below(6) }, () => {
    const op = choices.one(['add', 'remove', 'replace', 'move', 'copy', 'test', 'spam', '']);
    const members = [`"op":${JSON.stringify(op)}`, `"path":${JSON.stringify(pointer(choices))}`];
    if (choices.chance(0.4)) members.push(`"from":${JSON.stringify(pointer(choices))}`);
    if (choices.chance(0.7)) members.push(`"value":${value(choices, 3)}`);
    return choices.chance(0.05) ? value(choices, 3) : `{${members.join(',')}}`;
  });
  return `[${operations.join(',')}]`;
}

function strategicPatch(choices: Choices, document: object): string {
  const copy = structuredClone(document) as Record<string, unknown>;
  const sow = (node: unknown, depth: number): void => {
    if (typeof node !== 'object' || node === null || depth > 6) return;
    const holder = node as Record<string, unknown>;
    for (const key of Object.keys(holder)) {
      sow(holder[key], depth + 1);
      if (Array.isArray(holder[key]) && choices.chance(0.2))
        holder[`$setElementOrder/${key}`] = choices.one<unknown>([
          [],
          [{ name: 'main' }],
          ['a'],
          'x',
          null,
          [null],
          [{}],
        ]);
      if (choices.chance(0.05))
        holder[`$deleteFromPrimitiveList/${key}`] = choices.one<unknown>([['a'], 'a', null, [{}]]);
      if (choices.chance(0.05)) holder[key] = null;
    }
    if (!Array.isArray(holder) && choices.chance(0.1))
      holder['$patch'] = choices.one<unknown>(['delete', 'replace', 'merge', 'x', 1, null]);
    if (!Array.isArray(holder) && choices.chance(0.05))
      holder['$retainKeys'] = choices.one<unknown>([['a'], [], 'x', null, [1]]);
  };
  sow(copy, 0);
  return mutated(choices, copy, 2);
}

const MANAGED = [
  [],
  null,
  'x',
  [{}],
  [null],
  [
    {
      manager: 'a',
      operation: 'Apply',
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:data': { 'f:a': {}, '.': {} } },
    },
  ],
  [
    {
      manager: 'a',
      operation: 'Update',
      apiVersion: 'x/y/z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'k:{"name":"a"}': {}, 'v:1': {}, 'i:0': {}, 'q:': 1, 'k:{': {} },
    },
  ],
  [{ manager: 'a', operation: 'Apply', apiVersion: 'v1', fieldsType: 'FieldsV2', fieldsV1: 'x', time: 'x' }],
  [
    {
      manager: 'a',
      operation: 'Apply',
      apiVersion: 'v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:__proto__': { 'f:polluted': {} }, 'f:constructor': {} },
    },
  ],
];

export function patchBody(choices: Choices, document: object): Body {
  switch (choices.below(9)) {
    case 0:
    case 1:
      return { type: 'application/json-patch+json', bytes: damaged(choices, jsonPatch(choices), 0.05) };
    case 2:
      return {
        type: 'application/merge-patch+json',
        bytes: damaged(choices, choices.chance(0.5) ? object(choices) : mutated(choices, document), 0.05),
      };
    case 3:
    case 4:
      return {
        type: 'application/strategic-merge-patch+json',
        bytes: damaged(choices, strategicPatch(choices, document), 0.05),
      };
    case 5: {
      const metadata = {
        managedFields: choices.one(MANAGED),
        labels: { a: choices.one(TEXTS) },
        ...(choices.chance(0.3) ? { finalizers: [choices.one(TEXTS)] } : {}),
      };
      return { type: 'application/merge-patch+json', bytes: Buffer.from(JSON.stringify({ metadata })) };
    }
    case 6:
      return { type: 'application/apply-patch+yaml', bytes: damaged(choices, stringify(document), 0.1) };
    case 7:
      return { type: 'application/apply-patch+yaml', bytes: damaged(choices, mutated(choices, document), 0.1) };
    default:
      return {
        type: choices.one([
          'application/json',
          'text/plain',
          'application/cbor',
          'application/json-patch+json;x=y',
          'x',
        ]),
        bytes: Buffer.from(mutated(choices, document)),
      };
  }
}

/** Text near and above the server's size limit; its repeated characters compress well. */
export function largeText(choices: Choices): string {
  const size = choices.one([100_000, 600_000, 2_900_000, 3_300_000]);
  switch (choices.below(5)) {
    case 0:
      return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{"a":"${'x'.repeat(size)}"}}`;
    case 1:
      return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large"},"data":{${Array.from({ length: size / 20 }, (_, at) => `"key-${at}":"v"`).join(',')}}}`;
    case 2:
      return `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"large"},"spec":{"containers":[${Array.from({ length: size / 40 }, (_, at) => `{"name":"c${at}","image":"x"}`).join(',')}]}}`;
    case 3:
      return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"large","labels":{${Array.from({ length: size / 20 }, (_, at) => `"l${at}":"v"`).join(',')}}}}`;
    default:
      return `[${'0,'.repeat(size / 2)}0]`;
  }
}
