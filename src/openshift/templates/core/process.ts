/**
 * Processes a template: generates and validates parameters, replaces references to them, and adds labels. Random
 * numbers are passed as an argument. Source: openshift/library-go pkg/template/templateprocessing, OpenShift's
 * documentation "Writing templates".
 */

import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import type { JsonObject, JsonValue } from '../../../api/meta/object.ts';
import { atOnce, type Steps } from '../../../base/concurrency/steps.ts';
import { anything, decodeJson, own } from '../../../base/decode.ts';
import { type TemplateParameter, validateParameters } from '../kinds/templates/index.ts';
import { ExpressionBudget, type Generated, generateValue, type Random } from './expression.ts';

/** Fields of a Template that are processed. */
export interface TemplateBody {
  message?: string;
  objects?: readonly JsonObject[];
  parameters?: readonly TemplateParameter[];
  labels?: Readonly<Record<string, string>>;
}

export interface ProcessedTemplate {
  readonly message: string | undefined;
  readonly objects: readonly JsonObject[];
  /** Parameters with their generated values. */
  readonly parameters: readonly TemplateParameter[];
  readonly labels: Readonly<Record<string, string>> | undefined;
}

export const MAX_OBJECTS = 1_000;
/** Maximum length of all strings in the objects together, because the response may contain all objects. */
export const MAX_CHARACTERS = 3 * 1024 * 1024;
const MAX_DEPTH = 100;

const REFERENCE = /\$\{([a-zA-Z0-9_]+)\}/g;
const TYPED_REFERENCE = /^\$\{\{([a-zA-Z0-9_]+)\}\}$/;

/** Result of processing. The field paths of errors refer to the template. */
type Result = { readonly processed: ProcessedTemplate } | { readonly errors: readonly FieldError[] };

export const processTemplate = (template: TemplateBody, random: Random): Result =>
  atOnce(templateSteps(template, random));

/** Does the work of `processTemplate` as a generator, which yields after each parameter and object. */
export function* templateSteps(template: TemplateBody, random: Random): Steps<Result> {
  const objects = template.objects ?? [];
  if (objects.length > MAX_OBJECTS) return { errors: [fieldError.tooMany('objects', objects.length, MAX_OBJECTS)] };
  const invalid = validateParameters(template.parameters ?? []);
  if (invalid.length > 0) return { errors: invalid };
  const { parameters, errors } = yield* withValues(template.parameters ?? [], random);
  if (errors.length > 0) return { errors };
  const substitution = new Substitution(new Map(parameters.map(({ name = '', value = '' }) => [name, value])));
  try {
    const labels = template.labels === undefined ? undefined : substitution.strings(template.labels);
    const processed: JsonObject[] = [];
    for (const [index, object] of objects.entries()) {
      processed.push(substitution.object(object, index, labels));
      yield;
    }
    const message = template.message === undefined ? undefined : substitution.text(template.message, 'message');
    return { processed: { message, objects: processed, parameters, labels } };
  } catch (error) {
    if (error instanceof Refused) return { errors: [error.field] };
    throw error;
  }
}

function* withValues(
  parameters: readonly TemplateParameter[],
  random: Random,
): Steps<{ readonly parameters: TemplateParameter[]; readonly errors: FieldError[] }> {
  const errors: FieldError[] = [];
  const budget = new ExpressionBudget();
  const complete: TemplateParameter[] = [];
  for (const [index, parameter] of parameters.entries()) {
    complete.push(withValue(parameter, index, errors, (from) => generateValue(from, random, budget)));
    yield;
  }
  return { parameters: complete, errors };
}

/** Parameter with its given or generated value. Errors are appended to `errors`. */
function withValue(
  parameter: TemplateParameter,
  index: number,
  errors: FieldError[],
  generateFrom: (from: string) => Generated,
): TemplateParameter {
  const { name = '', value = '', generate = '', from = '', required = false } = parameter;
  const at = `parameters[${index}]`;
  if (value !== '') return parameter;
  if (generate === '') {
    if (required) errors.push(fieldError.required(at, `parameter ${name} is required and must be specified`));
    return parameter;
  }
  if (generate !== 'expression') {
    errors.push(fieldError.notSupported(`${at}.generate`, generate, ['expression']));
    return parameter;
  }
  const generated = generateFrom(from);
  if ('problem' in generated) {
    errors.push(fieldError.invalid(`${at}.from`, from.slice(0, 256), generated.problem));
    return parameter;
  }
  if (generated.value === '' && required)
    errors.push(fieldError.required(at, `parameter ${name} is required and must be specified`));
  return { ...parameter, value: generated.value };
}

class Refused extends Error {
  readonly field: FieldError;

  constructor(field: FieldError) {
    super(field.message);
    this.field = field;
  }
}

/** Replaces references to parameters. The total length of the output is limited. */
class Substitution {
  readonly #values: ReadonlyMap<string, string>;
  #produced = 0;

  constructor(values: ReadonlyMap<string, string>) {
    this.#values = values;
  }

  object(object: JsonObject, index: number, labels: Readonly<Record<string, string>> | undefined): JsonObject {
    const at = `objects[${index}]`;
    if (typeof object !== 'object' || object === null || Array.isArray(object))
      throw new Refused(fieldError.invalid(at, '', 'must be an object'));
    const result = this.#value(withoutLiteralNamespace(object), at, 0) as JsonObject;
    const entries = Object.entries(labels ?? {});
    if (entries.length === 0) return result;
    // The labels count for every object, because each object gets a copy of them.
    this.#spend(
      entries.reduce((sum, [key, value]) => sum + key.length + value.length, 0),
      at,
    );
    const metadata = isObject(result['metadata']) ? result['metadata'] : {};
    const own = isObject(metadata['labels']) ? metadata['labels'] : {};
    return { ...result, metadata: { ...metadata, labels: { ...own, ...labels } } };
  }

  strings(labels: Readonly<Record<string, string>>): Record<string, string> {
    return Object.fromEntries(
      Object.entries(labels).map(([key, value]) => [this.text(key, 'labels'), this.text(value, 'labels')]),
    );
  }

  /** Replaces the references in a text. References to unknown parameters are kept. */
  text(text: string, at: string): string {
    let length = text.length;
    if (!text.includes('${')) {
      this.#spend(length, at);
      return text;
    }
    for (const [reference, name = ''] of text.matchAll(REFERENCE)) {
      length += (this.#values.get(name)?.length ?? reference.length) - reference.length;
      if (length > MAX_CHARACTERS) break;
    }
    this.#spend(length, at);
    return text.replace(REFERENCE, (reference, name: string) => this.#values.get(name) ?? reference);
  }

  #value(value: JsonValue, at: string, depth: number): JsonValue {
    if (depth > MAX_DEPTH) throw new Refused(fieldError.invalid(at, '', `is nested deeper than ${MAX_DEPTH} levels`));
    if (typeof value === 'string') return this.#typed(value, at);
    if (Array.isArray(value)) return value.map((item) => this.#value(item, at, depth + 1));
    if (!isObject(value)) return value;
    const entries = Object.entries(value).map(([key, item]): [string, JsonValue] => [
      this.text(key, at),
      this.#value(item, at, depth + 1),
    ]);
    return Object.fromEntries(entries);
  }

  /**
   * Value of a text that consists only of `${{NAME}}`: the parameter parsed as JSON, or its text if it is not valid
   * JSON.
   */
  #typed(text: string, at: string): JsonValue {
    const name = TYPED_REFERENCE.exec(text)?.[1];
    const value = name === undefined ? undefined : this.#values.get(name);
    if (value === undefined) return this.text(text, at);
    this.#spend(value.length, at);
    try {
      return decodeJson(own<JsonValue>(anything), value, at);
    } catch {
      return value;
    }
  }

  #spend(characters: number, at: string): void {
    this.#produced += characters;
    if (this.#produced <= MAX_CHARACTERS) return;
    const detail = `the objects of a template must have at most ${MAX_CHARACTERS} characters`;
    throw new Refused(fieldError.invalid(at, '', detail));
  }
}

const isObject = (value: JsonValue | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * Removes a namespace without parameter references, so that the object is created in the namespace of the instance or
 * request.
 */
function withoutLiteralNamespace(object: JsonObject): JsonObject {
  const { metadata } = object;
  if (!isObject(metadata) || metadata['namespace'] === undefined) return object;
  const { namespace, ...rest } = metadata;
  if (typeof namespace === 'string' && /\$\{\{?[a-zA-Z0-9_]+\}/.test(namespace)) return object;
  return { ...object, metadata: rest };
}
