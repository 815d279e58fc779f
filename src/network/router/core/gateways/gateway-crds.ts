/**
 * CustomResourceDefinitions of the Gateway API kinds that this router serves, created at start. The schemas contain the
 * supported fields of release 1. Other fields are preserved, and reported as unsupported in the routes' conditions.
 */
import type { CustomResourceDefinition } from '../../../../api/generated/apiextensions/v1.ts';

const GROUP = 'gateway.networking.k8s.io';
const text = { type: 'string' } as const;
const port = { type: 'integer', format: 'int32', minimum: 1, maximum: 65_535 } as const;
const hostname = { ...text, minLength: 1, maxLength: 253 } as const;
const list = (items: object, maxItems = 64): object => ({ type: 'array', maxItems, items });
const map = (properties: object, required: readonly string[] = []): object => ({
  type: 'object',
  properties,
  ...(required.length === 0 ? {} : { required }),
  'x-kubernetes-preserve-unknown-fields': true,
});
const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
const oneOf = (...values: readonly string[]): object => ({ ...text, enum: values });
const parent = map({ group: text, kind: text, namespace: text, name: text, sectionName: text, port }, ['name']);

const gatewayClass = map({ controllerName: { ...text, minLength: 1, maxLength: 253 }, description: text }, [
  'controllerName',
]);

const gateway = map(
  {
    gatewayClassName: { ...text, minLength: 1, maxLength: 253 },
    listeners: list(
      map(
        {
          name: hostname,
          hostname,
          port,
          protocol: text,
          tls: map({
            mode: oneOf('Terminate', 'Passthrough'),
            certificateRefs: list(map({ group: text, kind: text, namespace: text, name: text }, ['name'])),
          }),
          allowedRoutes: map({
            namespaces: map({ from: oneOf('All', 'Selector', 'Same'), selector: open }),
            kinds: list(open),
          }),
        },
        ['name', 'port', 'protocol'],
      ),
    ),
  },
  ['gatewayClassName', 'listeners'],
);

const match = map({
  path: map({ type: oneOf('Exact', 'PathPrefix', 'RegularExpression'), value: { ...text, maxLength: 1024 } }),
  headers: list(map({ type: oneOf('Exact', 'RegularExpression'), name: text, value: text }, ['name', 'value']), 16),
  method: oneOf('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'),
});
const redirect = map({
  scheme: oneOf('http', 'https'),
  hostname,
  port,
  statusCode: { type: 'integer', enum: [301, 302, 303, 307, 308] },
  path: map({
    type: oneOf('ReplaceFullPath', 'ReplacePrefixMatch'),
    replaceFullPath: { ...text, pattern: '^/[\\x21-\\x7e]*$' },
    replacePrefixMatch: { ...text, pattern: '^/[\\x21-\\x7e]*$' },
  }),
});
const backend = map(
  {
    group: text,
    kind: text,
    namespace: text,
    name: text,
    port,
    weight: { type: 'integer', format: 'int32', minimum: 0, maximum: 1_000_000 },
  },
  ['name'],
);
const httpRoute = map({
  parentRefs: list(parent, 32),
  hostnames: list(hostname, 16),
  rules: list(
    map({
      matches: list(match),
      filters: list(map({ type: text, requestRedirect: redirect }, ['type']), 16),
      backendRefs: list(backend, 16),
    }),
    16,
  ),
});

const referenceGrant = map(
  {
    from: list(map({ group: text, kind: text, namespace: text }, ['group', 'kind', 'namespace']), 16),
    to: list(map({ group: text, kind: text, name: text }, ['group', 'kind']), 16),
  },
  ['from', 'to'],
);

function definition(
  kind: string,
  plural: string,
  scope: 'Cluster' | 'Namespaced',
  spec: object,
  shortNames: string[],
  version = 'v1',
): CustomResourceDefinition {
  const schema = { type: 'object', required: ['spec'], properties: { spec, status: open } };
  const names = { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase(), shortNames };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: {
      name: `${plural}.${GROUP}`,
      annotations: { 'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/gateway-api/pull/891' },
    },
    spec: {
      group: GROUP,
      scope,
      names: { ...names, categories: ['gateway-api'] },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: schema },
        },
      ],
    },
  } as CustomResourceDefinition;
}

export const gatewayDefinitions: readonly CustomResourceDefinition[] = [
  definition('GatewayClass', 'gatewayclasses', 'Cluster', gatewayClass, ['gc']),
  definition('Gateway', 'gateways', 'Namespaced', gateway, ['gtw']),
  definition('HTTPRoute', 'httproutes', 'Namespaced', httpRoute, []),
  definition('ReferenceGrant', 'referencegrants', 'Namespaced', referenceGrant, ['refgrant'], 'v1beta1'),
];
