/** All built-in kinds and how to find them. Adding a kind is adding a folder and a line here. */
import { certificateSigningRequests } from '../kinds/certificatesigningrequests/index.ts';
import { clusterRoleBindings } from '../kinds/clusterrolebindings/index.ts';
import { clusterRoles } from '../kinds/clusterroles/index.ts';
import { configMaps } from '../kinds/configmaps/index.ts';
import { controllerRevisions } from '../kinds/controllerrevisions/index.ts';
import { customResourceDefinitions } from '../kinds/customresourcedefinitions/index.ts';
import { daemonSets } from '../kinds/daemonsets/index.ts';
import { deployments } from '../kinds/deployments/index.ts';
import { endpoints } from '../kinds/endpoints/index.ts';
import { endpointSlices } from '../kinds/endpointslices/index.ts';
import { events } from '../kinds/events/index.ts';
import { leases } from '../kinds/leases/index.ts';
import { namespaces } from '../kinds/namespaces/index.ts';
import { nodes } from '../kinds/nodes/index.ts';
import { pods } from '../kinds/pods/index.ts';
import { priorityClasses } from '../kinds/priorityclasses/index.ts';
import {
  cronJobs,
  ingresses,
  jobs,
  persistentVolumeClaims,
  persistentVolumes,
  statefulSets,
} from '../kinds/readonly/index.ts';
import { replicaSets } from '../kinds/replicasets/index.ts';
import { replicationControllers } from '../kinds/replicationcontrollers/index.ts';
import {
  localSubjectAccessReviews,
  selfSubjectAccessReviews,
  selfSubjectReviews,
  selfSubjectRulesReviews,
  subjectAccessReviews,
  tokenReviews,
} from '../kinds/reviews/index.ts';
import { roleBindings } from '../kinds/rolebindings/index.ts';
import { roles } from '../kinds/roles/index.ts';
import { secrets } from '../kinds/secrets/index.ts';
import { serviceAccounts } from '../kinds/serviceaccounts/index.ts';
import { services } from '../kinds/services/index.ts';
import { bindings, evictions, scales, tokenRequests } from '../kinds/subresources/index.ts';
import type { GroupVersionKind } from '../meta/object.ts';
import type { KindDefinition } from './definition.ts';

/** Everything that has a path of its own, in the order of discovery documents. */
export const builtinKinds: readonly KindDefinition[] = [
  bindings,
  configMaps,
  endpoints,
  events,
  namespaces,
  nodes,
  pods,
  replicationControllers,
  secrets,
  serviceAccounts,
  services,
  controllerRevisions,
  daemonSets,
  deployments,
  replicaSets,
  selfSubjectReviews,
  tokenReviews,
  localSubjectAccessReviews,
  selfSubjectAccessReviews,
  selfSubjectRulesReviews,
  subjectAccessReviews,
  certificateSigningRequests,
  leases,
  endpointSlices,
  clusterRoleBindings,
  clusterRoles,
  roleBindings,
  roles,
  priorityClasses,
  customResourceDefinitions,
  persistentVolumes,
  persistentVolumeClaims,
  statefulSets,
  jobs,
  cronJobs,
  ingresses,
] as const;

/** Kinds that only travel as bodies of sub-resources: found by kind, not by path. */
export const subresourceKinds: readonly KindDefinition[] = [evictions, scales, tokenRequests];

/** A kind as one of its versions: `alias` is set when the version asked for is not the stored one, and converts. */
export interface KindMatch {
  readonly kind: KindDefinition;
  readonly alias?: KindAlias;
}

export type KindAlias = NonNullable<KindDefinition['aliases']>[number];

/** Finds the kind that serves `gvk`, in whichever version; sub-resource kinds included. */
export function kindByGvk(gvk: GroupVersionKind): KindMatch | undefined {
  return byGvk().get(`${gvk.group}/${gvk.version}/${gvk.kind}`);
}

/** Finds the kind by its place in URLs. `group` is '' for the core group. */
export function kindByPath(group: string, version: string, plural: string): KindMatch | undefined {
  return byPath().get(`${group}/${version}/${plural}`);
}

const byGvk = lazily(() => index([...builtinKinds, ...subresourceKinds], (kind) => kind.kind));
const byPath = lazily(() => index(builtinKinds, (kind) => kind.plural));

function index(
  kinds: readonly KindDefinition[],
  lastSegment: (kind: KindDefinition) => string,
): ReadonlyMap<string, KindMatch> {
  const found = new Map<string, KindMatch>();
  for (const kind of kinds) {
    found.set(`${kind.group}/${kind.version}/${lastSegment(kind)}`, { kind });
    for (const alias of kind.aliases ?? []) {
      found.set(`${alias.group}/${alias.version}/${lastSegment(kind)}`, { kind, alias });
    }
  }
  return found;
}

function lazily<T>(compute: () => T): () => T {
  let value: T | undefined;
  return () => {
    value ??= compute();
    return value;
  };
}
