/**
 * Optional fields for which empty and absent differ: upstream's types have them as pointers or without omitempty. For
 * all other optional fields the encoder omits empty, false and zero values. Source: the field types of k8s.io/api,
 * apiextensions-apiserver and apimachinery 1.36.
 */

/**
 * Field names by package and type, separated by spaces. Required fields are not listed. A package that is not listed
 * has no such fields.
 */
const KEPT: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'io.k8s.api.admissionregistration.v1': {
    MatchResources: 'matchPolicy',
    MutatingAdmissionPolicySpec: 'failurePolicy',
    MutatingWebhook: 'failurePolicy matchPolicy reinvocationPolicy timeoutSeconds',
    NamedRuleWithOperations: 'scope',
    ParamRef: 'parameterNotFoundAction',
    RuleWithOperations: 'scope',
    ServiceReference: 'path port',
    ValidatingAdmissionPolicySpec: 'failurePolicy',
    ValidatingWebhook: 'failurePolicy matchPolicy timeoutSeconds',
    Validation: 'reason',
    WebhookClientConfig: 'url',
  },
  'io.k8s.api.apps.v1': {
    DaemonSetSpec: 'revisionHistoryLimit',
    DaemonSetStatus: 'collisionCount',
    DeploymentSpec: 'progressDeadlineSeconds replicas revisionHistoryLimit',
    DeploymentStatus: 'collisionCount terminatingReplicas',
    ReplicaSetSpec: 'replicas',
    ReplicaSetStatus: 'terminatingReplicas',
    RollingUpdateStatefulSetStrategy: 'partition',
    StatefulSetOrdinals: 'start',
    StatefulSetSpec: 'replicas revisionHistoryLimit serviceName',
    StatefulSetStatus: 'availableReplicas collisionCount',
  },
  'io.k8s.api.authentication.v1': {
    TokenRequestSpec: 'audiences expirationSeconds',
    TokenRequestStatus: 'token',
  },
  'io.k8s.api.authorization.v1': {},
  'io.k8s.api.autoscaling.v1': {
    HorizontalPodAutoscalerSpec: 'minReplicas targetCPUUtilizationPercentage',
    HorizontalPodAutoscalerStatus: 'currentCPUUtilizationPercentage observedGeneration',
  },
  'io.k8s.api.autoscaling.v2': {
    HPAScalingRules: 'selectPolicy stabilizationWindowSeconds',
    HorizontalPodAutoscalerSpec: 'minReplicas',
    HorizontalPodAutoscalerStatus: 'currentMetrics observedGeneration',
    MetricTarget: 'averageUtilization',
    MetricValueStatus: 'averageUtilization',
  },
  'io.k8s.api.batch.v1': {
    CronJobSpec: 'failedJobsHistoryLimit startingDeadlineSeconds successfulJobsHistoryLimit suspend timeZone',
    JobSpec:
      'activeDeadlineSeconds backoffLimit backoffLimitPerIndex completionMode completions managedBy manualSelector maxFailedIndexes parallelism podReplacementPolicy suspend ttlSecondsAfterFinished',
    JobStatus: 'failedIndexes ready terminating',
    PodFailurePolicyOnExitCodesRequirement: 'containerName',
    PodFailurePolicyOnPodConditionsPattern: 'status',
    SuccessPolicyRule: 'succeededCount succeededIndexes',
  },
  'io.k8s.api.certificates.v1': {
    CertificateSigningRequestSpec: 'expirationSeconds',
  },
  'io.k8s.api.coordination.v1': {
    LeaseSpec: 'holderIdentity leaseDurationSeconds leaseTransitions preferredHolder strategy',
  },
  'io.k8s.api.core.v1': {
    AppArmorProfile: 'localhostProfile',
    AzureDiskVolumeSource: 'cachingMode fsType kind readOnly',
    AzureFilePersistentVolumeSource: 'secretNamespace',
    CSIVolumeSource: 'fsType readOnly',
    ClientIPConfig: 'timeoutSeconds',
    ClusterTrustBundleProjection: 'name optional signerName',
    ConfigMap: 'immutable',
    ConfigMapEnvSource: 'optional',
    ConfigMapKeySelector: 'optional',
    ConfigMapProjection: 'optional',
    ConfigMapVolumeSource: 'defaultMode optional',
    Container: 'restartPolicy',
    ContainerImage: 'names',
    ContainerStatus: 'started stopSignal',
    DownwardAPIVolumeFile: 'mode',
    DownwardAPIVolumeSource: 'defaultMode',
    EndpointAddress: 'nodeName',
    EndpointPort: 'appProtocol',
    EphemeralContainer: 'restartPolicy',
    Event: 'reportingComponent reportingInstance',
    FCVolumeSource: 'lun',
    FileKeySelector: 'optional',
    GRPCAction: 'service',
    GlusterfsPersistentVolumeSource: 'endpointsNamespace',
    HostPathVolumeSource: 'type',
    ISCSIPersistentVolumeSource: 'initiatorName',
    ISCSIVolumeSource: 'initiatorName',
    KeyToPath: 'mode',
    Lifecycle: 'stopSignal',
    LoadBalancerIngress: 'ipMode',
    LocalVolumeSource: 'fsType',
    NodeFeatures: 'supplementalGroupsPolicy',
    NodeRuntimeHandler: 'name',
    NodeRuntimeHandlerFeatures: 'recursiveReadOnlyMounts userNamespaces',
    NodeSwapStatus: 'capacity',
    PersistentVolumeClaimSpec: 'storageClassName volumeAttributesClassName volumeMode',
    PersistentVolumeClaimStatus: 'currentVolumeAttributesClassName',
    PersistentVolumeSpec: 'volumeAttributesClassName volumeMode',
    PodCertificateProjection: 'maxExpirationSeconds',
    PodDNSConfigOption: 'value',
    PodResourceClaim: 'resourceClaimName resourceClaimTemplateName',
    PodResourceClaimStatus: 'resourceClaimName',
    PodSchedulingGroup: 'podGroupName',
    PodSecurityContext:
      'fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy supplementalGroupsPolicy',
    PodSpec:
      'activeDeadlineSeconds automountServiceAccountToken enableServiceLinks hostUsers hostnameOverride preemptionPolicy priority runtimeClassName setHostnameAsFQDN shareProcessNamespace terminationGracePeriodSeconds',
    PortStatus: 'error',
    Probe: 'terminationGracePeriodSeconds',
    ProjectedVolumeSource: 'defaultMode sources',
    ReplicationControllerSpec: 'replicas',
    ResourceHealth: 'message',
    SeccompProfile: 'localhostProfile',
    Secret: 'immutable',
    SecretEnvSource: 'optional',
    SecretKeySelector: 'optional',
    SecretProjection: 'optional',
    SecretVolumeSource: 'defaultMode optional',
    SecurityContext:
      'allowPrivilegeEscalation privileged procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser',
    ServiceAccount: 'automountServiceAccountToken',
    ServiceAccountTokenProjection: 'expirationSeconds',
    ServicePort: 'appProtocol',
    ServiceSpec:
      'allocateLoadBalancerNodePorts internalTrafficPolicy ipFamilyPolicy loadBalancerClass trafficDistribution',
    Toleration: 'tolerationSeconds',
    TopologySpreadConstraint: 'minDomains nodeAffinityPolicy nodeTaintsPolicy',
    TypedLocalObjectReference: 'apiGroup',
    TypedObjectReference: 'apiGroup namespace',
    VolumeMount: 'mountPropagation recursiveReadOnly',
    VolumeMountStatus: 'recursiveReadOnly',
    WindowsSecurityContextOptions: 'gmsaCredentialSpec gmsaCredentialSpecName hostProcess runAsUserName',
  },
  'io.k8s.api.discovery.v1': {
    Endpoint: 'hostname nodeName zone',
    EndpointConditions: 'ready serving terminating',
    EndpointPort: 'appProtocol name port protocol',
    EndpointSlice: 'endpoints ports',
  },
  'io.k8s.api.events.v1': {},
  'io.k8s.api.flowcontrol.v1': {
    ExemptPriorityLevelConfiguration: 'lendablePercent nominalConcurrencyShares',
    FlowSchemaSpec: 'matchingPrecedence',
    LimitedPriorityLevelConfiguration: 'borrowingLimitPercent lendablePercent nominalConcurrencyShares',
    QueuingConfiguration: 'handSize queueLengthLimit queues',
    ResourcePolicyRule: 'namespaces',
  },
  'io.k8s.api.networking.v1': {
    IngressClassParametersReference: 'apiGroup namespace scope',
    IngressPortStatus: 'error',
    IngressSpec: 'ingressClassName',
    NetworkPolicyPort: 'endPort protocol',
  },
  'io.k8s.api.node.v1': {},
  'io.k8s.api.policy.v1': {
    PodDisruptionBudgetSpec: 'unhealthyPodEvictionPolicy',
    PodDisruptionBudgetStatus: 'currentHealthy desiredHealthy disruptionsAllowed expectedPods',
  },
  'io.k8s.api.rbac.v1': {
    ClusterRole: 'rules',
    Role: 'rules',
    RoleRef: 'apiGroup',
  },
  'io.k8s.api.resource.v1': {
    AllocatedDeviceStatus: 'conditions shareID',
    Device: 'allNodes allowMultipleAllocations bindsToNode nodeName',
    DeviceAttribute: 'bool int string version',
    DeviceClaim: 'requests',
    DeviceClassSpec: 'extendedResourceName',
    DeviceConstraint: 'distinctAttribute matchAttribute',
    DeviceRequestAllocationResult: 'adminAccess shareID',
    DeviceToleration: 'tolerationSeconds',
    ExactDeviceRequest: 'adminAccess',
    NodeAllocatableResourceMapping: 'capacityKey',
    ResourceSliceSpec: 'allNodes nodeName perDeviceNodeSelection',
  },
  'io.k8s.api.scheduling.v1': {
    PriorityClass: 'preemptionPolicy value',
  },
  'io.k8s.api.storage.v1': {
    CSIDriverSpec:
      'attachRequired fsGroupPolicy nodeAllocatableUpdatePeriodSeconds podInfoOnMount preventPodSchedulingIfMissing requiresRepublish seLinuxMount serviceAccountTokenInSecrets storageCapacity',
    CSINodeDriver: 'topologyKeys',
    StorageClass: 'allowVolumeExpansion reclaimPolicy volumeBindingMode',
    TokenRequest: 'expirationSeconds',
    VolumeAttachmentSource: 'persistentVolumeName',
    VolumeError: 'errorCode',
    VolumeNodeResources: 'count',
  },
  'io.k8s.api.policy.v1beta1': {
    PodSecurityPolicySpec: 'allowPrivilegeEscalation defaultAllowPrivilegeEscalation',
    RuntimeClassStrategyOptions: 'defaultRuntimeClassName',
  },
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1': {
    CustomResourceDefinitionStatus: 'conditions storedVersions',
    CustomResourceDefinitionVersion: 'deprecationWarning',
    CustomResourceSubresourceScale: 'labelSelectorPath',
    ServiceReference: 'path port',
    WebhookClientConfig: 'url',
    JSONSchemaProps:
      '$ref maxItems maxLength maxProperties minItems minLength minProperties x-kubernetes-list-type x-kubernetes-map-type x-kubernetes-preserve-unknown-fields',
    ValidationRule: 'optionalOldSelf reason',
  },
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1': {
    CustomResourceDefinitionSpec: 'preserveUnknownFields',
    CustomResourceDefinitionVersion: 'deprecationWarning',
  },
  'io.k8s.apimachinery.pkg.apis.meta.v1': {
    DeleteOptions:
      'gracePeriodSeconds ignoreStoreReadErrorWithClusterBreakingPotential orphanDependents propagationPolicy',
    ListMeta: 'remainingItemCount',
    ObjectMeta: 'deletionGracePeriodSeconds managedFields',
    OwnerReference: 'blockOwnerDeletion controller',
    Preconditions: 'resourceVersion uid',
  },
};

/** Optional fields of a type that are kept if they are empty; undefined for unknown types. */
export function keptWhenEmpty(typeName: string): ReadonlySet<string> | undefined {
  const found = known.get(typeName);
  if (found !== undefined) return found;
  const dot = typeName.lastIndexOf('.');
  const types = KEPT[typeName.slice(0, dot)];
  if (types === undefined) return undefined;
  const fields = new Set(types[typeName.slice(dot + 1)]?.split(' '));
  known.set(typeName, fields);
  return fields;
}

const known = new Map<string, ReadonlySet<string>>();
