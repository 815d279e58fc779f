/**
 * Syntax of the comprehensions. Sources: cel-spec (macros), cel-go's ext/comprehensions.go and cel/library.go
 * (optionals).
 */

interface MacroForm {
  /** Number of arguments. The first `vars` arguments are names of variables. */
  readonly args: number;
  readonly vars: number;
}

const form = (args: number, vars: number): MacroForm => ({ args, vars });
const QUANTIFIER = [form(2, 1), form(3, 2)];
const TRANSFORMATION = [form(3, 2), form(4, 2)];

export const MACROS: ReadonlyMap<string, readonly MacroForm[]> = new Map([
  ['all', QUANTIFIER],
  ['exists', QUANTIFIER],
  ['exists_one', [form(2, 1)]],
  ['existsOne', [form(3, 2)]],
  ['map', [form(2, 1), form(3, 1)]],
  ['filter', [form(2, 1)]],
  ['sortBy', [form(2, 1)]],
  ['transformList', TRANSFORMATION],
  ['transformMap', TRANSFORMATION],
  ['transformMapEntry', TRANSFORMATION],
  ['optMap', [form(2, 1)]],
  ['optFlatMap', [form(2, 1)]],
]);
