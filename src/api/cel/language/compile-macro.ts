/**
 * Compiles comprehensions. Sources: cel-spec (macros), cel-go's ext/comprehensions.go and cel/library.go (optionals).
 */

import type { Compilation, Frame, Part } from '../compiled-expression.ts';
import { times } from '../functions.ts';
import { compareValues } from '../library/operators.ts';
import { BOOL, DYN, formatType, INT, listOf, mapOf, optionalOf, type Type } from '../types.ts';
import { CelMap, EntryMap, EvaluationError, isList, type MapKey, mapKey, Optional, type Value } from '../values.ts';
import type { Expr } from './ast.ts';

type Macro = Extract<Expr, { op: 'macro' }>;

/**
 * Upstream's costs of a loop, in addition to the costs of its expressions: `whole` for the loop, and `step` for each
 * step, which evaluates the condition, the accumulator and the result.
 */
const RECKONED: Readonly<
  Record<Exclude<Macro['name'], 'optMap' | 'optFlatMap'>, readonly [whole: number, step: number]>
> = {
  all: [1, 3],
  exists: [1, 4],
  exists_one: [2, 2],
  map: [11, 12],
  transformList: [11, 12],
  filter: [11, 13],
  sortBy: [11, 12],
  transformMap: [31, 3],
  transformMapEntry: [31, 2],
};

/** Cost of appending an item to a list and of inserting an entry into a map. */
const ADDED = 12;
const INSERTED = 2;

/** Cost of appending the item. A constant item costs less, because no list must be created for it first. */
const addingOf = ({ known }: Part): number => (known === undefined ? ADDED : ADDED - 10);

export function compileMacro(compiler: Compilation, macro: Macro): Part {
  if (macro.name === 'optMap' || macro.name === 'optFlatMap') return optionalMap(compiler, macro);
  const target = compiler.compile(macro.target);
  const variables = variableTypes(target, macro.vars.length);
  if (variables === undefined) {
    return compiler.fail(
      macro.target.at,
      `expression of type '${formatType(target.type)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
    );
  }
  return compiler.within(
    macro.vars.map((name, index) => [name, variables[index] ?? DYN] as const),
    (slots) =>
      new Loop(compiler, macro, target, variables, slots).part(macro.args.map((each) => compiler.compile(each))),
  );
}

function variableTypes({ type, isPlace }: Part, count: number): readonly Type[] | undefined {
  // As upstream, elements of computed lists and maps have the size 0 in cost estimates.
  const within = (of: Type): Type => (isPlace === true ? of : { ...of, max: 0 });
  switch (type.kind) {
    case 'list':
      return count === 1 ? [within(type.of)] : [INT, within(type.of)];
    case 'map':
      return [within(type.key), within(type.value)];
    case 'dyn':
    case 'param':
      return [DYN, DYN];
    default:
      return undefined;
  }
}

class Loop {
  readonly #compiler: Compilation;
  readonly #macro: Macro;
  readonly #target: Part;
  readonly #variables: readonly Type[];
  readonly #slots: readonly number[];

  constructor(compiler: Compilation, macro: Macro, target: Part, variables: readonly Type[], slots: readonly number[]) {
    this.#compiler = compiler;
    this.#macro = macro;
    this.#target = target;
    this.#variables = variables;
    this.#slots = slots;
  }

  part(args: readonly Part[]): Part {
    const { name, at } = this.#macro;
    // Predicates have the condition as their only argument. Transformations may have a filter before the
    // transformation.
    const [first, second] = args as [Part, Part | undefined];
    const predicates = name === 'all' || name === 'exists' || name === 'exists_one' || name === 'filter';
    const condition = predicates || second !== undefined ? first : undefined;
    if (condition !== undefined && condition.type.kind !== 'bool' && condition.type.kind !== 'dyn') {
      return this.#compiler.fail(
        this.#macro.args[0]?.at ?? at,
        `expected type 'bool' but found '${formatType(condition.type)}'`,
      );
    }
    const size = this.#target.size;
    const [whole, step] = RECKONED[name as keyof typeof RECKONED];
    const each = args.reduce((sum, { cost: own }) => sum + own, step);
    const cost = this.#target.cost + whole + times(size, each);
    const body = second ?? first;
    switch (name) {
      case 'all':
      case 'exists':
        return { type: BOOL, cost, size: 1, run: (frame) => this.#quantify(frame, first, name === 'exists') };
      case 'exists_one':
        return { type: BOOL, cost, size: 1, run: (frame) => this.#one(frame, first) };
      case 'filter': {
        const of = this.#variables[0] ?? DYN;
        return { type: listOf(of, size), cost, size, run: (frame) => this.#collect(frame, first, undefined) };
      }
      case 'sortBy': {
        const of = this.#variables[0] ?? DYN;
        // The estimate assumes that sorting compares all pairs of keys.
        const sorting = cost + 2 * size * size + 11;
        return { type: listOf(of, size), cost: sorting, size: size * size, run: (frame) => this.#sort(frame, first) };
      }
      case 'map':
      case 'transformList':
        return { type: listOf(body.type, size), cost, size, run: (frame) => this.#collect(frame, condition, body) };
      case 'transformMap': {
        const key = this.#variables[0] ?? DYN;
        return {
          type: mapOf(key, body.type, size),
          cost,
          size,
          run: (frame) => this.#transform(frame, condition, body),
        };
      }
      default: {
        const { type } = body;
        const made = type.kind === 'map' ? mapOf(type.key, type.value, size) : mapOf(DYN, DYN, size);
        return { type: made, cost, size, run: (frame) => this.#entries(frame, condition, body) };
      }
    }
  }

  /** Iterates over the elements. Before each step, it sets the variables to the next element. */
  *#steps(frame: Frame): Generator<Value> {
    const range = this.#target.run(frame);
    frame.budget.spend(this.#macro.name === 'exists_one' ? 2 : 1);
    const [slot = 0, second] = this.#slots;
    if (range instanceof CelMap) {
      for (const key of range.keys()) {
        const value = second === undefined ? null : (range.get(key) ?? null);
        // A null field of a structure is absent; other maps may contain nulls.
        frame.slots[slot] = key;
        if (second !== undefined) frame.slots[second] = value;
        yield key;
      }
      return;
    }
    if (!isList(range)) throw new EvaluationError('no such overload: not a list or map');
    let index = 0n;
    for (const item of range) {
      if (second === undefined) frame.slots[slot] = item;
      else {
        frame.slots[slot] = index;
        frame.slots[second] = item;
      }
      index += 1n;
      yield second === undefined ? item : (frame.slots[slot] as Value);
    }
  }

  #quantify(frame: Frame, predicate: Part, decisive: boolean): Value {
    let failed: EvaluationError | undefined;
    const goesOn = decisive ? 3 : 2;
    let decided = false;
    for (const _step of this.#steps(frame)) {
      // As upstream, the loop ends at the condition of the next step, so the cost of that condition is also charged.
      frame.budget.spend(decided ? goesOn : goesOn + 1);
      if (decided) break;
      try {
        const value = predicate.run(frame);
        if (value === decisive) {
          decided = true;
          continue;
        }
        if (typeof value !== 'boolean') throw new EvaluationError('no such overload');
      } catch (error) {
        if (!(error instanceof EvaluationError)) throw error;
        failed ??= error;
      }
    }
    if (!decided && failed !== undefined) throw failed;
    return decided ? decisive : !decisive;
  }

  #one(frame: Frame, predicate: Part): Value {
    let count = 0;
    for (const _step of this.#steps(frame)) {
      const found = isTrue(predicate.run(frame));
      frame.budget.spend(found ? 2 : 1);
      if (found) count += 1;
    }
    return count === 1;
  }

  #collect(frame: Frame, condition: Part | undefined, body: Part | undefined): Value {
    const found: Value[] = [];
    const adding = body === undefined ? ADDED + 1 : addingOf(body);
    for (const item of this.#steps(frame)) {
      const kept = condition === undefined || isTrue(condition.run(frame));
      frame.budget.spend(kept ? adding : 1);
      if (!kept) continue;
      found.push(body === undefined ? item : body.run(frame));
    }
    return found;
  }

  #sort(frame: Frame, key: Part): Value {
    const keyed: { item: Value; key: Value }[] = [];
    const adding = addingOf(key);
    for (const item of this.#steps(frame)) {
      frame.budget.spend(adding);
      keyed.push({ item, key: key.run(frame) });
    }
    frame.budget.spend(keyed.length * 8);
    return keyed.sort((a, b) => compareValues(a.key, b.key)).map(({ item }) => item);
  }

  #transform(frame: Frame, condition: Part | undefined, body: Part): Value {
    const made = new Map<MapKey, Value>();
    for (const key of this.#steps(frame)) {
      const kept = condition === undefined || isTrue(condition.run(frame));
      frame.budget.spend(kept ? INSERTED + 1 : 1);
      if (!kept) continue;
      made.set(mapKey(key), body.run(frame));
    }
    return new EntryMap(made);
  }

  #entries(frame: Frame, condition: Part | undefined, body: Part): Value {
    const made = new Map<MapKey, Value>();
    for (const _step of this.#steps(frame)) {
      const kept = condition === undefined || isTrue(condition.run(frame));
      frame.budget.spend(kept ? INSERTED : 1);
      if (!kept) continue;
      const entry = body.run(frame);
      if (!(entry instanceof CelMap)) throw new EvaluationError('no such overload');
      for (const key of entry.keys()) {
        if (made.has(key)) throw new EvaluationError(`insert failed: key ${String(key)} already exists`);
        made.set(key, entry.get(key) ?? null);
      }
    }
    return new EntryMap(made);
  }
}

function isTrue(value: Value): boolean {
  if (typeof value !== 'boolean') throw new EvaluationError('no such overload');
  return value;
}

function optionalMap(compiler: Compilation, macro: Macro): Part {
  const target = compiler.compile(macro.target);
  if (target.type.kind !== 'optional' && target.type.kind !== 'dyn') {
    return compiler.fail(
      macro.at,
      `found no matching overload for '${macro.name}' applied to '${formatType(target.type)}'`,
    );
  }
  const of = target.type.kind === 'optional' ? target.type.of : DYN;
  return compiler.within([[macro.vars[0] ?? '', of]], ([slot = 0]) => {
    const body = compiler.compile(macro.args[0] as Expr);
    const flat = macro.name === 'optFlatMap';
    return {
      type: flat ? body.type : optionalOf(body.type),
      cost: target.cost + body.cost + 1,
      size: body.size,
      run(frame) {
        const value = target.run(frame);
        if (!(value instanceof Optional)) throw new EvaluationError('no such overload');
        if (value.value === undefined) return Optional.NONE;
        frame.slots[slot] = value.value;
        const result = body.run(frame);
        return flat ? result : new Optional(result);
      },
    };
  });
}
