/** Syntax tree of an expression. */
import type { Value } from '../values.ts';

export type Expr =
  | { readonly op: 'const'; readonly at: number; readonly value: Value }
  | { readonly op: 'ident'; readonly at: number; readonly name: string }
  /** Selection of a field. `test`: the selection is the argument of has(). `optional`: the operator is `.?`. */
  | {
      readonly op: 'select';
      readonly at: number;
      readonly target: Expr;
      readonly field: string;
      readonly test: boolean;
      readonly optional: boolean;
    }
  | {
      readonly op: 'call';
      readonly at: number;
      readonly name: string;
      readonly target: Expr | undefined;
      readonly args: readonly Expr[];
    }
  | {
      readonly op: 'list';
      readonly at: number;
      readonly items: readonly { readonly value: Expr; readonly optional: boolean }[];
    }
  | {
      readonly op: 'map';
      readonly at: number;
      readonly entries: readonly { readonly key: Expr; readonly value: Expr; readonly optional: boolean }[];
    }
  /** Construction of a message: `Object.spec{replicas: 3}`. `at` of a field is the position of its name. */
  | {
      readonly op: 'struct';
      readonly at: number;
      readonly name: string;
      readonly fields: readonly FieldInit[];
    }
  /** A comprehension, such as `target.all(x, …)`, with one or two variables. */
  | {
      readonly op: 'macro';
      readonly at: number;
      readonly name: MacroName;
      readonly target: Expr;
      readonly vars: readonly string[];
      readonly args: readonly Expr[];
    };

export interface FieldInit {
  readonly at: number;
  readonly name: string;
  readonly value: Expr;
  readonly optional: boolean;
}

/** The text `a.b.c` of a chain of plain selections. */
export function dottedName(expr: Expr): string | undefined {
  if (expr.op === 'ident') return expr.name;
  if (expr.op !== 'select' || expr.test || expr.optional) return undefined;
  const target = dottedName(expr.target);
  return target === undefined ? undefined : `${target}.${expr.field}`;
}

export type MacroName =
  | 'all'
  | 'exists'
  | 'exists_one'
  | 'map'
  | 'filter'
  | 'sortBy'
  | 'transformList'
  | 'transformMap'
  | 'transformMapEntry'
  | 'optMap'
  | 'optFlatMap';

/** Syntax or type error. The message shows the position. */
export class CompileError extends Error {
  override readonly name = 'CompileError';
  constructor(source: string, found: readonly { readonly at: number; readonly message: string }[]) {
    super(
      found
        .toSorted((a, b) => a.at - b.at)
        .map(({ at, message }) => located(source, at, message))
        .join('\n'),
    );
  }
}

/** A valid expression that fails whatever its variables are. */
export class ProgramError extends Error {
  override readonly name = 'ProgramError';
}

function located(source: string, at: number, message: string): string {
  const start = source.lastIndexOf('\n', at - 1) + 1;
  const line = source.slice(0, at).split('\n').length;
  const end = source.indexOf('\n', at);
  const text = source.slice(start, end < 0 ? undefined : end).slice(0, 1024);
  const column = at - start;
  return `ERROR: <input>:${line}:${column + 1}: ${message}\n | ${text}\n | ${'.'.repeat(Math.min(column, 1024))}^`;
}
