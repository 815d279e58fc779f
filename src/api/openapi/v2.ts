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

/** The document in pieces of JSON, to which those of custom kinds can be added. */
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

/** The whole document: the built-in kinds' and what each custom kind adds. */
export function joinV2(builtin: V2Parts, custom: readonly V2Parts[]): string {
  const all = [builtin, ...custom];
  const joined = (part: 'paths' | 'definitions'): string =>
    all
      .map((each) => each[part])
      .filter((text) => text !== '')
      .join(',');
  return `${builtin.head}"paths":{${joined('paths')}},"definitions":{${joined('definitions')}}}`;
}

/** What one custom kind adds to the built-in kinds' document. */
export function customV2(kind: KindDefinition, { names }: Pick<V2Parts, 'names'>): OpenApiV2 {
  const added = <T>(record: { readonly [name: string]: T }): { [name: string]: T } =>
    Object.fromEntries(Object.entries(record).filter(([name]) => !names.has(name)));
  const whole = openapiV2([kind], {});
  return { ...whole, paths: added(whole.paths), definitions: added(whole.definitions) };
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
