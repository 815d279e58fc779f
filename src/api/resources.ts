/**
 * Resource types that components use, with the types of their objects. Everything else about a kind is in its folder.
 */

import { routes } from '../network/router/kinds/routes/index.ts';
import { images } from '../openshift/image-streams/kinds/images/index.ts';
import { imageStreams } from '../openshift/image-streams/kinds/imagestreams/index.ts';
import {
  containerRuntimeConfigs,
  controllerConfigs,
  kubeletConfigs,
  machineConfigPools,
  machineConfigs,
} from '../openshift/machine-config/kinds/machineconfigs/index.ts';
import { bareMetalHosts } from '../openshift/machines/kinds/baremetalhosts/index.ts';
import { machineHealthChecks } from '../openshift/machines/kinds/machinehealthchecks/index.ts';
import { machines } from '../openshift/machines/kinds/machines/index.ts';
import { machineSets } from '../openshift/machines/kinds/machinesets/index.ts';
import { clusterOperators, clusterVersions, schedulers } from '../openshift/operators/kinds/config/index.ts';
import type { ClusterOperator, ClusterVersion, SchedulerConfig } from '../openshift/operators/kinds/config/types.ts';
import {
  catalogPackages,
  catalogSources,
  clusterServiceVersions,
  installPlans,
  operatorConditions,
  operatorGroups,
  operators,
  subscriptions,
} from '../openshift/operators/olm/kinds/index.ts';
import { rangeAllocations } from '../openshift/security-context-constraints/kinds/rangeallocations/index.ts';
import { templateInstances } from '../openshift/templates/kinds/templateinstances/index.ts';
import { rigClaims } from '../rigs/kinds/rigclaims/index.ts';
import { rigs } from '../rigs/kinds/rigs/index.ts';
import { mutatingWebhookConfigurations } from './kinds/admission/mutatingwebhookconfigurations/index.ts';
import { validatingWebhookConfigurations } from './kinds/admission/validatingwebhookconfigurations/index.ts';
import { apiServices } from './kinds/cluster/apiservices/index.ts';
import { configMaps } from './kinds/cluster/configmaps/index.ts';
import { customResourceDefinitions } from './kinds/cluster/customresourcedefinitions/index.ts';
import { events } from './kinds/cluster/events/index.ts';
import { namespaces } from './kinds/cluster/namespaces/index.ts';
import { resourceQuotas } from './kinds/cluster/resourcequotas/index.ts';
import { storageVersionMigrations } from './kinds/cluster/storageversionmigrations/index.ts';
import { deviceClasses } from './kinds/devices/deviceclasses/index.ts';
import { deviceTaintRules } from './kinds/devices/devicetaintrules/index.ts';
import { resourceClaims } from './kinds/devices/resourceclaims/index.ts';
import { resourceClaimTemplates } from './kinds/devices/resourceclaimtemplates/index.ts';
import { resourceSlices } from './kinds/devices/resourceslices/index.ts';
import { certificateSigningRequests } from './kinds/identity/certificatesigningrequests/index.ts';
import { clusterRoleBindings } from './kinds/identity/clusterrolebindings/index.ts';
import { clusterRoles } from './kinds/identity/clusterroles/index.ts';
import { roleBindings } from './kinds/identity/rolebindings/index.ts';
import { roles } from './kinds/identity/roles/index.ts';
import { secrets } from './kinds/identity/secrets/index.ts';
import { serviceAccounts } from './kinds/identity/serviceaccounts/index.ts';
import { endpoints } from './kinds/network/endpoints/index.ts';
import { endpointSlices } from './kinds/network/endpointslices/index.ts';
import { ingressClasses } from './kinds/network/ingressclasses/index.ts';
import { ingresses } from './kinds/network/ingresses/index.ts';
import { ipAddresses } from './kinds/network/ipaddresses/index.ts';
import { networkPolicies } from './kinds/network/networkpolicies/index.ts';
import { serviceCidrs } from './kinds/network/servicecidrs/index.ts';
import { services } from './kinds/network/services/index.ts';
import { leases } from './kinds/nodes/leases/index.ts';
import { nodes } from './kinds/nodes/nodes/index.ts';
import { runtimeClasses } from './kinds/nodes/runtimeclasses/index.ts';
import { csiDrivers } from './kinds/storage/csidrivers/index.ts';
import { csiNodes } from './kinds/storage/csinodes/index.ts';
import { csiStorageCapacities } from './kinds/storage/csistoragecapacities/index.ts';
import { persistentVolumeClaims } from './kinds/storage/persistentvolumeclaims/index.ts';
import { persistentVolumes } from './kinds/storage/persistentvolumes/index.ts';
import { storageClasses } from './kinds/storage/storageclasses/index.ts';
import { volumeAttachments } from './kinds/storage/volumeattachments/index.ts';
import { volumeAttributesClasses } from './kinds/storage/volumeattributesclasses/index.ts';
import { controllerRevisions } from './kinds/workloads/controllerrevisions/index.ts';
import { cronJobs } from './kinds/workloads/cronjobs/index.ts';
import { daemonSets } from './kinds/workloads/daemonsets/index.ts';
import { deployments } from './kinds/workloads/deployments/index.ts';
import { horizontalPodAutoscalers } from './kinds/workloads/horizontalpodautoscalers/index.ts';
import { jobs } from './kinds/workloads/jobs/index.ts';
import { podDisruptionBudgets } from './kinds/workloads/poddisruptionbudgets/index.ts';
import { pods } from './kinds/workloads/pods/index.ts';
import { priorityClasses } from './kinds/workloads/priorityclasses/index.ts';
import { replicaSets } from './kinds/workloads/replicasets/index.ts';
import { replicationControllers } from './kinds/workloads/replicationcontrollers/index.ts';
import { statefulSets } from './kinds/workloads/statefulsets/index.ts';
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
