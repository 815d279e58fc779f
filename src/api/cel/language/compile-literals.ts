/** Compiles literals: constants, lists, maps and messages. */

import type { Compilation, Part } from '../compiled-expression.ts';
import { BOOL, formatType, INT, isAssignable, joinTypes, listOf, mapOf, sameType, type Type } from '../types.ts';
import { EntryMap, keyOf, type MapKey, mapKey, Optional, StructValue, Uint, type Value } from '../values.ts';
import type { Expr } from './ast.ts';

/** Cost of creating a value. Source: cel-go's common/cost.go. */
const LIST_COST = 10;
const MAP_COST = 30;
const STRUCT_COST = 40;

export function constantType(value: Value): Type {
  switch (typeof value) {
    case 'string':
      return { kind: 'string', max: value.length };
    case 'boolean':
      return BOOL;
    case 'bigint':
      return INT;
    case 'number':
      return { kind: 'double' };
    default:
      if (value === null) return { kind: 'null' };
      return value instanceof Uint ? { kind: 'uint' } : { kind: 'bytes', max: (value as Uint8Array).length };
  }
}

/**
 * Reports an error if elements of a literal have different types, which only arguments of string.format may have.
 * Source: cel-go's cel/validator.go (ValidateHomogeneousAggregateLiterals).
 */
function checkAlike(compiler: Compilation, items: readonly { readonly type: Type; readonly at: number }[]): void {
  const [first, ...rest] = items;
  if (first === undefined || compiler.mixing) return;
  const odd = rest.find(({ type }) => !sameType(first.type, type));
  if (odd !== undefined)
    compiler.fail(odd.at, `expected type '${formatType(first.type)}' but found '${formatType(odd.type)}'`);
}

export function compileList(compiler: Compilation, expr: Extract<Expr, { op: 'list' }>): Part {
  const items = expr.items.map(({ value, optional }) => ({ part: compiler.compile(value), optional }));
  const itemTypes = items.map(({ part, optional }) =>
    optional && part.type.kind === 'optional' ? part.type.of : part.type,
  );
  const placed = itemTypes.map((type, index) => ({ type, at: expr.items[index]?.value.at ?? expr.at }));
  checkAlike(compiler, placed);
  const [first, ...rest] = itemTypes;
  const of: Type = first === undefined ? { kind: 'param', name: '_' } : rest.reduce(joinTypes, first);
  const shared = {
    type: listOf(of, items.length),
    items: placed,
    cost: items.reduce((sum, { part }) => sum + part.cost, LIST_COST),
    size: items.length,
  };
  // A constant list is created at compile time and has no cost, as in upstream.
  const known = items.every(({ part, optional }) => !optional && part.known !== undefined);
  if (known) {
    const values = items.map(({ part }) => part.known as Value);
    return { ...shared, known: values, run: () => values };
  }
  return {
    ...shared,
    run(frame) {
      frame.budget.spend(LIST_COST);
      const values: Value[] = [];
      for (const { part, optional } of items) {
        const value = part.run(frame);
        if (!optional) values.push(value);
        else if (value instanceof Optional && value.value !== undefined) values.push(value.value);
      }
      return values;
    },
  };
}

export function compileMap(compiler: Compilation, expr: Extract<Expr, { op: 'map' }>): Part {
  const entries = expr.entries.map(({ key, value, optional }) => ({
    key: compiler.compile(key),
    value: compiler.compile(value),
    optional,
  }));
  const [first, ...rest] = entries;
  const plain = ({ value, optional }: (typeof entries)[number]): Type =>
    optional && value.type.kind === 'optional' ? value.type.of : value.type;
  const places = expr.entries;
  checkAlike(
    compiler,
    entries.map((each, index) => ({ type: each.key.type, at: places[index]?.key.at ?? expr.at })),
  );
  checkAlike(
    compiler,
    entries.map((each, index) => ({ type: plain(each), at: places[index]?.value.at ?? expr.at })),
  );
  const empty: Type = { kind: 'param', name: '_' };
  const key = first === undefined ? empty : rest.reduce((type, each) => joinTypes(type, each.key.type), first.key.type);
  const value = first === undefined ? empty : rest.reduce((type, each) => joinTypes(type, plain(each)), plain(first));
  const shared = {
    type: mapOf(key, value, entries.length),
    cost: entries.reduce((sum, each) => sum + each.key.cost + each.value.cost, MAP_COST),
    size: entries.length,
  };
  const known = knownMap(entries);
  if (known !== undefined) return { ...shared, known, run: () => known };
  return {
    ...shared,
    run(frame) {
      frame.budget.spend(MAP_COST);
      const made = new Map<MapKey, Value>();
      for (const each of entries) {
        const name = mapKey(each.key.run(frame));
        const content = each.value.run(frame);
        if (!each.optional) made.set(name, content);
        else if (content instanceof Optional && content.value !== undefined) made.set(name, content.value);
      }
      return new EntryMap(made);
    },
  };
}

/** The constant value of a map. Undefined if a part is not constant or cannot be a key. */
function knownMap(
  entries: readonly { readonly key: Part; readonly value: Part; readonly optional: boolean }[],
): Value | undefined {
  const made = new Map<MapKey, Value>();
  for (const { key, value, optional } of entries) {
    if (optional || key.known === undefined || value.known === undefined) return undefined;
    const name = keyOf(key.known);
    if (name === undefined) return undefined;
    made.set(name, value.known);
  }
  return new EntryMap(made);
}

export function compileStruct(compiler: Compilation, expr: Extract<Expr, { op: 'struct' }>): Part {
  const structure = compiler.structure(expr.name);
  if (structure === undefined) {
    return compiler.fail(expr.at, `undeclared reference to '${expr.name}' (in container '')`);
  }
  const fields = expr.fields.map(({ name, value, optional, at }) => {
    const part = compiler.compile(value);
    const declared = structure.fields.get(name);
    if (declared === undefined) compiler.fail(at, `undefined field '${name}'`);
    else {
      const given = optional && part.type.kind === 'optional' ? part.type.of : part.type;
      if (!isAssignable(declared, given, new Map())) {
        compiler.fail(
          at,
          `expected type of field '${name}' is '${formatType(declared)}' but provided type is '${formatType(given)}'`,
        );
      }
    }
    return { name, part, optional };
  });
  return {
    type: structure,
    cost: fields.reduce((sum, { part }) => sum + part.cost, STRUCT_COST),
    size: 1,
    run(frame) {
      frame.budget.spend(STRUCT_COST);
      const made = new Map<string, Value>();
      for (const { name, part, optional } of fields) {
        const value = part.run(frame);
        if (!optional) made.set(name, value);
        else if (value instanceof Optional && value.value !== undefined) made.set(name, value.value);
      }
      return new StructValue(structure.name, made);
    },
  };
}
