/**
 * Validation rules of a schema (x-kubernetes-validations). They are compiled and their cost is estimated when a
 * definition is written, and evaluated when an object is written. Source:
 * k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel, KEP-2876.
 */

import { messageOf } from '../../base/errors.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { Schema, ValidationRule } from '../structural/schema.ts';
import type { Program } from './compiled-expression.ts';
import { ProgramError } from './language/ast.ts';
import { compile } from './language/compile.ts';
import { standardFunctions } from './library/index.ts';
import { maxItems, maxProperties, typeOfSchema } from './schema.ts';
import { optionalOf, type Type } from './types.ts';

/** Limits of the estimated cost of one rule and of all rules of a schema. */
const MAX_RULE_COST = 10_000_000;
const MAX_SCHEMA_COST = 100_000_000;
/** Number of the most expensive rules to report. */
const MAX_NAMED = 4;
const ADVICE =
  '(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)';

export interface CompiledRule {
  readonly rule: ValidationRule;
  readonly program: Program;
  readonly message: Program | undefined;
  /** True if the rule uses `oldSelf`. */
  readonly transition: boolean;
}

/** Rules of a schema node and its children. Nodes without rules are omitted. */
export interface RuleNode {
  readonly schema: Schema;
  readonly resource: boolean;
  readonly rules: readonly CompiledRule[];
  readonly properties: ReadonlyMap<string, RuleNode>;
  readonly additional: RuleNode | undefined;
  readonly items: RuleNode | undefined;
}

export class Compilation {
  readonly found: FieldError[] = [];
  readonly #sound: (path: string) => boolean;
  #total = 0;
  readonly #costly: { readonly at: string; readonly cost: number }[] = [];

  /**
   * `sound` reports whether a path, and all paths below it, have a valid schema. Rules of invalid schemas are not
   * compiled.
   */
  constructor(sound: (path: string) => boolean = () => true) {
    this.#sound = sound;
  }

  /**
   * Compiles the rules of a schema node and its children. `times`: maximum number of values of this node in one
   * document. `fixed`: path of the enclosing list whose items cannot be matched with their old values; undefined if
   * there is none.
   */
  node(
    schema: Schema,
    path: string,
    resource: boolean,
    times: number,
    fixed: string | undefined,
  ): RuleNode | undefined {
    const judged = schema.rules.length > 0 && this.#sound(path) ? schema.rules : [];
    const rules = judged.flatMap((rule, index) => {
      const compiled = this.#rule(schema, rule, `${path}.x-kubernetes-validations[${index}]`, resource, times, fixed);
      return compiled === undefined ? [] : [compiled];
    });
    const properties = new Map<string, RuleNode>();
    for (const [name, property] of schema.properties) {
      const below = this.node(property, `${path}.properties[${name}]`, property.embedded, times, fixed);
      if (below !== undefined) properties.set(name, below);
    }
    const { additional, items } = schema;
    const values =
      typeof additional === 'object'
        ? this.node(
            additional,
            `${path}.additionalProperties`,
            additional.embedded,
            times * maxProperties(schema),
            fixed,
          )
        : undefined;
    const unkeyed = schema.listType === 'map' ? fixed : (fixed ?? path);
    const each =
      items === undefined
        ? undefined
        : this.node(items, `${path}.items`, items.embedded, times * maxItems(schema), unkeyed);
    if (rules.length === 0 && properties.size === 0 && values === undefined && each === undefined) return undefined;
    return { schema, resource, rules, properties, additional: values, items: each };
  }

  #rule(
    schema: Schema,
    rule: ValidationRule,
    at: string,
    resource: boolean,
    times: number,
    fixed: string | undefined,
  ): CompiledRule | undefined {
    const self = typeOfSchema(schema, resource);
    if (self === undefined || rule.rule.trim() === '') {
      if (self === undefined && !this.found.some(({ field }) => at.startsWith(`${field}[`)))
        this.found.push({
          type: 'InternalError',
          field: at.replace(/\[\d+\]$/, ''),
          message:
            'Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations',
        });
      return undefined;
    }
    const variables = new Map<string, Type>([
      ['self', self],
      ['oldSelf', rule.optionalOldSelf === true ? optionalOf(self) : self],
    ]);
    const program = this.#program(rule.rule, `${at}.rule`, variables, times, 'bool', shownRule(rule));
    const message =
      rule.messageExpression.trim() === ''
        ? undefined
        : program === undefined
          ? undefined
          : this.#program(rule.messageExpression, `${at}.messageExpression`, variables, 1, 'string', shownRule(rule));
    const transition = program?.used.has('oldSelf') === true;
    if (transition && fixed !== undefined) {
      this.found.push(
        fieldError.invalid(
          `${at}.rule`,
          rule.rule,
          `oldSelf cannot be used on the uncorrelatable portion of the schema within ${fixed}`,
        ),
      );
    }
    if (rule.optionalOldSelf !== undefined && !transition) {
      this.found.push(
        fieldError.invalid(
          `${at}.optionalOldSelf`,
          rule.optionalOldSelf,
          'may not be set if oldSelf is not used in rule',
        ),
      );
    }
    return program === undefined ? undefined : { rule, program, message, transition };
  }

  #program(
    source: string,
    at: string,
    variables: ReadonlyMap<string, Type>,
    times: number,
    expected: 'bool' | 'string',
    shown: unknown,
  ): Program | undefined {
    try {
      const program = compile(source, { functions: standardFunctions(), variables });
      if (program.type.kind !== expected) {
        const what =
          expected === 'bool'
            ? 'cel expression must evaluate to a bool'
            : 'messageExpression must evaluate to a string';
        this.found.push(fieldError.invalid(at, shown, what));
        return undefined;
      }
      this.#weigh(
        at,
        program.cost * times,
        expected === 'bool' ? 'estimated rule cost' : 'estimated messageExpression cost',
      );
      return program;
    } catch (error) {
      const what = error instanceof ProgramError ? 'program instantiation failed' : 'compilation failed';
      const prefix = expected === 'bool' ? what : `messageExpression ${what.replace('program ', '')}`;
      this.found.push(fieldError.invalid(at, shown, `${prefix}: ${messageOf(error)}`));
      return undefined;
    }
  }

  #weigh(at: string, cost: number, what: string): void {
    this.#total += cost;
    this.#costly.push({ at, cost });
    if (cost > MAX_RULE_COST) {
      this.found.push(
        fieldError.forbidden(at, `${what} exceeds budget by factor of ${factor(cost / MAX_RULE_COST)} ${ADVICE}`),
      );
    }
  }

  /** Reports an error if the total cost of all rules is too high. Call it after all nodes are compiled. */
  weighAll(path: string): void {
    if (this.#total <= MAX_SCHEMA_COST) return;
    const costly = this.#costly.filter(({ cost }) => cost >= MAX_SCHEMA_COST / 100).sort((a, b) => b.cost - a.cost);
    for (const { at } of costly.slice(0, MAX_NAMED)) {
      this.found.push(
        fieldError.forbidden(
          at,
          'contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema',
        ),
      );
    }
    this.found.push(
      fieldError.forbidden(
        path,
        `x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of ${factor(this.#total / MAX_SCHEMA_COST)} ${ADVICE}`,
      ),
    );
  }
}

/** A rule in upstream's form for error messages. */
const shownRule = (rule: ValidationRule): unknown => ({
  Rule: rule.rule,
  Message: rule.message,
  MessageExpression: rule.messageExpression,
  Reason: rule.reason ?? null,
  FieldPath: rule.fieldPath,
  OptionalOldSelf: rule.optionalOldSelf ?? null,
});

function factor(times: number): string {
  if (times > 100) return 'more than 100x';
  return `${times.toFixed(times < 1.5 ? 6 : 1)}x`;
}

export function validateRules(schema: Schema, path: string, sound?: (path: string) => boolean): FieldError[] {
  const compilation = new Compilation(sound);
  compilation.node(schema, path, true, 1, undefined);
  compilation.weighAll(path);
  return compilation.found;
}
