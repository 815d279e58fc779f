/**
 * Evaluates the validation rules of a schema for an object. Source:
 * k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
 */

import { messageOf } from '../../base/errors.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { resolveFieldPath } from '../structural/field-path.ts';
import { fieldOf, isObject, type Schema, type ValidationRule } from '../structural/schema.ts';
import { correlated, isUnchanged } from '../structural/validate.ts';
import { Budget, TURN_COST } from './compiled-expression.ts';
import { fromJson } from './documents.ts';
import { readerOf } from './schema.ts';
import { Compilation, type CompiledRule, type RuleNode } from './validation-rules.ts';
import { BudgetError, Optional, type Value } from './values.ts';

/** Limits of the actual cost of one evaluation and of all evaluations for one write. */
const MAX_CALL_COST = 1_000_000;
const MAX_WRITE_COST = 10_000_000;
/** Cost limit of a message expression, which is evaluated in the same turn as the failed rule. */
const MAX_MESSAGE_COST = 250_000;

/**
 * Returns the evaluator of a schema's rules. Rules that do not compile are skipped, because they were rejected on
 * write. The evaluation yields after each turn, so that it does not block the event loop.
 */
export function rulesOf(
  schema: Schema,
): (object: JsonObject, old: JsonObject | undefined) => Generator<undefined, FieldError[]> | undefined {
  const root = new Compilation().node(schema, '', true, 1, undefined);
  if (root === undefined) return () => undefined;
  return function* judge(object, old) {
    const run = new Run();
    yield* run.node(root, object, old, '');
    return run.found;
  };
}

/**
 * Evaluates the rules for the defaults of a schema, as for new objects. Schemas below `additionalProperties` are
 * skipped.
 */
export function evaluateDefaults(schema: Schema, path: string): FieldError[] {
  const found: FieldError[] = [];
  if (schema.default !== undefined) {
    const root = new Compilation().node(schema, '', schema.embedded, 1, undefined);
    const run = new Run();
    const at = `${path}.default`;
    if (root !== undefined) for (const _turn of run.node(root, schema.default, undefined, at));
    found.push(...run.found);
  }
  if (schema.items !== undefined) found.push(...evaluateDefaults(schema.items, `${path}.items`));
  for (const [name, property] of schema.properties)
    found.push(...evaluateDefaults(property, `${path}.properties[${name}]`));
  return found;
}

const OUT_OF_BUDGET = 'validation failed due to running out of cost budget, no further validation rules will be run';

/** Field path of a rule's error. '' if the rule declares no field path, or one that upstream would reject today. */
function fieldBelow(schema: Schema, fieldPath: string): string {
  if (fieldPath === '') return '';
  try {
    return resolveFieldPath(schema, fieldPath, { brackets: true }).text;
  } catch {
    return '';
  }
}

class Run {
  readonly found: FieldError[] = [];
  #left = MAX_WRITE_COST;
  #lastTurn = MAX_WRITE_COST;

  *node(node: RuleNode, value: JsonValue, old: JsonValue | undefined, path: string): Generator<undefined, void> {
    if (this.#left < 0 || value === null) return;
    for (const rule of node.rules) {
      this.#rule(node, rule, value, old, path);
      if (this.#lastTurn - this.#left < TURN_COST) continue;
      this.#lastTurn = this.#left;
      yield;
    }
    if (Array.isArray(value)) {
      if (node.items === undefined) return;
      const before = correlated(node.schema, old);
      for (const [index, item] of value.entries())
        yield* this.node(node.items, item, before(item), `${path}[${index}]`);
    } else if (isObject(value)) {
      const before = isObject(old) ? old : undefined;
      for (const name of Object.keys(value)) {
        const below = node.properties.get(name) ?? node.additional;
        if (below === undefined) continue;
        const was = before === undefined ? undefined : fieldOf(before, name);
        const property = path === '' ? name : `${path}.${name}`;
        const at = node.properties.has(name) ? property : `${path}[${name}]`;
        yield* this.node(below, value[name] ?? null, node.schema.mapType === 'atomic' ? undefined : was, at);
      }
    }
  }

  #rule(node: RuleNode, compiled: CompiledRule, value: JsonValue, old: JsonValue | undefined, path: string): void {
    const { rule, program, transition } = compiled;
    if (this.#left < 0) return;
    const was = old === null ? undefined : old;
    if (transition) {
      if (was === undefined && rule.optionalOldSelf !== true) return;
    } else if (was !== undefined && isUnchanged(node.schema, value, was)) return;
    const { type } = node.schema;
    const field = path === '' ? '<nil>' : path;
    const wrong = (what: string): void => void this.found.push(fieldError.invalid(field, type, what));
    const budget = new Budget(Math.min(MAX_CALL_COST, this.#left));
    const started = budget.left;
    const shown = rule.message === '' ? rule.rule.trim() : rule.message.trim();
    try {
      if (program.evaluate((name) => this.#variable(name, node, rule, value, was), budget) !== true) {
        this.#failed(node, compiled, value, was, path);
      }
    } catch (error) {
      const what = messageOf(error);
      if (error instanceof BudgetError) {
        const all = this.#left <= MAX_CALL_COST;
        wrong(
          all
            ? OUT_OF_BUDGET
            : `'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: ${shown}`,
        );
        this.#left = -1;
        return;
      }
      wrong(
        what.startsWith('no such overload')
          ? `'${what}': call arguments did not match a supported operator, function or macro signature for rule: ${shown}`
          : `${what} evaluating rule: ${shown}`,
      );
    }
    this.#left -= started - Math.max(0, budget.left);
  }

  #variable(name: string, node: RuleNode, rule: ValidationRule, value: JsonValue, old: JsonValue | undefined): Value {
    const reader = readerOf(node.schema, node.resource);
    if (name !== 'oldSelf') return fromJson(value, reader);
    const was = old === undefined ? undefined : fromJson(old, reader);
    return rule.optionalOldSelf === true ? new Optional(was) : (was ?? null);
  }

  #failed(node: RuleNode, compiled: CompiledRule, value: JsonValue, old: JsonValue | undefined, path: string): void {
    const { rule } = compiled;
    const message = this.#message(node, compiled, value, old);
    const below = fieldBelow(node.schema, rule.fieldPath);
    const at = below === '' || path === '' ? `${path}${below}` : `${path}.${below}`;
    const field = at === '' ? '<nil>' : at;
    // Structures and lists are not shown in the error.
    const shown = typeof value === 'object' ? undefined : value;
    switch (rule.reason) {
      case 'FieldValueForbidden':
        this.found.push(fieldError.forbidden(field, message));
        break;
      case 'FieldValueRequired':
        this.found.push(fieldError.required(field, message));
        break;
      case 'FieldValueDuplicate':
        this.found.push(
          shown === undefined
            ? { ...fieldError.duplicate(field, ''), message: 'Duplicate value' }
            : fieldError.duplicate(field, shown),
        );
        break;
      default:
        this.found.push(
          shown === undefined
            ? { ...fieldError.invalid(field, '', ''), message: `Invalid value: ${message}` }
            : fieldError.invalid(field, shown, message),
        );
    }
  }

  #message(node: RuleNode, { rule, message }: CompiledRule, value: JsonValue, old: JsonValue | undefined): string {
    const plain = rule.message === '' ? `failed rule: ${rule.rule.trim()}` : rule.message.trim();
    if (message === undefined) return plain;
    try {
      const budget = new Budget(Math.min(MAX_MESSAGE_COST, Math.max(0, this.#left)));
      const text = message.evaluate((name) => this.#variable(name, node, rule, value, old), budget);
      if (typeof text !== 'string' || text.trim() === '' || /[\r\n]/.test(text) || text.length > 5 * 1024) return plain;
      return text.trim();
    } catch {
      // A failing message expression is ignored, because the rule has failed in any case.
      return plain;
    }
  }
}
