/** Kinds that the server serves, from aggregated discovery. Source: apidiscovery.k8s.io/v2. */
import type { ResourceType } from '../../../api/meta/object.ts';
import type { Api } from './api.ts';

export interface ServedKind extends ResourceType {
  readonly verbs: readonly string[];
  readonly shortNames: readonly string[];
  readonly subresources: readonly string[];
}

interface WireResource {
  readonly resource?: string;
  readonly responseKind?: { readonly kind?: string };
  readonly scope?: string;
  readonly verbs?: readonly string[];
  readonly shortNames?: readonly string[];
  readonly subresources?: readonly { readonly subresource?: string }[];
}

interface WireGroups {
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions?: readonly { readonly version?: string; readonly resources?: readonly WireResource[] }[];
  }[];
}

const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

/** All listable kinds in their preferred version, sorted by kind. */
export async function servedKinds(api: Api, signal?: AbortSignal): Promise<readonly ServedKind[]> {
  const documents = await Promise.all(
    ['/api', '/apis'].map((path) => api.json<WireGroups>(path, { accept: AGGREGATED, signal })),
  );
  return documents.flatMap(kindsOf).sort((a, b) => a.kind.localeCompare(b.kind) || a.group.localeCompare(b.group));
}

export function kindsOf({ items = [] }: WireGroups): ServedKind[] {
  const kinds: ServedKind[] = [];
  for (const { metadata, versions = [] } of items) {
    const seen = new Set<string>();
    // Versions are listed in order of preference, so only the first version of a kind is used.
    for (const { version = '', resources = [] } of versions)
      for (const { resource = '', responseKind, scope, verbs = [], shortNames = [], subresources = [] } of resources) {
        if (seen.has(resource) || !verbs.includes('list')) continue;
        seen.add(resource);
        kinds.push({
          group: metadata?.name ?? '',
          version,
          kind: responseKind?.kind ?? resource,
          plural: resource,
          namespaced: scope === 'Namespaced',
          verbs,
          shortNames,
          subresources: subresources.map(({ subresource = '' }) => subresource),
        });
      }
  }
  return kinds;
}

/** Finds the served kind of a manifest; undefined if the server does not serve it. */
export function kindOf(kinds: readonly ServedKind[], apiVersion: string, kind: string): ServedKind | undefined {
  const [group, version] = apiVersion.includes('/') ? apiVersion.split('/', 2) : ['', apiVersion];
  const found = kinds.find((each) => each.kind === kind && each.group === group);
  return found === undefined || version === undefined ? found : { ...found, version };
}
