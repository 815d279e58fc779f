/** Resources that a server offers, found by the names that users type. Source: KEP-3352, aggregated discovery. */
import { ClientError } from './errors.ts';

export interface ResourceInfo {
  readonly group: string;
  readonly version: string;
  /** Plural name, which is used in paths. */
  readonly name: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly subresources: readonly string[];
}

/** A response of `/api` or `/apis` in the form `APIGroupDiscoveryList` of `apidiscovery.k8s.io/v2`. */
export interface GroupDiscoveryList {
  readonly kind?: string;
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions?: readonly {
      readonly version?: string;
      readonly resources?: readonly {
        readonly resource?: string;
        readonly responseKind?: { readonly kind?: string; readonly group?: string; readonly version?: string };
        readonly scope?: string;
        readonly singularResource?: string;
        readonly shortNames?: readonly string[];
        readonly categories?: readonly string[];
        readonly verbs?: readonly string[];
        readonly subresources?: readonly { readonly subresource?: string }[];
      }[];
    }[];
  }[];
}

export function resourcesOf(lists: readonly GroupDiscoveryList[]): ResourceInfo[] {
  return lists.flatMap(({ items = [] }) =>
    items.flatMap(({ metadata, versions = [] }) =>
      versions.flatMap(({ version = '', resources = [] }) =>
        resources
          // A resource without a kind only groups subresources, so it is omitted.
          .filter(({ responseKind }) => responseKind?.kind !== undefined && responseKind.kind !== '')
          .map((each) => ({
            group: metadata?.name ?? '',
            version,
            name: each.resource ?? '',
            singular: each.singularResource ?? '',
            shortNames: each.shortNames ?? [],
            categories: each.categories ?? [],
            kind: each.responseKind?.kind ?? '',
            namespaced: each.scope === 'Namespaced',
            verbs: each.verbs ?? [],
            subresources: (each.subresources ?? []).map(({ subresource = '' }) => subresource),
          })),
      ),
    ),
  );
}

/** API version such as `apps/v1`; `v1` for the core group. */
export const apiVersionOf = ({ group, version }: Pick<ResourceInfo, 'group' | 'version'>): string =>
  group === '' ? version : `${group}/${version}`;

/** Kind that kubectl prints before a slash, such as `pod` or `deployment.apps`. */
export const printedKind = ({ kind, group }: Pick<ResourceInfo, 'kind' | 'group'>): string =>
  group === '' ? kind.toLowerCase() : `${kind.toLowerCase()}.${group}`;

/** Name of a resource with its group, such as `deployments.apps`; `pods` for the core group. */
export const groupResource = ({ name, group }: Pick<ResourceInfo, 'name' | 'group'>): string =>
  group === '' ? name : `${name}.${group}`;

/** Path of a collection or, with `object`, of an object. */
export function pathOf(
  resource: Pick<ResourceInfo, 'group' | 'version' | 'name' | 'namespaced'>,
  namespace: string | undefined,
  object?: string,
  subresource?: string,
): string {
  const { group, version, name, namespaced } = resource;
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope = namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  const tail = [name, object, subresource].filter((part) => part !== undefined).map(encodeURIComponent);
  return `${root}${scope}/${tail.join('/')}`;
}

/** Index of all resources. A name may be plural, singular, short, or a kind, with `.group` or `.version.group`. */
export class ResourceIndex {
  readonly all: readonly ResourceInfo[];
  readonly #byName = new Map<string, ResourceInfo[]>();

  constructor(all: readonly ResourceInfo[]) {
    this.all = all;
    const add = (name: string, resource: ResourceInfo): void => {
      if (name === '') return;
      const known = this.#byName.get(name);
      if (known === undefined) this.#byName.set(name, [resource]);
      else if (!known.includes(resource)) known.push(resource);
    };
    // A plural name takes precedence over a short name of another resource.
    for (const each of all) add(each.name, each);
    for (const each of all) add(each.singular, each);
    for (const each of all) for (const short of each.shortNames) add(short, each);
    for (const each of all) add(each.kind.toLowerCase(), each);
  }

  /**
   * Finds a resource by a name. Undefined if the server has none. The first version that discovery lists is preferred.
   */
  find(text: string): ResourceInfo | undefined {
    const lower = text.toLowerCase();
    const exact = this.#byName.get(lower)?.[0];
    if (exact !== undefined) return exact;
    const dot = lower.indexOf('.');
    if (dot < 0) return undefined;
    const named = this.#byName.get(lower.slice(0, dot)) ?? [];
    const rest = lower.slice(dot + 1);
    const second = rest.indexOf('.');
    return (
      named.find(({ group }) => group === rest) ??
      named.find(({ group, version }) =>
        second < 0
          ? version === rest && group === ''
          : version === rest.slice(0, second) && group === rest.slice(second + 1),
      ) ??
      // A prefix of a group is sufficient, such as `deployments.app`.
      named.find(({ group }) => group.startsWith(`${rest}.`))
    );
  }

  /** Like `find`. Throws ClientError with kubectl's message. */
  get(text: string): ResourceInfo {
    const found = this.find(text);
    if (found === undefined) throw new ClientError(`the server doesn't have a resource type "${text}"`);
    return found;
  }

  /** Resources of a comma-separated list of names and categories, such as `all` or `pods,svc`. */
  expand(text: string): ResourceInfo[] {
    return text.split(',').flatMap((name) => {
      const inCategory = this.all.filter(({ categories }) => categories.includes(name));
      return inCategory.length > 0 ? preferred(inCategory) : [this.get(name)];
    });
  }

  /** Finds a resource by its kind. Throws ClientError with kubectl's message if the server has no such kind. */
  byKind(apiVersion: string, kind: string): ResourceInfo {
    const found = this.findKind(apiVersion, kind);
    if (found === undefined)
      throw new ClientError(
        `no matches for kind "${kind}" in version "${apiVersion}"\nensure CRDs are installed first`,
      );
    return found;
  }

  /** Resource of a kind. Of `processedtemplates` and `templates`, it is the last one, as in kubectl. */
  findKind(apiVersion: string, kind: string): ResourceInfo | undefined {
    return this.all.findLast((each) => each.kind === kind && apiVersionOf(each) === apiVersion);
  }
}

/** For each resource, the version that discovery lists first. */
export function preferred(resources: readonly ResourceInfo[]): ResourceInfo[] {
  const seen = new Set<string>();
  return resources.filter((each) => {
    const key = groupResource(each);
    return !seen.has(key) && seen.add(key);
  });
}
