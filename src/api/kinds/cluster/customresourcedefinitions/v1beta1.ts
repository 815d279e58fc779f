/**
 * Conversion of v1beta1 definitions. In v1beta1, parts that all versions share may be at the top of the spec, and
 * unknown fields are kept by default. Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/{v1,v1beta1}
 * conversion and defaults.
 */

import { dns1035LabelErrors } from '../../../../base/names.ts';
import type {
  CustomResourceColumnDefinition,
  CustomResourceConversion,
  CustomResourceDefinition,
  CustomResourceDefinitionSpec,
  CustomResourceDefinitionVersion,
  WebhookClientConfig,
} from '../../../generated/apiextensions/v1.ts';
import { jsonEqual } from '../../../meta/equality.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import type { JsonValue, KubeObject } from '../../../meta/object.ts';
import { isSet } from '../../../meta/validation.ts';
import type { KindAlias } from '../../../registry/definition.ts';

type Version = CustomResourceDefinitionVersion;

type OlderColumn = Omit<CustomResourceColumnDefinition, 'jsonPath'> & { JSONPath?: string };

interface OlderParts {
  subresources?: Version['subresources'];
  additionalPrinterColumns?: OlderColumn[];
  selectableFields?: Version['selectableFields'];
}

type OlderVersion = Omit<Version, 'additionalPrinterColumns'> & OlderParts;

interface OlderConversion extends Pick<CustomResourceConversion, 'strategy'> {
  webhookClientConfig?: WebhookClientConfig;
  conversionReviewVersions?: string[];
}

interface OlderSpec extends Omit<CustomResourceDefinitionSpec, 'versions' | 'conversion'>, OlderParts {
  version?: string;
  validation?: Version['schema'];
  versions?: OlderVersion[];
  conversion?: OlderConversion;
}

/** Parts of a version: field of the version, field at the top of the spec, and name in error messages. */
const PARTS = [
  ['schema', 'validation', 'schemas'],
  ['subresources', 'subresources', 'subresources'],
  ['additionalPrinterColumns', 'additionalPrinterColumns', 'additionalPrinterColumns'],
  // selectableFields is a newer field, so it may be in the version and at the top of the spec at the same time.
  ['selectableFields', 'selectableFields', undefined],
] as const;

/**
 * Original spec of definitions that were sent in v1beta1, for validation: a valid and an invalid form of v1beta1 may
 * convert to the same v1 object.
 */
const sent = new WeakMap<object, OlderSpec>();

/** Errors about the form of a v1beta1 request. Empty if the definition was sent in v1. */
export function formErrors(definition: object): FieldError[] {
  const spec = sent.get(definition);
  if (spec === undefined) return [];
  const versions = spec.versions ?? [];
  const found: FieldError[] = [];
  for (const [part, whole, what] of PARTS) {
    if (what === undefined || !isGiven(spec[whole]) || !versions.some((each) => isGiven(each[part]))) continue;
    found.push(fieldError.forbidden(`spec.${whole}`, `top-level and per-version ${what} are mutually exclusive`));
  }
  for (const [part, whole, what] of PARTS) {
    if (
      what === undefined ||
      versions.length === 0 ||
      !versions.every((each) => isGiven(each[part]) && isSame(each[part], versions[0]?.[part]))
    )
      continue;
    found.push(
      fieldError.invalid(
        'spec.versions',
        versions.map((each) => each.name),
        `per-version ${what} may not all be set to identical values (top-level ${whole} should be used instead)`,
      ),
    );
  }
  return [...found, ...versionErrors(spec)];
}

function versionErrors({ version, versions = [] }: OlderSpec): FieldError[] {
  if (!isSet(version) || versions.length === 0) return [];
  const found: FieldError[] = [];
  const message = dns1035LabelErrors(version).join(',');
  // Another check reports an invalid name of the first version.
  if (message !== '' && versions[0]?.name !== version) found.push(fieldError.invalid('spec.version', version, message));
  if (versions[0]?.name !== version)
    found.push(fieldError.invalid('spec.version', version, 'must match the first version in spec.versions'));
  return found;
}

/** As in Go, an empty struct counts as set and an empty list does not. */
const isGiven = (value: unknown): boolean => value !== undefined && (!Array.isArray(value) || value.length > 0);

const isSame = (a: unknown, b: unknown): boolean => jsonEqual(a as JsonValue | undefined, b as JsonValue | undefined);

/**
 * The parts that are equal in all versions, including parts that no version has. They can be written at the top of the
 * spec.
 */
export function commonParts(versions: readonly Version[]): Set<(typeof PARTS)[number][0]> {
  const [first] = versions;
  const common = PARTS.map(([part]) => part).filter((part) =>
    versions.every((each) => isSame(each[part], first?.[part])),
  );
  return new Set(common);
}

function versionsOf(spec: OlderSpec): Version[] | undefined {
  const { version, versions = [], validation, subresources, additionalPrinterColumns, selectableFields } = spec;
  const given = versions.length === 0 && isSet(version) ? [{ name: version, served: true, storage: true }] : versions;
  if (given.length === 0) return undefined;
  return given.map((each: OlderVersion) => {
    const { additionalPrinterColumns: own, ...rest } = each;
    const columns = isGiven(own) ? own : additionalPrinterColumns;
    return {
      ...(validation === undefined ? {} : { schema: validation }),
      ...(subresources === undefined ? {} : { subresources }),
      ...(selectableFields === undefined ? {} : { selectableFields }),
      ...rest,
      ...(columns === undefined || columns.length === 0
        ? {}
        : { additionalPrinterColumns: columns.map(columnTo) as Version['additionalPrinterColumns'] }),
    } as Version;
  });
}

function columnTo({ JSONPath, ...rest }: OlderColumn): CustomResourceColumnDefinition {
  return { ...rest, ...(JSONPath === undefined ? {} : { jsonPath: JSONPath }) } as CustomResourceColumnDefinition;
}

function columnFrom({ jsonPath, ...rest }: CustomResourceColumnDefinition): OlderColumn {
  return { ...rest, ...(jsonPath === undefined ? {} : { JSONPath: jsonPath }) };
}

function conversionTo({
  webhookClientConfig,
  conversionReviewVersions,
  ...rest
}: OlderConversion): CustomResourceConversion {
  const reviews =
    rest.strategy === 'Webhook' && !isGiven(conversionReviewVersions) ? ['v1beta1'] : conversionReviewVersions;
  if (webhookClientConfig === undefined && reviews === undefined) return rest;
  return {
    ...rest,
    webhook: {
      ...(webhookClientConfig === undefined ? {} : { clientConfig: webhookClientConfig }),
      conversionReviewVersions: reviews ?? [],
    },
  };
}

function conversionFrom({ webhook, ...rest }: CustomResourceConversion): OlderConversion {
  return {
    ...rest,
    ...(webhook?.clientConfig === undefined ? {} : { webhookClientConfig: webhook.clientConfig }),
    ...(isGiven(webhook?.conversionReviewVersions)
      ? { conversionReviewVersions: webhook?.conversionReviewVersions as string[] }
      : {}),
  };
}

function specTo(spec: OlderSpec): CustomResourceDefinitionSpec {
  const {
    version: _version,
    validation: _validation,
    subresources: _subresources,
    additionalPrinterColumns: _columns,
    selectableFields: _fields,
    conversion,
    preserveUnknownFields = true,
    scope,
    ...rest
  } = spec;
  const versions = versionsOf(spec);
  return {
    ...rest,
    scope: isSet(scope) ? scope : 'Namespaced',
    ...(versions === undefined ? {} : { versions }),
    ...(conversion === undefined ? {} : { conversion: conversionTo(conversion) }),
    ...(preserveUnknownFields ? { preserveUnknownFields } : {}),
  } as CustomResourceDefinitionSpec;
}

function specFrom({ versions = [], conversion, ...rest }: CustomResourceDefinitionSpec): OlderSpec {
  const common = commonParts(versions);
  const shown = versions.map((version): OlderVersion => {
    const { schema: _s, subresources: _r, selectableFields: _f, additionalPrinterColumns: _c, ...other } = version;
    return { ...other, ...partsFrom(version, (part) => !common.has(part)) } as OlderVersion;
  });
  const [first] = versions;
  const { schema: validation, ...parts } = first === undefined ? {} : partsFrom(first, (part) => common.has(part));
  return {
    ...rest,
    ...(first?.name === undefined ? {} : { version: first.name }),
    ...(validation === undefined ? {} : { validation }),
    ...parts,
    ...(versions.length === 0 ? {} : { versions: shown }),
    ...(conversion === undefined ? {} : { conversion: conversionFrom(conversion) }),
    preserveUnknownFields: rest.preserveUnknownFields ?? false,
  };
}

function partsFrom(
  version: Pick<Version, (typeof PARTS)[number][0]>,
  wanted: (part: (typeof PARTS)[number][0]) => boolean,
): Pick<OlderVersion, (typeof PARTS)[number][0]> {
  const found: Record<string, unknown> = {};
  for (const [part] of PARTS) {
    const value = version[part];
    if (value === undefined || !wanted(part)) continue;
    found[part] =
      part === 'additionalPrinterColumns' ? (value as CustomResourceColumnDefinition[]).map(columnFrom) : value;
  }
  return found;
}

export const olderDefinition: KindAlias<CustomResourceDefinition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1beta1',
  skeleton: { spec: { names: {} }, status: { acceptedNames: {}, conditions: null, storedVersions: null } },
  deprecated: { since: '1.16', removed: '1.22' },
  convertTo(object) {
    const { spec } = object as { spec?: OlderSpec };
    if (spec === undefined) return object as CustomResourceDefinition;
    const converted = { ...object, spec: specTo(spec) } as CustomResourceDefinition;
    sent.set(converted, spec);
    return converted;
  },
  convertFrom(definition) {
    if (definition.spec === undefined) return definition as KubeObject;
    return { ...definition, spec: specFrom(definition.spec) } as KubeObject;
  },
};
