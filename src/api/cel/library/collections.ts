/**
 * Functions for lists, sets and optionals. Sources: k8s.io/apiserver/pkg/cel/library/lists.go, cel-go's ext (lists,
 * sets) and cel/library.go (optional types).
 */

import { celEqual } from '../equality.ts';
import { COST_PER_ELEMENT, declareFunction, declareIn, type Overload, perCharacter, times } from '../functions.ts';
import { chargeCost } from '../meter.ts';
import {
  CelMap,
  Duration,
  EvaluationError,
  isList,
  type List,
  numericValue,
  Optional,
  Timestamp,
  Uint,
  type Value,
} from '../values.ts';
import { compareValues, int } from './operators.ts';

const COMPARABLE = ['int', 'uint', 'double', 'bool', 'duration', 'timestamp', 'string', 'bytes'];
/** Sums of empty lists, by element type. */
const ZEROS: Readonly<Record<string, Value>> = { int: 0n, uint: new Uint(0n), double: 0, duration: new Duration(0n) };

function sum(list: List, zero: Value): Value {
  let total = zero;
  for (const item of list) total = add(total, item);
  return total;
}

function add(a: Value, b: Value): Value {
  if (typeof a === 'bigint' && typeof b === 'bigint') return int(a + b);
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  if (a instanceof Uint && b instanceof Uint) return new Uint(a.value + b.value);
  if (a instanceof Duration && b instanceof Duration) return new Duration(a.ns + b.ns);
  throw new EvaluationError('no such overload');
}

function extreme(list: List, sign: number): Value {
  let found: Value | undefined;
  for (const item of list) if (found === undefined || compareValues(item, found) * sign > 0) found = item;
  if (found === undefined) throw new EvaluationError(`${sign > 0 ? 'max' : 'min'} called on empty list`);
  return found;
}

function isSorted(list: List): boolean {
  let previous: Value | undefined;
  for (const item of list) {
    if (previous !== undefined && compareValues(previous, item) > 0) return false;
    previous = item;
  }
  return true;
}

function position(list: List, wanted: Value, which: 'last' | 'first'): bigint {
  let found = -1n;
  let index = 0n;
  for (const item of list) {
    if (celEqual(item, wanted)) {
      found = index;
      if (which === 'first') break;
    }
    index += 1n;
  }
  return found;
}

function flatten(list: List, depth: bigint): Value[] {
  const result: Value[] = [];
  const take = (from: List, left: bigint): void => {
    for (const item of from) {
      // The result may be much larger than the input, because the same list may occur in it many times.
      chargeCost(2);
      if (left > 0n && isList(item)) take(item, left - 1n);
      else result.push(item);
    }
  };
  take(list, depth);
  return result;
}

function distinct(list: List): Value[] {
  const result: Value[] = [];
  for (const item of list) if (!result.some((each) => celEqual(each, item))) result.push(item);
  return result;
}

function slice(list: List, from: bigint, to: bigint): Value[] {
  if (from < 0n || to < 0n) throw new EvaluationError(`cannot slice(${from}, ${to}), negative indexes not supported`);
  if (from > to)
    throw new EvaluationError(`cannot slice(${from}, ${to}), start index must be less than or equal to end index`);
  if (to > BigInt(list.length))
    throw new EvaluationError(`cannot slice(${from}, ${to}), list is length ${list.length}`);
  return [...list].slice(Number(from), Number(to));
}

/** Upstream's cost of creating a list. */
const MAKING = 11;
const kept = { cost: ([list = 0]: readonly number[]) => list, size: ([list = 0]: readonly number[]) => list };
/**
 * Cost of comparing every item with every other and creating a list. Source: cel-go's ext lists, version 3, which
 * estimates the size of the result in the same way.
 */
const squared = (factor: number) => ({
  cost: ([list = 0]: readonly number[]) => factor * list * list + 11,
  size: ([list = 0]: readonly number[]) => list * list,
});

/** Costs of a function that compares the strings in a list. Comparing strings traverses each of them. */
const reads = {
  ...COST_PER_ELEMENT,
  estimate: ([list = 0]: readonly number[], [item = 0]: readonly number[]) => times(list, 1 + perCharacter(item)),
};

const lists: readonly Overload[] = [
  ...COMPARABLE.flatMap((type) => {
    const costs = type === 'string' || type === 'bytes' ? reads : COST_PER_ELEMENT;
    return [
      declareFunction(`list<${type}>.isSorted(): bool`, (list: List) => isSorted(list), costs),
      declareFunction(`list<${type}>.min(): ${type}`, (list: List) => extreme(list, -1), costs),
      declareFunction(`list<${type}>.max(): ${type}`, (list: List) => extreme(list, 1), costs),
      declareFunction(
        `list<${type}>.sort(): list<${type}>`,
        (list: List) => [...list].sort(compareValues),
        squared(type === 'string' || type === 'bytes' ? 2.1 : 2),
      ),
    ];
  }),
  ...Object.entries(ZEROS).map(([type, zero]) =>
    declareFunction(`list<${type}>.sum(): ${type}`, (list: List) => sum(list, zero), COST_PER_ELEMENT),
  ),
  declareFunction('list<A>.indexOf(A): int', (list: List, item: Value) => position(list, item, 'first'), reads),
  declareFunction('list<A>.lastIndexOf(A): int', (list: List, item: Value) => position(list, item, 'last'), reads),
  declareFunction('list<A>.slice(int, int): list<A>', slice, kept),
  declareFunction('list<list<A>>.flatten(): list<A>', (list: List) => flatten(list, 1n), {
    ...kept,
    size: ([list = 0]) => list * 1000,
  }),
  declareFunction('list<dyn>.flatten(int): list<dyn>', flatten, { ...kept, size: ([list = 0]) => list * 1000 }),
  declareFunction('list<A>.distinct(): list<A>', (list: List) => distinct(list), squared(2)),
  declareFunction('list<A>.reverse(): list<A>', (list: List) => [...list].reverse(), {
    ...kept,
    estimate: ([list = 0]) => list + MAKING,
  }),
  declareIn(
    'lists',
    'range(int): list<int>',
    (count: bigint) => {
      if (count < 0n) throw new EvaluationError(`lists.range: size must be non-negative, got ${count}`);
      if (count > 10_000n) throw new EvaluationError(`range of ${count}`);
      return Array.from({ length: Number(count) }, (_, index) => BigInt(index));
    },
    // The argument is a number, so its size does not limit the result. The costs assume a list of the maximum length.
    { cost: () => 1_000, size: () => 10_000 },
  ),
];

const has = (list: List, wanted: Value): boolean => {
  for (const item of list) if (celEqual(item, wanted)) return true;
  return false;
};
const containsAll = (list: List, wanted: List): boolean => [...wanted].every((each) => has(list, each));
const product = { cost: ([a = 0, b = 0]: readonly number[]) => a * b };

const sets: readonly Overload[] = [
  declareIn('sets', 'contains(list<A>, list<A>): bool', containsAll, product),
  declareIn(
    'sets',
    'equivalent(list<A>, list<A>): bool',
    (a: List, b: List) => containsAll(a, b) && containsAll(b, a),
    product,
  ),
  declareIn(
    'sets',
    'intersects(list<A>, list<A>): bool',
    (a: List, b: List) => [...b].some((each) => has(a, each)),
    product,
  ),
];

function isZero(value: Value): boolean {
  if (value === null || value === false || value === '') return true;
  const number = numericValue(value);
  if (number !== undefined) return Number(number) === 0;
  if (value instanceof CelMap) return value.size === 0;
  if (value instanceof Uint8Array) return value.length === 0;
  if (isList(value)) return value.length === 0;
  return (value instanceof Duration || value instanceof Timestamp) && value.ns === 0n;
}

/** Values of all optionals in the list that are not empty. */
const unwrapped = (list: List): Value[] =>
  [...list].flatMap((each) => (each instanceof Optional && each.value !== undefined ? [each.value] : []));

const optionals: readonly Overload[] = [
  declareIn('optional', 'of(A): opt<A>', (value: Value) => new Optional(value)),
  declareIn('optional', 'ofNonZeroValue(A): opt<A>', (value: Value) =>
    isZero(value) ? Optional.NONE : new Optional(value),
  ),
  declareIn('optional', 'none(): opt<A>', () => Optional.NONE),
  declareFunction('opt<A>.hasValue(): bool', (optional: Optional) => optional.value !== undefined),
  declareFunction('opt<A>.value(): A', (optional: Optional) => {
    if (optional.value === undefined) throw new EvaluationError('optional.none() dereference');
    return optional.value;
  }),
  declareFunction('opt<A>.or(opt<A>): opt<A>', (optional: Optional, other: Optional) =>
    optional.value === undefined ? other : optional,
  ),
  declareFunction('opt<A>.orValue(A): A', (optional: Optional, other: Value) => optional.value ?? other),
  declareIn('optional', 'unwrap(list<opt<A>>): list<A>', unwrapped, kept),
  declareFunction('list<opt<A>>.unwrapOpt(): list<A>', unwrapped, kept),
  declareFunction('list<A>.first(): opt<A>', (list: List) => new Optional(list.at(0))),
  declareFunction('list<A>.last(): opt<A>', (list: List) => new Optional(list.at(list.length - 1))),
];

export const collections: readonly Overload[] = [...lists, ...sets, ...optionals];
