/** The OpenAPI v2 document. Clients before 1.27 use it for validation, explain and apply. */
import { KUBERNETES_VERSION } from '../../base/versions/version.ts';
import type { KindDefinition } from '../registry/definition.ts';
import type { Descriptions } from '../schema/types-format.ts';
import { customSchemas, renderDefinitions, type SchemaObject, schemaGvks } from './definitions.ts';
import { documentNames, operationsOfDocument } from './documents.ts';
import { type Method, type Operation, REASONS, schemasOf, TEXT } from './operations.ts';
import type { Parameter } from './parameters.ts';

export interface OpenApiV2 {
  readonly swagger: '2.0';
  readonly info: { readonly title: string; readonly version: string };
  readonly paths: { readonly [path: string]: PathItemV2 };
  readonly definitions: { readonly [name: string]: SchemaObject };
  readonly securityDefinitions?: { readonly [name: string]: SecurityV2 };
  readonly security?: readonly { readonly [name: string]: readonly string[] }[];
}

/** An API key definition. In v2, bearer tokens are declared as API keys. */
export interface SecurityV2 {
  readonly description: string;
  readonly type: 'apiKey';
  readonly name: string;
  readonly in: 'header';
}

export type PathItemV2 = { readonly [M in Method]?: OperationV2 } & { readonly parameters?: readonly ParameterV2[] };

export interface OperationV2 {
  readonly tags: readonly string[];
  readonly description: string;
  readonly operationId: string;
  readonly consumes?: readonly string[];
  readonly produces: readonly string[];
  readonly schemes?: readonly string[];
  readonly parameters?: readonly ParameterV2[];
  readonly responses: { readonly [code: string]: { readonly description: string; readonly schema?: SchemaObject } };
  readonly 'x-kubernetes-action'?: string;
  readonly 'x-kubernetes-group-version-kind'?: {
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
  readonly uniqueItems?: boolean;
  readonly schema?: SchemaObject;
}

/** The document of `GET /openapi/v2` as JSON. `encodeOpenapiV2` converts it to protobuf. */
export function openapiV2(kinds: readonly KindDefinition[], descriptions: Descriptions): OpenApiV2 {
  const gvks = schemaGvks(kinds);
  const operations = documentNames(kinds).flatMap((name) => operationsOfDocument(kinds, name) ?? []);
  const types = new Set([...gvks.keys(), ...schemasOf(operations)]);
  return {
    swagger: '2.0',
    info: { title: 'Kubernetes', version: KUBERNETES_VERSION.gitVersion },
    paths: Object.fromEntries(
      operations.map((each): [string, PathItemV2] => [
        each.path,
        {
          ...Object.fromEntries(each.operations.map((operation) => [operation.method, renderOperation(operation)])),
          ...(each.parameters.length === 0 ? {} : { parameters: each.parameters.map(renderParameter) }),
        },
      ]),
    ),
    definitions: renderDefinitions(types, 2, descriptions, gvks, customSchemas(kinds)),
    securityDefinitions: {
      BearerToken: { description: 'A bearer token', type: 'apiKey', name: 'authorization', in: 'header' },
    },
    security: [{ BearerToken: [] }],
  };
}

/** Parts of the serialized document, between which the parts of custom resources are inserted. */
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

/** The whole document: built-in kinds and the additions of each custom resource. */
export function joinV2(builtin: V2Parts, custom: readonly V2Parts[]): string {
  const all = [builtin, ...custom];
  const joined = (part: 'paths' | 'definitions'): string =>
    all
      .map((each) => each[part])
      .filter((text) => text !== '')
      .join(',');
  return `${builtin.head}"paths":{${joined('paths')}},"definitions":{${joined('definitions')}}}`;
}

/** Additions of one custom resource to the document of the built-in kinds. */
export function customV2(kind: KindDefinition, { names }: Pick<V2Parts, 'names'>): OpenApiV2 {
  const added = <T>(record: { readonly [name: string]: T }): { [name: string]: T } =>
    Object.fromEntries(Object.entries(record).filter(([name]) => !names.has(name)));
  const { swagger, info, paths, definitions } = openapiV2([kind], {});
  return { swagger, info, paths: added(paths), definitions: added(definitions) };
}

function renderParameter({ name, in: place, type, description }: Parameter): ParameterV2 {
  return { name, in: place, description, ...(place === 'path' ? { required: true } : {}), type, uniqueItems: true };
}

function renderOperation(operation: Operation): OperationV2 {
  const { about, body } = operation;
  const reference = (name: string): SchemaObject => ({ $ref: `#/definitions/${name}` });
  const parameters: ParameterV2[] = [
    ...(body === undefined
      ? []
      : [
          {
            name: 'body',
            in: 'body' as const,
            ...(body.required ? { required: true } : {}),
            schema: reference(body.schema),
          },
        ]),
    ...operation.parameters.map(renderParameter),
  ];
  return {
    tags: [operation.tag],
    description: operation.description,
    operationId: operation.operationId,
    schemes: ['https'],
    ...(operation.consumes.length === 0 ? {} : { consumes: operation.consumes }),
    produces: operation.produces,
    ...(parameters.length === 0 ? {} : { parameters }),
    responses: {
      ...Object.fromEntries(
        operation.responses.map(({ code, schema }) => [
          code,
          { description: REASONS[code], schema: schema === TEXT ? { type: 'string' } : reference(schema) },
        ]),
      ),
      '401': { description: 'Unauthorized' },
    },
    ...(about === undefined
      ? {}
      : { 'x-kubernetes-action': about.action, 'x-kubernetes-group-version-kind': { ...about.gvk } }),
  };
}
