/** Random documents of a type, for property tests of conversions and encodings. */
import type { JsonObject, JsonValue } from '../../../src/api/meta/object.ts';
import type { ScalarType, SchemaNode } from '../../../src/api/schema/index.ts';

export type Random = () => number;

/** A seeded random number generator (mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const MAX_DEPTH = 12;
const LETTERS = 'abcdefghijklmnopqrstuvwxyzäß漢🙂';

function text(random: Random): string {
  const letters = [...LETTERS];
  return Array.from(
    { length: 1 + Math.floor(random() * 6) },
    () => letters[Math.floor(random() * letters.length)] ?? 'a',
  ).join('');
}

const integer = (random: Random, max: number): number => Math.floor(random() * max) + 1;

const SCALARS: Readonly<Record<ScalarType, (random: Random) => JsonValue>> = {
  string: text,
  boolean: (random) => random() < 0.5,
  int32: (random) => (random() < 0.2 ? -integer(random, 2 ** 31 - 1) : integer(random, 2 ** 31 - 1)),
  int64: (random) => (random() < 0.2 ? -integer(random, 2 ** 53 - 2) : integer(random, 2 ** 53 - 2)),
  number: (random) => Math.round(random() * 1000) / 8 + 1,
  'int-or-string': (random) => (random() < 0.5 ? integer(random, 1000) : text(random)),
  quantity: (random) => `${integer(random, 900)}${['', 'm', 'Mi', 'k', 'Gi'][Math.floor(random() * 5)]}`,
  'date-time': (random) => `${new Date(integer(random, 4e9) * 1000).toISOString().slice(0, 19)}Z`,
  'date-time-micro': (random) =>
    `${new Date(integer(random, 4e9) * 1000).toISOString().slice(0, 19)}.${String(integer(random, 999_999)).padStart(6, '0')}Z`,
  byte: (random) => Buffer.from(text(random)).toString('base64'),
  any: (random) => ({ [text(random)]: [integer(random, 9), { deep: text(random) }] }),
};

export function randomDocument(node: SchemaNode, random: Random, depth = 0): JsonValue {
  switch (node.kind) {
    case 'scalar':
      return SCALARS[node.type](random);
    case 'list':
      return Array.from({ length: 1 + Math.floor(random() * 2) }, () => randomDocument(node.items, random, depth + 1));
    case 'map':
      return Object.fromEntries(
        Array.from({ length: 1 + Math.floor(random() * 2) }, () => [
          text(random),
          randomDocument(node.items, random, depth + 1),
        ]),
      );
    case 'object': {
      const object: JsonObject = {};
      const likely = depth === 0 ? 0.95 : depth < 4 ? 0.5 : 0.25;
      for (const [field, type] of node.fields) {
        const deep = depth >= MAX_DEPTH && type.kind !== 'scalar';
        if (!deep && random() < likely) object[field] = randomDocument(type, random, depth + 1);
      }
      return object;
    }
  }
}
