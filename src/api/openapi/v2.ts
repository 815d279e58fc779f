/** OpenAPI v2: one document for everything, which clients before 1.27 validate, explain and apply by. */
import { KUBERNETES_VERSION } from '../../base/version.ts';
import { servedGroupVersions } from '../discovery/index.ts';
import type { KindDefinition } from '../registry/definition.ts';
import type { Descriptions } from '../schema/types-format.ts';
import { customSchemas, renderDefinitions, type SchemaObject, schemaGvks } from './definitions.ts';
import { consumedBy, type Method, type Operation, operationsOf } from './operations.ts';

export interface OpenApiV2 {
  readonly swagger: '2.0';
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: { readonly [path: string]: PathItemV2 };
  readonly definitions: { readonly [name: string]: SchemaObject };
}

export type PathItemV2 = { readonly [M in Method]?: OperationV2 } & { readonly parameters?: readonly ParameterV2[] };

export interface OperationV2 {
  readonly tags: readonly string[];
  readonly description: string;
  readonly operationId: string;
  readonly consumes: readonly string[];
  readonly produces: readonly string[];
  readonly parameters?: readonly ParameterV2[];
  readonly responses: { readonly [code: string]: { readonly description: string; readonly schema?: SchemaObject } };
  readonly 'x-kubernetes-action': string;
  readonly 'x-kubernetes-group-version-kind': {
    readonly group: string;
    readonly kind: string;
    readonly version: string;
  };
}

export interface ParameterV2 {
  readonly name: string;
  readonly in: 'body' | 'path' | 'query';
  readonly description?: string;
  readonly required?: boolean;
  readonly type?: string;
  readonly schema?: SchemaObject;
}

/** GET /openapi/v2 as JSON; `encodeOpenapiV2` makes the protobuf form of it. */
export function openapiV2(kinds: readonly KindDefinition[], descriptions: Descriptions): OpenApiV2 {
  const paths: { [path: string]: PathItemV2 } = {};
  const gvks = schemaGvks(kinds);
  const types = new Set<string>(gvks.keys());
  for (const groupVersion of servedGroupVersions(kinds)) {
    for (const { path, pathParameters, operations } of operationsOf(kinds, groupVersion)) {
      for (const { body, response } of operations) {
        if (body !== undefined) types.add(body);
        if (response !== undefined) types.add(response);
      }
      paths[path] = {
        ...Object.fromEntries(operations.map((operation) => [operation.method, renderOperation(operation)])),
        ...(pathParameters.length === 0
          ? {}
          : {
              parameters: pathParameters.map(
                (name): ParameterV2 => ({
                  name,
                  in: 'path',
                  description: name === 'name' ? 'name of the object' : 'namespace of the object',
                  required: true,
                  type: 'string',
                }),
              ),
            }),
      };
    }
  }
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: KUBERNETES_VERSION.gitVersion },
    paths,
    definitions: renderDefinitions(types, 2, descriptions, gvks, customSchemas(kinds)),
  };
}

/**
 * The JSON of the document: that of the built-in kinds, which never changes, with the custom kinds' laid in. `builtin` is what
 * `v2Parts` made of their document.
 */
export function joinV2(builtin: V2Parts, custom: OpenApiV2): string {
  const own = (record: object, names: ReadonlySet<string>): string =>
    Object.entries(record)
      .filter(([name]) => !names.has(name))
      .map(([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`)
      .join('');
  const paths = own(custom.paths, builtin.names);
  return `${builtin.head}"paths":{${builtin.paths}${paths}},"definitions":{${builtin.definitions}${own(custom.definitions, builtin.names)}}}`;
}

export interface V2Parts {
  readonly head: string;
  readonly paths: string;
  readonly definitions: string;
  readonly names: ReadonlySet<string>;
}

export function v2Parts({ paths, definitions, ...head }: OpenApiV2): V2Parts {
  return {
    head: `${JSON.stringify(head).slice(0, -1)},`,
    paths: JSON.stringify(paths).slice(1, -1),
    definitions: JSON.stringify(definitions).slice(1, -1),
    names: new Set([...Object.keys(paths), ...Object.keys(definitions)]),
  };
}

/** Without what the built-in kinds' document has already. */
export function onlyCustom(custom: OpenApiV2, { names }: V2Parts): OpenApiV2 {
  const without = <T>(record: { readonly [name: string]: T }): { [name: string]: T } =>
    Object.fromEntries(Object.entries(record).filter(([name]) => !names.has(name)));
  return { ...custom, paths: without(custom.paths), definitions: without(custom.definitions) };
}

function renderOperation(operation: Operation): OperationV2 {
  const { group, kind, version } = operation.gvk;
  const schema = (name: string): SchemaObject => ({ $ref: `#/definitions/${name}` });
  const parameters: ParameterV2[] = [
    ...(operation.body === undefined
      ? []
      : [{ name: 'body', in: 'body' as const, required: true, schema: schema(operation.body) }]),
    ...operation.queryParameters.map(
      ({ name, type, description }): ParameterV2 => ({ name, in: 'query', type, description }),
    ),
  ];
  return {
    tags: [operation.tag],
    description: operation.description,
    operationId: operation.operationId,
    consumes: consumedBy(operation),
    produces: ['application/json', 'application/yaml'],
    ...(parameters.length === 0 ? {} : { parameters }),
    responses: {
      '200': {
        description: 'OK',
        ...(operation.response === undefined ? {} : { schema: schema(operation.response) }),
      },
      '401': { description: 'Unauthorized' },
    },
    'x-kubernetes-action': operation.action,
    'x-kubernetes-group-version-kind': { group, kind, version },
  };
}
