/** OpenAPI v3, one document per group and version (KEP-2896). */

import { KUBERNETES_VERSION } from '../../base/version.ts';
import { servedGroupVersions } from '../discovery/index.ts';
import type { KindDefinition } from '../registry/definition.ts';
import type { Descriptions } from '../schema/types-format.ts';
import { customSchemas, renderDefinitions, schemaGvks } from './definitions.ts';
import { consumedBy, type Operation, operationsOf, type PathOperations } from './operations.ts';

/** `api/v1`, `apis/apps/v1` …: the keys of the index and the tails of the documents' paths. */
export function openapiV3Paths(kinds: readonly KindDefinition[]): string[] {
  return servedGroupVersions(kinds).map(({ group, version }) =>
    group === '' ? `api/${version}` : `apis/${group}/${version}`,
  );
}

/** GET /openapi/v3. `hashOf` gives the digest of a document, by which clients cache it. */
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

/** GET /openapi/v3/PATH; undefined when the path is not one of `openapiV3Paths`. */
export function openapiV3(kinds: readonly KindDefinition[], path: string, descriptions: Descriptions) {
  const found = servedGroupVersions(kinds).find(
    ({ group, version }) => (group === '' ? `api/${version}` : `apis/${group}/${version}`) === path,
  );
  if (found === undefined) return undefined;
  const operations = operationsOf(kinds, found);
  const types = new Set<string>();
  for (const { operations: each } of operations) {
    for (const { body, response } of each) {
      if (body !== undefined) types.add(body);
      if (response !== undefined) types.add(response);
    }
  }
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: KUBERNETES_VERSION.gitVersion },
    paths: Object.fromEntries(operations.map((each) => [each.path, renderPath(each)])),
    components: { schemas: renderDefinitions(types, 3, descriptions, schemaGvks(kinds), customSchemas(kinds)) },
  };
}

function renderPath({ pathParameters, operations }: PathOperations): { [key: string]: unknown } {
  const item: { [key: string]: unknown } = Object.fromEntries(
    operations.map((operation) => [operation.method, renderOperation(operation)]),
  );
  if (pathParameters.length > 0) {
    item['parameters'] = pathParameters.map((name) => ({
      name,
      in: 'path',
      description: name === 'name' ? 'name of the object' : 'namespace of the object',
      required: true,
      schema: { type: 'string', uniqueItems: true },
    }));
  }
  return item;
}

function renderOperation(operation: Operation) {
  const { group, kind, version } = operation.gvk;
  const content = (schema: string, types: readonly string[]) =>
    Object.fromEntries(types.map((type) => [type, { schema: { $ref: `#/components/schemas/${schema}` } }]));
  return {
    tags: [operation.tag],
    description: operation.description,
    operationId: operation.operationId,
    ...(operation.queryParameters.length === 0
      ? {}
      : {
          parameters: operation.queryParameters.map(({ name, type, description }) => ({
            name,
            in: 'query',
            description,
            schema: { type, uniqueItems: true },
          })),
        }),
    ...(operation.body === undefined
      ? {}
      : {
          requestBody: { content: content(operation.body, consumedBy(operation)) },
        }),
    responses: {
      '200': {
        description: 'OK',
        ...(operation.response === undefined
          ? {}
          : { content: content(operation.response, ['application/json', 'application/yaml']) }),
      },
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': { group, kind, version },
  };
}
