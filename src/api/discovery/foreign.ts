/**
 * Parsing of discovery documents from aggregated API servers. The documents are not trusted: only known fields of the
 * right type are read, up to a limit.
 */
import type { JsonObject, JsonValue } from '../meta/object.ts';
import { fieldOf, isObject } from '../structural/schema.ts';
import type { AggregatedResource, GroupVersion } from './discovery.ts';

const MAX_RESOURCES = 2_000;
const MAX_WORDS = 64;
const MAX_TEXT = 253;

type Kind = { readonly group: string; readonly version: string; readonly kind: string };

interface Resource extends AggregatedResource {
  readonly resource: string;
  responseKind?: Kind;
  scope: 'Namespaced' | 'Cluster';
  singularResource: string;
  verbs: string[];
  shortNames?: string[];
  categories?: string[];
  subresources?: Subresource[];
  [field: string]: unknown;
}

interface Subresource {
  readonly subresource: string;
  readonly responseKind?: Kind;
  readonly verbs: string[];
}

/** Resources of a group and version in an APIGroupDiscoveryList; undefined if the document lacks them. */
export function resourcesInDiscovery(
  document: JsonValue,
  { group, version }: GroupVersion,
): AggregatedResource[] | undefined {
  for (const each of objectsIn(document, 'items')) {
    if (textIn(objectIn(each, 'metadata'), 'name') !== group) continue;
    const found = objectsIn(each, 'versions').find((candidate) => textIn(candidate, 'version') === version);
    if (found !== undefined) return objectsIn(found, 'resources').flatMap((one) => resourceOf(one, group, version));
  }
  return undefined;
}

function resourceOf(each: JsonObject, group: string, version: string): AggregatedResource[] {
  const resource = textIn(each, 'resource');
  if (resource === '') return [];
  const subresources = objectsIn(each, 'subresources').flatMap((sub): Subresource[] => {
    const subresource = textIn(sub, 'subresource');
    if (subresource === '') return [];
    return [
      { subresource, ...responseKind(objectIn(sub, 'responseKind'), group, version), verbs: textsIn(sub, 'verbs') },
    ];
  });
  return [
    {
      resource,
      ...responseKind(objectIn(each, 'responseKind'), group, version),
      scope: textIn(each, 'scope') === 'Namespaced' ? 'Namespaced' : 'Cluster',
      singularResource: textIn(each, 'singularResource'),
      verbs: textsIn(each, 'verbs'),
      ...words(each, 'shortNames'),
      ...words(each, 'categories'),
      ...(subresources.length === 0 ? {} : { subresources }),
    },
  ];
}

/**
 * Resources from an APIResourceList, for servers without aggregated discovery. Source: k8s.io/apiserver/pkg/endpoints
 * ConvertGroupVersionIntoToDiscovery.
 */
export function resourcesInList(document: JsonValue, { group, version }: GroupVersion): AggregatedResource[] {
  const found = new Map<string, Resource>();
  const named = (resource: string, namespaced: boolean): Resource => {
    const known = found.get(resource);
    if (known !== undefined) return known;
    const scope = namespaced ? 'Namespaced' : 'Cluster';
    const made: Resource = { resource, scope, singularResource: '', verbs: [] };
    found.set(resource, made);
    return made;
  };
  for (const each of objectsIn(document, 'resources')) {
    const name = textIn(each, 'name');
    const slash = name.indexOf('/');
    const kind = responseKind(each, group, version);
    const parent = slash < 0 ? name : name.slice(0, slash);
    if (parent === '') continue;
    const resource = named(parent, each['namespaced'] === true);
    if (slash >= 0) {
      resource.subresources ??= [];
      resource.subresources.push({ subresource: name.slice(slash + 1), ...kind, verbs: textsIn(each, 'verbs') });
      continue;
    }
    Object.assign(resource, kind, words(each, 'shortNames'), words(each, 'categories'), {
      singularResource: textIn(each, 'singularName'),
      verbs: textsIn(each, 'verbs'),
    });
  }
  return [...found.values()];
}

function responseKind(each: JsonObject, group: string, version: string): { responseKind?: Kind } {
  const kind = textIn(each, 'kind');
  if (kind === '') return {};
  const named = textIn(each, 'version');
  return {
    responseKind: {
      group: named === '' ? group : textIn(each, 'group'),
      version: named === '' ? version : named,
      kind,
    },
  };
}

function objectIn(value: JsonValue | undefined, field: string): JsonObject {
  const found = isObject(value) ? fieldOf(value, field) : undefined;
  return isObject(found) ? found : {};
}

function objectsIn(value: JsonValue | undefined, field: string): JsonObject[] {
  const found = isObject(value) ? fieldOf(value, field) : undefined;
  return Array.isArray(found) ? found.slice(0, MAX_RESOURCES).filter(isObject) : [];
}

function textIn(value: JsonObject, field: string): string {
  const found = fieldOf(value, field);
  return typeof found === 'string' && found.length <= MAX_TEXT ? found : '';
}

function textsIn(value: JsonObject, field: string): string[] {
  const found = fieldOf(value, field);
  if (!Array.isArray(found)) return [];
  return found.slice(0, MAX_WORDS).filter((each) => typeof each === 'string' && each.length <= MAX_TEXT) as string[];
}

function words(value: JsonObject, field: string): { [field: string]: string[] } {
  const found = textsIn(value, field);
  return found.length === 0 ? {} : { [field]: found };
}
