/** Hostile definitions of custom resources (schemas, patterns, rules), and their resources. */
import type { Choices } from '../../apiserver/core/patch/choices.ts';
import { TEXTS } from './values.ts';

export const GROUP = 'fuzz.example.com';
export const PLURALS = ['rigs', 'jigs', 'wigs', 'figs'] as const;

const PATTERNS = [
  '^(([a-z])+.)+[A-Z]([a-z])+$',
  '(x+x+)+y',
  '^(a|aa)*$',
  '(?=a)b',
  '[',
  '(a{1,1000}){1,1000}',
  '\\d+',
  '^\\p{L}+$',
  '(.*)*(.*)*(.*)*$',
  '\\',
  '(?i)x',
  '^$',
] as const;

const RULES = [
  'true',
  'self == self',
  "self.matches('^(a+)+$')",
  'self.all(x, self.all(y, self.all(z, x == y && y == z)))',
  'self.map(x, self.map(y, [x, y])).size() < 100000000',
  "oldSelf == self || self.startsWith('x')",
  'has(self.spec) ? self.spec.size() > 0 : true',
  'self.__proto__ == 1',
  "self + self + self + self != ''",
  '9223372036854775807 + 1 > 0',
  '1 / 0 == 1',
  'self.x.y.z.w',
  '(((((((((((((((((((1)))))))))))))))))) == 1',
  'self.exists(x, x.matches(self))',
  "duration('999999999h') > duration('1s')",
  'optional.of(self).orValue(1) == 1',
  '[1,2,3].map(x, x * self).all(y, y > 0)',
  '',
  '!',
  'self.',
  "'\\u0000' in self",
] as const;

const FORMATS = [
  'date-time',
  'date',
  'email',
  'uuid',
  'ipv4',
  'cidr',
  'byte',
  'duration',
  'hostname',
  'nonsense',
  'int32',
  'quantity',
];

/** A schema, mostly a valid one. */
export function schema(choices: Choices, depth = 0): Record<string, unknown> {
  const type =
    depth === 0
      ? 'object'
      : choices.one(['object', 'object', 'array', 'string', 'integer', 'number', 'boolean', 'nonsense', '']);
  const node: Record<string, unknown> = type === '' ? {} : { type };
  if (type === 'object') {
    const keys = ['spec', 'status', 'a', 'b', 'metadata', '__proto__', 'constructor', 'x-y'];
    const below = choices.some(keys, 0, depth > 5 ? 0 : 4).map((key) => [key, schema(choices, depth + 1)]);
    node['properties'] = Object.fromEntries(below);
    if (choices.chance(0.1)) node['x-kubernetes-preserve-unknown-fields'] = true;
    if (choices.chance(0.1)) node['required'] = choices.some(keys, 1, 3);
    if (choices.chance(0.05)) node['additionalProperties'] = choices.one([true, false, { type: 'string' }]);
    if (choices.chance(0.05)) node['x-kubernetes-embedded-resource'] = true;
    if (choices.chance(0.05)) node['maxProperties'] = choices.one([0, -1, 3, 1e9]);
  } else if (type === 'array') {
    node['items'] = depth > 5 ? { type: 'string' } : schema(choices, depth + 1);
    if (choices.chance(0.3)) node['x-kubernetes-list-type'] = choices.one(['set', 'map', 'atomic', 'x']);
    if (choices.chance(0.2)) node['x-kubernetes-list-map-keys'] = choices.one([['a'], ['a', 'a'], ['__proto__'], []]);
    if (choices.chance(0.2)) node['maxItems'] = choices.one([0, 5, 1000, -1]);
  } else if (type === 'string') {
    if (choices.chance(0.4)) node['pattern'] = choices.one(PATTERNS);
    if (choices.chance(0.3)) node['format'] = choices.one(FORMATS);
    if (choices.chance(0.2)) node['enum'] = ['a', 'b', choices.one(TEXTS)];
    if (choices.chance(0.2)) node['maxLength'] = choices.one([0, 10, 100_000, -1, 1e15]);
  } else if (choices.chance(0.3)) {
    node['minimum'] = choices.one([0, -1, 1e308, 0.5]);
    node['multipleOf'] = choices.one([1, 0, -1, 0.1, 1e-300]);
  }
  if (choices.chance(0.15))
    node['default'] = choices.one<unknown>([null, 1, 'x', {}, [], { a: { b: 1 } }, true, { constructor: 1 }]);
  if (choices.chance(0.1)) node['nullable'] = true;
  if (choices.chance(0.05)) node['x-kubernetes-int-or-string'] = true;
  if (choices.chance(0.05))
    node[choices.one(['anyOf', 'allOf', 'oneOf'])] = [{ minimum: 1 }, { pattern: choices.one(PATTERNS) }];
  if (choices.chance(0.05)) node['not'] = { pattern: choices.one(PATTERNS) };
  if (choices.chance(0.02))
    node[choices.one(['$ref', 'definitions', 'uniqueItems', 'x-kubernetes-nonsense'])] = choices.one(['#/x', true, {}]);
  if (choices.chance(0.15))
    node['x-kubernetes-validations'] = choices.some(RULES, 1, 3).map((rule) => ({
      rule,
      ...(choices.chance(0.5) ? { message: choices.one(['no', '', 'a\nb']) } : {}),
      ...(choices.chance(0.2) ? { messageExpression: choices.one(RULES) } : {}),
      ...(choices.chance(0.2) ? { fieldPath: choices.one(['.spec', '.__proto__', 'x', '']) } : {}),
      ...(choices.chance(0.1) ? { reason: choices.one(['FieldValueInvalid', 'X']) } : {}),
    }));
  return node;
}

/** A definition that is valid as a whole, with random parts. */
export function definition(choices: Choices, plural: string): Record<string, unknown> {
  const versions = choices.chance(0.3) ? ['v1', 'v1beta1'] : ['v1'];
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: choices.one(['Namespaced', 'Namespaced', 'Cluster']),
      names: {
        plural,
        singular: plural.slice(0, -1),
        kind: `K${plural}`,
        shortNames: choices.some(['r', 'po', 'x'], 0, 2),
      },
      versions: versions.map((name, index) => ({
        name,
        served: true,
        storage: index === 0,
        schema: { openAPIV3Schema: schema(choices) },
        ...(choices.chance(0.5)
          ? {
              additionalPrinterColumns: [
                {
                  name: 'A',
                  type: choices.one(['string', 'date', 'integer']),
                  jsonPath: choices.one([
                    '.spec.a',
                    '.metadata.creationTimestamp',
                    '.spec[*].b',
                    '.__proto__',
                    '..x',
                    '.spec[?(@.a=="(a+)+")]',
                    '{',
                  ]),
                },
              ],
            }
          : {}),
        ...(choices.chance(0.3)
          ? {
              subresources: {
                status: {},
                ...(choices.chance(0.5)
                  ? {
                      scale: {
                        specReplicasPath: choices.one(['.spec.a', '.spec.__proto__', '.metadata.name']),
                        statusReplicasPath: '.status.a',
                      },
                    }
                  : {}),
              },
            }
          : {}),
        ...(choices.chance(0.2)
          ? { selectableFields: [{ jsonPath: choices.one(['.spec.a', '.metadata.name', '.x[0]']) }] }
          : {}),
      })),
    },
  };
}

export function customResource(choices: Choices, plural: string, name: string): Record<string, unknown> {
  const part = (depth: number): unknown => {
    switch (choices.below(depth > 3 ? 4 : 7)) {
      case 0:
        return choices.one([0, 1, -1, 1.5, 1e300]);
      case 1:
        return choices.one(TEXTS);
      case 2:
        return choices.one([true, null]);
      case 3:
        return choices.one(['a', 'b']).repeat(choices.one([1, 10, 1000, 30_000]));
      case 4:
        return Array.from({ length: choices.one([0, 1, 3, 100]) }, () => part(depth + 2));
      default:
        return Object.fromEntries(
          choices
            .some(['spec', 'status', 'a', 'b', 'metadata', 'constructor', 'x-y'], 0, 4)
            .map((key) => [key, part(depth + 1)]),
        );
    }
  };
  return {
    apiVersion: `${GROUP}/${choices.one(['v1', 'v1', 'v1beta1'])}`,
    kind: `K${plural}`,
    metadata: { name },
    ...Object.fromEntries(['spec', 'status', 'a', 'b'].map((key) => [key, part(0)])),
  };
}
