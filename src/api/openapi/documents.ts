/**
 * Assignment of paths to the documents of OpenAPI v3. Version 2 has one document for all. Source: upstream's published
 * documents (api/openapi-spec).
 */
import { type GroupVersion, servedGroupVersions } from '../discovery/index.ts';
import type { KindDefinition } from '../registry/definition.ts';
import {
  ALL_FORMS,
  capital,
  META_PACKAGE,
  type Operation,
  operationGroup,
  operationsOf,
  type PathOperations,
  TEXT,
} from './operations.ts';

const VERSION_TYPE = 'io.k8s.apimachinery.pkg.version.Info';

/** Names such as `api/v1`, `apis/apps/v1` and `apis/apps`: keys in the v3 index and suffixes of the document paths. */
export function documentNames(kinds: readonly KindDefinition[]): string[] {
  const own = builtinOf(kinds);
  const groups = new Set(servedGroupVersions(own).map(({ group }) => group));
  groups.delete('');
  return [
    // Paths that belong to no kind are only in the set of documents that includes the built-in kinds.
    ...(own.length === 0 ? [] : ROOTS.keys()),
    ...[...groups].map((group) => `apis/${group}`),
    ...servedGroupVersions(kinds).map(documentOf),
  ];
}

/** Operations of one document. Undefined if the name is not in `documentNames`. */
export function operationsOfDocument(kinds: readonly KindDefinition[], name: string): PathOperations[] | undefined {
  const own = servedGroupVersions(builtinOf(kinds));
  const root = own.length === 0 ? undefined : ROOTS.get(name);
  if (root !== undefined) return [root];
  const group = own.find((each) => each.group !== '' && `apis/${each.group}` === name)?.group;
  if (group !== undefined) return [groupPath(group)];
  const groupVersion = servedGroupVersions(kinds).find((each) => documentOf(each) === name);
  if (groupVersion === undefined) return undefined;
  const operations = operationsOf(kinds, groupVersion);
  return own.some((each) => documentOf(each) === name) ? [resourcesPath(groupVersion), ...operations] : operations;
}

const builtinOf = (kinds: readonly KindDefinition[]): KindDefinition[] =>
  kinds.filter((each) => each.custom === undefined);

function documentOf({ group, version }: GroupVersion): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}

function resourcesPath(groupVersion: GroupVersion): PathOperations {
  const { group, version } = groupVersion;
  return reading(
    `/${documentOf(groupVersion)}/`,
    `${operationGroup(group)}_${version}`,
    `get${capital(operationGroup(group))}${capital(version)}APIResources`,
    'get the available resources',
    `${META_PACKAGE}.APIResourceList`,
  );
}

function groupPath(group: string): PathOperations {
  const tag = operationGroup(group);
  return reading(
    `/apis/${group}/`,
    tag,
    `get${capital(tag)}APIGroup`,
    'get information about a group',
    `${META_PACKAGE}.APIGroup`,
  );
}

const ROOTS: ReadonlyMap<string, PathOperations> = new Map(rootDocuments());

function rootDocuments(): [string, PathOperations][] {
  const versions = 'get the available versions of the API';
  const json = { consumes: ['application/json'], produces: ['application/json'] };
  const issuer = { consumes: [], produces: ['application/json'] };
  return [
    [
      '.well-known/openid-configuration',
      reading(
        '/.well-known/openid-configuration/',
        'WellKnown',
        'getServiceAccountIssuerOpenIDConfiguration',
        "get the OpenID configuration of service accounts' issuer",
        TEXT,
        issuer,
      ),
    ],
    ['api', reading('/api/', 'core', 'getCoreAPIVersions', versions, `${META_PACKAGE}.APIVersions`)],
    ['apis', reading('/apis/', 'apis', 'getAPIVersions', versions, `${META_PACKAGE}.APIGroupList`)],
    [
      'openid/v1/jwks',
      reading(
        '/openid/v1/jwks/',
        'openid',
        'getServiceAccountIssuerOpenIDKeyset',
        "get the keys that service accounts' tokens are verified with",
        TEXT,
        { ...issuer, produces: ['application/jwk-set+json'] },
      ),
    ],
    ['version', reading('/version/', 'version', 'getCodeVersion', 'get the version of the server', VERSION_TYPE, json)],
  ];
}

function reading(
  path: string,
  tag: string,
  operationId: string,
  description: string,
  schema: string,
  forms: Pick<Operation, 'consumes' | 'produces'> = { consumes: ALL_FORMS, produces: ALL_FORMS },
): PathOperations {
  const responses = [{ code: 200 as const, schema }];
  return {
    path,
    parameters: [],
    operations: [{ method: 'get', operationId, tag, description, parameters: [], ...forms, responses }],
  };
}
