/** Where schema generation starts: the client's classes for our kinds, by package. `+` adds the kind's List. Order matters: a type belongs to the first package that reaches it. */
export const ROOTS: readonly { readonly prefix: string; readonly classes: readonly string[] }[] = [
  {
    prefix: 'io.k8s.api.core.v1',
    classes: [
      'V1Namespace+',
      'V1Node+',
      'V1Pod+',
      'V1PodTemplate+',
      'V1Service+',
      'V1Endpoints+',
      'V1ConfigMap+',
      'V1Secret+',
      'V1ServiceAccount+',
      'V1ReplicationController+',
      'V1PersistentVolume+',
      'V1PersistentVolumeClaim+',
      'V1LimitRange+',
      'V1ResourceQuota+',
      'V1ComponentStatus+',
      'V1Binding',
      'V1TopologySelectorTerm',
      'V1TypedLocalObjectReference',
      'CoreV1Event',
      'CoreV1EventList',
    ],
  },
  {
    prefix: 'io.k8s.api.apps.v1',
    classes: ['V1Deployment+', 'V1ReplicaSet+', 'V1DaemonSet+', 'V1StatefulSet+', 'V1ControllerRevision+'],
  },
  { prefix: 'io.k8s.api.batch.v1', classes: ['V1Job+', 'V1CronJob+'] },
  { prefix: 'io.k8s.api.networking.v1', classes: ['V1Ingress+', 'V1IngressClass+', 'V1NetworkPolicy+'] },
  { prefix: 'io.k8s.api.events.v1', classes: ['EventsV1Event', 'EventsV1EventList'] },
  { prefix: 'io.k8s.api.discovery.v1', classes: ['V1EndpointSlice+'] },
  { prefix: 'io.k8s.api.coordination.v1', classes: ['V1Lease+'] },
  { prefix: 'io.k8s.api.rbac.v1', classes: ['V1Role+', 'V1RoleBinding+', 'V1ClusterRole+', 'V1ClusterRoleBinding+'] },
  { prefix: 'io.k8s.api.certificates.v1', classes: ['V1CertificateSigningRequest+'] },
  { prefix: 'io.k8s.api.scheduling.v1', classes: ['V1PriorityClass+'] },
  {
    prefix: 'io.k8s.api.authentication.v1',
    classes: ['V1TokenReview', 'V1SelfSubjectReview', 'AuthenticationV1TokenRequest'],
  },
  {
    prefix: 'io.k8s.api.authorization.v1',
    classes: [
      'V1SubjectAccessReview',
      'V1LocalSubjectAccessReview',
      'V1SelfSubjectAccessReview',
      'V1SelfSubjectRulesReview',
    ],
  },
  { prefix: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1', classes: ['V1CustomResourceDefinition+'] },
  { prefix: 'io.k8s.api.policy.v1', classes: ['V1Eviction', 'V1PodDisruptionBudget+'] },
  { prefix: 'io.k8s.api.autoscaling.v1', classes: ['V1Scale', 'V1HorizontalPodAutoscaler+'] },
  { prefix: 'io.k8s.api.autoscaling.v2', classes: ['V2HorizontalPodAutoscaler+'] },
  {
    prefix: 'io.k8s.api.storage.v1',
    classes: ['V1StorageClass+', 'V1VolumeAttachment+', 'V1CSINode+', 'V1CSIDriver+', 'V1CSIStorageCapacity+'],
  },
  { prefix: 'io.k8s.api.node.v1', classes: ['V1RuntimeClass+'] },
  { prefix: 'io.k8s.api.flowcontrol.v1', classes: ['V1FlowSchema+', 'V1PriorityLevelConfiguration+'] },
  {
    prefix: 'io.k8s.api.admissionregistration.v1',
    classes: [
      'V1MutatingWebhookConfiguration+',
      'V1ValidatingWebhookConfiguration+',
      'V1ValidatingAdmissionPolicy+',
      'V1ValidatingAdmissionPolicyBinding+',
    ],
  },
];

/** Classes of k8s.io/apimachinery's meta/v1. */
export const META_TYPES: readonly string[] = [
  'V1APIGroup',
  'V1APIGroupList',
  'V1APIResource',
  'V1APIResourceList',
  'V1APIVersions',
  'V1Condition',
  'V1DeleteOptions',
  'V1FieldSelectorRequirement',
  'V1GroupVersionForDiscovery',
  'V1LabelSelector',
  'V1LabelSelectorRequirement',
  'V1ListMeta',
  'V1ManagedFieldsEntry',
  'V1ObjectMeta',
  'V1OwnerReference',
  'V1Preconditions',
  'V1ServerAddressByClientCIDR',
  'V1Status',
  'V1StatusCause',
  'V1StatusDetails',
  'V1WatchEvent',
];

/** Classes the client renames because several packages have the name. */
export const RENAMED: Readonly<Record<string, string>> = {
  CoreV1Event: 'Event',
  CoreV1EventList: 'EventList',
  CoreV1EventSeries: 'EventSeries',
  CoreV1EndpointPort: 'EndpointPort',
  CoreV1ResourceClaim: 'ResourceClaim',
  EventsV1Event: 'Event',
  EventsV1EventList: 'EventList',
  EventsV1EventSeries: 'EventSeries',
  DiscoveryV1EndpointPort: 'EndpointPort',
  RbacV1Subject: 'Subject',
  AuthenticationV1TokenRequest: 'TokenRequest',
  StorageV1TokenRequest: 'TokenRequest',
  FlowcontrolV1Subject: 'Subject',
  AdmissionregistrationV1ServiceReference: 'ServiceReference',
  AdmissionregistrationV1WebhookClientConfig: 'WebhookClientConfig',
};

/** Quantities that the declarations we read are too old to know. */
export const EXTRA_QUANTITIES: readonly string[] = [
  'io.k8s.api.autoscaling.v2.HPAScalingRules.tolerance',
  'io.k8s.api.core.v1.PodStatus.allocatedResources',
  'io.k8s.api.core.v1.NodeAllocatableResourceMapping.allocationMultiplier',
];
