/** List of all built-in kinds, with lookups. To add a kind, add a folder and a line here. */

import { podSecurityPolicies } from '../../openshift/security-context-constraints/kinds/podsecuritypolicies/index.ts';
import { rigClaims } from '../../rigs/kinds/rigclaims/index.ts';
import { rigs } from '../../rigs/kinds/rigs/index.ts';
import { mutatingAdmissionPolicies } from '../kinds/admission/mutatingadmissionpolicies/index.ts';
import { mutatingAdmissionPolicyBindings } from '../kinds/admission/mutatingadmissionpolicybindings/index.ts';
import { mutatingWebhookConfigurations } from '../kinds/admission/mutatingwebhookconfigurations/index.ts';
import { validatingAdmissionPolicies } from '../kinds/admission/validatingadmissionpolicies/index.ts';
import { validatingAdmissionPolicyBindings } from '../kinds/admission/validatingadmissionpolicybindings/index.ts';
import { validatingWebhookConfigurations } from '../kinds/admission/validatingwebhookconfigurations/index.ts';
import { apiServices } from '../kinds/cluster/apiservices/index.ts';
import { configMaps } from '../kinds/cluster/configmaps/index.ts';
import { customResourceDefinitions } from '../kinds/cluster/customresourcedefinitions/index.ts';
import { events } from '../kinds/cluster/events/index.ts';
import { flowSchemas } from '../kinds/cluster/flowschemas/index.ts';
import { limitRanges } from '../kinds/cluster/limitranges/index.ts';
import { namespaces } from '../kinds/cluster/namespaces/index.ts';
import { priorityLevelConfigurations } from '../kinds/cluster/prioritylevelconfigurations/index.ts';
import { resourceQuotas } from '../kinds/cluster/resourcequotas/index.ts';
import { storageVersionMigrations } from '../kinds/cluster/storageversionmigrations/index.ts';
import { bindings, evictions, scales, tokenRequests } from '../kinds/cluster/subresources/index.ts';
import { deviceClasses } from '../kinds/devices/deviceclasses/index.ts';
import { deviceTaintRules } from '../kinds/devices/devicetaintrules/index.ts';
import { resourceClaims } from '../kinds/devices/resourceclaims/index.ts';
import { resourceClaimTemplates } from '../kinds/devices/resourceclaimtemplates/index.ts';
import { resourceSlices } from '../kinds/devices/resourceslices/index.ts';
import { certificateSigningRequests } from '../kinds/identity/certificatesigningrequests/index.ts';
import { clusterRoleBindings } from '../kinds/identity/clusterrolebindings/index.ts';
import { clusterRoles } from '../kinds/identity/clusterroles/index.ts';
import {
  localSubjectAccessReviews,
  selfSubjectAccessReviews,
  selfSubjectReviews,
  selfSubjectRulesReviews,
  subjectAccessReviews,
  tokenReviews,
} from '../kinds/identity/reviews/index.ts';
import { roleBindings } from '../kinds/identity/rolebindings/index.ts';
import { roles } from '../kinds/identity/roles/index.ts';
import { secrets } from '../kinds/identity/secrets/index.ts';
import { serviceAccounts } from '../kinds/identity/serviceaccounts/index.ts';
import { endpoints } from '../kinds/network/endpoints/index.ts';
import { endpointSlices } from '../kinds/network/endpointslices/index.ts';
import { ingressClasses } from '../kinds/network/ingressclasses/index.ts';
import { ingresses } from '../kinds/network/ingresses/index.ts';
import { ipAddresses } from '../kinds/network/ipaddresses/index.ts';
import { networkPolicies } from '../kinds/network/networkpolicies/index.ts';
import { serviceCidrs } from '../kinds/network/servicecidrs/index.ts';
import { services } from '../kinds/network/services/index.ts';
import { componentStatuses } from '../kinds/nodes/componentstatuses/index.ts';
import { leases } from '../kinds/nodes/leases/index.ts';
import { nodeMetrics } from '../kinds/nodes/nodemetrics/index.ts';
import { nodes } from '../kinds/nodes/nodes/index.ts';
import { podMetrics } from '../kinds/nodes/podmetrics/index.ts';
import { runtimeClasses } from '../kinds/nodes/runtimeclasses/index.ts';
import { csiDrivers } from '../kinds/storage/csidrivers/index.ts';
import { csiNodes } from '../kinds/storage/csinodes/index.ts';
import { csiStorageCapacities } from '../kinds/storage/csistoragecapacities/index.ts';
import { persistentVolumeClaims } from '../kinds/storage/persistentvolumeclaims/index.ts';
import { persistentVolumes } from '../kinds/storage/persistentvolumes/index.ts';
import { storageClasses } from '../kinds/storage/storageclasses/index.ts';
import { volumeAttachments } from '../kinds/storage/volumeattachments/index.ts';
import { volumeAttributesClasses } from '../kinds/storage/volumeattributesclasses/index.ts';
import { controllerRevisions } from '../kinds/workloads/controllerrevisions/index.ts';
import { cronJobs } from '../kinds/workloads/cronjobs/index.ts';
import { daemonSets } from '../kinds/workloads/daemonsets/index.ts';
import { deployments } from '../kinds/workloads/deployments/index.ts';
import { horizontalPodAutoscalers } from '../kinds/workloads/horizontalpodautoscalers/index.ts';
import { jobs } from '../kinds/workloads/jobs/index.ts';
import { podDisruptionBudgets } from '../kinds/workloads/poddisruptionbudgets/index.ts';
import { pods } from '../kinds/workloads/pods/index.ts';
import { podTemplates } from '../kinds/workloads/podtemplates/index.ts';
import { priorityClasses } from '../kinds/workloads/priorityclasses/index.ts';
import { replicaSets } from '../kinds/workloads/replicasets/index.ts';
import { replicationControllers } from '../kinds/workloads/replicationcontrollers/index.ts';
import { statefulSets } from '../kinds/workloads/statefulsets/index.ts';
import type { GroupVersionKind } from '../meta/object.ts';
import type { KindAlias, KindDefinition } from './definition.ts';
import { openshiftKinds } from './openshift.ts';
import { servedAs } from './versions.ts';

/** Kinds with a URL path of their own, in the order of discovery documents. */
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
  apiServices,
  componentStatuses,
  podTemplates,
  limitRanges,
  resourceQuotas,
  persistentVolumes,
  persistentVolumeClaims,
  statefulSets,
  jobs,
  cronJobs,
  horizontalPodAutoscalers,
  podDisruptionBudgets,
  podSecurityPolicies,
  ingresses,
  ingressClasses,
  networkPolicies,
  ipAddresses,
  serviceCidrs,
  storageClasses,
  volumeAttachments,
  csiNodes,
  csiDrivers,
  csiStorageCapacities,
  volumeAttributesClasses,
  deviceClasses,
  resourceClaims,
  resourceClaimTemplates,
  resourceSlices,
  deviceTaintRules,
  storageVersionMigrations,
  runtimeClasses,
  flowSchemas,
  priorityLevelConfigurations,
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
  validatingAdmissionPolicies,
  validatingAdmissionPolicyBindings,
  mutatingAdmissionPolicies,
  mutatingAdmissionPolicyBindings,
  ...openshiftKinds,
  nodeMetrics,
  podMetrics,
  rigs,
  rigClaims,
] as const;

/** Kinds that only occur as bodies of subresources. They are found by kind, not by path. */
export const subresourceKinds: readonly KindDefinition[] = [evictions, scales, tokenRequests];

/** A kind in one of its versions. If the version is not the stored one, `alias` is set and converts its objects. */
export interface KindMatch {
  readonly kind: KindDefinition;
  readonly alias?: KindAlias;
}

/** Finds the kind that serves `gvk` in any of its versions, including kinds of subresources. */
export function kindByGvk(gvk: GroupVersionKind): KindMatch | undefined {
  return byGvk().get(`${gvk.group}/${gvk.version}/${gvk.kind}`);
}

/** Finds the kind by its URL path. The core group is ''. */
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
      found.set(`${alias.group}/${alias.version}/${lastSegment(servedAs(kind, alias))}`, { kind, alias });
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
