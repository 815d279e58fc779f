/**
 * Error paths of the parts of a definition's versions. As upstream's internal version does, parts that all versions
 * share are named at the top of the spec (`spec.validation.openAPIV3Schema`), all others below their version. Source:
 * k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1/conversion.go.
 */
import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from '../../../generated/apiextensions/v1.ts';
import type { JsonObject } from '../../../meta/object.ts';
import { type ParsedSchema, parseSchema, type Schema } from '../../../structural/schema.ts';
import { commonParts } from './v1beta1.ts';

type Version = CustomResourceDefinitionVersion;

const PARTS = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const;
type Part = (typeof PARTS)[number];

export interface Place {
  /** Error path: `spec` or `spec.versions[0]`. */
  readonly path: string;
  readonly version: Version;
  /** Parts of the version that are validated at this path. */
  readonly parts: ReadonlySet<Part>;
  /** Whether the status subresource is enabled. */
  readonly status: boolean;
}

/** Error paths of all parts of a definition. Paths of single versions come before the path that all versions share. */
export function hoistedPlaces(versions: readonly Version[]): Place[] {
  const [first] = versions;
  if (first === undefined) return [];
  const common = commonParts(versions);
  const own = new Set(PARTS.filter((part) => !common.has(part)));
  const hasStatus = (version: Version): boolean => (version.subresources?.status ?? undefined) !== undefined;
  return [
    ...(own.size === 0
      ? []
      : versions.map((version, index) => ({
          path: `spec.versions[${index}]`,
          version,
          parts: own,
          status: hasStatus(version),
        }))),
    { path: 'spec', version: first, parts: common, status: versions.some(hasStatus) },
  ];
}

export const schemaPathOf = (path: string): string =>
  `${path}.${path === 'spec' ? 'validation' : 'schema'}.openAPIV3Schema`;

/** Parsed schemas by their JSON, because one write reads a large schema several times. */
const parsed = new WeakMap<object, { readonly path: string; readonly schema: ParsedSchema }>();

/** Parses a schema, or returns it from the cache. `path` is the error path of the schema. */
export function parsedSchema(raw: JsonObject, path: string): ParsedSchema {
  const known = parsed.get(raw);
  if (known?.path === path) return known.schema;
  const schema = parseSchema(raw, schemaPathOf(path));
  parsed.set(raw, { path, schema });
  return schema;
}

/** The distinct schemas of a definition, with their error path and the versions that use them. */
export function schemasOf({ spec }: CustomResourceDefinition): {
  readonly path: string;
  readonly versions: readonly Version[];
  readonly parsed: ParsedSchema;
  readonly status: boolean;
}[] {
  return hoistedPlaces(spec?.versions ?? []).flatMap(({ path, version, parts, status }) => {
    const raw = version.schema?.openAPIV3Schema;
    if (!parts.has('schema') || raw === undefined) return [];
    return [
      {
        path: schemaPathOf(path),
        versions: path === 'spec' ? spec.versions : [version],
        parsed: parsedSchema(raw, path),
        status,
      },
    ];
  });
}

/** Whether `is` holds for any node of any schema of the definition. */
export function someSchema(definition: CustomResourceDefinition, is: (schema: Schema) => boolean): boolean {
  return schemasOf(definition).some(({ parsed }) => some(parsed.schema, is));
}

function some(schema: Schema, is: (schema: Schema) => boolean): boolean {
  if (is(schema)) return true;
  const { additional, allOf, anyOf, items, not, oneOf, properties } = schema;
  const below = [items, not, typeof additional === 'object' ? additional : undefined, ...allOf, ...anyOf, ...oneOf];
  if (below.some((each) => each !== undefined && some(each, is))) return true;
  for (const property of properties.values()) if (some(property, is)) return true;
  return false;
}
