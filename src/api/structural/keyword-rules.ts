/**
 * Keywords that are forbidden in schemas, and keywords that require others. Source:
 * k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation (ValidateCustomResourceDefinitionOpenAPISchema).
 */
import { type FieldError, fieldError, NULL } from '../meta/field-error.ts';
import { resolveFieldPath } from './field-path.ts';
import { SCHEMA_TYPES, type Schema, type ValidationRule } from './schema.ts';

const RULE_REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];
const META: ReadonlySet<string> = new Set(['metadata', 'kind', 'apiVersion']);

interface Surroundings {
  readonly root: boolean;
  /** Whether the schema is below the resource's own metadata. */
  readonly insideMeta: boolean;
  /** Error text if defaults are not allowed here, otherwise undefined. */
  readonly noDefaults: string | undefined;
  /** Whether unknown types are errors. */
  readonly types: boolean;
}

export function keywordErrors(
  schema: Schema,
  path: string,
  { noDefaults, types }: Pick<Surroundings, 'noDefaults' | 'types'>,
): FieldError[] {
  const found: FieldError[] = [];
  walk(schema, path, { root: true, insideMeta: false, noDefaults, types }, found);
  return found;
}

function walk(schema: Schema, path: string, around: Surroundings, found: FieldError[]): void {
  supported(schema, path, around, found);
  const inner: Surroundings = { ...around, root: false };
  const { additional, properties, items } = schema;
  if (additional !== undefined && properties.size > 0 && additional !== true) {
    found.push(
      fieldError.forbidden(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'),
    );
  }
  if (typeof additional === 'object') {
    const noDefaults = around.insideMeta ? 'inside additionalProperties applying to object metadata' : inner.noDefaults;
    walk(additional, `${path}.additionalProperties`, { ...inner, noDefaults }, found);
  }
  for (const [name, property] of properties) {
    const meta = (around.root || schema.embedded) && META.has(name);
    walk(
      property,
      `${path}.properties[${name}]`,
      {
        ...inner,
        insideMeta: inner.insideMeta || meta,
        noDefaults: meta && around.root ? `in top-level ${name}` : inner.noDefaults,
      },
      found,
    );
  }
  if (schema.not !== undefined) walk(schema.not, `${path}.not`, inner, found);
  for (const name of ['allOf', 'oneOf', 'anyOf'] as const) {
    for (const [index, each] of schema[name].entries()) walk(each, `${path}.${name}[${index}]`, inner, found);
  }
  if (items !== undefined) walk(items, `${path}.items`, inner, found);
  lists(schema, path, found);
  for (const [index, rule] of schema.rules.entries())
    ruleErrors(schema, rule, `${path}.x-kubernetes-validations[${index}]`, found);
}

const FORBIDDEN: readonly string[] = [
  'id',
  'additionalItems',
  'patternProperties',
  'definitions',
  'dependencies',
  '$ref',
];

function supported(schema: Schema, path: string, around: Surroundings, found: FieldError[]): void {
  const { typeText } = schema;
  if (around.types && typeText !== '' && !(SCHEMA_TYPES as readonly string[]).includes(typeText))
    found.push(fieldError.notSupported(`${path}.type`, typeText, [...SCHEMA_TYPES].sort()));
  if (schema.default !== undefined && around.noDefaults !== undefined)
    found.push(fieldError.forbidden(`${path}.default`, `must not be set ${around.noDefaults}`));
  for (const name of FORBIDDEN)
    if (schema.forbidden.includes(name))
      found.push(fieldError.forbidden(`${path}.${name}`, `${name} is not supported`));
  if (typeText === 'null')
    found.push(fieldError.forbidden(`${path}.type`, 'type cannot be set to null, use nullable as an alternative'));
  if (schema.forbidden.includes('items'))
    found.push(fieldError.forbidden(`${path}.items`, 'items must be a schema object and not an array'));
  if (around.insideMeta && schema.embedded)
    found.push(
      fieldError.forbidden(`${path}.x-kubernetes-embedded-resource`, 'must not be used inside of resource meta'),
    );
  if (schema.uniqueItems)
    found.push(
      fieldError.forbidden(
        `${path}.uniqueItems`,
        'uniqueItems cannot be set to true since the runtime complexity becomes quadratic',
      ),
    );
  if (schema.forbidden.includes('x-kubernetes-preserve-unknown-fields'))
    found.push(fieldError.invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'));
}

function lists(schema: Schema, path: string, found: FieldError[]): void {
  const { typeText, mapType, listType, listMapKeys } = schema;
  const wanted = (type: string, because: string): FieldError =>
    typeText === ''
      ? fieldError.required(`${path}.type`, `must be ${type} if ${because} is specified`)
      : fieldError.invalid(`${path}.type`, typeText, `must be ${type} if ${because} is specified`);
  if (mapType !== undefined && typeText !== 'object') found.push(wanted('object', 'x-kubernetes-map-type'));
  if (mapType !== undefined && mapType !== 'atomic' && mapType !== 'granular')
    found.push(fieldError.notSupported(`${path}.x-kubernetes-map-type`, mapType, ['atomic', 'granular']));
  if (listType !== undefined && typeText !== 'array') found.push(wanted('array', 'x-kubernetes-list-type'));
  else if (listType === 'set') atomicItems(schema, path, found);
  if (listType !== undefined && !['atomic', 'set', 'map'].includes(listType))
    found.push(fieldError.notSupported(`${path}.x-kubernetes-list-type`, listType, ['atomic', 'set', 'map']));
  if (listMapKeys.length > 0 && listType !== 'map') {
    const what = 'must be map if x-kubernetes-list-map-keys is non-empty';
    const at = `${path}.x-kubernetes-list-type`;
    found.push(listType === undefined ? fieldError.required(at, what) : fieldError.invalid(at, listType, what));
  }
  if (listType === 'map') mapKeys(schema, path, found);
  if (listType === 'set' || listType === 'map') keyRules(schema, listType, path, found);
}

/** Requires atomic items in sets, because items are compared as a whole. */
function atomicItems({ items }: Schema, path: string, found: FieldError[]): void {
  const odd =
    items?.typeText === 'array'
      ? items.listType !== undefined && items.listType !== 'atomic' && 'list'
      : items?.typeText === 'object' && items.mapType !== 'atomic' && 'map';
  if (odd === false || odd === undefined || items === undefined) return;
  found.push(
    fieldError.invalid(
      `${path}.items.x-kubernetes-${odd}-type`,
      items.listType ?? NULL,
      'must be atomic as item of a list with x-kubernetes-list-type=set',
    ),
  );
}

function mapKeys({ items, listMapKeys, forbidden }: Schema, path: string, found: FieldError[]): void {
  const at = `${path}.x-kubernetes-list-map-keys`;
  if (listMapKeys.length === 0)
    found.push(fieldError.required(at, 'must not be empty if x-kubernetes-list-type is map'));
  if (items === undefined) {
    found.push(
      forbidden.includes('items')
        ? fieldError.invalid(`${path}.items`, [], 'must only have a single schema if x-kubernetes-list-type is map')
        : fieldError.required(`${path}.items`, 'must have a schema if x-kubernetes-list-type is map'),
    );
    return;
  }
  if (items.typeText !== 'object') {
    found.push(
      fieldError.invalid(
        `${path}.items.type`,
        items.typeText,
        "must be object if parent array's x-kubernetes-list-type is map",
      ),
    );
    return;
  }
  const seen = new Set<string>();
  for (const key of listMapKeys) {
    const property = items.properties.get(key);
    if (property === undefined)
      found.push(fieldError.invalid(at, listMapKeys, 'entries must all be names of item properties'));
    else if (property.typeText === 'array' || property.typeText === 'object')
      found.push(
        fieldError.invalid(
          `${path}.items.properties[${key}].type`,
          items.typeText,
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      );
    if (seen.has(key)) found.push(fieldError.invalid(at, listMapKeys, 'must not contain duplicate entries'));
    seen.add(key);
  }
}

/** Requires that the keys of a list are required fields or have a default. */
function keyRules({ items, listMapKeys }: Schema, listType: string, path: string, found: FieldError[]): void {
  if (items === undefined) return;
  if (items.nullable)
    found.push(
      fieldError.forbidden(`${path}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${listType}`),
    );
  if (listType !== 'map') return;
  for (const key of listMapKeys) {
    const property = items.properties.get(key);
    if (property === undefined) continue;
    const at = `${path}.items.properties[${key}]`;
    if (!items.required.includes(key) && property.default === undefined)
      found.push(
        fieldError.required(
          `${at}.default`,
          'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property',
        ),
      );
    if (property.nullable)
      found.push(
        fieldError.forbidden(
          `${at}.nullable`,
          'this property is in x-kubernetes-list-map-keys, so it cannot be nullable',
        ),
      );
  }
}

const BREAK = /[\r\n]/;

function ruleErrors(schema: Schema, rule: ValidationRule, at: string, found: FieldError[]): void {
  const text = rule.rule.trim();
  const message = rule.message.trim();
  if (text === '') found.push(fieldError.required(`${at}.rule`, 'rule is not specified'));
  else if (rule.message !== '' && message === '')
    found.push(fieldError.invalid(`${at}.message`, rule.message, 'must be non-empty if specified'));
  else if (BREAK.test(message))
    found.push(fieldError.invalid(`${at}.message`, rule.message, 'must not contain line breaks'));
  else if (BREAK.test(text) && message === '')
    found.push(fieldError.required(`${at}.message`, 'message must be specified if rule contains line breaks'));
  if (rule.messageExpression !== '' && rule.messageExpression.trim() === '')
    found.push(fieldError.required(`${at}.messageExpression`, 'messageExpression must be non-empty if specified'));
  if (rule.reason !== undefined && !RULE_REASONS.includes(rule.reason))
    found.push(fieldError.notSupported(`${at}.reason`, rule.reason, RULE_REASONS));
  const { fieldPath } = rule;
  if (fieldPath === '') return;
  if (fieldPath.trim() === '')
    found.push(fieldError.invalid(`${at}.fieldPath`, fieldPath, 'must be non-empty if specified'));
  if (BREAK.test(fieldPath))
    found.push(fieldError.invalid(`${at}.fieldPath`, fieldPath, 'must not contain line breaks'));
  try {
    resolveFieldPath(schema, fieldPath, { brackets: true });
  } catch {
    found.push(fieldError.invalid(`${at}.fieldPath`, fieldPath, 'must be a valid path'));
  }
}
