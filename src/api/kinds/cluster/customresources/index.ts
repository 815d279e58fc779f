/**
 * Kind definitions for custom resources. Each version has a definition of its own, because schema, columns and
 * subresources may differ between versions. Source: k8s.io/apiextensions-apiserver/pkg/registry/customresource.
 */

import { goText } from '../../../../base/text/go-text.ts';
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from '../../../generated/apiextensions/v1.ts';
import { jsonEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { JsonObject, JsonValue, KubeObject } from '../../../meta/object.ts';
import { nextGeneration } from '../../../meta/object.ts';
import { ApiError } from '../../../meta/status.ts';
import { finalizerWarnings } from '../../../meta/validation.ts';
import type { CustomKind, KindDefinition, ScaleMapping, WriteStrategy } from '../../../registry/definition.ts';
import { ALL_VERBS, keepGeneration, METADATA_AND_SPEC, metadataOf } from '../../../registry/strategies.ts';
import type { DecodeFindings } from '../../../schema/decode.ts';
import type { ObjectNode } from '../../../schema/node.ts';
import { applyDefaults, MAX_DEFAULT_BYTES } from '../../../structural/defaults.ts';
import { coerceMetadata, validateEmbedded } from '../../../structural/embedded.ts';
import { simplePath, valueAt } from '../../../structural/json-paths.ts';
import { mergeSchemaOf } from '../../../structural/merge-schema.ts';
import { publishedSchema } from '../../../structural/openapi.ts';
import { pruneUnknownFields } from '../../../structural/prune.ts';
import { fieldOf, isObject, type ParsedSchema, parseSchema, type Schema } from '../../../structural/schema.ts';
import { featuresOf } from '../../../structural/schema-features.ts';
import { structuralErrors } from '../../../structural/structural-rules.ts';
import { validateLists, validateValue } from '../../../structural/validate.ts';
import { compareVersions } from '../customresourcedefinitions/names.ts';
import { columnsOf } from './columns.ts';

/**
 * Evaluates the x-kubernetes-validations rules of a schema. Undefined if the schema has no rules. `old` is the object
 * before an update.
 */
export type RuleCheck = (
  object: JsonObject,
  old: JsonObject | undefined,
) => Iterator<undefined, FieldError[]> | undefined;

export interface CustomKindOptions {
  /**
   * The raw schema of a version, read when the first object of the version is processed. Undefined if the version has
   * no schema.
   */
  schemaOf(version: string): JsonValue | undefined;
  /** Compiles the rules of a schema. Called when the first object of the version is written. */
  compileRules(schema: Schema): RuleCheck;
}

/**
 * Values derived from the schema of a version, computed on first use, so that hundreds of unused definitions cost
 * nothing.
 */
class VersionSchema {
  readonly #version: CustomResourceDefinitionVersion;
  readonly #options: CustomKindOptions;
  #schema: Schema | undefined;
  #rules: RuleCheck | undefined;
  #merge: ObjectNode | undefined;
  /** Whether unknown fields are kept at every level. */
  readonly preserves: boolean;

  constructor(version: CustomResourceDefinitionVersion, preserves: boolean, options: CustomKindOptions) {
    this.#version = version;
    this.preserves = preserves;
    this.#options = options;
  }

  get schema(): Schema {
    this.#schema ??= this.#parse().schema;
    return this.#schema;
  }

  /** Whether the schema has x-kubernetes-embedded-resource. */
  get embeds(): boolean {
    return featuresOf(this.schema).embeds;
  }

  get rules(): RuleCheck {
    this.#rules ??= this.#options.compileRules(this.schema);
    return this.#rules;
  }

  get merge(): ObjectNode {
    this.#merge ??= mergeSchemaOf(this.described, this.preserves);
    return this.#merge;
  }

  /** The schema if it is structural, that is, if every value has a known type; otherwise undefined. */
  get described(): Schema | undefined {
    if (!this.preserves) return this.schema;
    const { schema, unsupported } = this.#parse();
    return unsupported === undefined && structuralErrors(schema, '').length === 0 ? schema : undefined;
  }

  #parse(): ParsedSchema {
    return parseSchema(this.#options.schemaOf(this.#version.name) ?? OPEN_SCHEMA, 'openAPIV3Schema');
  }
}

const OPEN_SCHEMA = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

const asJson = (object: KubeObject): JsonObject => object;

/** Kind definition of one version of a custom resource. It uses the accepted names. */
export function customKind(
  definition: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
  options: CustomKindOptions,
): KindDefinition {
  const { group, scope } = definition.spec;
  const names = definition.status?.acceptedNames ?? definition.spec.names;
  const lazy = new VersionSchema(version, definition.spec.preserveUnknownFields === true, options);
  const hasStatus = version.subresources?.status !== undefined;
  const scale = scaleOf(version);
  const kind: KindDefinition = {
    group,
    version: version.name,
    kind: names.kind,
    plural: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    listKind: names.listKind ?? `${names.kind}List`,
    namespaced: scope === 'Namespaced',
    ...((names.shortNames ?? []).length === 0 ? {} : { shortNames: [...(names.shortNames ?? [])] }),
    ...((names.categories ?? []).length === 0 ? {} : { categories: [...(names.categories ?? [])] }),
    verbs: ALL_VERBS,
    schemaName: `${group.split('.').reverse().join('.')}.${version.name}.${names.kind}`,
    storagePrefix: `${group}/${names.plural}`,
    allowUnconditionalUpdate: false,
    setDefaults(object, isApplied = false) {
      if (setDefaults(lazy, asJson(object), isApplied)) return;
      throw new ApiError(
        'RequestEntityTooLarge',
        `${names.kind}: the defaults of the schema would add more than ${MAX_DEFAULT_BYTES} bytes to the object; send fewer items`,
      );
    },
    strategy: mainStrategy(lazy, hasStatus, scale),
    ...(hasStatus ? { statusStrategy: statusStrategy(lazy, scale), statusResetFields: METADATA_AND_SPEC } : {}),
    ...(scale === undefined ? {} : { scale }),
    columns: columnsOf(version),
    fieldSelectors: selectorsOf(version),
    custom: customOf(lazy, definition, version, names.kind),
  };
  return kind;
}

/** Returns false if defaults are missing because of their size. */
function setDefaults(lazy: VersionSchema, document: JsonObject, isApplied: boolean): boolean {
  const isComplete = applyDefaults(lazy.schema, document, isApplied || lazy.preserves ? 'keep' : 'drop');
  // Defaults may contain metadata of embedded resources with fields of a wrong type, which are dropped here.
  if (lazy.embeds) coerceMetadata(lazy.schema, document, { unknownFields: [], typeErrors: [] }, true);
  return isComplete;
}

function customOf(
  lazy: VersionSchema,
  { spec }: CustomResourceDefinition,
  version: CustomResourceDefinitionVersion,
  kind: string,
): CustomKind {
  const apiVersion = `${spec.group}/${version.name}`;
  return {
    storageVersion: spec.versions.find((each) => each.storage && each.served)?.name,
    apiVersions: new Set(spec.versions.map(({ name }) => `${spec.group}/${name}`)),
    coerce(document, stored = false) {
      const findings: DecodeFindings = { unknownFields: [], typeErrors: [] };
      if (!lazy.preserves) findings.unknownFields.push(...pruneUnknownFields(lazy.schema, document));
      coerceMetadata(lazy.schema, document, findings, stored);
      findings.unknownFields.sort();
      return findings;
    },
    setStoredDefaults(document) {
      setDefaults(lazy, document, false);
    },
    get mergeSchema() {
      return lazy.merge;
    },
    openapi: (form) => publishedSchema(lazy.preserves && form === 2 ? undefined : lazy.described, form),
    deprecation:
      version.deprecated === true
        ? (version.deprecationWarning ?? `${apiVersion} ${kind} is deprecated${successor(spec, version.name, kind)}`)
        : undefined,
  };
}

/** Suggested replacement for a deprecated version: the best later version that is served and not deprecated. */
function successor({ group, versions }: CustomResourceDefinition['spec'], name: string, kind: string): string {
  const [best] = versions
    .filter((each) => each.served && each.deprecated !== true && compareVersions(each.name, name) < 0)
    .sort((a, b) => compareVersions(a.name, b.name));
  return best === undefined ? '' : `; use ${group}/${best.name} ${kind}`;
}

function selectorsOf(version: CustomResourceDefinitionVersion): NonNullable<KindDefinition['fieldSelectors']> {
  const readers: Record<string, (object: KubeObject) => string> = {};
  for (const { jsonPath } of version.selectableFields ?? []) {
    const steps = simplePath(jsonPath);
    if (steps === undefined) continue;
    readers[steps.join('.')] = (object) => {
      const value = valueAt(asJson(object), steps);
      return value === undefined || value === null || typeof value === 'object' ? '' : String(value);
    };
  }
  return readers;
}

function scaleOf(version: CustomResourceDefinitionVersion): ScaleMapping | undefined {
  const scale = version.subresources?.scale;
  if (scale === undefined) return undefined;
  const selector = scale.labelSelectorPath === undefined ? undefined : simplePath(scale.labelSelectorPath);
  return {
    specReplicasPath: scale.specReplicasPath,
    statusReplicasPath: scale.statusReplicasPath,
    ...(scale.labelSelectorPath === undefined ? {} : { selectorPath: scale.labelSelectorPath }),
    selector(object) {
      const value = selector === undefined ? undefined : valueAt(asJson(object), selector);
      return typeof value === 'string' ? value : '';
    },
  };
}

function mainStrategy(
  lazy: VersionSchema,
  hasStatus: boolean,
  scale: ScaleMapping | undefined,
): WriteStrategy<KubeObject> {
  return {
    prepareForCreate(object) {
      if (hasStatus) delete asJson(object)['status'];
      metadataOf(object).generation = 1;
    },
    prepareForUpdate(object, old) {
      const next = asJson(object);
      const before = asJson(old);
      if (hasStatus) {
        if (Object.hasOwn(before, 'status')) next['status'] = before['status'] ?? null;
        else delete next['status'];
      }
      keepGeneration(object, old);
      if (contentChanged(next, before, hasStatus)) metadataOf(object).generation = nextGeneration(old);
    },
    warnings: (object, old) => finalizerWarnings(object, old),
    validateCreate: (object) => validate(lazy, scale, object, undefined),
    validateUpdate: (object, old) => validate(lazy, scale, object, old),
    validateExpensive: (object, old) => lazy.rules(asJson(object), old === undefined ? undefined : asJson(old)),
  };
}

/**
 * Whether the generation must increase: any change outside metadata counts, and outside status if status is a
 * subresource.
 */
function contentChanged(next: JsonObject, before: JsonObject, hasStatus: boolean): boolean {
  const names = new Set([...Object.keys(next), ...Object.keys(before)]);
  names.delete('metadata');
  if (hasStatus) names.delete('status');
  for (const name of names) {
    const has = Object.hasOwn(next, name);
    if (has !== Object.hasOwn(before, name) || !jsonEqual(next[name], before[name])) return true;
  }
  return false;
}

function statusStrategy(lazy: VersionSchema, scale: ScaleMapping | undefined): WriteStrategy<KubeObject> {
  return {
    prepareForUpdate(object, old) {
      const next = asJson(object);
      const status = Object.hasOwn(next, 'status') ? next['status'] : undefined;
      const managedFields = object.metadata?.managedFields;
      const resourceVersion = object.metadata?.resourceVersion;
      const before = structuredClone(asJson(old));
      for (const name of Object.keys(next)) delete next[name];
      Object.assign(next, before);
      if (status === undefined) delete next['status'];
      else next['status'] = status;
      const metadata = metadataOf(object);
      if (managedFields === undefined) delete metadata.managedFields;
      else metadata.managedFields = managedFields;
      if (resourceVersion !== undefined) metadata.resourceVersion = resourceVersion;
    },
    validateUpdate: (object, old) => validateStatus(lazy, scale, object, old),
    validateExpensive: (object, old) => lazy.rules(asJson(object), old === undefined ? undefined : asJson(old)),
  };
}

function validate(
  lazy: VersionSchema,
  scale: ScaleMapping | undefined,
  object: KubeObject,
  old: KubeObject | undefined,
): FieldError[] {
  const { schema } = lazy;
  const next = asJson(object);
  const before = old === undefined ? undefined : asJson(old);
  return [...validateValue(schema, next, before), ...validateRest(schema, scale, next, before)];
}

/** Validates the status against its part of the schema. Error paths are relative to the object. */
function validateStatus(
  lazy: VersionSchema,
  scale: ScaleMapping | undefined,
  object: KubeObject,
  old: KubeObject,
): FieldError[] {
  const { schema } = lazy;
  const [next, before] = [asJson(object), asJson(old)];
  const below = schema.properties.get('status');
  const status = fieldOf(next, 'status');
  const found =
    below === undefined || status === undefined ? [] : validateValue(below, status, fieldOf(before, 'status'));
  return [
    ...found.map((each) => ({ ...each, field: each.field === '<nil>' ? 'status' : `status.${each.field}` })),
    ...validateRest(schema, scale, next, before),
  ];
}

function validateRest(
  schema: Schema,
  scale: ScaleMapping | undefined,
  next: JsonObject,
  before: JsonObject | undefined,
): FieldError[] {
  const found = validateEmbedded(schema, next);
  if (before === undefined || validateLists(schema, before).length === 0) found.push(...validateLists(schema, next));
  if (scale !== undefined) found.push(...scaleErrors(scale, next));
  return found;
}

const MAX_REPLICAS = 2 ** 31 - 1;

function scaleErrors(
  { specReplicasPath, statusReplicasPath, selectorPath }: ScaleMapping,
  object: JsonObject,
): FieldError[] {
  const found: FieldError[] = [];
  for (const path of [specReplicasPath, statusReplicasPath]) {
    const value = valueAt(object, simplePath(path) ?? []);
    const problem = accessProblem(object, path, 'int64');
    if (problem !== undefined) found.push(fieldError.invalid(path, 0, problem));
    else if (typeof value !== 'number' && typeof value !== 'bigint') continue;
    else if (value < 0) {
      found.push(fieldError.invalid(path, value, 'should be a non-negative integer'));
    } else if (value > MAX_REPLICAS) {
      found.push(fieldError.invalid(path, value, `should be less than or equal to ${MAX_REPLICAS}`));
    }
  }
  const problem = selectorPath === undefined ? undefined : accessProblem(object, selectorPath, 'string');
  if (selectorPath !== undefined && problem !== undefined) found.push(fieldError.invalid(selectorPath, '', problem));
  return found;
}

/** Error text if `path` cannot hold a value of this type, with the wording of Go's nested field accessors. */
function accessProblem(object: JsonObject, path: string, wanted: 'int64' | 'string'): string | undefined {
  const steps = simplePath(path) ?? [];
  let value: JsonValue | undefined = object;
  for (const [index, step] of steps.entries()) {
    value = isObject(value) ? fieldOf(value, step) : undefined;
    if (value === undefined || value === null) return undefined;
    const expected = index + 1 === steps.length ? wanted : 'map[string]interface{}';
    const actual = goType(value);
    if (actual.replace(' ', '') !== expected)
      return `${path} accessor error: ${goText(value)} is of the type ${actual}, expected ${expected}`;
  }
  return undefined;
}

function goType(value: JsonValue): string {
  if (Array.isArray(value)) return '[]interface {}';
  if (isObject(value)) return 'map[string]interface {}';
  if (typeof value === 'bigint') return 'int64';
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < 2 ** 63 ? 'int64' : 'float64';
  return typeof value === 'boolean' ? 'bool' : 'string';
}
