/** Schemas of a kind in the server's OpenAPI v3 document. */
import type { ResourceInfo } from './resources.ts';

export interface Schema {
  readonly type?: string;
  readonly format?: string;
  readonly description?: string;
  readonly $ref?: string;
  readonly allOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-patch-strategy'?: string;
  readonly 'x-kubernetes-patch-merge-key'?: string;
  readonly 'x-kubernetes-group-version-kind'?: readonly {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  }[];
}

export type Schemas = Readonly<Record<string, Schema>>;

export interface OpenApiDocument {
  readonly components?: { readonly schemas?: Schemas };
}

/** Path of the OpenAPI document that contains the kinds of the resource's group and version. */
export const openApiPath = ({ group, version }: ResourceInfo): string =>
  `/openapi/v3/${group === '' ? `api/${version}` : `apis/${group}/${version}`}`;

/** Schema of the resource's kind; undefined if the document has none. */
export function schemaOfKind(schemas: Schemas, resource: ResourceInfo): Schema | undefined {
  return Object.values(schemas).find((schema) =>
    schema['x-kubernetes-group-version-kind']?.some(
      ({ group, version, kind }) => group === resource.group && version === resource.version && kind === resource.kind,
    ),
  );
}

/** Name of the schema that a reference names; undefined if the schema is not a reference. */
export const referenceOf = (schema: Schema): string | undefined =>
  (schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined))?.split('/').at(-1);

/** The schema that a reference names; the schema itself if it is not a reference. */
export function resolve(schemas: Schemas, schema: Schema): Schema {
  const name = referenceOf(schema);
  return (name === undefined ? undefined : schemas[name]) ?? schema;
}
