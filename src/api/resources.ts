/**
 * Resource types that components use, with the types of their objects. Everything else about a kind is in its folder.
 */

import { apiServices } from './kinds/apiservices/index.ts';
import { bareMetalHosts } from './kinds/baremetalhosts/index.ts';
import { certificateSigningRequests } from './kinds/certificatesigningrequests/index.ts';
import { clusterRoleBindings } from './kinds/clusterrolebindings/index.ts';
import { clusterRoles } from './kinds/clusterroles/index.ts';
import { clusterOperators, clusterVersions, schedulers } from './kinds/config/index.ts';
import type { ClusterOperator, ClusterVersion, SchedulerConfig } from './kinds/config/types.ts';
import { configMaps } from './kinds/configmaps/index.ts';
import { controllerRevisions } from './kinds/controllerrevisions/index.ts';
import { cronJobs } from './kinds/cronjobs/index.ts';
import { csiDrivers } from './kinds/csidrivers/index.ts';
import { csiNodes } from './kinds/csinodes/index.ts';
import { csiStorageCapacities } from './kinds/csistoragecapacities/index.ts';
import { customResourceDefinitions } from './kinds/customresourcedefinitions/index.ts';
import { daemonSets } from './kinds/daemonsets/index.ts';
import { deployments } from './kinds/deployments/index.ts';
import { deviceClasses } from './kinds/deviceclasses/index.ts';
import { deviceTaintRules } from './kinds/devicetaintrules/index.ts';
import { endpoints } from './kinds/endpoints/index.ts';
import { endpointSlices } from './kinds/endpointslices/index.ts';
import { events } from './kinds/events/index.ts';
import { horizontalPodAutoscalers } from './kinds/horizontalpodautoscalers/index.ts';
import { images } from './kinds/images/index.ts';
import { imageStreams } from './kinds/imagestreams/index.ts';
import { ingressClasses } from './kinds/ingressclasses/index.ts';
import { ingresses } from './kinds/ingresses/index.ts';
import { ipAddresses } from './kinds/ipaddresses/index.ts';
import { jobs } from './kinds/jobs/index.ts';
import { leases } from './kinds/leases/index.ts';
import {
  containerRuntimeConfigs,
  controllerConfigs,
  kubeletConfigs,
  machineConfigPools,
  machineConfigs,
} from './kinds/machineconfigs/index.ts';
import { machineHealthChecks } from './kinds/machinehealthchecks/index.ts';
import { machines } from './kinds/machines/index.ts';
import { machineSets } from './kinds/machinesets/index.ts';
import { mutatingWebhookConfigurations } from './kinds/mutatingwebhookconfigurations/index.ts';
import { namespaces } from './kinds/namespaces/index.ts';
import { networkPolicies } from './kinds/networkpolicies/index.ts';
import { nodes } from './kinds/nodes/index.ts';
import {
  catalogPackages,
  catalogSources,
  clusterServiceVersions,
  installPlans,
  operatorConditions,
  operatorGroups,
  operators,
  subscriptions,
} from './kinds/olm/index.ts';
import { persistentVolumeClaims } from './kinds/persistentvolumeclaims/index.ts';
import { persistentVolumes } from './kinds/persistentvolumes/index.ts';
import { podDisruptionBudgets } from './kinds/poddisruptionbudgets/index.ts';
import { pods } from './kinds/pods/index.ts';
import { priorityClasses } from './kinds/priorityclasses/index.ts';
import { rangeAllocations } from './kinds/rangeallocations/index.ts';
import { replicaSets } from './kinds/replicasets/index.ts';
import { replicationControllers } from './kinds/replicationcontrollers/index.ts';
import { resourceClaims } from './kinds/resourceclaims/index.ts';
import { resourceClaimTemplates } from './kinds/resourceclaimtemplates/index.ts';
import { resourceQuotas } from './kinds/resourcequotas/index.ts';
import { resourceSlices } from './kinds/resourceslices/index.ts';
import { rigClaims } from './kinds/rigclaims/index.ts';
import { rigs } from './kinds/rigs/index.ts';
import { roleBindings } from './kinds/rolebindings/index.ts';
import { roles } from './kinds/roles/index.ts';
import { routes } from './kinds/routes/index.ts';
import { runtimeClasses } from './kinds/runtimeclasses/index.ts';
import { secrets } from './kinds/secrets/index.ts';
import { serviceAccounts } from './kinds/serviceaccounts/index.ts';
import { serviceCidrs } from './kinds/servicecidrs/index.ts';
import { services } from './kinds/services/index.ts';
import { statefulSets } from './kinds/statefulsets/index.ts';
import { storageClasses } from './kinds/storageclasses/index.ts';
import { storageVersionMigrations } from './kinds/storageversionmigrations/index.ts';
import { templateInstances } from './kinds/templateinstances/index.ts';
import { validatingWebhookConfigurations } from './kinds/validatingwebhookconfigurations/index.ts';
import { volumeAttachments } from './kinds/volumeattachments/index.ts';
import { volumeAttributesClasses } from './kinds/volumeattributesclasses/index.ts';
import type { KubeObject, ResourceType } from './meta/object.ts';
import type { KindDefinition } from './registry/definition.ts';

const typeOf = <T extends KubeObject>({
  group,
  version,
  kind,
  plural,
  namespaced,
}: KindDefinition<T>): ResourceType<T> => ({
  group,
  version,
  kind,
  plural,
  namespaced,
});

export const resources = {
  namespaces: typeOf(namespaces),
  nodes: typeOf(nodes),
  pods: typeOf(pods),
  services: typeOf(services),
  persistentVolumeClaims: typeOf(persistentVolumeClaims),
  runtimeClasses: typeOf(runtimeClasses),
  clusterOperators: typeOf(clusterOperators) as ResourceType<ClusterOperator>,
  clusterVersions: typeOf(clusterVersions) as ResourceType<ClusterVersion>,
  schedulers: typeOf(schedulers) as ResourceType<SchedulerConfig>,
  persistentVolumes: typeOf(persistentVolumes),
  resourceQuotas: typeOf(resourceQuotas),
  endpoints: typeOf(endpoints),
  apiServices: typeOf(apiServices),
  configMaps: typeOf(configMaps),
  mutatingWebhookConfigurations: typeOf(mutatingWebhookConfigurations),
  validatingWebhookConfigurations: typeOf(validatingWebhookConfigurations),
  secrets: typeOf(secrets),
  serviceAccounts: typeOf(serviceAccounts),
  events: typeOf(events),
  replicationControllers: typeOf(replicationControllers),
  deployments: typeOf(deployments),
  replicaSets: typeOf(replicaSets),
  statefulSets: typeOf(statefulSets),
  daemonSets: typeOf(daemonSets),
  controllerRevisions: typeOf(controllerRevisions),
  jobs: typeOf(jobs),
  cronJobs: typeOf(cronJobs),
  horizontalPodAutoscalers: typeOf(horizontalPodAutoscalers),
  endpointSlices: typeOf(endpointSlices),
  networkPolicies: typeOf(networkPolicies),
  ingresses: typeOf(ingresses),
  ingressClasses: typeOf(ingressClasses),
  routes: typeOf(routes),
  customResourceDefinitions: typeOf(customResourceDefinitions),
  podDisruptionBudgets: typeOf(podDisruptionBudgets),
  ipAddresses: typeOf(ipAddresses),
  serviceCidrs: typeOf(serviceCidrs),
  leases: typeOf(leases),
  roles: typeOf(roles),
  roleBindings: typeOf(roleBindings),
  clusterRoles: typeOf(clusterRoles),
  clusterRoleBindings: typeOf(clusterRoleBindings),
  certificateSigningRequests: typeOf(certificateSigningRequests),
  priorityClasses: typeOf(priorityClasses),
  storageClasses: typeOf(storageClasses),
  resourceClaims: typeOf(resourceClaims),
  resourceClaimTemplates: typeOf(resourceClaimTemplates),
  resourceSlices: typeOf(resourceSlices),
  deviceTaintRules: typeOf(deviceTaintRules),
  storageVersionMigrations: typeOf(storageVersionMigrations),
  deviceClasses: typeOf(deviceClasses),
  csiDrivers: typeOf(csiDrivers),
  csiNodes: typeOf(csiNodes),
  csiStorageCapacities: typeOf(csiStorageCapacities),
  volumeAttachments: typeOf(volumeAttachments),
  volumeAttributesClasses: typeOf(volumeAttributesClasses),
  rangeAllocations: typeOf(rangeAllocations),
  images: typeOf(images),
  imageStreams: typeOf(imageStreams),
  templateInstances: typeOf(templateInstances),
  machines: typeOf(machines),
  machineSets: typeOf(machineSets),
  machineHealthChecks: typeOf(machineHealthChecks),
  bareMetalHosts: typeOf(bareMetalHosts),
  catalogSources: typeOf(catalogSources),
  subscriptions: typeOf(subscriptions),
  installPlans: typeOf(installPlans),
  clusterServiceVersions: typeOf(clusterServiceVersions),
  operatorGroups: typeOf(operatorGroups),
  operators: typeOf(operators),
  operatorConditions: typeOf(operatorConditions),
  catalogPackages: typeOf(catalogPackages),
  rigs: typeOf(rigs),
  rigClaims: typeOf(rigClaims),
  machineConfigs: typeOf(machineConfigs),
  machineConfigPools: typeOf(machineConfigPools),
  kubeletConfigs: typeOf(kubeletConfigs),
  containerRuntimeConfigs: typeOf(containerRuntimeConfigs),
  controllerConfigs: typeOf(controllerConfigs),
} as const;
