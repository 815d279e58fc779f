/**
 * Parsed schema of a custom resource. It is read once from the JSON of the definition, and the type of every keyword is
 * checked. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema (Structural), OpenAPI v3.0's schema object.
 */

import { messageOf } from '../../base/errors.ts';
import { compileRegexp, type Regexp } from '../../base/regexp/index.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';

export const SCHEMA_TYPES = ['object', 'array', 'string', 'integer', 'number', 'boolean'] as const;
export type SchemaType = (typeof SCHEMA_TYPES)[number] | '';

export interface ValidationRule {
  readonly rule: string;
  readonly message: string;
  readonly messageExpression: string;
  readonly reason: string | undefined;
  readonly fieldPath: string;
  readonly optionalOldSelf: boolean | undefined;
}

export interface Schema {
  /** Value of the keyword `type`; '' if absent or invalid. */
  readonly type: SchemaType;
  /** The type as it is written in the definition. */
  readonly typeText: string;
  readonly properties: ReadonlyMap<string, Schema>;
  /** Value of `additionalProperties`. `true` allows any value; undefined if absent. */
  readonly additional: Schema | boolean | undefined;
  readonly items: Schema | undefined;
  readonly nullable: boolean;
  /** Value of the keyword `default`; undefined if there is none. */
  readonly default: JsonValue | undefined;
  readonly title: string;
  readonly description: string;
  readonly format: string;
  /** `problem` describes why the pattern is invalid; an invalid pattern matches nothing. */
  readonly pattern:
    | { readonly text: string; readonly regexp: Regexp }
    | { readonly text: string; readonly problem: string }
    | undefined;
  readonly enum: readonly JsonValue[] | undefined;
  readonly required: readonly string[];
  readonly maximum: number | undefined;
  readonly exclusiveMaximum: boolean;
  readonly minimum: number | undefined;
  readonly exclusiveMinimum: boolean;
  readonly multipleOf: number | undefined;
  readonly maxLength: number | undefined;
  readonly minLength: number | undefined;
  readonly maxItems: number | undefined;
  readonly minItems: number | undefined;
  readonly maxProperties: number | undefined;
  readonly minProperties: number | undefined;
  readonly uniqueItems: boolean;
  readonly allOf: readonly Schema[];
  readonly anyOf: readonly Schema[];
  readonly oneOf: readonly Schema[];
  readonly not: Schema | undefined;
  readonly preserve: boolean;
  readonly embedded: boolean;
  readonly intOrString: boolean;
  readonly listType: string | undefined;
  readonly listMapKeys: readonly string[];
  readonly mapType: string | undefined;
  readonly rules: readonly ValidationRule[];
  /** Forbidden keywords that are present; keyword-rules reports them. */
  readonly forbidden: readonly string[];
  /** The original JSON, for published documents. */
  readonly raw: JsonObject;
}

/** Maximum depth of a schema, because schemas and documents are walked recursively. */
const MAX_DEPTH = 64;
/** Maximum number of nodes of a schema. Generated schemas of real operators have a few thousand. */
const MAX_NODES = 50_000;

/** Unsupported keywords, in the order in which upstream checks them. */
const UNSUPPORTED = ['id', '$schema', '$ref', 'patternProperties', 'dependencies', 'additionalItems', 'definitions'];

export interface ParsedSchema {
  readonly schema: Schema;
  readonly errors: FieldError[];
  /** First keyword that structural schemas do not support. */
  readonly unsupported: string | undefined;
}

/** Parses a schema. Invalid keywords are reported in `errors` and missing in the schema. */
export function parseSchema(raw: JsonValue | undefined, path: string): ParsedSchema {
  const reader = new Reader();
  const schema = reader.schema(raw, path, 0);
  return { schema, errors: reader.errors, unsupported: reader.unsupported };
}

class Reader {
  readonly errors: FieldError[] = [];
  unsupported: string | undefined;
  #nodes = 0;

  #wrong(path: string, value: JsonValue, expected: string): undefined {
    const container = Array.isArray(value) ? 'array' : 'object';
    const shown = typeof value === 'object' ? container : value;
    this.errors.push(fieldError.invalid(path, shown, `must be ${expected}`));
    return undefined;
  }

  schema(raw: JsonValue | undefined, path: string, depth: number): Schema {
    this.#nodes += 1;
    let from: JsonObject = {};
    if (isObject(raw)) from = raw;
    else if (raw !== undefined) this.#wrong(path, raw, 'a schema');
    if (depth > MAX_DEPTH || this.#nodes > MAX_NODES) {
      if (this.#nodes <= MAX_NODES || this.#nodes === MAX_NODES + 1) {
        this.errors.push(
          fieldError.forbidden(
            path,
            depth > MAX_DEPTH
              ? `must not nest deeper than ${MAX_DEPTH} levels`
              : `must not have more than ${MAX_NODES} parts`,
          ),
        );
      }
      from = {};
    }
    const at = (name: string): string => `${path}.${name}`;
    const below = (name: string): Schema | undefined => {
      const value = own(from, name);
      return value === undefined ? undefined : this.schema(value, at(name), depth + 1);
    };
    const forbidden = forbiddenIn(from);
    this.unsupported ??= forbidden[0];
    const typeText = this.#text(from, 'type', path);
    return {
      type: (SCHEMA_TYPES as readonly string[]).includes(typeText) ? (typeText as SchemaType) : '',
      typeText,
      properties: this.#properties(from, path, depth),
      additional: this.#additional(from, path, depth),
      items: this.#items(from, path, depth),
      nullable: this.#flag(from, 'nullable', path),
      default: own(from, 'default'),
      title: this.#text(from, 'title', path),
      description: this.#text(from, 'description', path),
      format: this.#text(from, 'format', path),
      pattern: this.#pattern(from, path),
      enum: this.#list(from, 'enum', path),
      required: this.#strings(from, 'required', path),
      maximum: this.#number(from, 'maximum', path),
      exclusiveMaximum: this.#flag(from, 'exclusiveMaximum', path),
      minimum: this.#number(from, 'minimum', path),
      exclusiveMinimum: this.#flag(from, 'exclusiveMinimum', path),
      multipleOf: this.#number(from, 'multipleOf', path),
      maxLength: this.#count(from, 'maxLength', path),
      minLength: this.#count(from, 'minLength', path),
      maxItems: this.#count(from, 'maxItems', path),
      minItems: this.#count(from, 'minItems', path),
      maxProperties: this.#count(from, 'maxProperties', path),
      minProperties: this.#count(from, 'minProperties', path),
      uniqueItems: this.#flag(from, 'uniqueItems', path),
      allOf: this.#schemas(from, 'allOf', path, depth),
      anyOf: this.#schemas(from, 'anyOf', path, depth),
      oneOf: this.#schemas(from, 'oneOf', path, depth),
      not: below('not'),
      preserve: this.#flag(from, 'x-kubernetes-preserve-unknown-fields', path),
      embedded: this.#flag(from, 'x-kubernetes-embedded-resource', path),
      intOrString: this.#flag(from, 'x-kubernetes-int-or-string', path),
      listType: this.#text(from, 'x-kubernetes-list-type', path) || undefined,
      listMapKeys: this.#strings(from, 'x-kubernetes-list-map-keys', path),
      mapType: this.#text(from, 'x-kubernetes-map-type', path) || undefined,
      rules: this.#rules(from, path),
      forbidden,
      raw: from,
    };
  }

  #properties(from: JsonObject, path: string, depth: number): Map<string, Schema> {
    const found = new Map<string, Schema>();
    const value = own(from, 'properties');
    if (value === undefined) return found;
    if (!isObject(value)) {
      this.#wrong(`${path}.properties`, value, 'an object');
      return found;
    }
    for (const name of Object.keys(value))
      found.set(name, this.schema(value[name], `${path}.properties[${name}]`, depth + 1));
    return found;
  }

  #additional(from: JsonObject, path: string, depth: number): Schema | boolean | undefined {
    const value = own(from, 'additionalProperties');
    if (value === undefined || typeof value === 'boolean') return value;
    return this.schema(value, `${path}.additionalProperties`, depth + 1);
  }

  #items(from: JsonObject, path: string, depth: number): Schema | undefined {
    const value = own(from, 'items');
    if (value === undefined || Array.isArray(value)) return undefined;
    return this.schema(value, `${path}.items`, depth + 1);
  }

  #schemas(from: JsonObject, name: string, path: string, depth: number): Schema[] {
    return (this.#list(from, name, path) ?? []).map((each, index) =>
      this.schema(each, `${path}.${name}[${index}]`, depth + 1),
    );
  }

  #list(from: JsonObject, name: string, path: string): JsonValue[] | undefined {
    const value = own(from, name);
    if (value === undefined || Array.isArray(value)) return value;
    return this.#wrong(`${path}.${name}`, value, 'a list');
  }

  #strings(from: JsonObject, name: string, path: string): string[] {
    return (this.#list(from, name, path) ?? []).filter((each): each is string => {
      if (typeof each === 'string') return true;
      this.#wrong(`${path}.${name}`, each, 'a list of strings');
      return false;
    });
  }

  #text(from: JsonObject, name: string, path: string): string {
    const value = own(from, name);
    if (value === undefined) return '';
    return typeof value === 'string' ? value : (this.#wrong(`${path}.${name}`, value, 'a string') ?? '');
  }

  #flag(from: JsonObject, name: string, path: string): boolean {
    const value = own(from, name);
    if (value === undefined) return false;
    return typeof value === 'boolean' ? value : (this.#wrong(`${path}.${name}`, value, 'a boolean') ?? false);
  }

  #number(from: JsonObject, name: string, path: string): number | undefined {
    const value = own(from, name);
    // Upstream stores numeric bounds as doubles.
    if (typeof value === 'bigint') return Number(value);
    return value === undefined || typeof value === 'number' ? value : this.#wrong(`${path}.${name}`, value, 'a number');
  }

  #count(from: JsonObject, name: string, path: string): number | undefined {
    const value = this.#number(from, name, path);
    if (value === undefined || Number.isInteger(value)) return value;
    return this.#wrong(`${path}.${name}`, value, 'an integer');
  }

  #pattern(from: JsonObject, path: string): Schema['pattern'] {
    const text = this.#text(from, 'pattern', path);
    if (text === '') return undefined;
    try {
      return { text, regexp: compileRegexp(text) };
    } catch (error) {
      return { text, problem: messageOf(error) };
    }
  }

  #rules(from: JsonObject, path: string): ValidationRule[] {
    const name = 'x-kubernetes-validations';
    return (this.#list(from, name, path) ?? []).flatMap((each, index) => {
      const at = `${path}.${name}[${index}]`;
      if (!isObject(each)) {
        this.#wrong(at, each, 'an object');
        return [];
      }
      const optional = own(each, 'optionalOldSelf');
      return [
        {
          rule: this.#text(each, 'rule', at),
          message: this.#text(each, 'message', at),
          messageExpression: this.#text(each, 'messageExpression', at),
          reason: own(each, 'reason') === undefined ? undefined : this.#text(each, 'reason', at),
          fieldPath: this.#text(each, 'fieldPath', at),
          optionalOldSelf: optional === undefined ? undefined : this.#flag(each, 'optionalOldSelf', at),
        },
      ];
    });
  }
}

function forbiddenIn(from: JsonObject): string[] {
  const found = UNSUPPORTED.filter((name) => own(from, name) !== undefined);
  if (Array.isArray(own(from, 'items'))) found.push('items');
  if (own(from, 'x-kubernetes-preserve-unknown-fields') === false) found.push('x-kubernetes-preserve-unknown-fields');
  return found;
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Own property of an object. Null counts as absent, as when Go decodes a definition. */
function own(from: JsonObject, name: string): JsonValue | undefined {
  const value = Object.hasOwn(from, name) ? from[name] : undefined;
  return value === null ? undefined : value;
}

/** Own property of an object, safe for names such as `__proto__`. */
export function fieldOf(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? object[name] : undefined;
}

/** Sets an own property, safe for names such as `__proto__`. */
export function setFieldOf(object: JsonObject, name: string, value: JsonValue): void {
  if (name === '__proto__') {
    Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  } else object[name] = value;
}
