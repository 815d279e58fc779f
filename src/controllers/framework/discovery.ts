/**
 * Kinds served by the API server, each in its group's preferred version, or else in the first version that contains it.
 */
import type { ResourceType } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { messageOf } from '../../base/errors.ts';
import type { ApiClient } from '../../client/types.ts';

export interface DiscoveredKind extends ResourceType {
  readonly verbs: ReadonlySet<string>;
}

export interface Discovery {
  readonly kinds: readonly DiscoveredKind[];
  /** One line for each group version that failed. Its kinds are missing. */
  readonly errors: readonly string[];
}

interface ResourceList {
  readonly resources?: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
    readonly verbs?: readonly string[];
  }[];
}

interface GroupList {
  readonly groups?: readonly {
    readonly name: string;
    readonly preferredVersion?: { readonly groupVersion: string };
    readonly versions?: readonly { readonly groupVersion: string }[];
  }[];
}

/** Reads the kinds. Rejects only when the list of groups cannot be read; other failures are in `errors`. */
export async function discoverKinds(client: ApiClient, signal?: AbortSignal): Promise<Discovery> {
  const options = signal === undefined ? {} : { signal };
  const groups = await client.request<GroupList>('GET', '/apis', undefined, options);
  const versions = ['v1'];
  for (const { name, preferredVersion, versions: served = [] } of groups.groups ?? []) {
    const preferred = preferredVersion?.groupVersion ?? served[0]?.groupVersion;
    if (preferred !== undefined) versions.push(preferred);
    if (!SPREAD.has(name)) continue;
    versions.push(...served.map((each) => each.groupVersion).filter((each) => each !== preferred));
  }
  const kinds: DiscoveredKind[] = [];
  const errors: string[] = [];
  await Promise.all(
    versions.map(async (groupVersion) => {
      const slash = groupVersion.indexOf('/');
      const group = slash < 0 ? '' : groupVersion.slice(0, slash);
      const version = groupVersion.slice(slash + 1);
      try {
        const path = slash < 0 ? `/api/${groupVersion}` : `/apis/${groupVersion}`;
        const list = await client.request<ResourceList>('GET', path, undefined, options);
        for (const each of list.resources ?? []) {
          if (each.name.includes('/') || isAlias(group, each.name)) continue;
          const { name: plural, kind, namespaced } = each;
          kinds.push({ group, version, kind, plural, namespaced, verbs: new Set(each.verbs) });
        }
      } catch (error) {
        // A group that was removed between the two requests is not an error.
        if (!isApiError(error, 'NotFound')) errors.push(`${groupVersion}: ${messageOf(error)}`);
      }
    }),
  );
  return { kinds: kinds.filter(isFirst(versions)), errors };
}

/** Groups whose kinds are spread over several versions. In other groups the preferred version contains all kinds. */
const SPREAD: ReadonlySet<string> = new Set(['operators.coreos.com']);

/**
 * Returns a filter for discovered kinds. Of a kind with several versions it keeps the one that is first in `versions`.
 */
function isFirst(versions: readonly string[]): (kind: DiscoveredKind, index: number, all: DiscoveredKind[]) => boolean {
  const rank = ({ group, version }: DiscoveredKind): number =>
    versions.indexOf(group === '' ? version : `${group}/${version}`);
  return (kind, _index, all) =>
    !SPREAD.has(kind.group) ||
    !all.some((each) => each.group === kind.group && each.plural === kind.plural && rank(each) < rank(kind));
}

/**
 * Resources under which OpenShift's groups serve the objects of another kind. Controllers use only that other kind,
 * because objects that are counted twice would be deleted and charged twice.
 */
const ALIASES: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['project.openshift.io', new Set(['projects', 'projectrequests'])],
  ['authorization.openshift.io', new Set(['clusterrolebindings', 'clusterroles', 'rolebindings', 'roles'])],
  ['quota.openshift.io', new Set(['appliedclusterresourcequotas'])],
  ['packages.operators.coreos.com', new Set(['packagemanifests'])],
]);

const isAlias = (group: string, plural: string): boolean => ALIASES.get(group)?.has(plural) === true;

export function collectionPathOf(kind: ResourceType, namespace: string): string {
  const root = kind.group === '' ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  return `${root}/namespaces/${encodeURIComponent(namespace)}/${kind.plural}`;
}
