/** List of all built-in kinds, with lookups. To add a kind, add a folder and a line here. */
import { apiServices } from '../kinds/apiservices/index.ts';
import { certificateSigningRequests } from '../kinds/certificatesigningrequests/index.ts';
import { clusterRoleBindings } from '../kinds/clusterrolebindings/index.ts';
import { clusterRoles } from '../kinds/clusterroles/index.ts';
import { componentStatuses } from '../kinds/componentstatuses/index.ts';
import { configMaps } from '../kinds/configmaps/index.ts';
import { controllerRevisions } from '../kinds/controllerrevisions/index.ts';
import { cronJobs } from '../kinds/cronjobs/index.ts';
import { csiDrivers } from '../kinds/csidrivers/index.ts';
import { csiNodes } from '../kinds/csinodes/index.ts';
import { csiStorageCapacities } from '../kinds/csistoragecapacities/index.ts';
import { customResourceDefinitions } from '../kinds/customresourcedefinitions/index.ts';
import { daemonSets } from '../kinds/daemonsets/index.ts';
import { deployments } from '../kinds/deployments/index.ts';
import { deviceClasses } from '../kinds/deviceclasses/index.ts';
import { deviceTaintRules } from '../kinds/devicetaintrules/index.ts';
import { endpoints } from '../kinds/endpoints/index.ts';
import { endpointSlices } from '../kinds/endpointslices/index.ts';
import { events } from '../kinds/events/index.ts';
import { flowSchemas } from '../kinds/flowschemas/index.ts';
import { horizontalPodAutoscalers } from '../kinds/horizontalpodautoscalers/index.ts';
import { ingressClasses } from '../kinds/ingressclasses/index.ts';
import { ingresses } from '../kinds/ingresses/index.ts';
import { ipAddresses } from '../kinds/ipaddresses/index.ts';
import { jobs } from '../kinds/jobs/index.ts';
import { leases } from '../kinds/leases/index.ts';
import { limitRanges } from '../kinds/limitranges/index.ts';
import { mutatingAdmissionPolicies } from '../kinds/mutatingadmissionpolicies/index.ts';
import { mutatingAdmissionPolicyBindings } from '../kinds/mutatingadmissionpolicybindings/index.ts';
import { mutatingWebhookConfigurations } from '../kinds/mutatingwebhookconfigurations/index.ts';
import { namespaces } from '../kinds/namespaces/index.ts';
import { networkPolicies } from '../kinds/networkpolicies/index.ts';
import { nodeMetrics } from '../kinds/nodemetrics/index.ts';
import { nodes } from '../kinds/nodes/index.ts';
import { persistentVolumeClaims } from '../kinds/persistentvolumeclaims/index.ts';
import { persistentVolumes } from '../kinds/persistentvolumes/index.ts';
import { podDisruptionBudgets } from '../kinds/poddisruptionbudgets/index.ts';
import { podMetrics } from '../kinds/podmetrics/index.ts';
import { pods } from '../kinds/pods/index.ts';
import { podSecurityPolicies } from '../kinds/podsecuritypolicies/index.ts';
import { podTemplates } from '../kinds/podtemplates/index.ts';
import { priorityClasses } from '../kinds/priorityclasses/index.ts';
import { priorityLevelConfigurations } from '../kinds/prioritylevelconfigurations/index.ts';
import { replicaSets } from '../kinds/replicasets/index.ts';
import { replicationControllers } from '../kinds/replicationcontrollers/index.ts';
import { resourceClaims } from '../kinds/resourceclaims/index.ts';
import { resourceClaimTemplates } from '../kinds/resourceclaimtemplates/index.ts';
import { resourceQuotas } from '../kinds/resourcequotas/index.ts';
import { resourceSlices } from '../kinds/resourceslices/index.ts';
import {
  localSubjectAccessReviews,
  selfSubjectAccessReviews,
  selfSubjectReviews,
  selfSubjectRulesReviews,
  subjectAccessReviews,
  tokenReviews,
} from '../kinds/reviews/index.ts';
import { rigClaims } from '../kinds/rigclaims/index.ts';
import { rigs } from '../kinds/rigs/index.ts';
import { roleBindings } from '../kinds/rolebindings/index.ts';
import { roles } from '../kinds/roles/index.ts';
import { runtimeClasses } from '../kinds/runtimeclasses/index.ts';
import { secrets } from '../kinds/secrets/index.ts';
import { serviceAccounts } from '../kinds/serviceaccounts/index.ts';
import { serviceCidrs } from '../kinds/servicecidrs/index.ts';
import { services } from '../kinds/services/index.ts';
import { statefulSets } from '../kinds/statefulsets/index.ts';
import { storageClasses } from '../kinds/storageclasses/index.ts';
import { storageVersionMigrations } from '../kinds/storageversionmigrations/index.ts';
import { bindings, evictions, scales, tokenRequests } from '../kinds/subresources/index.ts';
import { validatingAdmissionPolicies } from '../kinds/validatingadmissionpolicies/index.ts';
import { validatingAdmissionPolicyBindings } from '../kinds/validatingadmissionpolicybindings/index.ts';
import { validatingWebhookConfigurations } from '../kinds/validatingwebhookconfigurations/index.ts';
import { volumeAttachments } from '../kinds/volumeattachments/index.ts';
import { volumeAttributesClasses } from '../kinds/volumeattributesclasses/index.ts';
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

/** A kind in one of its versions. `alias` is set, and converts, if that version is not the stored one. */
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
