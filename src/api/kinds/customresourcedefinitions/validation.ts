/** Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go. */
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinition,
  CustomResourceDefinitionVersion,
  CustomResourceSubresources,
} from 'kubernetes-types/apiextensions/v1';
import { messageOf } from '../../../base/errors.ts';
import { dns1035LabelErrors, dns1123SubdomainErrors } from '../../../base/names.ts';
import { semanticEqual } from '../../meta/equality.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import type { JsonValue } from '../../meta/object.ts';
import { IMMUTABLE_MESSAGE, isSet } from '../../meta/validation.ts';
import { parseJsonPath, simplePath } from '../../structural/paths.ts';
import { validateSchema } from '../../structural/rules.ts';
import { type ParsedSchema, parseSchema, type Schema } from '../../structural/schema.ts';
import { isConditionTrue } from './conditions.ts';
import { validateConversion } from './conversion-validation.ts';

type Definition = CustomResourceDefinition;
type Version = CustomResourceDefinitionVersion;

const COLUMN_TYPES = ['integer', 'number', 'string', 'boolean', 'date'];
const COLUMN_FORMATS = ['int32', 'int64', 'float', 'double', 'byte', 'date', 'date-time', 'password'];
const MAX_SELECTABLE_FIELDS = 8;
const MAX_DEPRECATION_WARNING = 256;
const APPROVAL = 'api-approved.kubernetes.io';

/** Large schemas are looked at more than once while they are written. */
const parsed = new WeakMap<object, { readonly path: string; readonly schema: ParsedSchema }>();

/** The schema of a version and everything wrong with it; read once for each object. */
export function schemaOfVersion(version: Version, index: number): ParsedSchema | undefined {
  const raw = version.schema?.openAPIV3Schema;
  if (raw === undefined) return undefined;
  const path = `spec.versions[${index}].schema.openAPIV3Schema`;
  const known = parsed.get(raw);
  if (known?.path === path) return known.schema;
  const schema = parseSchema(raw as unknown as JsonValue, path);
  parsed.set(raw, { path, schema });
  return schema;
}

export function validateDefinition(definition: Definition): FieldError[] {
  const found: FieldError[] = [];
  const { spec } = definition;
  const expected = `${spec?.names?.plural ?? ''}.${spec?.group ?? ''}`;
  if (definition.metadata?.name !== expected) {
    found.push(
      fieldError.invalid('metadata.name', definition.metadata?.name ?? '', 'must be spec.names.plural+"."+spec.group'),
    );
  }
  if (spec === undefined) return [...found, fieldError.required('spec')];
  group(definition, found);
  if (!isSet(spec.scope)) found.push(fieldError.required('spec.scope'));
  else if (spec.scope !== 'Cluster' && spec.scope !== 'Namespaced') {
    found.push(fieldError.notSupported('spec.scope', spec.scope, ['Cluster', 'Namespaced']));
  }
  if (spec.preserveUnknownFields === true) {
    found.push(
      fieldError.invalid(
        'spec.preserveUnknownFields',
        true,
        'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      ),
    );
  }
  names(definition, found);
  versions(definition, found);
  found.push(...validateConversion(spec.conversion));
  return found;
}

function group(definition: Definition, found: FieldError[]): void {
  const { group: name } = definition.spec;
  if (!isSet(name)) {
    found.push(fieldError.required('spec.group'));
    return;
  }
  for (const message of dns1123SubdomainErrors(name)) found.push(fieldError.invalid('spec.group', name, message));
  if (!name.includes('.'))
    found.push(fieldError.invalid('spec.group', name, 'should be a domain with at least one dot'));
}

function names(definition: Definition, found: FieldError[]): void {
  const given = definition.spec.names ?? { plural: '', kind: '' };
  const at = 'spec.names';
  for (const field of ['plural', 'singular', 'kind', 'listKind'] as const) {
    const value = given[field];
    if (!isSet(value)) {
      if (field !== 'singular' || value === undefined) found.push(fieldError.required(`${at}.${field}`));
      continue;
    }
    const lower = field === 'kind' || field === 'listKind' ? value.toLowerCase() : value;
    for (const message of dns1035LabelErrors(lower)) {
      found.push(
        fieldError.invalid(
          `${at}.${field}`,
          value,
          lower === value ? message : `may have mixed case, but should otherwise match: ${message}`,
        ),
      );
    }
  }
  for (const field of ['shortNames', 'categories'] as const) {
    for (const [index, value] of (given[field] ?? []).entries()) {
      for (const message of dns1035LabelErrors(value))
        found.push(fieldError.invalid(`${at}.${field}[${index}]`, value, message));
    }
  }
  if (isSet(given.kind) && given.kind === given.listKind) {
    found.push(fieldError.invalid(`${at}.listKind`, given.listKind, 'kind and listKind may not be the same'));
  }
}

function versions(definition: Definition, found: FieldError[]): void {
  const list = definition.spec.versions ?? [];
  const at = 'spec.versions';
  const seen = new Set<string>();
  let stored = 0;
  let unique = true;
  for (const [index, version] of list.entries()) {
    if (version.storage) stored += 1;
    if (seen.has(version.name)) unique = false;
    seen.add(version.name);
    for (const message of dns1035LabelErrors(version.name ?? '')) {
      found.push(fieldError.invalid(`${at}[${index}].name`, version.name ?? '', message));
    }
    versionBody(version, index, found);
  }
  if (!unique)
    found.push(fieldError.invalid(at, [...list.map((each) => each.name)], 'must contain unique version names'));
  if (list.length === 0) found.push(fieldError.invalid(at, null, 'must have at least one version'));
  else if (stored !== 1) {
    found.push(
      fieldError.invalid(
        at,
        list.map((each) => each.name),
        'must have exactly one version marked as storage version',
      ),
    );
  }
  const storedVersions = definition.status?.storedVersions;
  for (const [index, name] of (storedVersions ?? []).entries()) {
    if (!seen.has(name)) {
      found.push(
        fieldError.invalid(
          `status.storedVersions[${index}]`,
          name,
          'missing from spec.versions; otherwise stored objects could not be read',
        ),
      );
    }
  }
}

function versionBody(version: Version, index: number, found: FieldError[]): void {
  const at = `spec.versions[${index}]`;
  const parsed = schemaOfVersion(version, index);
  if (parsed === undefined) found.push(fieldError.required(`${at}.schema.openAPIV3Schema`, 'schemas are required'));
  else found.push(...validateSchema(parsed, `${at}.schema.openAPIV3Schema`));
  const warning = version.deprecationWarning;
  if (warning !== undefined && warning !== null) {
    if (version.deprecated !== true)
      found.push(fieldError.invalid(`${at}.deprecationWarning`, warning, 'can only be set for deprecated versions'));
    if (warning.length > MAX_DEPRECATION_WARNING)
      found.push(
        fieldError.invalid(
          `${at}.deprecationWarning`,
          warning,
          `must be <= ${MAX_DEPRECATION_WARNING} characters long`,
        ),
      );
    if (/[^\x20-\x7e]/.test(warning))
      found.push(fieldError.invalid(`${at}.deprecationWarning`, warning, 'must only contain printable characters'));
    if (warning === '') found.push(fieldError.invalid(`${at}.deprecationWarning`, warning, 'must not be empty'));
  }
  for (const [number, column] of (version.additionalPrinterColumns ?? []).entries()) {
    printerColumn(column, `${at}.additionalPrinterColumns[${number}]`, found);
  }
  subresources(version.subresources, `${at}.subresources`, found);
  selectableFields(version, parsed?.schema, `${at}.selectableFields`, found);
}

function printerColumn(column: CustomResourceColumnDefinition, at: string, found: FieldError[]): void {
  if (!isSet(column.name)) found.push(fieldError.required(`${at}.name`));
  if (!isSet(column.type)) found.push(fieldError.required(`${at}.type`, `must be one of ${COLUMN_TYPES.join(',')}`));
  else if (!COLUMN_TYPES.includes(column.type)) {
    found.push(fieldError.invalid(`${at}.type`, column.type, `must be one of ${COLUMN_TYPES.join(',')}`));
  }
  if (isSet(column.format) && !COLUMN_FORMATS.includes(column.format)) {
    found.push(fieldError.invalid(`${at}.format`, column.format, `must be one of ${COLUMN_FORMATS.join(',')}`));
  }
  if (!isSet(column.jsonPath)) {
    found.push(fieldError.required(`${at}.jsonPath`));
    return;
  }
  const { jsonPath } = column;
  try {
    if (!jsonPath.startsWith('.')) throw new Error('must be a json path starting with .');
    parseJsonPath(jsonPath);
  } catch (error) {
    found.push(fieldError.invalid(`${at}.jsonPath`, jsonPath, messageOf(error)));
  }
}

function subresources(given: CustomResourceSubresources | undefined, at: string, found: FieldError[]): void {
  const scale = given?.scale;
  if (scale === undefined) return;
  const path = (
    field: 'specReplicasPath' | 'statusReplicasPath' | 'labelSelectorPath',
    roots: readonly string[],
    optional: boolean,
  ): void => {
    const value = scale[field];
    if (!isSet(value)) {
      if (!optional) found.push(fieldError.required(`${at}.scale.${field}`));
      return;
    }
    const steps = simplePath(value);
    if (steps === undefined)
      found.push(
        fieldError.invalid(`${at}.scale.${field}`, value, 'should be a simple json path without array notation'),
      );
    else if (!roots.includes(steps[0] ?? '') || steps.length < 2) {
      const names = roots.map((root) => `.${root}`).join(' or ');
      found.push(fieldError.invalid(`${at}.scale.${field}`, value, `should be a json path under ${names}`));
    } else if (steps.includes('__proto__'))
      found.push(fieldError.invalid(`${at}.scale.${field}`, value, 'names no field'));
  };
  path('specReplicasPath', ['spec'], false);
  path('statusReplicasPath', ['status'], false);
  path('labelSelectorPath', ['status', 'spec'], true);
}

function selectableFields(version: Version, schema: Schema | undefined, at: string, found: FieldError[]): void {
  const fields = version.selectableFields ?? [];
  if (fields.length > MAX_SELECTABLE_FIELDS) {
    found.push({
      type: 'FieldValueTooMany',
      field: at,
      message: `Too many: ${fields.length}: must have at most ${MAX_SELECTABLE_FIELDS} items`,
    });
  }
  const seen = new Set<string>();
  for (const [index, { jsonPath }] of fields.entries()) {
    const here = `${at}[${index}].jsonPath`;
    if (!isSet(jsonPath)) {
      found.push(fieldError.required(here));
      continue;
    }
    if (seen.has(jsonPath)) found.push(fieldError.duplicate(here, jsonPath));
    seen.add(jsonPath);
    const steps = simplePath(jsonPath);
    if (steps === undefined) {
      found.push(
        fieldError.invalid(here, jsonPath, 'is an invalid path: must be a simple json path without array notation'),
      );
      continue;
    }
    if (steps[0] === 'metadata') {
      found.push(fieldError.invalid(here, jsonPath, 'must not point to fields in metadata'));
      continue;
    }
    let place: Schema | undefined = schema;
    for (const step of steps) place = place?.properties.get(step);
    if (place === undefined)
      found.push(fieldError.invalid(here, jsonPath, 'is an invalid path: does not refer to a valid field'));
    else if (!['string', 'integer', 'boolean'].includes(place.type)) {
      found.push(
        fieldError.invalid(
          here,
          jsonPath,
          'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
        ),
      );
    }
  }
}

/** Groups of Kubernetes itself are not for everybody's kinds. */
export function protectedGroupErrors(definition: Definition): FieldError[] {
  const name = definition.spec?.group ?? '';
  if (name !== 'k8s.io' && name !== 'kubernetes.io' && !name.endsWith('.k8s.io') && !name.endsWith('.kubernetes.io'))
    return [];
  const value = definition.metadata?.annotations?.[APPROVAL];
  const at = `metadata.annotations[${APPROVAL}]`;
  if (!isSet(value)) {
    return [
      fieldError.required(
        at,
        `protected groups must have approval annotation "${APPROVAL}", see https://github.com/kubernetes/enhancements/pull/1111`,
      ),
    ];
  }
  if (value.startsWith('unapproved') || URL.canParse(value)) return [];
  return [
    fieldError.invalid(
      at,
      value,
      'protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111',
    ),
  ];
}

export function validateDefinitionUpdate(definition: Definition, old: Definition): FieldError[] {
  const found: FieldError[] = [];
  const fixed = (value: unknown, before: unknown, at: string): void => {
    if (!semanticEqual(value, before)) found.push(fieldError.invalid(at, value, IMMUTABLE_MESSAGE));
  };
  fixed(definition.spec?.group, old.spec?.group, 'spec.group');
  fixed(definition.spec?.names?.plural, old.spec?.names?.plural, 'spec.names.plural');
  if (isConditionTrue(old, 'Established')) {
    fixed(definition.spec?.scope, old.spec?.scope, 'spec.scope');
    fixed(definition.spec?.names?.kind, old.spec?.names?.kind, 'spec.names.kind');
  }
  return found;
}
