/**
 * Possible values of string fields that upstream's types mark as enumerations. They are published in OpenAPI and shown
 * by explain; validation rejects other values separately. Source: the constants of k8s.io/api and
 * apiextensions-apiserver 1.36.
 */

const MATCH_POLICY = 'Equivalent|Exact';
const FAILURE_POLICY = 'Fail|Ignore';
const REINVOCATION_POLICY = 'IfNeeded|Never';
const SIDE_EFFECTS = 'None|NoneOnDryRun|Some|Unknown';
const UPDATE_STRATEGY = 'OnDelete|RollingUpdate';
const PROFILE = 'Localhost|RuntimeDefault|Unconfined';
const IMAGE_PULL_POLICY = 'Always|IfNotPresent|Never';
const PROTOCOL = 'SCTP|TCP|UDP';
const SIGNAL =
  'SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|SIGKILL|SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|SIGRTMAX-13|SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|SIGRTMAX-9|SIGRTMIN|SIGRTMIN+1|SIGRTMIN+10|SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|SIGXFSZ';
const ACCESS_MODE = 'ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod';
const VOLUME_MODE = 'Block|Filesystem';
const RECLAIM_POLICY = 'Delete|Recycle|Retain';
const PREEMPTION_POLICY = 'Never|PreemptLowerPriority';
const SCOPE =
  'BestEffort|CrossNamespacePodAffinity|NotBestEffort|NotTerminating|PriorityClass|Terminating|VolumeAttributesClass';
const TRAFFIC_POLICY = 'Cluster|Local';
const TAINT_EFFECT = 'NoExecute|NoSchedule|PreferNoSchedule';
const NODE_INCLUSION_POLICY = 'Honor|Ignore';
const ALLOCATION_MODE = 'All|ExactCount';
const DEVICE_TAINT_EFFECT = 'NoExecute|NoSchedule|None';

/**
 * Values by package, type and field, sorted and separated by bars. For a list or map, these are values of its elements.
 */
const VALUES: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>> = {
  'io.k8s.api.admissionregistration.v1': {
    MatchResources: { matchPolicy: MATCH_POLICY },
    MutatingAdmissionPolicySpec: { failurePolicy: FAILURE_POLICY, reinvocationPolicy: REINVOCATION_POLICY },
    MutatingWebhook: {
      failurePolicy: FAILURE_POLICY,
      matchPolicy: MATCH_POLICY,
      reinvocationPolicy: REINVOCATION_POLICY,
      sideEffects: SIDE_EFFECTS,
    },
    Mutation: { patchType: 'ApplyConfiguration|JSONPatch' },
    RuleWithOperations: { operations: '*|CONNECT|CREATE|DELETE|UPDATE' },
    ValidatingAdmissionPolicyBindingSpec: { validationActions: 'Audit|Deny|Warn' },
    ValidatingAdmissionPolicySpec: { failurePolicy: FAILURE_POLICY },
    ValidatingWebhook: { failurePolicy: FAILURE_POLICY, matchPolicy: MATCH_POLICY, sideEffects: SIDE_EFFECTS },
  },
  'io.k8s.api.apps.v1': {
    DaemonSetUpdateStrategy: { type: UPDATE_STRATEGY },
    DeploymentStrategy: { type: 'Recreate|RollingUpdate' },
    StatefulSetSpec: { podManagementPolicy: 'OrderedReady|Parallel' },
    StatefulSetUpdateStrategy: { type: UPDATE_STRATEGY },
  },
  'io.k8s.api.batch.v1': {
    CronJobSpec: { concurrencyPolicy: 'Allow|Forbid|Replace' },
    JobSpec: { completionMode: 'Indexed|NonIndexed', podReplacementPolicy: 'Failed|TerminatingOrFailed' },
    PodFailurePolicyOnExitCodesRequirement: { operator: 'In|NotIn' },
    PodFailurePolicyRule: { action: 'Count|FailIndex|FailJob|Ignore' },
  },
  'io.k8s.api.certificates.v1': {
    CertificateSigningRequestSpec: {
      usages:
        'any|cert sign|client auth|code signing|content commitment|crl sign|data encipherment|decipher only|digital signature|email protection|encipher only|ipsec end system|ipsec tunnel|ipsec user|key agreement|key encipherment|microsoft sgc|netscape sgc|ocsp signing|s/mime|server auth|signing|timestamping',
    },
  },
  'io.k8s.api.core.v1': {
    AppArmorProfile: { type: PROFILE },
    AzureDiskVolumeSource: { cachingMode: 'None|ReadOnly|ReadWrite', kind: 'Dedicated|Managed|Shared' },
    Container: { imagePullPolicy: IMAGE_PULL_POLICY, terminationMessagePolicy: 'FallbackToLogsOnError|File' },
    ContainerPort: { protocol: PROTOCOL },
    ContainerStatus: { stopSignal: SIGNAL },
    EndpointPort: { protocol: PROTOCOL },
    HTTPGetAction: { scheme: 'HTTP|HTTPS' },
    HostPathVolumeSource: { type: '|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket' },
    ImageVolumeSource: { pullPolicy: IMAGE_PULL_POLICY },
    Lifecycle: { stopSignal: SIGNAL },
    ModifyVolumeStatus: { status: 'InProgress|Infeasible|Pending' },
    NamespaceStatus: { phase: 'Active|Terminating' },
    NodeSelectorRequirement: { operator: 'DoesNotExist|Exists|Gt|In|Lt|NotIn' },
    NodeStatus: { phase: 'Pending|Running|Terminated' },
    PersistentVolumeClaimSpec: { accessModes: ACCESS_MODE, volumeMode: VOLUME_MODE },
    PersistentVolumeClaimStatus: {
      accessModes: ACCESS_MODE,
      allocatedResourceStatuses:
        'ControllerResizeInProgress|ControllerResizeInfeasible|NodeResizeInProgress|NodeResizeInfeasible|NodeResizePending',
      phase: 'Bound|Lost|Pending',
    },
    PersistentVolumeSpec: {
      accessModes: ACCESS_MODE,
      persistentVolumeReclaimPolicy: RECLAIM_POLICY,
      volumeMode: VOLUME_MODE,
    },
    PersistentVolumeStatus: { phase: 'Available|Bound|Failed|Pending|Released' },
    PodSecurityContext: { fsGroupChangePolicy: 'Always|OnRootMismatch', supplementalGroupsPolicy: 'Merge|Strict' },
    PodSpec: {
      dnsPolicy: 'ClusterFirst|ClusterFirstWithHostNet|Default|None',
      preemptionPolicy: PREEMPTION_POLICY,
      restartPolicy: 'Always|Never|OnFailure',
    },
    PodStatus: { phase: 'Failed|Pending|Running|Succeeded|Unknown', qosClass: 'BestEffort|Burstable|Guaranteed' },
    PortStatus: { protocol: PROTOCOL },
    ResourceQuotaSpec: { scopes: SCOPE },
    ScopedResourceSelectorRequirement: { operator: 'DoesNotExist|Exists|In|NotIn', scopeName: SCOPE },
    SeccompProfile: { type: PROFILE },
    SecurityContext: { procMount: 'Default|Unmasked' },
    ServicePort: { protocol: PROTOCOL },
    ServiceSpec: {
      externalTrafficPolicy: TRAFFIC_POLICY,
      internalTrafficPolicy: TRAFFIC_POLICY,
      ipFamilies: '|IPv4|IPv6',
      ipFamilyPolicy: 'PreferDualStack|RequireDualStack|SingleStack',
      sessionAffinity: 'ClientIP|None',
      type: 'ClusterIP|ExternalName|LoadBalancer|NodePort',
    },
    Taint: { effect: TAINT_EFFECT },
    Toleration: { effect: TAINT_EFFECT, operator: 'Equal|Exists|Gt|Lt' },
    TopologySpreadConstraint: {
      nodeAffinityPolicy: NODE_INCLUSION_POLICY,
      nodeTaintsPolicy: NODE_INCLUSION_POLICY,
      whenUnsatisfiable: 'DoNotSchedule|ScheduleAnyway',
    },
    VolumeMount: { mountPropagation: 'Bidirectional|HostToContainer|None' },
  },
  'io.k8s.api.discovery.v1': {
    EndpointPort: { protocol: PROTOCOL },
    EndpointSlice: { addressType: 'FQDN|IPv4|IPv6' },
  },
  'io.k8s.api.networking.v1': {
    HTTPIngressPath: { pathType: 'Exact|ImplementationSpecific|Prefix' },
    IngressPortStatus: { protocol: PROTOCOL },
    NetworkPolicyPort: { protocol: PROTOCOL },
    NetworkPolicySpec: { policyTypes: 'Egress|Ingress' },
  },
  'io.k8s.api.policy.v1': {
    PodDisruptionBudgetSpec: { unhealthyPodEvictionPolicy: 'AlwaysAllow|IfHealthyBudget' },
  },
  'io.k8s.api.resource.v1': {
    DeviceAllocationConfiguration: { source: 'FromClaim|FromClass' },
    DeviceSubRequest: { allocationMode: ALLOCATION_MODE },
    DeviceTaint: { effect: DEVICE_TAINT_EFFECT },
    DeviceToleration: { effect: DEVICE_TAINT_EFFECT, operator: 'Equal|Exists' },
    ExactDeviceRequest: { allocationMode: ALLOCATION_MODE },
  },
  'io.k8s.api.scheduling.v1': {
    PriorityClass: { preemptionPolicy: PREEMPTION_POLICY },
  },
  'io.k8s.api.storage.v1': {
    StorageClass: { reclaimPolicy: RECLAIM_POLICY, volumeBindingMode: 'Immediate|WaitForFirstConsumer' },
  },
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1': {
    ValidationRule: { reason: 'FieldValueDuplicate|FieldValueForbidden|FieldValueInvalid|FieldValueRequired' },
  },
};

/**
 * Values of a field of the type `typeName` (`io.k8s.api.core.v1.PodSpec`); undefined if the field is not an
 * enumeration. For a list or map, these are values of its elements.
 */
export function enumerationValues(typeName: string, field: string): readonly string[] | undefined {
  const dot = typeName.lastIndexOf('.');
  const types = ownOf(VALUES, typeName.slice(0, dot));
  const fields = types === undefined ? undefined : ownOf(types, typeName.slice(dot + 1));
  return fields === undefined ? undefined : ownOf(fields, field)?.split('|');
}

function ownOf<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
