/**
 * Discovery documents, computed from the kinds. Pure: the API server caches what it serves.
 * Source: metav1.APIVersions, APIGroupList, APIResourceList; KEP-3352 (aggregated discovery).
 */
import { apiVersionOf } from '../meta/object.ts';
import type { KindDefinition } from '../registry/definition.ts';

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
  /** GET /api; the server adds its addresses. */
  readonly apiVersions: { kind: 'APIVersions'; versions: string[]; serverAddressByClientCIDRs: unknown[] };
  /** GET /apis. */
  readonly apiGroups: { kind: 'APIGroupList'; apiVersion: 'v1'; groups: ApiGroup[] };
  /** GET /apis/GROUP. */
  readonly groups: ReadonlyMap<string, ApiGroup>;
  /** GET /api/v1 and /apis/GROUP/VERSION, by groupVersion (`v1`, `apps/v1`). */
  readonly resources: ReadonlyMap<string, ApiResourceList>;
  /** GET /api or /apis as one document; see `aggregatedContentType`. */
  aggregated(root: 'api' | 'apis', version: AggregatedVersion): unknown;
}

export type AggregatedVersion = 'v2' | 'v2beta1';

/** The media type under which clients ask for, and get, aggregated discovery. */
export function aggregatedContentType(version: AggregatedVersion): string {
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
}

/** Groups in the order of preference that clients see; others follow by name. */
const GROUP_ORDER = [
  'apps',
  'events.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
  'autoscaling',
  'batch',
  'certificates.k8s.io',
  'networking.k8s.io',
  'extensions',
  'policy',
  'rbac.authorization.k8s.io',
  'storage.k8s.io',
  'admissionregistration.k8s.io',
  'apiextensions.k8s.io',
  'scheduling.k8s.io',
  'coordination.k8s.io',
  'node.k8s.io',
  'discovery.k8s.io',
  'flowcontrol.apiserver.k8s.io',
];

interface GroupVersion {
  readonly group: string;
  readonly version: string;
}

interface Served extends GroupVersion {
  readonly kind: KindDefinition;
}

export function discoveryDocuments(kinds: readonly KindDefinition[]): DiscoveryDocuments {
  const served = servedKinds(kinds);
  const groupVersions = servedGroupVersions(kinds);
  const resources = new Map<string, ApiResourceList>();
  for (const groupVersion of groupVersions) {
    const own = served.filter((each) => sameGroupVersion(each, groupVersion));
    resources.set(apiVersionOf(groupVersion), {
      kind: 'APIResourceList',
      apiVersion: 'v1',
      groupVersion: apiVersionOf(groupVersion),
      resources: own.flatMap(resourcesOf).sort((a, b) => (a.name < b.name ? -1 : 1)),
    });
  }
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
  return {
    apiVersions: { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] },
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
          versions: groupVersions
            .filter((each) => each.group === group)
            .map((each) => ({
              version: each.version,
              resources: served
                .filter((kind) => sameGroupVersion(kind, each))
                .map(aggregatedResource)
                .sort((a, b) => (a.resource < b.resource ? -1 : 1)),
              freshness: 'Current',
            })),
        })),
      };
    },
  };
}

/** Every group and version that is served, core first, then in order of preference. */
export function servedGroupVersions(kinds: readonly KindDefinition[]): GroupVersion[] {
  const found = new Map<string, GroupVersion>();
  for (const { group, version } of servedKinds(kinds)) {
    found.set(`${group}/${version}`, { group, version });
  }
  return [...found.values()].sort((a, b) => {
    const order = rank(a.group) - rank(b.group);
    if (order !== 0) return order;
    return a.group === b.group ? versionOrder(a.version, b.version) : a.group < b.group ? -1 : 1;
  });
}

const VERSION = /^v(\d+)(?:(alpha|beta)(\d+))?$/;

/** Stable versions first, then beta, then alpha; newer before older. Source: k8s.io/apimachinery/pkg/version CompareKubeAwareVersionStrings. */
function versionOrder(a: string, b: string): number {
  const parts = (version: string): number[] => {
    const [, major = '0', stage, minor = '0'] = VERSION.exec(version) ?? [];
    return [stage === undefined ? 2 : stage === 'beta' ? 1 : 0, Number(major), Number(minor)];
  };
  const left = parts(a);
  const right = parts(b);
  for (const [index, part] of left.entries()) {
    const other = right[index] ?? 0;
    if (part !== other) return other - part;
  }
  return 0;
}

function rank(group: string): number {
  if (group === '') return -1;
  const place = GROUP_ORDER.indexOf(group);
  return place < 0 ? GROUP_ORDER.length : place;
}

/** Kinds once per version they are served in. */
export function servedKinds(kinds: readonly KindDefinition[]): Served[] {
  return kinds.flatMap((kind) => [
    { group: kind.group, version: kind.version, kind },
    ...(kind.aliases ?? []).map(({ group, version }) => ({ group, version, kind })),
  ]);
}

function sameGroupVersion(a: GroupVersion, b: GroupVersion): boolean {
  return a.group === b.group && a.version === b.version;
}

/** A sub-resource as discovery names it. */
export interface Subresource {
  readonly name: string;
  readonly kind: string;
  readonly group: string;
  readonly version: string;
  readonly verbs: readonly string[];
}

/** Status, scale and all others of a kind. */
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

function resourcesOf(served: Served): ApiResource[] {
  const { kind } = served;
  const list: ApiResource[] = [
    {
      name: kind.plural,
      singularName: kind.singular,
      namespaced: kind.namespaced,
      kind: kind.kind,
      verbs: [...kind.verbs],
      ...(kind.shortNames === undefined ? {} : { shortNames: [...kind.shortNames] }),
      ...(kind.categories === undefined ? {} : { categories: [...kind.categories] }),
    },
  ];
  for (const sub of subresourcesOf(served)) {
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

function aggregatedResource(served: Served) {
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
    ...(kind.shortNames === undefined ? {} : { shortNames: [...kind.shortNames] }),
    ...(kind.categories === undefined ? {} : { categories: [...kind.categories] }),
    ...(subresources.length === 0 ? {} : { subresources }),
  };
}
