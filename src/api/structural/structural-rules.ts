/**
 * Rules for structural schemas: every value has one known type, and anyOf, oneOf, allOf and not only restrict values.
 * Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go and complete.go.
 */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { fieldOf, type Schema } from './schema.ts';

type Level = 'root' | 'item' | 'field';

const EMPTY_TYPE: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

/** Errors sorted by their text, as in upstream. */
export function structuralErrors(schema: Schema, path: string): FieldError[] {
  const found: FieldError[] = [];
  invariants(schema, 'root', path, found);
  completeAlternatives(schema, schema, path, path, found);
  const text = (error: FieldError): string => `${error.field}: ${error.message}`;
  return found.sort((a, b) => (text(a) < text(b) ? -1 : 1));
}

function invariants(schema: Schema, level: Level, path: string, found: FieldError[]): void {
  if (schema.typeText === 'array' && schema.items === undefined)
    found.push(fieldError.required(`${path}.items`, 'must be specified'));
  if (schema.items !== undefined) invariants(schema.items, 'item', `${path}.items`, found);
  for (const [name, property] of schema.properties) invariants(property, 'field', `${path}.properties[${name}]`, found);
  const { additional } = schema;
  if (additional !== undefined) {
    if (level === 'root')
      found.push(fieldError.forbidden(`${path}.additionalProperties`, 'must not be used at the root'));
    if (typeof additional === 'object') invariants(additional, 'field', `${path}.additionalProperties`, found);
  }
  extensions(schema, path, found);
  const plainAnyOf = isIntOrString(schema.anyOf);
  alternatives(schema, path, plainAnyOf, isIntOrString(schema.allOf[0]?.anyOf ?? []), found);
  type(schema, level, path, found);
  metadata(schema, level, path, found);
  if (schema.embedded && !schema.preserve && schema.properties.size === 0) {
    found.push(
      fieldError.required(
        `${path}.properties`,
        'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
      ),
    );
  }
}

function extensions(schema: Schema, path: string, found: FieldError[]): void {
  const exclude = (name: string, given: boolean): void => {
    if (schema.intOrString && given)
      found.push(fieldError.invalid(`${path}.${name}`, true, 'must be false if x-kubernetes-int-or-string is true'));
  };
  exclude('x-kubernetes-preserve-unknown-fields', schema.preserve);
  exclude('x-kubernetes-embedded-resource', schema.embedded);
}

function type(schema: Schema, level: Level, path: string, found: FieldError[]): void {
  const { typeText, embedded, additional } = schema;
  if (embedded && typeText !== 'object') {
    const what = 'must be object if x-kubernetes-embedded-resource is true';
    found.push(
      typeText === '' ? fieldError.required(`${path}.type`, what) : fieldError.invalid(`${path}.type`, typeText, what),
    );
  } else if (typeText === '' && !schema.intOrString && !schema.preserve) {
    found.push(fieldError.required(`${path}.type`, EMPTY_TYPE[level]));
  }
  if (embedded && additional !== undefined) {
    found.push(
      fieldError.forbidden(`${path}.additionalProperties`, 'must not be used if x-kubernetes-embedded-resource is set'),
    );
  }
  if (level === 'root' && typeText !== '' && typeText !== 'object')
    found.push(fieldError.invalid(`${path}.type`, typeText, 'must be object at the root'));
}

/**
 * Validates a schema of metadata. Metadata has a fixed type; a schema at the root may only restrict name and
 * generateName.
 */
function metadata(schema: Schema, level: Level, path: string, found: FieldError[]): void {
  const checked = level === 'root' || schema.embedded;
  for (const [name, expected] of [
    ['kind', 'string'],
    ['apiVersion', 'string'],
    ['metadata', 'object'],
  ] as const) {
    const property = schema.properties.get(name);
    if (checked && property !== undefined && property.typeText !== expected)
      found.push(fieldError.invalid(`${path}.properties[${name}].type`, property.typeText, `must be ${expected}`));
  }
  const own = schema.properties.get('metadata');
  if (level !== 'root' || own === undefined) return;
  const onlyNames = [...own.properties.keys()].every((name) => name === 'name' || name === 'generateName');
  const more = Object.keys(own.raw).some(
    (name) => !['type', 'properties', 'default'].includes(name) && isGiven(own, name),
  );
  if (onlyNames && !more && own.additional === undefined) return;
  found.push(
    fieldError.forbidden(
      `${path}.properties[metadata]`,
      'must not specify anything other than name and generateName, but metadata is implicitly specified',
    ),
  );
}

/** Recognizes `anyOf: [{type: integer}, {type: string}]`, the form of int-or-string that predates the keyword. */
function isIntOrString(alternatives: readonly Schema[]): boolean {
  return (
    alternatives.length === 2 &&
    alternatives.every(
      (each, index) =>
        each.typeText === (index === 0 ? 'integer' : 'string') &&
        Object.keys(each.raw).every((name) => name === 'type' || !isGiven(each, name)),
    )
  );
}

/**
 * Validates the schemas in anyOf, allOf, oneOf and not. `plainAnyOf`: anyOf only expresses int-or-string, so it is not
 * checked. `plainFirst`: the same for anyOf in the first schema of allOf.
 */
function alternatives(
  schema: Schema,
  path: string,
  plainAnyOf: boolean,
  plainFirst: boolean,
  found: FieldError[],
): void {
  if (!plainAnyOf)
    for (const [index, each] of schema.anyOf.entries()) nested(each, `${path}.anyOf[${index}]`, false, found);
  for (const [index, each] of schema.allOf.entries())
    nested(each, `${path}.allOf[${index}]`, plainFirst && index === 0, found);
  for (const [index, each] of schema.oneOf.entries()) nested(each, `${path}.oneOf[${index}]`, false, found);
  if (schema.not !== undefined) nested(schema.not, `${path}.not`, false, found);
  const { pattern } = schema;
  if (pattern === undefined || !('problem' in pattern)) return;
  const what = `must be a valid regular expression, but isn't: ${pattern.problem}`;
  found.push(fieldError.invalid(`${path}.pattern`, pattern.text, what));
}

const ONLY_STRUCTURE: readonly (readonly [name: string, what: string])[] = [
  ['type', 'must be empty to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['externalDocs', 'must be undefined to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
];

/** Allows only restrictions in a schema inside anyOf, oneOf, allOf or not. */
function nested(schema: Schema, path: string, plainAnyOf: boolean, found: FieldError[]): void {
  alternatives(schema, path, plainAnyOf, false, found);
  if (schema.items !== undefined) nested(schema.items, `${path}.items`, false, found);
  for (const [name, property] of schema.properties) nested(property, `${path}.properties[${name}]`, false, found);
  for (const [name, what] of ONLY_STRUCTURE)
    if (isGiven(schema, name)) found.push(fieldError.forbidden(`${path}.${name}`, what));
  if (typeof schema.additional === 'object' || schema.additional === true)
    found.push(fieldError.forbidden(`${path}.additionalProperties`, 'must be undefined to be structural'));
  if (schema.properties.has('metadata'))
    found.push(fieldError.forbidden(`${path}.properties[metadata]`, 'must not be specified in a nested context'));
}

/** Keywords that are pointers in Go, so that empty and false values count as given. */
const POINTERS = new Set(['default', 'example', 'externalDocs', 'x-kubernetes-list-type', 'x-kubernetes-map-type']);

/** Whether the schema has the keyword. As in Go, null and the empty and false values of other keywords are absent. */
function isGiven({ raw }: Schema, name: string): boolean {
  const value = fieldOf(raw, name);
  if (value === undefined || value === null) return false;
  if (POINTERS.has(name)) return true;
  if (value === '' || value === false) return false;
  return !Array.isArray(value) || value.length > 0;
}

function completeAlternatives(
  schema: Schema,
  structural: Schema,
  path: string,
  structurePath: string,
  found: FieldError[],
): void {
  if (schema.not !== undefined) complete(schema.not, structural, `${path}.not`, structurePath, found);
  for (const name of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [index, each] of schema[name].entries())
      complete(each, structural, `${path}.${name}[${index}]`, structurePath, found);
  }
}

/** Requires that fields in alternatives are also declared in the structural part. */
function complete(
  schema: Schema,
  structural: Schema | undefined,
  path: string,
  structurePath: string,
  found: FieldError[],
): void {
  if (structural === undefined) {
    found.push(fieldError.required(structurePath, `because it is defined in ${path}`));
    return;
  }
  completeAlternatives(schema, structural, path, structurePath, found);
  if (schema.items !== undefined)
    complete(schema.items, structural.items, `${path}.items`, `${structurePath}.items`, found);
  for (const [name, property] of schema.properties) {
    const at = `.properties[${name}]`;
    complete(property, structural.properties.get(name), `${path}${at}`, `${structurePath}${at}`, found);
  }
}
