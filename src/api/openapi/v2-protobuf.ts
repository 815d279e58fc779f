/**
 * Protobuf form of the OpenAPI v2 document, which kubectl prefers over JSON. Source: gnostic's
 * openapiv2/OpenAPIv2.proto (message and field numbers).
 */
import { Writer } from '../../wire/protobuf/protobuf.ts';
import type { SchemaObject } from './definitions.ts';
import type { OpenApiV2, OperationV2, ParameterV2, PathItemV2, SecurityV2 } from './v2.ts';

/**
 * Media types that request the protobuf form. The old name is not a valid media type, so responses have the new one.
 */
export const OPENAPI_V2_PROTOBUF_REQUESTS: readonly string[] = [
  'application/com.github.proto-openapi.spec.v2@v1.0+protobuf',
  'application/com.github.proto-openapi.spec.v2.v1.0+protobuf',
];
/** Content type of the response. */
export const OPENAPI_V2_PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';

/** Encodes the document. `expected`: approximate size of the result in bytes. */
export function encodeOpenapiV2(document: OpenApiV2, expected = 1 << 20): Uint8Array {
  const out = new Writer(expected);
  out.string(1, document.swagger);
  within(out, 2, () => out.string(1, document.info.title).string(2, document.info.version));
  within(out, 8, () => {
    for (const [path, item] of Object.entries(document.paths)) {
      named(out, 2, path, () => writePathItem(out, item));
    }
  });
  within(out, 9, () => {
    for (const [name, schema] of Object.entries(document.definitions)) {
      named(out, 1, name, () => writeSchema(out, schema));
    }
  });
  for (const requirement of document.security ?? []) within(out, 12, () => writeSecurity(out, requirement));
  const schemes = Object.entries(document.securityDefinitions ?? {});
  if (schemes.length > 0) within(out, 13, () => writeSecurityDefinitions(out, schemes));
  return out.finish();
}

function writeSecurity(out: Writer, requirement: { readonly [name: string]: readonly string[] }): void {
  for (const [name, scopes] of Object.entries(requirement)) named(out, 1, name, () => strings(out, 1, scopes));
}

function writeSecurityDefinitions(out: Writer, schemes: readonly (readonly [string, SecurityV2])[]): void {
  for (const [name, scheme] of schemes)
    named(out, 1, name, () =>
      within(out, 2, () =>
        out.string(1, scheme.type).string(2, scheme.name).string(3, scheme.in).string(4, scheme.description),
      ),
    );
}

function within(out: Writer, field: number, write: () => void): void {
  const mark = out.begin(field);
  write();
  out.end(mark);
}

/** Writes a `Named…` message: a name and a value. */
function named(out: Writer, field: number, name: string, write: () => void): void {
  within(out, field, () => {
    out.string(1, name);
    within(out, 2, write);
  });
}

function strings(out: Writer, field: number, values: readonly string[]): void {
  for (const value of values) out.string(field, value);
}

/** Writes vendor extensions. The binary form has them as YAML text, and JSON is valid YAML. */
function vendorExtensions(out: Writer, field: number, extensions: object): void {
  for (const [name, value] of Object.entries(extensions)) {
    if (name.startsWith('x-')) named(out, field, name, () => out.string(2, `${JSON.stringify(value)}\n`));
  }
}

const METHOD_FIELDS = { get: 2, put: 3, post: 4, delete: 5, options: 6, head: 7, patch: 8 } as const;

function writePathItem(out: Writer, item: PathItemV2): void {
  for (const [method, field] of Object.entries(METHOD_FIELDS) as [keyof typeof METHOD_FIELDS, number][]) {
    const operation = item[method];
    if (operation !== undefined) within(out, field, () => writeOperation(out, operation));
  }
  for (const parameter of item.parameters ?? []) within(out, 9, () => writeParameter(out, parameter));
}

function writeOperation(out: Writer, operation: OperationV2): void {
  strings(out, 1, operation.tags);
  out.string(3, operation.description);
  out.string(5, operation.operationId);
  strings(out, 6, operation.produces);
  strings(out, 7, operation.consumes ?? []);
  for (const parameter of operation.parameters ?? []) within(out, 8, () => writeParameter(out, parameter));
  within(out, 9, () => {
    for (const [code, response] of Object.entries(operation.responses)) {
      named(out, 1, code, () =>
        within(out, 1, () => {
          out.string(1, response.description);
          const { schema } = response;
          if (schema !== undefined) within(out, 2, () => within(out, 1, () => writeSchema(out, schema)));
        }),
      );
    }
  });
  strings(out, 10, operation.schemes ?? []);
  vendorExtensions(out, 13, operation);
}

/** Writes a ParametersItem: Parameter, then a body or non-body parameter, then query or path. */
function writeParameter(out: Writer, parameter: ParameterV2): void {
  const { name, description = '', required = false, type = '', schema } = parameter;
  within(out, 1, () => {
    if (parameter.in === 'body') {
      within(out, 1, () => {
        out.string(1, description).string(2, name).string(3, 'body').bool(4, required);
        if (schema !== undefined) within(out, 5, () => writeSchema(out, schema));
      });
      return;
    }
    const query = parameter.in === 'query';
    within(out, 2, () =>
      within(out, query ? 3 : 4, () => {
        out.bool(1, required).string(2, parameter.in).string(3, description).string(4, name);
        out.string(query ? 6 : 5, type);
        if (parameter.uniqueItems === true) out.bool(query ? 20 : 19, true);
      }),
    );
  });
}

function writeSchema(out: Writer, schema: SchemaObject): void {
  const text = (key: string): string => {
    const value = schema[key];
    return typeof value === 'string' ? value : '';
  };
  const nested = (key: string): SchemaObject | undefined => {
    const value = schema[key];
    return typeof value === 'object' && value !== null ? (value as SchemaObject) : undefined;
  };
  out.string(1, text('$ref')).string(2, text('format')).string(4, text('description'));
  const required = schema['required'];
  if (Array.isArray(required)) strings(out, 19, required as string[]);
  const values = schema['enum'];
  // Each value is a message of its own with YAML text.
  if (Array.isArray(values)) for (const value of values) within(out, 20, () => out.string(2, JSON.stringify(value)));
  const additional = nested('additionalProperties');
  if (additional !== undefined) within(out, 21, () => within(out, 1, () => writeSchema(out, additional)));
  if (text('type') !== '') within(out, 22, () => out.string(1, text('type')));
  const items = nested('items');
  if (items !== undefined) within(out, 23, () => within(out, 1, () => writeSchema(out, items)));
  const properties = nested('properties');
  if (properties !== undefined) {
    within(out, 25, () => {
      for (const [name, property] of Object.entries(properties)) {
        named(out, 1, name, () => writeSchema(out, property as SchemaObject));
      }
    });
  }
  vendorExtensions(out, 31, schema);
}
