/** Compiles access to fields, map keys and list elements, and names of types, which look like field access. */

import type { Compilation, Part } from '../compiled-expression.ts';
import { BOOL, DYN, formatType, INT, isAssignable, maxSize, optionalOf, STRING, TYPE, type Type } from '../types.ts';
import { CelMap, EvaluationError, isList, keyOf, Optional, TypeValue, type Value } from '../values.ts';
import { dottedName, type Expr } from './ast.ts';

const TYPE_NAMES: ReadonlyMap<string, string> = new Map([
  ...['bool', 'int', 'uint', 'double', 'string', 'bytes', 'list', 'map', 'type'].map((name): [string, string] => [
    name,
    name,
  ]),
  ['null_type', 'null'],
  ['optional_type', 'optional'],
  ['google.protobuf.Timestamp', 'timestamp'],
  ['google.protobuf.Duration', 'duration'],
]);

/** Returns the compiled part for the name of a type; undefined if the name is not a type. */
export function typeName(name: string): Part | undefined {
  const type = TYPE_NAMES.get(name);
  if (type === undefined) return undefined;
  const value = new TypeValue(type);
  return { type: TYPE, cost: 1, size: 1, run: () => value };
}

export function compileSelect(compiler: Compilation, expr: Extract<Expr, { op: 'select' }>): Part {
  const name = expr.test || expr.optional ? undefined : dottedName(expr);
  const qualified = name === undefined ? undefined : (compiler.variable(name) ?? typeName(name));
  if (qualified !== undefined) return qualified;
  const target = compiler.compile(expr.target);
  const { field, at } = expr;
  const inner = target.type.kind === 'optional' ? target.type.of : target.type;
  let type: Type = DYN;
  if (inner.kind === 'object') {
    const known = inner.fields.get(field);
    if (known === undefined) return compiler.fail(at, `undefined field '${field}'`);
    type = known;
  } else if (inner.kind === 'map') {
    if (!isAssignable(inner.key, STRING, new Map()))
      return compiler.fail(at, `type '${formatType(inner)}' does not support field selection`);
    type = inner.value;
  } else if (inner.kind === 'opaque') return compiler.fail(at, `unexpected failed resolution of '${inner.name}'`);
  else if (inner.kind !== 'dyn')
    return compiler.fail(at, `type '${formatType(inner)}' does not support field selection`);
  if (expr.test) {
    return {
      type: BOOL,
      cost: target.cost,
      size: 1,
      run(frame) {
        const value = target.run(frame);
        const object = value instanceof Optional ? (value.value ?? null) : value;
        if (value instanceof Optional && value.value === undefined) return false;
        if (isList(object)) throw new EvaluationError("unsupported index type 'string' in list");
        // A value without fields, such as null, does not have this field.
        return object instanceof CelMap && object.get(field) !== undefined;
      },
    };
  }
  const cost = target.cost + 1;
  const optional = expr.optional || target.type.kind === 'optional';
  return {
    type: optional && type.kind !== 'optional' ? optionalOf(type) : type,
    cost,
    size: maxSize(type),
    ...(target.isPlace === true ? { isPlace: true } : {}),
    run(frame) {
      const value = target.run(frame);
      frame.budget.spend(1);
      if (optional || value instanceof Optional) {
        const object = value instanceof Optional ? value.value : value;
        const found = object instanceof CelMap ? object.get(field) : undefined;
        return found === undefined ? Optional.NONE : new Optional(found);
      }
      const found = value instanceof CelMap ? value.get(field) : undefined;
      if (found === undefined) throw new EvaluationError(`no such key: ${field}`);
      return found;
    },
  };
}

export function compileIndex(compiler: Compilation, optional: boolean, args: readonly Part[], at: number): Part {
  const [target, index] = args as [Part, Part];
  const inner = target.type.kind === 'optional' ? target.type.of : target.type;
  let type: Type = DYN;
  if (inner.kind === 'list') {
    if (!isAssignable(INT, index.type, new Map())) return compiler.mismatch('_[_]', args, at);
    type = inner.of;
  } else if (inner.kind === 'map') {
    if (!isAssignable(inner.key, index.type, new Map())) return compiler.mismatch('_[_]', args, at);
    type = inner.value;
  } else if (inner.kind !== 'dyn') return compiler.mismatch('_[_]', args, at);
  const shows = optional || target.type.kind === 'optional';
  return {
    type: shows ? optionalOf(type) : type,
    cost: target.cost + index.cost + 1,
    size: maxSize(type),
    ...(target.isPlace === true ? { isPlace: true } : {}),
    run(frame) {
      const object = target.run(frame);
      const key = index.run(frame);
      frame.budget.spend(1);
      const holder = object instanceof Optional ? object.value : object;
      const found = holder === undefined ? undefined : lookUp(holder, key);
      if (shows || object instanceof Optional) return found === undefined ? Optional.NONE : new Optional(found);
      if (found === undefined) {
        throw new EvaluationError(
          holder !== undefined && isList(holder)
            ? `index out of bounds: ${String(keyOf(key) ?? '')}`
            : `no such key: ${String(keyOf(key) ?? '')}`,
        );
      }
      return found;
    },
  };
}

function lookUp(holder: Value, key: Value): Value | undefined {
  const name = keyOf(key);
  if (holder instanceof CelMap) return name === undefined ? undefined : holder.get(name);
  if (!isList(holder)) throw new EvaluationError('no such overload');
  if (typeof name !== 'bigint') throw new EvaluationError('unsupported index type');
  return name < 0n || name >= BigInt(holder.length) ? undefined : holder.at(Number(name));
}
