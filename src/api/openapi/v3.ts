/** OpenAPI v3 documents, one per group and version (KEP-2896). */

import { KUBERNETES_VERSION } from '../../base/versions/version.ts';
import type { KindDefinition } from '../registry/definition.ts';
import type { Descriptions } from '../schema/types-format.ts';
import { customSchemas, renderDefinitions, type SchemaObject, schemaGvks } from './definitions.ts';
import { operationsOfDocument } from './documents.ts';
import { type Operation, type PathOperations, REASONS, schemasOf, TEXT } from './operations.ts';
import type { Parameter } from './parameters.ts';

export { documentNames as openapiV3Paths } from './documents.ts';

/** The document of `GET /openapi/v3`. `hashOf` returns the digest of a document, with which clients cache it. */
export function openapiV3Index(served: readonly string[], hashOf: (path: string) => string) {
  return {
    paths: Object.fromEntries(
      served.map((path) => [
        path,
        { serverRelativeURL: `/openapi/v3/${path}?hash=${encodeURIComponent(hashOf(path))}` },
      ]),
    ),
  };
}

/** The document of `GET /openapi/v3/PATH`; undefined if the path is not in the index. */
export function openapiV3(kinds: readonly KindDefinition[], path: string, descriptions: Descriptions) {
  const operations = operationsOfDocument(kinds, path);
  if (operations === undefined) return undefined;
  const schemas = renderDefinitions(schemasOf(operations), 3, descriptions, schemaGvks(kinds), customSchemas(kinds));
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: KUBERNETES_VERSION.gitVersion },
    paths: Object.fromEntries(operations.map((each) => [each.path, renderPath(each)])),
    components: {
      ...(Object.keys(schemas).length === 0 ? {} : { schemas }),
      securitySchemes: {
        BearerToken: {
          type: 'apiKey',
          description: 'A bearer token',
          name: 'authorization',
          in: 'header',
        },
      },
    },
  };
}

function renderPath({ parameters, operations }: PathOperations): { [key: string]: unknown } {
  return {
    ...Object.fromEntries(operations.map((operation) => [operation.method, renderOperation(operation)])),
    ...renderParameters(parameters),
  };
}

function renderParameters(parameters: readonly Parameter[]): { readonly parameters?: readonly object[] } {
  if (parameters.length === 0) return {};
  return {
    parameters: parameters.map(({ name, in: place, type, description }) => ({
      name,
      in: place,
      description,
      ...(place === 'path' ? { required: true } : {}),
      schema: { type, uniqueItems: true },
    })),
  };
}

function renderOperation(operation: Operation) {
  const { about, body } = operation;
  const content = (schema: SchemaObject, types: readonly string[]) =>
    Object.fromEntries(types.map((type) => [type, { schema }]));
  const reference = (name: string): SchemaObject => ({ $ref: `#/components/schemas/${name}` });
  return {
    tags: [operation.tag],
    description: operation.description,
    operationId: operation.operationId,
    ...renderParameters(operation.parameters),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            content: content(reference(body.schema), operation.consumes),
            ...(body.required ? { required: true } : {}),
          },
        }),
    responses: {
      ...Object.fromEntries(
        operation.responses.map(({ code, schema }) => [
          code,
          {
            description: REASONS[code],
            content: content(schema === TEXT ? { type: 'string' } : reference(schema), operation.produces),
          },
        ]),
      ),
      '401': { description: 'Unauthorized' },
    },
    ...(about === undefined
      ? {}
      : { 'x-kubernetes-action': about.action, 'x-kubernetes-group-version-kind': { ...about.gvk } }),
  };
}
