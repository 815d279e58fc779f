/** Evaluates constraints written in CEL. Source: operator-framework/api pkg/constraints/cel.go. */

import { Budget, type Program } from '../../../../api/cel/compiled-expression.ts';
import { ANY_READER, fromJson } from '../../../../api/cel/documents.ts';
import { compile } from '../../../../api/cel/language/compile.ts';
import { constraintFunctions } from '../../../../api/cel/library/index.ts';
import { DYN, listOf, mapOf, STRING } from '../../../../api/cel/types.ts';
import type { JsonValue } from '../../../../api/meta/object.ts';
import { BoundedMap } from '../../../../base/bounded-map.ts';
import { messageOf } from '../../../../base/errors.ts';
import type { PropertyRules } from '../core/index.ts';

/** Cost limit of one evaluation. It equals upstream's limit for a CEL expression in the API server. */
const MAX_COST = 1_000_000;
const MAX_PROGRAMS = 256;
const PROPERTIES = listOf(mapOf(STRING, DYN));

type Compiled = { readonly program: Program } | { readonly mistake: string };

/**
 * Evaluates rules about the properties of operators. If a rule fails to compile or evaluate, no operator satisfies it.
 */
export class CelRules implements PropertyRules {
  readonly #compiled = new BoundedMap<string, Compiled>(MAX_PROGRAMS);
  /** Results by owner of the properties and rule. A search evaluates the same rules repeatedly. */
  readonly #outcomes = new WeakMap<object, Map<string, boolean>>();

  holds(rule: string, of: object, properties: () => readonly unknown[]): boolean {
    const known = this.#outcomes.get(of) ?? new Map<string, boolean>();
    this.#outcomes.set(of, known);
    let outcome = known.get(rule);
    if (outcome === undefined) {
      outcome = this.#evaluate(rule, properties());
      known.set(rule, outcome);
    }
    return outcome;
  }

  mistakeIn(rule: string): string | undefined {
    const compiled = this.#compile(rule);
    return 'mistake' in compiled ? compiled.mistake : undefined;
  }

  #evaluate(rule: string, properties: readonly unknown[]): boolean {
    const compiled = this.#compile(rule);
    if ('mistake' in compiled) return false;
    const value = fromJson(properties as JsonValue, ANY_READER);
    try {
      return compiled.program.evaluate(() => value, new Budget(MAX_COST)) === true;
    } catch {
      return false;
    }
  }

  #compile(rule: string): Compiled {
    let compiled = this.#compiled.get(rule);
    if (compiled !== undefined) return compiled;
    try {
      const variables = new Map([['properties', PROPERTIES]]);
      const program = compile(rule, { functions: constraintFunctions(), variables });
      compiled = program.type.kind === 'bool' ? { program } : { mistake: 'cel expressions must have type Bool' };
    } catch (error) {
      compiled = { mistake: messageOf(error).split('\n', 1)[0] ?? '' };
    }
    this.#compiled.set(rule, compiled);
    return compiled;
  }
}
