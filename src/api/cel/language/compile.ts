/**
 * Compiles an expression in one pass: resolves names, checks types and estimates the maximum cost. Sources: cel-spec
 * (checking, evaluation), cel-go's checker/cost.go and interpreter/runtimecost.go (costs).
 */

import type { Environment, Frame, Part, Program, Structure } from '../compiled-expression.ts';
import { celEqual } from '../equality.ts';
import { perCharacter, selectOverload, sizesOf } from '../functions.ts';
import { withBudget } from '../meter.ts';
import { BOOL, DYN, formatType, isAssignable, joinTypes, maxSize, type Type } from '../types.ts';
import { EvaluationError, keyOf, type Value } from '../values.ts';
import { CompileError, dottedName, type Expr, ProgramError } from './ast.ts';
import { compileIndex, compileSelect, typeName } from './compile-access.ts';
import { compileList, compileMap, compileStruct, constantType } from './compile-literals.ts';
import { compileMacro } from './compile-macro.ts';
import { constantFailure, literalProblem } from './literal-checks.ts';
import { parse } from './parser.ts';

interface Variable {
  readonly slot: number;
  readonly type: Type;
}

/**
 * Compiles an expression. Throws CompileError with all errors, or ProgramError for a valid expression that fails
 * whatever its variables are.
 */
export function compile(source: string, environment: Environment): Program {
  const compiler = new Compiler(source, environment);
  const part = compiler.compile(parse(source));
  if (compiler.issues.length > 0) throw new CompileError(source, compiler.issues);
  if (compiler.failure !== undefined) throw new ProgramError(compiler.failure);
  const { used, names, slots } = compiler;
  return {
    type: part.type,
    cost: part.cost,
    used,
    evaluate(value, budget) {
      const frame: Frame = { slots: new Array<Value>(slots).fill(null), budget };
      for (const [slot, name] of names.entries()) if (used.has(name)) frame.slots[slot] = value(name);
      return withBudget(budget, () => part.run(frame));
    },
  };
}

/**
 * Types whose values may have another type at run time. For example, times in a document without a schema are strings.
 */
const SEEN_LATER: ReadonlySet<Type['kind']> = new Set(['dyn', 'param', 'null', 'timestamp', 'duration']);

export class Compiler {
  readonly issues: { at: number; message: string }[] = [];
  readonly used = new Set<string>();
  /** Names of the environment's variables, by slot. */
  readonly names: string[] = [];
  readonly #environment: Environment;
  readonly #source: string;
  #scope = new Map<string, Variable>();
  #slots = 0;
  /** True inside arguments of string.format, which may have several types. */
  mixing = false;
  /** Reason why the expression always fails; undefined if it can succeed. */
  failure: string | undefined;

  constructor(source: string, environment: Environment) {
    this.#source = source;
    this.#environment = environment;
    for (const [name, type] of environment.variables) {
      this.#scope.set(name, { slot: this.#slots++, type });
      this.names.push(name);
    }
  }

  structure(name: string): Structure | undefined {
    return this.#environment.structure?.(name);
  }

  get slots(): number {
    return this.#slots;
  }

  fail(at: number, message: string): Part {
    if (this.issues.length < 16) this.issues.push({ at, message });
    return { type: DYN, cost: 0, size: 0, run: () => null };
  }

  /** Compiles with additional variables in scope. */
  within<T>(variables: readonly (readonly [string, Type])[], work: (slots: readonly number[]) => T): T {
    const outer = this.#scope;
    const slots: number[] = [];
    this.#scope = new Map(outer);
    for (const [name, type] of variables) {
      const slot = this.#slots++;
      slots.push(slot);
      this.#scope.set(name, { slot, type });
    }
    const result = work(slots);
    this.#scope = outer;
    return result;
  }

  compile(expr: Expr): Part {
    switch (expr.op) {
      case 'const':
        return {
          type: constantType(expr.value),
          cost: 0,
          size: typeof expr.value === 'string' ? expr.value.length : 1,
          run: () => expr.value,
          constant: expr.value,
          known: expr.value,
        };
      case 'ident':
        return this.#identifier(expr.name, expr.at);
      case 'select':
        return compileSelect(this, expr);
      case 'list':
        return compileList(this, expr);
      case 'map':
        return compileMap(this, expr);
      case 'struct':
        return compileStruct(this, expr);
      case 'macro':
        return compileMacro(this, expr);
      case 'call':
        return this.#call(expr);
    }
  }

  /** Returns the part that reads a variable. Names may contain dots (`authorizer.requestResource`). */
  variable(name: string): Part | undefined {
    const variable = this.#scope.get(name);
    if (variable === undefined) return undefined;
    this.used.add(name);
    const { slot, type } = variable;
    return {
      type,
      cost: 1,
      size: maxSize(type),
      isPlace: true,
      run(frame) {
        frame.budget.spend(1);
        return frame.slots[slot] as Value;
      },
    };
  }

  #identifier(name: string, at: number): Part {
    return (
      this.variable(name) ?? typeName(name) ?? this.fail(at, `undeclared reference to '${name}' (in container '')`)
    );
  }

  #call(expr: Extract<Expr, { op: 'call' }>): Part {
    const { name, at } = expr;
    if (expr.target !== undefined) {
      const namespace = dottedName(expr.target);
      const qualified = namespace === undefined ? undefined : `${namespace}.${name}`;
      const root = namespace?.split('.', 1)[0] ?? '';
      if (qualified !== undefined && !this.#scope.has(root) && this.#environment.functions.has(qualified)) {
        return this.#function(
          qualified,
          false,
          expr.args.map((each) => this.compile(each)),
          at,
          expr.args.map((each) => each.at),
        );
      }
    }
    const outer = this.mixing;
    this.mixing ||= name === 'format';
    const args = [...(expr.target === undefined ? [] : [expr.target]), ...expr.args].map((each) => this.compile(each));
    this.mixing = outer;
    switch (name) {
      case '_&&_':
      case '_||_':
        return this.#logical(
          name,
          args,
          expr.args.map((each) => each.at),
        );
      case '_?_:_':
        return this.#conditional(args, at);
      case '_==_':
      case '_!=_':
        return this.#equality(name === '_==_', args, at);
      case '_[_]':
      case '_[?_]':
        return compileIndex(this, name === '_[?_]', args, at);
      default:
        return this.#function(
          name,
          expr.target !== undefined,
          args,
          at,
          [...(expr.target === undefined ? [] : [expr.target]), ...expr.args].map((each) => each.at),
        );
    }
  }

  mismatch(name: string, args: readonly Part[], at: number, member = false): Part {
    const types = args.map((each) => formatType(each.type));
    const target = member ? `${types.shift()}.` : '';
    return this.fail(at, `found no matching overload for '${name}' applied to '${target}(${types.join(', ')})'`);
  }

  #logical(name: string, args: readonly Part[], places: readonly number[]): Part {
    const [left, right] = args as [Part, Part];
    for (const [index, { type }] of args.entries()) {
      if (!isBool(args[index] as Part))
        this.fail(places[index] ?? 0, `expected type 'bool' but found '${formatType(type)}'`);
    }
    // Value of an operand that determines the result alone: true for `||`, false for `&&`.
    const decisive = name === '_||_';
    const cost = left.cost + right.cost;
    return {
      type: BOOL,
      cost,
      size: 1,
      run(frame) {
        let failed: unknown;
        for (const part of [left, right]) {
          try {
            const value = part.run(frame);
            if (value === decisive) return decisive;
            if (typeof value !== 'boolean') throw new EvaluationError('no such overload');
          } catch (error) {
            if (!(error instanceof EvaluationError)) throw error;
            failed ??= error;
          }
        }
        if (failed !== undefined) throw failed;
        return !decisive;
      },
    };
  }

  #conditional(args: readonly Part[], at: number): Part {
    const [condition, then, otherwise] = args as [Part, Part, Part];
    const fits =
      isAssignable(then.type, otherwise.type, new Map()) || isAssignable(otherwise.type, then.type, new Map());
    if (!isBool(condition) || !fits) return this.mismatch('_?_:_', args, at);
    return {
      type: joinTypes(then.type, otherwise.type),
      cost: condition.cost + Math.max(then.cost, otherwise.cost),
      size: Math.max(then.size, otherwise.size),
      run(frame) {
        const value = condition.run(frame);
        if (typeof value !== 'boolean') throw new EvaluationError('no such overload');
        return value ? then.run(frame) : otherwise.run(frame);
      },
    };
  }

  #equality(positive: boolean, args: readonly Part[], at: number): Part {
    const [left, right] = args as [Part, Part];
    const fits = isAssignable(left.type, right.type, new Map()) || isAssignable(right.type, left.type, new Map());
    if (!fits) return this.mismatch(positive ? '_==_' : '_!=_', args, at);
    const own = (sizes: readonly number[]): number => perCharacter(Math.min(...sizes));
    return {
      type: BOOL,
      cost: left.cost + right.cost + own([left.size, right.size]),
      size: 1,
      run(frame) {
        const a = left.run(frame);
        const b = right.run(frame);
        frame.budget.spend(own(sizesOf([a, b])));
        return celEqual(a, b) === positive;
      },
    };
  }

  #function(name: string, member: boolean, args: readonly Part[], at: number, places: readonly number[]): Part {
    const { functions } = this.#environment;
    const found = functions.resolve(
      name,
      member,
      args.map((each) => each.type),
    );
    const [first] = found;
    if (first === undefined) {
      if (!functions.has(name)) return this.fail(at, `undeclared reference to '${name}' (in container '')`);
      return this.mismatch(name, args, at, member);
    }
    const literal = literalProblem(name, args, found, places, at);
    if (literal !== undefined) return this.fail(literal.at, literal.message);
    this.failure ??= constantFailure(name, args, found);
    const sizes = args.map((each) => each.size);
    const items = args.map(largestItem);
    const shortest = args.map(({ constant, size }) => (constant === undefined ? 0 : size));
    const own = Math.max(...found.map(({ overload }) => (overload.estimate ?? overload.cost)?.(sizes, items) ?? 1));
    const result = found.reduce((type, each) => joinTypes(type, each.result), first.result);
    const largest = Math.max(
      ...found.map(({ overload }) => overload.size?.(sizes, items, shortest) ?? Number.POSITIVE_INFINITY),
    );
    const sized = ['string', 'bytes', 'list', 'map'].includes(result.kind);
    const type = sized && result.max === undefined ? ({ ...result, max: largest } as Type) : result;
    const overloads = found.map(({ overload }) => overload);
    // The overload is chosen at compile time unless the type of an argument is known only at run time.
    const settled = found.length === 1 && args.every((each) => !SEEN_LATER.has(each.type.kind));
    const [only] = overloads;
    const among = name === '@in' ? membership(args) : undefined;
    if (among !== undefined)
      return { type, cost: args.reduce((sum, each) => sum + each.cost, own), size: 1, run: among };
    return {
      type,
      cost: args.reduce((sum, each) => sum + each.cost, own),
      size: sized ? largest : maxSize(type),
      run(frame) {
        const values = args.map((each) => each.run(frame));
        const overload = settled && only !== undefined ? only : selectOverload(name, overloads, values);
        frame.budget.spend(overload.cost?.(sizesOf(values)) ?? 1);
        return overload.run(values);
      },
    };
  }

  get source(): string {
    return this.#source;
  }
}

/** Membership test in a constant list. As upstream, it is a set lookup without comparison cost. */
function membership([item, list]: readonly Part[]): Part['run'] | undefined {
  if (item === undefined || !Array.isArray(list?.known)) return undefined;
  const known = list.known as readonly Value[];
  const keys = new Set(known.map(keyOf));
  if (keys.has(undefined)) return undefined;
  return known.length === 0
    ? () => false
    : (frame) => {
        const key = keyOf(item.run(frame));
        return key !== undefined && keys.has(key);
      };
}

/** Largest element of a list of strings. As upstream, elements of computed lists have an unknown size. */
function largestItem({ type, isPlace }: Part): number {
  if (type.kind !== 'list') return 1;
  if (isPlace === true) return maxSize(type.of);
  return type.of.kind === 'string' || type.of.kind === 'bytes' ? Number.POSITIVE_INFINITY : maxSize(type.of);
}

function isBool(part: Part): boolean {
  return part.type.kind === 'bool' || part.type.kind === 'dyn' || part.type.kind === 'param';
}
