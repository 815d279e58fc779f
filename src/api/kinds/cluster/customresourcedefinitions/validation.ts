/**
 * Validation of CustomResourceDefinitions. Source:
 * k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go.
 */

import { messageOf } from '../../../../base/errors.ts';
import { dns1035LabelErrors, dns1123SubdomainErrors } from '../../../../base/names.ts';
import type {
  CustomResourceColumnDefinition,
  CustomResourceDefinition,
  CustomResourceDefinitionVersion,
  CustomResourceSubresources,
} from '../../../generated/apiextensions/v1.ts';
import { semanticEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError, NULL } from '../../../meta/field-error.ts';
import { IMMUTABLE_MESSAGE, isSet } from '../../../meta/validation.ts';
import { isBeta } from '../../../registry/versions.ts';
import { validateSchema } from '../../../structural/definition-rules.ts';
import { resolveFieldPath } from '../../../structural/field-path.ts';
import type { Schema } from '../../../structural/schema.ts';
import { isConditionTrue } from './conditions.ts';
import { validateConversion } from './conversion-validation.ts';
import { hoistedPlaces, type Place, parsedSchema, schemaPathOf, someSchema } from './rule-places.ts';
import {
  type DefinitionRules,
  hasDefault,
  hasSchema,
  preservesUnknownFields,
  rulesOfDefinition,
} from './schema-rules.ts';
import { formErrors } from './v1beta1.ts';

type Definition = CustomResourceDefinition;
type Version = CustomResourceDefinitionVersion;

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];
const NO_PATH = 'must be a simple json path starting with .';
const MAX_SELECTABLE_FIELDS = 8;
const MAX_DEPRECATION_WARNING = 256;
const APPROVAL = 'api-approved.kubernetes.io';

/** Validates a definition. `old` is the stored definition; undefined for a create. */
export function validateDefinition(definition: Definition, old?: Definition): FieldError[] {
  const demands = rulesOfDefinition(definition, old);
  const found: FieldError[] = [];
  found.push(...nameErrors(definition));
  const spec: Partial<Definition['spec']> = definition.spec ?? {};
  group(spec.group, found);
  if (!isSet(spec.scope)) found.push(fieldError.required('spec.scope'));
  else if (spec.scope !== 'Cluster' && spec.scope !== 'Namespaced')
    found.push(fieldError.notSupported('spec.scope', spec.scope, ['Cluster', 'Namespaced']));
  schemasNeeded(definition, demands, found);
  versions(definition, found);
  names(spec.names, found);
  for (const place of hoistedPlaces(spec.versions ?? [])) placeErrors(place, demands, found);
  found.push(...validateConversion(spec.conversion, preservesUnknownFields(definition)));
  storedVersions(definition, found);
  if (
    preservesUnknownFields(definition) &&
    !isBeta(definition) &&
    (old === undefined || !preservesUnknownFields(old))
  ) {
    found.push(
      fieldError.invalid(
        'spec.preserveUnknownFields',
        true,
        'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead',
      ),
    );
  }
  return found;
}

function nameErrors({ metadata, spec }: Definition): FieldError[] {
  const expected = `${spec?.names?.plural ?? ''}.${spec?.group ?? ''}`;
  const what = 'must be spec.names.plural+"."+spec.group';
  const found: FieldError[] = [];
  if (isSet(metadata?.generateName) && metadata?.generateName !== expected)
    found.push(fieldError.invalid('metadata.generateName', metadata?.generateName, what));
  if (isSet(metadata?.name) && metadata?.name !== expected)
    found.push(fieldError.invalid('metadata.name', metadata?.name, what));
  return found;
}

function group(name: string | undefined, found: FieldError[]): void {
  if (!isSet(name)) {
    found.push(fieldError.required('spec.group'));
    return;
  }
  const messages = dns1123SubdomainErrors(name);
  if (messages.length > 0) found.push(fieldError.invalid('spec.group', name, messages.join(',')));
  else if (!name.includes('.'))
    found.push(fieldError.invalid('spec.group', name, 'should be a domain with at least one dot'));
}

function names(given: Definition['spec']['names'] | undefined, found: FieldError[]): void {
  const at = 'spec.names';
  const fields = ['plural', 'singular', 'kind', 'listKind'] as const;
  for (const field of fields) if (!isSet(given?.[field])) found.push(fieldError.required(`${at}.${field}`));
  for (const field of fields) {
    const value = given?.[field];
    if (!isSet(value)) continue;
    const mixed = field === 'kind' || field === 'listKind';
    const message = dns1035LabelErrors(mixed ? value.toLowerCase() : value).join(',');
    if (message !== '')
      found.push(
        fieldError.invalid(
          `${at}.${field}`,
          value,
          mixed ? `may have mixed case, but should otherwise match: ${message}` : message,
        ),
      );
  }
  for (const field of ['shortNames', 'categories'] as const) {
    for (const [index, value] of (given?.[field] ?? []).entries()) {
      const message = dns1035LabelErrors(value).join(',');
      if (message !== '') found.push(fieldError.invalid(`${at}.${field}[${index}]`, value, message));
    }
  }
  if (isSet(given?.kind) && given?.kind === given?.listKind)
    found.push(fieldError.invalid(`${at}.listKind`, given?.listKind, 'kind and listKind may not be the same'));
}

function schemasNeeded(definition: Definition, demands: DefinitionRules, found: FieldError[]): void {
  const list = definition.spec?.versions ?? [];
  for (const [index, version] of list.entries()) {
    const at = `spec.versions[${index}].schema.openAPIV3Schema`;
    if (hasSchema(version)) continue;
    if (demands.schemas) found.push(fieldError.required(at));
    else if (version.served && !preservesUnknownFields(definition))
      found.push(fieldError.required(at, 'because otherwise all fields are pruned'));
  }
  if (demands.noDefaults === undefined && preservesUnknownFields(definition) && someSchema(definition, hasDefault)) {
    const what = 'must be false in order to use defaults in the schema';
    found.push(fieldError.invalid('spec.preserveUnknownFields', true, what));
  }
}

function versions(definition: Definition, found: FieldError[]): void {
  const list = definition.spec?.versions ?? [];
  const at = 'spec.versions';
  const seen = new Set<string>();
  const invalid = (what: string): void =>
    void found.push(fieldError.invalid(at, list.length === 0 ? NULL : list.map((each) => each.name), what));
  for (const [index, version] of list.entries()) {
    seen.add(version.name);
    const message = dns1035LabelErrors(version.name ?? '').join(',');
    if (message !== '') found.push(fieldError.invalid(`${at}[${index}].name`, version.name ?? '', message));
    found.push(...deprecation(version, `${at}[${index}].deprecationWarning`));
  }
  // Upstream's internal version has the first version's name in `spec.version`, so an invalid name is also reported for
  // that field.
  const [first] = list;
  const message = !isSet(first?.name) ? '' : dns1035LabelErrors(first.name).join(',');
  if (message !== '') found.push(fieldError.invalid('spec.version', first?.name, message));
  found.push(...formErrors(definition));
  if (seen.size < list.length) invalid('must contain unique version names');
  if (list.filter((each) => each.storage).length !== 1)
    invalid('must have exactly one version marked as storage version');
}

function deprecation({ deprecated, deprecationWarning: warning }: Version, at: string): FieldError[] {
  if (warning === undefined || warning === null) return [];
  const invalid = (what: string): FieldError => fieldError.invalid(at, warning, what);
  if (deprecated !== true) return [invalid('can only be set for deprecated versions')];
  const found: FieldError[] = [];
  if (Buffer.byteLength(warning) > MAX_DEPRECATION_WARNING)
    found.push(invalid(`must be <= ${MAX_DEPRECATION_WARNING} characters long`));
  if (warning === '') found.push(invalid('must not be an empty string'));
  const odd = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(warning);
  if (odd !== null)
    found.push(
      invalid(
        `must only contain printable UTF-8 characters; non-printable character found at index ${Buffer.byteLength(warning.slice(0, odd.index))}`,
      ),
    );
  return found;
}

function storedVersions({ spec, status }: Definition, found: FieldError[]): void {
  const at = 'status.storedVersions';
  const stored = status?.storedVersions ?? [];
  if (stored.length === 0) {
    found.push(fieldError.invalid(at, NULL, 'must have at least one stored version'));
    return;
  }
  const declared = spec?.versions ?? [];
  for (const { name, storage } of declared) {
    if (storage && !stored.includes(name))
      found.push(fieldError.invalid(at, stored, `must have the storage version ${name ?? ''}`));
  }
  for (const [index, name] of stored.entries()) {
    if (declared.some((each) => each.name === name)) continue;
    found.push(
      fieldError.invalid(
        `${at}[${index}]`,
        name,
        `missing from spec.versions; ${name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${name} and removes ${name} from status.storedVersions`,
      ),
    );
  }
}

function placeErrors({ path, version, status, parts }: Place, demands: DefinitionRules, found: FieldError[]): void {
  const schema = version.schema?.openAPIV3Schema;
  const parsed = schema === undefined ? undefined : parsedSchema(schema, path);
  if (parts.has('schema') && parsed !== undefined) {
    found.push(...validateSchema(parsed, schemaPathOf(path), status, demands).found);
  }
  if (parts.has('subresources')) subresources(version.subresources, `${path}.subresources`, found);
  if (parts.has('additionalPrinterColumns')) {
    for (const [index, column] of (version.additionalPrinterColumns ?? []).entries())
      printerColumn(column, `${path}.additionalPrinterColumns[${index}]`, found);
  }
  if (parts.has('selectableFields') && parsed !== undefined)
    selectableFields(version, parsed.schema, `${path}.selectableFields`, found);
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
  if (!isSet(column.jsonPath)) found.push(fieldError.required(`${at}.JSONPath`));
  else if (!column.jsonPath.startsWith('.')) found.push(fieldError.invalid(`${at}.JSONPath`, column.jsonPath, NO_PATH));
}

function subresources(given: CustomResourceSubresources | undefined, at: string, found: FieldError[]): void {
  const scale = given?.scale;
  if (scale === undefined) return;
  const path = (
    field: 'specReplicasPath' | 'statusReplicasPath' | 'labelSelectorPath',
    roots: readonly string[],
    what: string,
  ): void => {
    const value = scale[field];
    const here = `${at}.scale.${field}`;
    if (!isSet(value)) {
      if (field !== 'labelSelectorPath') found.push(fieldError.required(here));
    } else if (!value.startsWith('.')) found.push(fieldError.invalid(here, value, NO_PATH));
    else if (!roots.some((root) => value.startsWith(root)))
      found.push(fieldError.invalid(here, value, `should be a json path under ${what}`));
    else if (value.split('.').includes('__proto__')) found.push(fieldError.invalid(here, value, 'names no field'));
  };
  path('specReplicasPath', ['.spec.'], '.spec');
  path('statusReplicasPath', ['.status.'], '.status');
  path('labelSelectorPath', ['.spec.', '.status.'], 'either .spec or .status');
}

function selectableFields(version: Version, schema: Schema, at: string, found: FieldError[]): void {
  const seen = new Set<string>();
  for (const [index, { jsonPath }] of (version.selectableFields ?? []).entries()) {
    const here = `${at}[${index}].jsonPath`;
    if (!isSet(jsonPath)) {
      found.push(fieldError.required(here));
      continue;
    }
    try {
      const path = resolveFieldPath(schema, jsonPath, { brackets: false });
      if (path.steps[0] === 'metadata')
        found.push(fieldError.invalid(here, jsonPath, 'must not point to fields in metadata'));
      if (!['string', 'integer', 'boolean'].includes(path.schema?.type ?? ''))
        found.push(
          fieldError.invalid(
            here,
            jsonPath,
            'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
          ),
        );
      if (seen.has(path.text)) found.push(fieldError.duplicate(here, jsonPath));
      seen.add(path.text);
    } catch (error) {
      found.push(fieldError.invalid(here, jsonPath, `is an invalid path: ${messageOf(error)}`));
    }
  }
  if (seen.size > MAX_SELECTABLE_FIELDS) found.push(fieldError.tooMany(at, seen.size, MAX_SELECTABLE_FIELDS));
}

/** Requires an approval annotation for groups of Kubernetes, so that custom kinds do not occupy them. */
export function protectedGroupErrors(definition: Definition): FieldError[] {
  if (isBeta(definition)) return [];
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
