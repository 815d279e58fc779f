/** The built-in kinds as clients address them. */
import type { ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet } from 'kubernetes-types/apps/v1';
import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1';
import type { Lease } from 'kubernetes-types/coordination/v1';
import type {
  ConfigMap,
  Endpoints,
  Event,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  ReplicationController,
  ResourceQuota,
  Secret,
  Service,
  ServiceAccount,
} from 'kubernetes-types/core/v1';
import type { EndpointSlice } from 'kubernetes-types/discovery/v1';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1';
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from 'kubernetes-types/rbac/v1';
import type { PriorityClass } from 'kubernetes-types/scheduling/v1';
import type { IpAddress } from './kinds/ipaddresses/index.ts';
import type { ServiceCidr } from './kinds/servicecidrs/index.ts';
import type { KubeObject, ResourceType } from './meta/object.ts';

const type = <T extends KubeObject>(
  group: string,
  version: string,
  kind: string,
  plural: string,
  namespaced: boolean,
): ResourceType<T> => ({ group, version, kind, plural, namespaced });

export const resources = {
  namespaces: type<Namespace>('', 'v1', 'Namespace', 'namespaces', false),
  nodes: type<Node>('', 'v1', 'Node', 'nodes', false),
  pods: type<Pod>('', 'v1', 'Pod', 'pods', true),
  services: type<Service>('', 'v1', 'Service', 'services', true),
  persistentVolumeClaims: type<PersistentVolumeClaim>(
    '',
    'v1',
    'PersistentVolumeClaim',
    'persistentvolumeclaims',
    true,
  ),
  persistentVolumes: type<PersistentVolume>('', 'v1', 'PersistentVolume', 'persistentvolumes', false),
  resourceQuotas: type<ResourceQuota>('', 'v1', 'ResourceQuota', 'resourcequotas', true),
  endpoints: type<Endpoints>('', 'v1', 'Endpoints', 'endpoints', true),
  configMaps: type<ConfigMap>('', 'v1', 'ConfigMap', 'configmaps', true),
  secrets: type<Secret>('', 'v1', 'Secret', 'secrets', true),
  serviceAccounts: type<ServiceAccount>('', 'v1', 'ServiceAccount', 'serviceaccounts', true),
  events: type<Event>('', 'v1', 'Event', 'events', true),
  replicationControllers: type<ReplicationController>(
    '',
    'v1',
    'ReplicationController',
    'replicationcontrollers',
    true,
  ),
  deployments: type<Deployment>('apps', 'v1', 'Deployment', 'deployments', true),
  replicaSets: type<ReplicaSet>('apps', 'v1', 'ReplicaSet', 'replicasets', true),
  statefulSets: type<StatefulSet>('apps', 'v1', 'StatefulSet', 'statefulsets', true),
  daemonSets: type<DaemonSet>('apps', 'v1', 'DaemonSet', 'daemonsets', true),
  controllerRevisions: type<ControllerRevision>('apps', 'v1', 'ControllerRevision', 'controllerrevisions', true),
  endpointSlices: type<EndpointSlice>('discovery.k8s.io', 'v1', 'EndpointSlice', 'endpointslices', true),
  podDisruptionBudgets: type<PodDisruptionBudget>('policy', 'v1', 'PodDisruptionBudget', 'poddisruptionbudgets', true),
  ipAddresses: type<IpAddress>('networking.k8s.io', 'v1', 'IPAddress', 'ipaddresses', false),
  serviceCidrs: type<ServiceCidr>('networking.k8s.io', 'v1', 'ServiceCIDR', 'servicecidrs', false),
  leases: type<Lease>('coordination.k8s.io', 'v1', 'Lease', 'leases', true),
  roles: type<Role>('rbac.authorization.k8s.io', 'v1', 'Role', 'roles', true),
  roleBindings: type<RoleBinding>('rbac.authorization.k8s.io', 'v1', 'RoleBinding', 'rolebindings', true),
  clusterRoles: type<ClusterRole>('rbac.authorization.k8s.io', 'v1', 'ClusterRole', 'clusterroles', false),
  clusterRoleBindings: type<ClusterRoleBinding>(
    'rbac.authorization.k8s.io',
    'v1',
    'ClusterRoleBinding',
    'clusterrolebindings',
    false,
  ),
  certificateSigningRequests: type<CertificateSigningRequest>(
    'certificates.k8s.io',
    'v1',
    'CertificateSigningRequest',
    'certificatesigningrequests',
    false,
  ),
  priorityClasses: type<PriorityClass>('scheduling.k8s.io', 'v1', 'PriorityClass', 'priorityclasses', false),
} as const;
