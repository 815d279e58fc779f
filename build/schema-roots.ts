/**
 * Client classes, by package, from which schema generation starts in addition to the kinds of `src/api/kinds`. A class
 * with `+` also adds its List. The order matters: a type belongs to the first package that reaches it.
 */
export const ROOTS: readonly { readonly prefix: string; readonly classes: readonly string[] }[] = [
  {
    prefix: 'io.k8s.api.core.v1',
    classes: ['V1TopologySelectorTerm', 'V1TypedLocalObjectReference'],
  },
  {
    prefix: 'io.k8s.api.apps.v1',
    classes: [],
  },
  { prefix: 'io.k8s.api.batch.v1', classes: [] },
  {
    prefix: 'io.k8s.api.networking.v1',
    classes: [],
  },
  { prefix: 'io.k8s.api.events.v1', classes: ['EventsV1Event', 'EventsV1EventList'] },
  { prefix: 'io.k8s.api.discovery.v1', classes: [] },
  { prefix: 'io.k8s.api.coordination.v1', classes: [] },
  { prefix: 'io.k8s.api.rbac.v1', classes: [] },
  { prefix: 'io.k8s.api.certificates.v1', classes: [] },
  { prefix: 'io.k8s.api.scheduling.v1', classes: [] },
  {
    prefix: 'io.k8s.api.authentication.v1',
    classes: ['V1TokenReview', 'V1SelfSubjectReview'],
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
  { prefix: 'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1', classes: [] },
  { prefix: 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1', classes: [] },
  { prefix: 'io.k8s.api.policy.v1', classes: [] },
  { prefix: 'io.k8s.api.autoscaling.v1', classes: ['V1HorizontalPodAutoscaler+'] },
  { prefix: 'io.k8s.api.autoscaling.v2', classes: [] },
  {
    prefix: 'io.k8s.api.storage.v1',
    classes: [],
  },
  {
    prefix: 'io.k8s.api.resource.v1',
    classes: [],
  },
  { prefix: 'io.k8s.api.resource.v1beta2', classes: [] },
  { prefix: 'io.k8s.api.storagemigration.v1beta1', classes: [] },
  { prefix: 'io.k8s.api.node.v1', classes: [] },
  { prefix: 'io.k8s.api.flowcontrol.v1', classes: [] },
  {
    prefix: 'io.k8s.api.admissionregistration.v1',
    classes: ['V1ValidatingAdmissionPolicyBinding+', 'V1MutatingAdmissionPolicyBinding+'],
  },
  { prefix: 'io.k8s.apimachinery.pkg.version', classes: ['VersionInfo'] },
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
  'V1ShardInfo',
  'V1Status',
  'V1StatusCause',
  'V1StatusDetails',
  'V1WatchEvent',
];

/** Classes that the client renames because several packages have the same type name. */
export const RENAMED: Readonly<Record<string, string>> = {
  VersionInfo: 'Info',
  CoreV1Event: 'Event',
  CoreV1EventList: 'EventList',
  CoreV1EventSeries: 'EventSeries',
  CoreV1EndpointPort: 'EndpointPort',
  CoreV1ResourceClaim: 'ResourceClaim',
  ResourceV1ResourceClaim: 'ResourceClaim',
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
  ApiextensionsV1ServiceReference: 'ServiceReference',
  ApiextensionsV1WebhookClientConfig: 'WebhookClientConfig',
  ApiregistrationV1ServiceReference: 'ServiceReference',
};
