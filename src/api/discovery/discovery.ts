/**
 * Discovery documents, computed from the kinds. The API server caches the result. Source: metav1.APIVersions,
 * APIGroupList, APIResourceList; KEP-3352 (aggregated discovery).
 */

import { compareVersions } from '../kinds/cluster/customresourcedefinitions/names.ts';
import { apiVersionOf } from '../meta/object.ts';
import type { KindAlias, KindDefinition } from '../registry/definition.ts';
import { servedAs } from '../registry/versions.ts';
import { builtinPriority, CUSTOM_PRIORITY, type Priority } from './priorities.ts';

export interface ApiResource {
  name: string;
  singularName: string;
  namespaced: boolean;
  group?: string;
  version?: string;
  kind: string;
  verbs: string[];
  shortNames?: string[];
  categories?: string[];
  storageVersionHash?: string;
}

export interface ApiResourceList {
  kind: 'APIResourceList';
  apiVersion: 'v1';
  groupVersion: string;
  resources: ApiResource[];
}

export interface ApiGroup {
  kind: 'APIGroup';
  apiVersion: 'v1';
  name: string;
  versions: { groupVersion: string; version: string }[];
  preferredVersion: { groupVersion: string; version: string };
}

export interface DiscoveryDocuments {
  /** Response to `GET /api`, without the server addresses, which the server adds. */
  readonly apiVersions: { kind: 'APIVersions'; versions: string[]; serverAddressByClientCIDRs: unknown[] };
  /** Response to `GET /apis`. */
  readonly apiGroups: { kind: 'APIGroupList'; apiVersion: 'v1'; groups: ApiGroup[] };
  /** Responses to `GET /apis/GROUP`. */
  readonly groups: ReadonlyMap<string, ApiGroup>;
  /** Responses to `GET /api/v1` and `GET /apis/GROUP/VERSION`, by groupVersion (`v1`, `apps/v1`). */
  readonly resources: ReadonlyMap<string, ApiResourceList>;
  /** Aggregated response to `GET /api` or `GET /apis`; see `aggregatedContentType`. */
  aggregated(root: 'api' | 'apis', version: AggregatedVersion): unknown;
}

export type AggregatedVersion = 'v2' | 'v2beta1';

/** Media type of aggregated discovery in requests and responses. */
export function aggregatedContentType(version: AggregatedVersion): string {
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
}

export interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

/** A group and version that an aggregated API server serves. */
export interface ForeignVersion extends GroupVersion {
  readonly priority: Priority;
  /** Resources in the form of aggregated discovery. */
  readonly resources: readonly AggregatedResource[];
  /** 'Stale': the aggregated API server could not be reached recently. */
  readonly freshness: 'Current' | 'Stale';
}

export interface DiscoveryOptions {
  /**
   * Priorities of local groups from APIService objects, by `group/version`. Other groups have the built-in priority.
   */
  readonly registered?: ReadonlyMap<string, Priority>;
  /** Aggregated versions. They replace local ones with the same group and version. */
  readonly foreign?: readonly ForeignVersion[];
  /** Hash of `group/version/Kind` of the stored version. If undefined, resources have no storageVersionHash. */
  readonly storageHash?: (stored: string) => string;
}

interface Served extends GroupVersion {
  readonly kind: KindDefinition;
}

export function discoveryDocuments(
  kinds: readonly KindDefinition[],
  { registered, foreign = [], storageHash }: DiscoveryOptions = {},
): DiscoveryDocuments {
  const theirs = new Map(foreign.map((each) => [nameOf(each), each]));
  const served = servedKinds(kinds).filter((each) => !theirs.has(nameOf(each)));
  const places: Placed[] = versionsOf(served).map((each) => ({
    ...each,
    priority: registered?.get(nameOf(each)) ?? each.priority,
  }));
  const groupVersions = inOrder([...places, ...foreign]);
  const kindsOf = Map.groupBy(served, nameOf);
  const resources = new Map<string, ApiResourceList>();
  for (const groupVersion of groupVersions) {
    if (theirs.has(nameOf(groupVersion))) continue;
    const own = kindsOf.get(nameOf(groupVersion)) ?? [];
    resources.set(apiVersionOf(groupVersion), {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: apiVersionOf(groupVersion),
      resources: own.toSorted(byPlural).flatMap((each) => resourcesOf(each, storageHash)),
    });
  }
  const groups = groupsOf(groupVersions);
  const versionOf = (groupVersion: GroupVersion): object => {
    const { version } = groupVersion;
    const other = theirs.get(nameOf(groupVersion));
    if (other !== undefined) return { version, resources: other.resources, freshness: other.freshness };
    const own = (kindsOf.get(nameOf(groupVersion)) ?? []).map(aggregatedResource);
    return { version, resources: own.sort((a, b) => (a.resource < b.resource ? -1 : 1)), freshness: 'Current' };
  };
  return {
    apiVersions: {
      kind: 'APIVersions',
      versions: groupVersions.filter(({ group }) => group === '').map(({ version }) => version),
      serverAddressByClientCIDRs: [],
    },
    apiGroups: { kind: 'APIGroupList', apiVersion: 'v1', groups: [...groups.values()] },
    groups,
    resources,
    aggregated(root, version) {
      const wanted = root === 'api' ? [''] : [...groups.keys()];
      return {
        kind: 'APIGroupDiscoveryList',
        apiVersion: `apidiscovery.k8s.io/${version}`,
        metadata: {},
        items: wanted.map((group) => ({
          metadata: group === '' ? { creationTimestamp: null } : { name: group, creationTimestamp: null },
          versions: groupVersions.filter((each) => each.group === group).map(versionOf),
        })),
      };
    },
  };
}

function groupsOf(groupVersions: readonly GroupVersion[]): Map<string, ApiGroup> {
  const groups = new Map<string, ApiGroup>();
  for (const { group, version } of groupVersions) {
    if (group === '') continue;
    const entry = { groupVersion: `${group}/${version}`, version };
    const known = groups.get(group);
    if (known !== undefined) known.versions.push(entry);
    else {
      groups.set(group, {
        kind: 'APIGroup',
        apiVersion: 'v1',
        name: group,
        versions: [entry],
        preferredVersion: entry,
      });
    }
  }
  return groups;
}

/** All served groups and versions: the core group first, then by priority. */
export function servedGroupVersions(kinds: readonly KindDefinition[]): GroupVersion[] {
  return inOrder(versionsOf(servedKinds(kinds))).map(({ group, version }) => ({ group, version }));
}

const nameOf = ({ group, version }: GroupVersion): string => `${group}/${version}`;

interface Placed extends GroupVersion {
  readonly priority: Priority;
}

function versionsOf(served: readonly Served[]): Placed[] {
  const found = new Map<string, Placed>();
  for (const { group, version, kind } of served) {
    const name = `${group}/${version}`;
    if (found.has(name)) continue;
    const priority = kind.custom === undefined ? builtinPriority(group, version) : CUSTOM_PRIORITY;
    found.set(name, { group, version, priority });
  }
  return [...found.values()];
}

/**
 * Sorts groups by the highest priority of their versions. Source:
 * k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper SortedByGroupAndVersion.
 */
function inOrder(versions: readonly Placed[]): Placed[] {
  const highest = new Map<string, number>();
  for (const { group, priority } of versions) highest.set(group, Math.max(highest.get(group) ?? 0, priority.group));
  return [...versions].sort((a, b) => {
    if (a.group !== b.group) {
      if (a.group === '' || b.group === '') return a.group === '' ? -1 : 1;
      const order = (highest.get(b.group) ?? 0) - (highest.get(a.group) ?? 0);
      return order !== 0 ? order : a.group < b.group ? -1 : 1;
    }
    return b.priority.version - a.priority.version || compareVersions(a.version, b.version);
  });
}

/** Every kind, once for each version in which it is served. */
export function servedKinds(kinds: readonly KindDefinition[]): Served[] {
  return kinds.flatMap((kind) =>
    [kind, ...(kind.aliases ?? [])]
      .filter((each) => kind.unserved?.has(nameOf(each)) !== true)
      .map((each) => {
        const { group, version } = each;
        return { group, version, kind: each === kind ? kind : servedAs(kind, each as KindAlias) };
      }),
  );
}

function sameGroupVersion(a: GroupVersion, b: GroupVersion): boolean {
  return a.group === b.group && a.version === b.version;
}

/** A subresource in discovery. */
export interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly group: string;
  readonly version: string;
  readonly verbs: readonly string[];
}

/** All subresources of a kind, including status and scale. */
export function subresourcesOf({ kind, group, version }: Served): Subresource[] {
  const found: Subresource[] = [];
  const readWrite = ['get', 'patch', 'update'];
  if (kind.statusStrategy !== undefined) {
    found.push({ name: 'status', kind: kind.kind, group, version, verbs: readWrite });
  }
  if (kind.scale !== undefined) {
    found.push({ name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: readWrite });
  }
  for (const extra of kind.extraSubresources ?? []) {
    found.push({
      name: extra.name,
      kind: extra.kind,
      group: extra.group ?? group,
      version: extra.version ?? version,
      verbs: extra.verbs,
    });
  }
  return found;
}

/** The storageVersionHash of a kind, by which clients detect a change of the storage version. */
function storedIn(kind: KindDefinition, hash: DiscoveryOptions['storageHash']): { storageVersionHash?: string } {
  const version = kind.custom === undefined ? kind.version : kind.custom.storageVersion;
  if (hash === undefined || version === undefined || !kind.verbs.includes('watch')) return {};
  return { storageVersionHash: hash(`${kind.group}/${version}/${kind.kind}`) };
}

/** Short names of a kind. Removed groups have none, because kubectl would warn about an ambiguous name. */
function shortNamesOf({ kind, group, version }: Served): { shortNames?: string[] } {
  const alias = kind.aliases?.find((each) => each.group === group && each.version === version);
  if (kind.shortNames === undefined || (group !== kind.group && alias?.deprecated !== undefined)) return {};
  return { shortNames: [...kind.shortNames] };
}

const byPlural = (a: Served, b: Served): number => (a.kind.plural < b.kind.plural ? -1 : 1);

function resourcesOf(served: Served, storageHash: DiscoveryOptions['storageHash']): ApiResource[] {
  const { kind } = served;
  const list: ApiResource[] = [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.namespaced,
      kind: kind.kind,
      verbs: [...kind.verbs],
      ...shortNamesOf(served),
      ...(kind.categories === undefined ? {} : { categories: [...kind.categories] }),
      ...storedIn(kind, storageHash),
    },
  ];
  const subresources = subresourcesOf(served);
  // For custom resources, upstream lists status before scale.
  if (kind.custom === undefined) subresources.sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const sub of subresources) {
    list.push({
      name: `${kind.plural}/${sub.name}`,
      singularName: '',
      namespaced: kind.namespaced,
      ...(sameGroupVersion(sub, served) ? {} : { group: sub.group, version: sub.version }),
      kind: sub.kind,
      verbs: [...sub.verbs],
    });
  }
  return list;
}

/** A resource in aggregated discovery. It is the only representation of resources of aggregated API servers. */
export interface AggregatedResource {
  readonly resource: string;
  readonly [field: string]: unknown;
}

function aggregatedResource(served: Served): AggregatedResource {
  const { kind, group, version } = served;
  const subresources = subresourcesOf(served).map((sub) => ({
    subresource: sub.name,
    responseKind: { group: sub.group, version: sub.version, kind: sub.kind },
    verbs: [...sub.verbs],
  }));
  return {
    resource: kind.plural,
    responseKind: { group, version, kind: kind.kind },
    scope: kind.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: kind.singular,
    verbs: [...kind.verbs],
    ...shortNamesOf(served),
    ...(kind.categories === undefined ? {} : { categories: [...kind.categories] }),
    ...(subresources.length === 0 ? {} : { subresources }),
  };
}
