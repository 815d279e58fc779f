/**
 * What a schema must be like to be structural: every value has one known type, and alternatives only restrict it.
 * Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/validation.go, pkg/apis/apiextensions/validation.
 */
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { pruneValue } from './prune.ts';
import { fieldOf, isObject, type ParsedSchema, type Schema, setFieldOf } from './schema.ts';
import { validateLists, validateValue } from './validate.ts';

const RULE_REASONS = ['FieldValueInvalid', 'FieldValueForbidden', 'FieldValueRequired', 'FieldValueDuplicate'];
const SCALARS: ReadonlySet<string> = new Set(['string', 'integer', 'number', 'boolean']);

/** Everything wrong with a schema, its own keywords' errors included. */
export function validateSchema({ schema, errors }: ParsedSchema, path: string): FieldError[] {
  const found = [...errors];
  if (schema.type === '') found.push(fieldError.required(`${path}.type`, 'must not be empty at the root'));
  else if (schema.type !== 'object')
    found.push(fieldError.invalid(`${path}.type`, schema.type, 'must be object at the root'));
  if (schema.nullable) found.push(fieldError.forbidden(`${path}.nullable`, 'nullable cannot be true at the root'));
  rootMetadata(schema, path, found);
  structure(schema, path, found, true);
  return found;
}

/** The server knows metadata better than any schema; only names may be restricted. */
function rootMetadata(schema: Schema, path: string, found: FieldError[]): void {
  const metadata = schema.properties.get('metadata');
  const at = `${path}.properties[metadata]`;
  for (const [name, type] of [
    ['apiVersion', 'string'],
    ['kind', 'string'],
    ['metadata', 'object'],
  ] as const) {
    const property = schema.properties.get(name);
    if (property !== undefined && property.type !== type) {
      found.push(fieldError.invalid(`${path}.properties[${name}].type`, property.type, `must be ${type}`));
    }
  }
  if (metadata === undefined) return;
  for (const name of metadata.properties.keys()) {
    if (name !== 'name' && name !== 'generateName') {
      found.push(
        fieldError.forbidden(
          at,
          'must not specify anything other than name and generateName, but metadata is implicitly specified',
        ),
      );
      break;
    }
  }
  if (metadata.default !== undefined) found.push(fieldError.forbidden(`${at}.default`, 'must not be set'));
}

function structure(schema: Schema, path: string, found: FieldError[], root: boolean): void {
  for (const name of schema.forbidden) {
    found.push(
      fieldError.forbidden(`${path}.${name}`, name === '$ref' ? '$ref is not supported' : `${name} is not supported`),
    );
  }
  types(schema, path, found);
  extensions(schema, path, found, root);
  valueKeywords(schema, path, found);
  rules(schema, path, found);
  const type = (below: Schema, at: string, where: string): void => {
    if (below.type === '' && !below.intOrString && !below.preserve) {
      found.push(fieldError.required(`${at}.type`, `must not be empty for specified ${where}`));
    }
  };
  for (const [name, property] of schema.properties) {
    const at = `${path}.properties[${name}]`;
    type(property, at, 'object fields');
    structure(property, at, found, false);
  }
  if (typeof schema.additional === 'object') {
    type(schema.additional, `${path}.additionalProperties`, 'object fields');
    structure(schema.additional, `${path}.additionalProperties`, found, false);
  }
  if (schema.items !== undefined) {
    type(schema.items, `${path}.items`, 'array items');
    structure(schema.items, `${path}.items`, found, false);
  }
  junctors(schema, path, (each, at) => {
    alternatives(each, at, found);
    complete(each, schema, at, path, found);
  });
  defaults(schema, path, found);
}

function junctors(schema: Schema, path: string, visit: (schema: Schema, path: string) => void): void {
  for (const name of ['allOf', 'anyOf', 'oneOf'] as const) {
    for (const [index, each] of schema[name].entries()) visit(each, `${path}.${name}[${index}]`);
  }
  if (schema.not !== undefined) visit(schema.not, `${path}.not`);
}

function types(schema: Schema, path: string, found: FieldError[]): void {
  const { type, additional, properties } = schema;
  if (additional !== undefined && properties.size > 0) {
    found.push(
      fieldError.forbidden(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'),
    );
  }
  if (additional === false)
    found.push(fieldError.forbidden(`${path}.additionalProperties`, 'additionalProperties cannot be set to false'));
  if (type === 'array' && schema.items === undefined)
    found.push(fieldError.required(`${path}.items`, 'must be specified'));
  if (type !== '' && type !== 'object' && (properties.size > 0 || additional !== undefined)) {
    found.push(
      fieldError.forbidden(
        properties.size > 0 ? `${path}.properties` : `${path}.additionalProperties`,
        'must only be set for objects',
      ),
    );
  }
  if (type !== '' && type !== 'array' && schema.items !== undefined)
    found.push(fieldError.forbidden(`${path}.items`, 'must only be set for arrays'));
}

function extensions(schema: Schema, path: string, found: FieldError[], root: boolean): void {
  if (schema.intOrString) {
    if (schema.type !== '')
      found.push(
        fieldError.invalid(`${path}.type`, schema.type, 'must be empty if x-kubernetes-int-or-string is true'),
      );
    if (schema.preserve)
      found.push(
        fieldError.invalid(
          `${path}.x-kubernetes-preserve-unknown-fields`,
          true,
          'must be false if x-kubernetes-int-or-string is true',
        ),
      );
    if (schema.embedded)
      found.push(
        fieldError.invalid(
          `${path}.x-kubernetes-embedded-resource`,
          true,
          'must be false if x-kubernetes-int-or-string is true',
        ),
      );
  }
  if (schema.preserve && schema.type !== 'object' && schema.type !== '' && schema.type !== 'array') {
    found.push(
      fieldError.invalid(`${path}.type`, schema.type, 'must be object if x-kubernetes-preserve-unknown-fields is true'),
    );
  }
  if (schema.embedded) {
    if (schema.type !== 'object')
      found.push(
        fieldError.invalid(`${path}.type`, schema.type, 'must be object if x-kubernetes-embedded-resource is true'),
      );
    if (schema.properties.size === 0 && !schema.preserve) {
      found.push(
        fieldError.required(
          `${path}.properties`,
          'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields',
        ),
      );
    }
    if (root) found.push(fieldError.forbidden(`${path}.x-kubernetes-embedded-resource`, 'must not be set at the root'));
  }
  lists(schema, path, found);
  if (schema.mapType !== undefined) {
    if (schema.mapType !== 'atomic' && schema.mapType !== 'granular') {
      found.push(fieldError.notSupported(`${path}.x-kubernetes-map-type`, schema.mapType, ['atomic', 'granular']));
    }
    if (schema.type !== 'object')
      found.push(
        fieldError.invalid(`${path}.type`, schema.type, 'must be object if x-kubernetes-map-type is specified'),
      );
  }
}

function lists(schema: Schema, path: string, found: FieldError[]): void {
  const { listType, listMapKeys, items } = schema;
  const at = `${path}.x-kubernetes-list-map-keys`;
  if (listType === undefined) {
    if (listMapKeys.length > 0)
      found.push(
        fieldError.required(`${path}.x-kubernetes-list-type`, 'must be map if x-kubernetes-list-map-keys is non-empty'),
      );
    return;
  }
  if (!['atomic', 'map', 'set'].includes(listType)) {
    found.push(fieldError.notSupported(`${path}.x-kubernetes-list-type`, listType, ['atomic', 'set', 'map']));
    return;
  }
  if (schema.type !== 'array') {
    found.push(fieldError.invalid(`${path}.type`, schema.type, 'must be array if x-kubernetes-list-type is specified'));
    return;
  }
  if (listType !== 'map') {
    if (listMapKeys.length > 0)
      found.push(
        fieldError.invalid(
          `${path}.x-kubernetes-list-type`,
          listType,
          'must be map if x-kubernetes-list-map-keys is non-empty',
        ),
      );
    if (listType === 'set' && items !== undefined) {
      if (items.nullable)
        found.push(
          fieldError.forbidden(`${path}.items.nullable`, 'cannot be nullable when x-kubernetes-list-type is set'),
        );
      const whole = items.type === 'array' ? items.listType === 'atomic' : items.mapType === 'atomic';
      if ((items.type === 'object' || items.type === 'array') && !whole) {
        found.push(
          fieldError.invalid(
            `${path}.items.x-kubernetes-${items.type === 'array' ? 'list' : 'map'}-type`,
            null,
            `must be atomic as item of a list with x-kubernetes-list-type=set`,
          ),
        );
      }
    }
    return;
  }
  if (listMapKeys.length === 0) {
    found.push(fieldError.required(at, 'must not be empty if x-kubernetes-list-type is map'));
    return;
  }
  if (items === undefined || items.type !== 'object') {
    found.push(
      fieldError.invalid(
        `${path}.items.type`,
        items?.type ?? '',
        "must be object if parent array's x-kubernetes-list-type is map",
      ),
    );
    return;
  }
  const seen = new Set<string>();
  for (const [index, key] of listMapKeys.entries()) {
    if (seen.has(key)) found.push(fieldError.duplicate(`${at}[${index}]`, key));
    seen.add(key);
    const property = items.properties.get(key);
    if (property === undefined) {
      found.push(fieldError.invalid(`${at}[${index}]`, key, 'entries must all be names of item properties'));
      continue;
    }
    if (!SCALARS.has(property.type))
      found.push(
        fieldError.invalid(
          `${path}.items.properties[${key}].type`,
          property.type,
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      );
    if (property.nullable)
      found.push(
        fieldError.forbidden(
          `${path}.items.properties[${key}].nullable`,
          'this property is in x-kubernetes-list-map-keys, so it cannot be nullable',
        ),
      );
    if (!items.required.includes(key) && property.default === undefined) {
      found.push(
        fieldError.required(
          `${path}.items.properties[${key}].default`,
          'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
        ),
      );
    }
  }
}

function valueKeywords(schema: Schema, path: string, found: FieldError[]): void {
  if (schema.uniqueItems)
    found.push(
      fieldError.forbidden(
        `${path}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    );
  if (schema.multipleOf !== undefined && schema.multipleOf <= 0)
    found.push(fieldError.invalid(`${path}.multipleOf`, schema.multipleOf, 'must be greater than 0'));
  const order = (
    low: 'minLength' | 'minItems' | 'minProperties',
    high: 'maxLength' | 'maxItems' | 'maxProperties',
  ): void => {
    for (const name of [low, high]) {
      const value = schema[name];
      if (value !== undefined && value < 0)
        found.push(fieldError.invalid(`${path}.${name}`, value, 'must be greater than or equal to 0'));
    }
  };
  order('minLength', 'maxLength');
  order('minItems', 'maxItems');
  order('minProperties', 'maxProperties');
}

function rules(schema: Schema, path: string, found: FieldError[]): void {
  for (const [index, rule] of schema.rules.entries()) {
    const at = `${path}.x-kubernetes-validations[${index}]`;
    if (rule.rule.trim() === '') found.push(fieldError.required(`${at}.rule`, 'rule is not specified'));
    if (rule.message !== '' && rule.message.trim() === '') {
      found.push(fieldError.invalid(`${at}.message`, rule.message, 'message must be non-empty if specified'));
    } else if (/[\r\n]/.test(rule.message)) {
      found.push(fieldError.invalid(`${at}.message`, rule.message, 'message must not contain line breaks'));
    } else if (rule.message === '' && rule.messageExpression === '' && /[\r\n]/.test(rule.rule.trim())) {
      found.push(fieldError.required(`${at}.message`, 'message must be specified if rule contains line breaks'));
    }
    if (rule.messageExpression !== '' && rule.messageExpression.trim() === '') {
      found.push(fieldError.required(`${at}.messageExpression`, 'messageExpression must be non-empty if specified'));
    }
    if (rule.reason !== '' && !RULE_REASONS.includes(rule.reason))
      found.push(fieldError.notSupported(`${at}.reason`, rule.reason, RULE_REASONS));
    if (rule.fieldPath !== '' && schemaAtPath(schema, rule.fieldPath) === undefined) {
      found.push(
        fieldError.invalid(
          `${at}.fieldPath`,
          rule.fieldPath,
          'fieldPath must be a valid path: does not refer to a valid field',
        ),
      );
    }
  }
}

/** The place a rule's `fieldPath` names; undefined when there is none. Steps are `.name` and `['name']`. */
function schemaAtPath(schema: Schema, path: string): Schema | undefined {
  const steps = fieldPathSteps(path);
  let at: Schema | undefined = schema;
  for (const step of steps ?? ['']) {
    at = at?.properties.get(step) ?? (typeof at?.additional === 'object' ? at.additional : undefined);
  }
  return at;
}

/** Names along a `fieldPath`; undefined when it is malformed. */
export function fieldPathSteps(path: string): string[] | undefined {
  const steps: string[] = [];
  const step = /\.([A-Za-z_][\w-]*)|\['((?:[^'\\]|\\.){1,256})'\]/y;
  while (step.lastIndex < path.length) {
    const match = step.exec(path);
    if (match === null) return undefined;
    steps.push(match[1] ?? (match[2] ?? '').replaceAll(/\\(.)/g, '$1'));
  }
  return steps.length === 0 ? undefined : steps;
}

const ONLY_STRUCTURE = [
  'title',
  'description',
  'default',
  'nullable',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
  'x-kubernetes-validations',
];

/** Inside alternatives only restrictions may stand. */
function alternatives(schema: Schema, path: string, found: FieldError[]): void {
  for (const name of schema.forbidden) found.push(fieldError.forbidden(`${path}.${name}`, `${name} is not supported`));
  const forbid = (name: string): void =>
    void found.push(fieldError.forbidden(`${path}.${name}`, 'must be empty to be structural'));
  if (schema.type !== '' && !intOrStringPart(schema)) forbid('type');
  if (schema.additional !== undefined) forbid('additionalProperties');
  for (const name of ONLY_STRUCTURE) if (isSet(schema.raw, name)) forbid(name);
  valueKeywords(schema, path, found);
  for (const [name, property] of schema.properties) alternatives(property, `${path}.properties[${name}]`, found);
  if (schema.items !== undefined) alternatives(schema.items, `${path}.items`, found);
  junctors(schema, path, (each, at) => alternatives(each, at, found));
}

/** `anyOf: [{type: integer}, {type: string}]` is how int-or-string was spelt before it had a name. */
function intOrStringPart(schema: Schema): boolean {
  return (schema.type === 'integer' || schema.type === 'string') && Object.keys(schema.raw).length === 1;
}

function isSet(raw: JsonObject, name: string): boolean {
  const value = fieldOf(raw, name);
  return value !== undefined && value !== null && value !== '' && value !== false;
}

/** What alternatives speak of must be in the structure. */
function complete(schema: Schema, structural: Schema, path: string, structurePath: string, found: FieldError[]): void {
  for (const [name, property] of schema.properties) {
    const known =
      structural.properties.get(name) ??
      (typeof structural.additional === 'object' ? structural.additional : undefined);
    if (known === undefined) {
      if (!structural.preserve)
        found.push(
          fieldError.required(
            `${structurePath}.properties[${name}]`,
            `because it is defined in ${path}.properties[${name}]`,
          ),
        );
    } else complete(property, known, `${path}.properties[${name}]`, `${structurePath}.properties[${name}]`, found);
  }
  if (schema.items !== undefined) {
    if (structural.items === undefined)
      found.push(fieldError.required(`${structurePath}.items`, `because it is defined in ${path}.items`));
    else complete(schema.items, structural.items, `${path}.items`, `${structurePath}.items`, found);
  }
  junctors(schema, path, (each, at) => complete(each, structural, at, structurePath, found));
}

/** A default must be what the schema itself would let through. */
function defaults(schema: Schema, path: string, found: FieldError[]): void {
  if (schema.default === undefined) return;
  const at = `${path}.default`;
  const value: JsonValue = structuredClone(schema.default);
  const dropped = pruneValue(schema, value);
  if (dropped.length > 0) found.push(fieldError.invalid(at, schema.default, 'must not have unknown fields'));
  const errors = [...validateValue(schema, withNestedDefaults(schema, value)), ...validateLists(schema, value)];
  for (const error of errors) {
    const field = error.field === '' || error.field === '<nil>' ? at : `${at}.${error.field}`;
    found.push({ ...error, field });
  }
}

/** Fields that a default leaves out are filled in like any others. */
function withNestedDefaults(schema: Schema, value: JsonValue): JsonValue {
  if (!isObject(value)) return value;
  for (const [name, property] of schema.properties) {
    const now = fieldOf(value, name);
    if (now === undefined && property.default !== undefined) setFieldOf(value, name, structuredClone(property.default));
    else if (now !== undefined) withNestedDefaults(property, now);
  }
  return value;
}
