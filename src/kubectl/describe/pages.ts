/** Pages of `describe` by group and kind. Objects of other kinds get a generic page with all their fields. */

import { describeAutoscaler } from './autoscaling.ts';
import { describeImageStream } from './image-stream.ts';
import {
  describeAddress,
  describeEndpointSlice,
  describeEndpoints,
  describeIngress,
  describeIngressClass,
  describeNetworkPolicy,
  describeServiceRange,
} from './networking.ts';
import { describeProject, describeRoute, describeTemplate } from './openshift.ts';
import {
  describeClusterQuota,
  describeConstraints,
  describeGroup,
  describeIdentity,
  describeRoleBindingRestriction,
  describeUser,
  describeUserIdentityMapping,
} from './openshift-access.ts';
import { describePod } from './pod-template.ts';
import {
  describeDisruptionBudget,
  describeLimitRange,
  describeNamespace,
  describePriorityClass,
  describeQuota,
} from './policy.ts';
import type { Describer } from './related-facts.ts';
import { describeRole, describeRoleBinding, describeSigningRequest } from './roles.ts';
import {
  describeAttributesClass,
  describeClaim,
  describeCsiNode,
  describeStorageClass,
  describeVolume,
} from './storage.ts';
import {
  describeConfigMap,
  describeCronJob,
  describeDaemonSet,
  describeDeployment,
  describeJob,
  describeReplicaSet,
  describeReplicationController,
  describeSecret,
  describeService,
  describeServiceAccount,
  describeStatefulSet,
} from './workloads.ts';

export const PAGES: Readonly<Record<string, Describer>> = {
  '/ConfigMap': describeConfigMap,
  '/Endpoints': describeEndpoints,
  '/LimitRange': describeLimitRange,
  '/Namespace': describeNamespace,
  '/PersistentVolume': describeVolume,
  '/PersistentVolumeClaim': describeClaim,
  '/Pod': (object, { events, now }) => describePod(object, events, now),
  '/ReplicationController': describeReplicationController,
  '/ResourceQuota': describeQuota,
  '/Secret': describeSecret,
  '/Service': describeService,
  '/ServiceAccount': describeServiceAccount,
  'apps/DaemonSet': describeDaemonSet,
  'apps/Deployment': describeDeployment,
  'apps/ReplicaSet': describeReplicaSet,
  'apps/StatefulSet': describeStatefulSet,
  'authorization.openshift.io/RoleBindingRestriction': describeRoleBindingRestriction,
  'autoscaling/HorizontalPodAutoscaler': describeAutoscaler,
  'batch/CronJob': describeCronJob,
  'batch/Job': describeJob,
  'certificates.k8s.io/CertificateSigningRequest': describeSigningRequest,
  'discovery.k8s.io/EndpointSlice': describeEndpointSlice,
  'image.openshift.io/ImageStream': describeImageStream,
  'networking.k8s.io/IPAddress': describeAddress,
  'networking.k8s.io/Ingress': describeIngress,
  'networking.k8s.io/IngressClass': describeIngressClass,
  'networking.k8s.io/NetworkPolicy': describeNetworkPolicy,
  'networking.k8s.io/ServiceCIDR': describeServiceRange,
  'policy/PodDisruptionBudget': describeDisruptionBudget,
  'project.openshift.io/Project': describeProject,
  'quota.openshift.io/AppliedClusterResourceQuota': describeClusterQuota,
  'quota.openshift.io/ClusterResourceQuota': describeClusterQuota,
  'rbac.authorization.k8s.io/ClusterRole': describeRole,
  'rbac.authorization.k8s.io/ClusterRoleBinding': describeRoleBinding,
  'rbac.authorization.k8s.io/Role': describeRole,
  'rbac.authorization.k8s.io/RoleBinding': describeRoleBinding,
  'route.openshift.io/Route': describeRoute,
  'scheduling.k8s.io/PriorityClass': describePriorityClass,
  'security.openshift.io/SecurityContextConstraints': describeConstraints,
  'storage.k8s.io/CSINode': describeCsiNode,
  'storage.k8s.io/StorageClass': describeStorageClass,
  'storage.k8s.io/VolumeAttributesClass': describeAttributesClass,
  'template.openshift.io/Template': describeTemplate,
  'user.openshift.io/Group': describeGroup,
  'user.openshift.io/Identity': describeIdentity,
  'user.openshift.io/User': describeUser,
  'user.openshift.io/UserIdentityMapping': describeUserIdentityMapping,
};
