import type { ClusterRole, PolicyRule } from '../../../../api/generated/rbac/v1.ts';
import { IMAGE_AND_TEMPLATE_CONTROLLERS } from './image-and-template-roles.ts';
import { MACHINE_CONFIG_CONTROLLERS } from './machine-config.ts';
import { MACHINE_CONTROLLERS } from './machine-roles.ts';
import { clusterRole, eventsRule, READ, rule } from './notation.ts';
import { OLM_CONTROLLERS } from './olm.ts';

const CERTIFICATES = 'certificates.k8s.io';
const WORKLOADS = 'apps';
const owner = (group: string, resource: string): PolicyRule[] => [
  rule('get list update watch', group, resource),
  rule('update', group, `${resource}/finalizers ${resource}/status`),
];
const controllerRevisions = rule('create delete get list patch update watch', WORKLOADS, 'controllerrevisions');

/** Rules of each controller, by the name of its service account. */
export const CONTROLLER_RULES: ReadonlyMap<string, readonly PolicyRule[]> = new Map([
  [
    'attachdetach-controller',
    [
      rule('list watch', 'core', 'persistentvolumeclaims persistentvolumes pods'),
      rule(READ, 'core', 'nodes'),
      rule('patch update', 'core', 'nodes/status'),
      rule('create delete get list watch', 'storage.k8s.io', 'volumeattachments'),
      rule(READ, 'storage.k8s.io', 'csidrivers csinodes'),
      eventsRule,
    ],
  ],
  // OpenShift's name of the controller for ClusterResourceQuotas.
  [
    'cluster-quota-reconciliation-controller',
    [
      rule('list watch', '*', '*'),
      rule('get list watch', 'quota.openshift.io', 'clusterresourcequotas'),
      rule('update', 'quota.openshift.io', 'clusterresourcequotas/status'),
    ],
  ],
  [
    'certificate-controller',
    [
      rule('delete get list watch', CERTIFICATES, 'certificatesigningrequests'),
      rule('update', CERTIFICATES, 'certificatesigningrequests/approval certificatesigningrequests/status'),
      rule(
        'approve',
        CERTIFICATES,
        'signers',
        'kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving',
      ),
      rule(
        'sign',
        CERTIFICATES,
        'signers',
        'kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown',
      ),
      rule('create', 'authorization.k8s.io', 'subjectaccessreviews'),
      rule('patch', 'core', 'nodes'),
      rule('list', 'networking.k8s.io', 'servicecidrs'),
      rule('list', 'machine.openshift.io', 'machines'),
      rule('list', 'metal3.io', 'baremetalhosts'),
      eventsRule,
    ],
  ],
  [
    'clusterrole-aggregation-controller',
    [rule('escalate get list patch update watch', 'rbac.authorization.k8s.io', 'clusterroles')],
  ],
  [
    'cronjob-controller',
    [
      ...owner('batch', 'cronjobs'),
      rule('create delete get list patch update watch', 'batch', 'jobs'),
      rule('delete list watch', 'core', 'pods'),
      eventsRule,
    ],
  ],
  [
    'daemon-set-controller',
    [
      rule(READ, WORKLOADS, 'daemonsets'),
      rule('update', WORKLOADS, 'daemonsets/finalizers daemonsets/status'),
      rule('list watch', 'core', 'nodes'),
      rule('create delete list patch watch', 'core', 'pods'),
      rule('create', 'core', 'pods/binding'),
      controllerRevisions,
      eventsRule,
    ],
  ],
  [
    'deployment-controller',
    [
      ...owner(WORKLOADS, 'deployments'),
      rule('create delete get list patch update watch', WORKLOADS, 'replicasets'),
      rule('get list update watch', 'core', 'pods'),
      eventsRule,
    ],
  ],
  [
    'device-taint-eviction-controller',
    [
      rule('delete get list watch', 'core', 'pods'),
      rule('patch update', 'core', 'pods/status'),
      rule(READ, 'resource.k8s.io', 'deviceclasses devicetaintrules resourceclaims resourceslices'),
      rule('patch update', 'resource.k8s.io', 'devicetaintrules/status'),
      eventsRule,
    ],
  ],
  [
    'disruption-controller',
    [
      rule(READ, WORKLOADS, 'deployments replicasets statefulsets'),
      rule(READ, 'core', 'replicationcontrollers'),
      rule(READ, 'policy', 'poddisruptionbudgets'),
      rule('update', 'policy', 'poddisruptionbudgets/status'),
      rule('patch update', 'core', 'pods/status'),
      rule('get', '*', '*/scale'),
      eventsRule,
    ],
  ],
  [
    'endpoint-controller',
    [
      rule(READ, 'core', 'pods services'),
      rule('create delete get list update watch', 'core', 'endpoints'),
      rule('create', 'core', 'endpoints/restricted'),
      eventsRule,
    ],
  ],
  [
    'endpointslice-controller',
    [
      rule(READ, 'core', 'nodes pods services'),
      rule('update', 'core', 'services/finalizers'),
      rule('create delete get list update watch', 'discovery.k8s.io', 'endpointslices'),
      rule('create', 'discovery.k8s.io', 'endpointslices/restricted'),
      eventsRule,
    ],
  ],
  [
    'endpointslicemirroring-controller',
    [
      rule(READ, 'core', 'endpoints services'),
      rule('update', 'core', 'endpoints/finalizers services/finalizers'),
      rule('create delete get list update watch', 'discovery.k8s.io', 'endpointslices'),
      rule('create', 'discovery.k8s.io', 'endpointslices/restricted'),
      eventsRule,
    ],
  ],
  [
    'ephemeral-volume-controller',
    [
      rule(READ, 'core', 'pods'),
      rule('update', 'core', 'pods/finalizers'),
      rule('create get list watch', 'core', 'persistentvolumeclaims'),
      eventsRule,
    ],
  ],
  [
    'expand-controller',
    [
      rule('get list patch update watch', 'core', 'persistentvolumes'),
      rule('patch update', 'core', 'persistentvolumeclaims/status'),
      rule(READ, 'core', 'persistentvolumeclaims'),
      rule(READ, 'storage.k8s.io', 'storageclasses'),
      rule('get', 'core', 'services'),
      eventsRule,
    ],
  ],
  ['generic-garbage-collector', [rule('delete get list patch update watch', '*', '*'), eventsRule]],
  [
    'horizontal-pod-autoscaler',
    [
      rule(READ, 'autoscaling', 'horizontalpodautoscalers'),
      rule('update', 'autoscaling', 'horizontalpodautoscalers/status'),
      rule('get update', '*', '*/scale'),
      rule('list watch', 'metrics.k8s.io', 'pods'),
      rule(READ, 'custom.metrics.k8s.io external.metrics.k8s.io', '*'),
      rule('list watch', 'core', 'pods'),
      eventsRule,
    ],
  ],
  [
    'job-controller',
    [
      rule('get list patch update watch', 'batch', 'jobs'),
      rule('update', 'batch', 'jobs/finalizers jobs/status'),
      rule('create delete list patch watch', 'core', 'pods'),
      eventsRule,
    ],
  ],
  [
    'legacy-service-account-token-cleaner',
    [
      rule('get', 'core', 'configmaps', 'kube-apiserver-legacy-service-account-token-tracking'),
      rule('delete patch', 'core', 'secrets'),
    ],
  ],
  [
    'namespace-controller',
    [
      rule('delete get list watch', 'core', 'namespaces'),
      rule('update', 'core', 'namespaces/finalize namespaces/status'),
      rule('delete deletecollection get list watch', '*', '*'),
    ],
  ],
  [
    'node-controller',
    [
      rule('delete get list patch update watch', 'core', 'nodes'),
      rule('patch update', 'core', 'nodes/status pods/status'),
      rule('delete get list watch', 'core', 'pods'),
      rule(READ, 'coordination.k8s.io', 'leases'),
      eventsRule,
    ],
  ],
  [
    'local-volume-provisioner',
    [
      rule('create delete get list update watch', 'core', 'persistentvolumes'),
      rule('get list update watch', 'core', 'persistentvolumeclaims'),
      rule('create get list watch', 'storage.k8s.io', 'storageclasses'),
      rule('get list patch watch', 'core', 'nodes'),
      eventsRule,
    ],
  ],
  [
    'persistent-volume-binder',
    [
      rule('create delete get list update watch', 'core', 'persistentvolumes'),
      rule('update', 'core', 'persistentvolumes/status persistentvolumeclaims/status'),
      rule('get list update watch', 'core', 'persistentvolumeclaims'),
      rule(READ, 'storage.k8s.io', 'storageclasses'),
      // Volumes are recycled by a pod, and its events report the result.
      rule('create delete get list watch', 'core', 'pods'),
      rule('watch', 'core', 'events'),
      rule(READ, 'core', 'nodes'),
      rule('get', 'core', 'services'),
      eventsRule,
    ],
  ],
  [
    'pod-garbage-collector',
    [rule('delete list watch', 'core', 'pods'), rule(READ, 'core', 'nodes'), rule('patch', 'core', 'pods/status')],
  ],
  ['pv-protection-controller', [rule('get list update watch', 'core', 'persistentvolumes'), eventsRule]],
  [
    'pvc-protection-controller',
    [rule('get list update watch', 'core', 'persistentvolumeclaims'), rule(READ, 'core', 'pods'), eventsRule],
  ],
  [
    'replicaset-controller',
    [...owner(WORKLOADS, 'replicasets'), rule('create delete list patch watch', 'core', 'pods'), eventsRule],
  ],
  [
    'replication-controller',
    [...owner('core', 'replicationcontrollers'), rule('create delete list patch watch', 'core', 'pods'), eventsRule],
  ],
  [
    'resource-claim-controller',
    [
      rule(READ, 'core', 'pods'),
      rule('update', 'core', 'pods/finalizers'),
      rule('create delete get list watch', 'resource.k8s.io', 'resourceclaims'),
      rule('patch update', 'resource.k8s.io', 'resourceclaims resourceclaims/status'),
      rule('patch update', 'resource.k8s.io', 'resourceclaims/binding'),
      rule('patch update', 'core', 'pods/status'),
      eventsRule,
    ],
  ],
  [
    'resourcequota-controller',
    [rule('list watch', '*', '*'), rule('update', 'core', 'resourcequotas/status'), eventsRule],
  ],
  [
    'rig-controller',
    [
      rule(READ, 'rig.hyperedge.dev', 'rigs'),
      rule('get list patch update watch', 'rig.hyperedge.dev', 'rigclaims'),
      rule('patch update', 'rig.hyperedge.dev', 'rigclaims/status rigs/status'),
      rule('delete get list patch watch', 'core', 'pods'),
      rule(READ, 'core', 'nodes'),
      rule('create delete get list watch', 'resource.k8s.io', 'deviceclasses resourceslices'),
      rule(READ, 'resource.k8s.io', 'resourceclaims'),
      eventsRule,
    ],
  ],
  [
    'service-ca',
    [
      rule('list watch', 'core', 'namespaces'),
      rule('get list patch watch', 'core', 'services'),
      rule('create get list patch watch', 'core', 'configmaps secrets'),
      rule('get list patch watch', 'apiregistration.k8s.io', 'apiservices'),
      rule('get list patch watch', 'apiextensions.k8s.io', 'customresourcedefinitions'),
      rule(
        'get list update watch',
        'admissionregistration.k8s.io',
        'mutatingwebhookconfigurations validatingwebhookconfigurations',
      ),
      eventsRule,
    ],
  ],
  ['root-ca-cert-publisher', [rule('create update', 'core', 'configmaps'), eventsRule]],
  ['route-controller', [rule('list watch', 'core', 'nodes'), rule('patch', 'core', 'nodes/status'), eventsRule]],
  [
    'selinux-warning-controller',
    [
      rule(READ, 'core', 'persistentvolumeclaims persistentvolumes pods'),
      rule(READ, 'storage.k8s.io', 'csidrivers'),
      eventsRule,
    ],
  ],
  ['service-account-controller', [rule('create', 'core', 'serviceaccounts'), eventsRule]],
  [
    'service-cidrs-controller',
    [
      rule(READ, 'networking.k8s.io', 'ipaddresses'),
      rule('get list patch update watch', 'networking.k8s.io', 'servicecidrs'),
      rule('patch update', 'networking.k8s.io', 'servicecidrs/finalizers servicecidrs/status'),
      eventsRule,
    ],
  ],
  [
    'service-controller',
    [
      rule(READ, 'core', 'services'),
      rule('patch update', 'core', 'services/status'),
      rule('list watch', 'core', 'nodes'),
      eventsRule,
    ],
  ],
  [
    'storage-version-migrator-controller',
    [
      rule('list patch', '*', '*'),
      rule(READ, 'storagemigration.k8s.io', 'storageversionmigrations'),
      rule('update', 'storagemigration.k8s.io', 'storageversionmigrations/status'),
      rule('get', 'apiextensions.k8s.io', 'customresourcedefinitions'),
      rule('update', 'apiextensions.k8s.io', 'customresourcedefinitions/status'),
      eventsRule,
    ],
  ],
  [
    'statefulset-controller',
    [
      rule(READ, WORKLOADS, 'statefulsets'),
      rule('update', WORKLOADS, 'statefulsets/finalizers statefulsets/status'),
      rule('create delete get list patch update watch', 'core', 'pods'),
      rule('update', 'core', 'pods/finalizers'),
      controllerRevisions,
      rule('create delete get list update watch', 'core', 'persistentvolumeclaims'),
      eventsRule,
    ],
  ],
  ['ttl-after-finished-controller', [rule('delete get list watch', 'batch', 'jobs'), eventsRule]],
  ['ttl-controller', [rule('list patch update watch', 'core', 'nodes'), eventsRule]],
  [
    'validatingadmissionpolicy-status-controller',
    [
      rule(READ, 'admissionregistration.k8s.io', 'validatingadmissionpolicies'),
      rule('get patch update', 'admissionregistration.k8s.io', 'validatingadmissionpolicies/status'),
      eventsRule,
    ],
  ],
  [
    'volumeattributesclass-protection-controller',
    [
      rule(READ, 'core', 'persistentvolumeclaims persistentvolumes'),
      rule('get list update watch', 'storage.k8s.io', 'volumeattributesclasses'),
      eventsRule,
    ],
  ],
  ...IMAGE_AND_TEMPLATE_CONTROLLERS,
  ...MACHINE_CONTROLLERS,
  ...MACHINE_CONFIG_CONTROLLERS,
  ...OLM_CONTROLLERS,
]);

export const controllerRoleName = (controller: string): string => `system:controller:${controller}`;

export const CONTROLLER_ROLES: readonly ClusterRole[] = [...CONTROLLER_RULES].map(([controller, rules]) =>
  clusterRole(controllerRoleName(controller), rules),
);
