/**
 * Metadata of custom resources and of resources that are embedded in them. Metadata has the same type as for built-in
 * kinds. Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta.
 */
import { dns1035LabelErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { JsonObject, JsonValue, ObjectMeta } from '../meta/object.ts';
import { isSet, validateObjectMeta } from '../meta/validation.ts';
import { type DecodeFindings, pruneAndCheck } from '../schema/decode.ts';
import { schemaOfType } from '../schema/index.ts';
import { fieldOf, isObject, type Schema } from './schema.ts';
import { featuresOf } from './schema-features.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';

/**
 * Prunes and type-checks metadata of the resource and of all embedded resources in place. `drop`: fields of a wrong
 * type are dropped instead of reported, as for stored objects.
 */
export function coerceMetadata(schema: Schema, resource: JsonObject, findings: DecodeFindings, drop: boolean): void {
  coerceOwn(resource, '', findings, drop);
  each(schema, resource, '', (embedded, path) => {
    for (const name of ['apiVersion', 'kind']) {
      const value = fieldOf(embedded, name);
      if (value !== undefined && typeof value !== 'string')
        findings.typeErrors.push(`${path}.${name}: ${fieldError.invalid('', value, 'must be a string').message}`);
    }
    coerceOwn(embedded, path, findings, drop);
  });
}

function coerceOwn(resource: JsonObject, path: string, findings: DecodeFindings, drop: boolean): void {
  const metadata = fieldOf(resource, 'metadata');
  const at = path === '' ? 'metadata' : `${path}.metadata`;
  if (metadata === undefined) return;
  if (metadata === null) {
    if (path === '') delete resource['metadata'];
    else resource['metadata'] = {};
    return;
  }
  const schema = schemaOfType(META);
  if (schema === undefined) throw new Error('the generated schemas lack ObjectMeta');
  if (!isObject(metadata)) {
    const kind = Array.isArray(metadata) ? 'array' : typeof metadata === 'boolean' ? 'bool' : typeof metadata;
    const wrong = `json: cannot unmarshal ${kind} into Go value of type v1.ObjectMeta`;
    findings.typeErrors.push(`${at}: ${fieldError.invalid(at, metadata, wrong).message}`);
    return;
  }
  const own = pruneAndCheck(schema, metadata);
  const owners = metadata['managedFields'];
  // Unlike for built-in kinds, an empty list counts as absent.
  if (Array.isArray(owners) && owners.length === 0) delete metadata['managedFields'];
  if (drop && own.typeErrors.length > 0) {
    for (const name of Object.keys(metadata)) {
      const alone = { [name]: metadata[name] ?? null };
      if (pruneAndCheck(schema, alone).typeErrors.length > 0) delete metadata[name];
    }
    return;
  }
  findings.unknownFields.push(...own.unknownFields.map((field) => `${at}.${field}`));
  const shown = (wrong: string): string =>
    path === '' ? wrong : `${at}: ${fieldError.invalid(at, metadata, wrong).message}`;
  findings.typeErrors.push(...own.typeErrors.map(shown));
}

/** Requires apiVersion and kind in embedded resources. */
export function validateEmbedded(schema: Schema, resource: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  each(schema, resource, '', (embedded, path) => {
    for (const name of ['apiVersion', 'kind']) {
      const value = fieldOf(embedded, name);
      const at = `${path}.${name}`;
      if (value === undefined) errors.push(fieldError.required(at));
      else if (value === '') errors.push(fieldError.invalid(at, value, 'must not be empty'));
      else if (typeof value !== 'string') errors.push(fieldError.invalid(at, value, 'must be a string'));
      else if (name === 'apiVersion' && value.split('/').length > 2)
        errors.push(fieldError.invalid(at, value, `unexpected GroupVersion string: ${value}`));
      else if (name === 'kind') errors.push(...kindErrors(value, at));
    }
    const metadata = fieldOf(embedded, 'metadata');
    if (isObject(metadata)) {
      const meta = metadata as ObjectMeta;
      const named = isSet(meta.name) ? meta : { ...meta, name: 'unnamed' };
      const rules = { namespaced: isSet(meta.namespace), nameRule: 'pathSegment' } as const;
      errors.push(...validateObjectMeta(named, rules, `${path}.metadata`));
    }
  });
  return errors;
}

function kindErrors(kind: string, at: string): FieldError[] {
  const message = dns1035LabelErrors(kind.toLowerCase()).join(',');
  return message === ''
    ? []
    : [fieldError.invalid(at, kind, `may have mixed case, but should otherwise match: ${message}`)];
}

function each(
  schema: Schema,
  value: JsonValue,
  path: string,
  visit: (embedded: JsonObject, path: string) => void,
): void {
  if (!featuresOf(schema).embeds) return;
  if (Array.isArray(value)) {
    if (schema.items === undefined) return;
    for (const [index, item] of value.entries()) {
      if (schema.items.embedded && isObject(item)) visit(item, `${path}[${index}]`);
      each(schema.items, item, `${path}[${index}]`, visit);
    }
  } else if (isObject(value)) {
    for (const name of Object.keys(value)) {
      const below =
        schema.properties.get(name) ?? (typeof schema.additional === 'object' ? schema.additional : undefined);
      if (below === undefined) continue;
      const at = path === '' ? name : `${path}.${name}`;
      const item = value[name] ?? null;
      if (below.embedded && isObject(item)) visit(item, at);
      each(below, item, at, visit);
    }
  }
}
