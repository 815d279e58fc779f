/** Declaration, resolution and calls of functions. */
import { type Bindings, isAssignable, parseType, splitTypes, substituteTypes, type Type } from './types.ts';
import { EvaluationError, sizeOf, typeOf, type Value } from './values.ts';

export interface Overload {
  readonly name: string;
  /** True for methods, whose receiver is the first parameter. */
  readonly member: boolean;
  readonly params: readonly Type[];
  readonly result: Type;
  run(args: readonly Value[]): Value;
  /** Cost in addition to the call itself, by the sizes of the arguments. */
  cost?(sizes: readonly number[]): number;
  /**
   * Upstream's estimate of the cost, if it differs from the actual cost. `items`: largest sizes of the elements of list
   * arguments.
   */
  estimate?(sizes: readonly number[], items: readonly number[]): number;
  /** Largest size of the result, by the largest and the smallest sizes of the arguments. Default: unknown. */
  size?(sizes: readonly number[], items: readonly number[], shortest: readonly number[]): number;
}

export interface Costs {
  readonly cost?: (sizes: readonly number[]) => number;
  readonly estimate?: (sizes: readonly number[], items: readonly number[]) => number;
  readonly size?: (sizes: readonly number[], items: readonly number[], shortest: readonly number[]) => number;
}

/** Upstream's cost of traversing a string of `characters` once. */
export const perCharacter = (characters: number): number => Math.ceil(characters * 0.1);
/** Costs of a function that traverses its first argument once. */
export const COST_PER_CHARACTER: Costs = { cost: ([first = 0]) => perCharacter(first) };
/** Multiplies sizes. Zero times infinity is zero. */
export const times = (count: number, each: number): number => (count === 0 || each === 0 ? 0 : count * each);
/** Costs of a function that visits every element of its first argument. */
export const COST_PER_ELEMENT: Costs = { cost: ([first = 0]) => first };

type Run<Args extends readonly Value[]> = { run(...args: Args): Value }['run'];

/**
 * Declares an overload by its signature: a method `string.startsWith(string): bool` or a function `size(list<A>): int`.
 */
export function declareFunction<Args extends readonly Value[]>(
  signature: string,
  run: Run<Args>,
  costs: Costs = {},
): Overload {
  const match = /^(?:(.+?)\.)?([@\w!?:[\]<>=+\-*/%]+)\((.*)\): (.+)$/.exec(signature);
  if (match === null) throw new Error(`not a signature: ${signature}`);
  const [, target, name = '', params = '', result = ''] = match;
  const types = splitTypes(params).map(parseType);
  return {
    name,
    member: target !== undefined,
    params: target === undefined ? types : [parseType(target), ...types],
    result: parseType(result),
    run: (args) => run(...(args as Args)),
    ...costs,
  };
}

/** Like `declareFunction`, for a function in a namespace: for `math.abs`, the namespace is `math`. */
export function declareIn<Args extends readonly Value[]>(
  namespace: string,
  signature: string,
  run: Run<Args>,
  costs: Costs = {},
): Overload {
  const overload = declareFunction(signature, run, costs);
  return { ...overload, name: `${namespace}.${overload.name}` };
}

export class FunctionTable {
  readonly #byName = new Map<string, Overload[]>();

  constructor(libraries: readonly (readonly Overload[])[]) {
    for (const library of libraries) {
      for (const overload of library) {
        const known = this.#byName.get(overload.name);
        if (known === undefined) this.#byName.set(overload.name, [overload]);
        else known.push(overload);
      }
    }
  }

  has(name: string): boolean {
    return this.#byName.has(name);
  }

  /** The overloads that match the argument types, with their result type. */
  resolve(
    name: string,
    member: boolean,
    args: readonly Type[],
  ): { readonly overload: Overload; readonly result: Type }[] {
    const found: { overload: Overload; result: Type }[] = [];
    for (const overload of this.#byName.get(name) ?? []) {
      if (overload.member !== member || overload.params.length !== args.length) continue;
      const bindings: Bindings = new Map();
      if (overload.params.every((param, index) => isAssignable(param, args[index] as Type, bindings))) {
        found.push({ overload, result: substituteTypes(overload.result, bindings) });
      }
    }
    return found;
  }
}

/** The overload that matches the actual values. Throws EvaluationError if there is none. */
export function selectOverload(name: string, overloads: readonly Overload[], args: readonly Value[]): Overload {
  for (const overload of overloads) {
    if (overload.params.every((param, index) => fits(param, args[index] as Value))) return overload;
  }
  // Upstream's message for operators does not name the operator.
  const what = /^\W?_|^@/.test(name) ? '' : `: ${name}(${args.map(typeOf).join(', ')})`;
  throw new EvaluationError(`no such overload${what}`);
}

function fits(param: Type, value: Value): boolean {
  const actual = typeOf(value);
  switch (param.kind) {
    case 'dyn':
    case 'param':
      return true;
    case 'object':
      return actual === 'map';
    case 'opaque':
      return actual === param.name;
    default:
      return actual === param.kind;
  }
}

export function sizesOf(args: readonly Value[]): number[] {
  return args.map(sizeOf);
}
