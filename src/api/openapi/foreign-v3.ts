/**
 * Conversion of OpenAPI v2 to v3, for aggregated API servers without v3. Source: k8s.io/kube-openapi/pkg/openapiconv.
 */
import type { OpenApiV2, OperationV2, ParameterV2 } from './v2.ts';

const FROM = '#/definitions/';
const TO = '#/components/schemas/';
const JSON_TYPE = 'application/json';

export function asV3({ paths, definitions }: Pick<OpenApiV2, 'paths' | 'definitions'>, title: string): object {
  return {
    openapi: '3.0.0',
    info: { title, version: 'unversioned' },
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, { parameters = [], ...operations }]) => [
        path,
        {
          ...Object.fromEntries(
            Object.entries(operations).map(([method, each]) => [method, operationOf(each as OperationV2)]),
          ),
          ...listed(parameters),
        },
      ]),
    ),
    components: { schemas: moved(definitions) },
  };
}

function operationOf({ consumes = [], produces, parameters = [], responses, ...rest }: OperationV2): object {
  const content = (types: readonly string[], schema: object | undefined): object =>
    schema === undefined
      ? {}
      : {
          content: Object.fromEntries(
            (types.length === 0 ? [JSON_TYPE] : types).map((type) => [type, { schema: moved(schema) }]),
          ),
        };
  const body = parameters.find((each) => each.in === 'body');
  return {
    ...rest,
    ...listed(parameters),
    ...(body === undefined ? {} : { requestBody: content(consumes, body.schema ?? {}) }),
    responses: Object.fromEntries(
      Object.entries(responses).map(([code, { description, schema }]) => [
        code,
        { description, ...content(produces, schema) },
      ]),
    ),
  };
}

function listed(parameters: readonly ParameterV2[]): { readonly parameters?: object[] } {
  const others = parameters.filter((each) => each.in !== 'body');
  if (others.length === 0) return {};
  return { parameters: others.map(({ type, ...each }) => ({ ...each, schema: { type, uniqueItems: true } })) };
}

/** Rewrites references to the v3 location of schemas. */
function moved(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(moved);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      key === '$ref' && typeof each === 'string' ? each.replace(FROM, TO) : moved(each),
    ]),
  );
}
