/**
 * Table of the source that honours each pod field, by type. The test checks that each listed file reads the field, and
 * that a pod with a field of `REFUSED` does not run. Validation that forbids a field counts as reading it.
 */

const KUBELET = 'src/kubelet';
const CONFIG = 'src/kubelet/pods/containers/container-config.ts';
const EXECUTOR = `${KUBELET}/pods/pod-executor.ts`;
const SANDBOX = `${KUBELET}/pods/pod-sandbox.ts`;
const NETWORK = `${KUBELET}/pods/network-files.ts`;
const ENVIRONMENT = 'src/kubelet/pods/containers/environment.ts';
const TYPES = `${KUBELET}/volumes/types`;
const PAYLOAD = `${TYPES}/payload.ts`;
const PROJECTED = `${TYPES}/projected.ts`;
const VOLUMES = `${KUBELET}/volumes/manager.ts`;
const CHECKS = `${KUBELET}/probes/checks.ts`;
const HOOKS = 'src/kubelet/pods/containers/hooks.ts';
const FIELD_PATH = 'src/kubelet/pods/containers/field-path.ts';
const PLAN = 'src/kubelet/core/pod-plan/plan.ts';
const RESTART = 'src/kubelet/core/pod-plan/restart.ts';
const SCHEDULING = 'src/scheduler/core';
const VALIDATION = 'src/api/podspec';
const SELECTOR = 'src/base/selector.ts';

type Honoured = Readonly<Record<string, string>>;

const KEY_REFERENCE: Honoured = { [ENVIRONMENT]: 'key name optional' };
const ENV_REFERENCE: Honoured = { [ENVIRONMENT]: 'name optional' };
const PROJECTION: Honoured = { [PROJECTED]: 'name optional' };
const PROBE_FIELDS = 'periodSeconds timeoutSeconds initialDelaySeconds successThreshold failureThreshold';

/** Fields by type and by the file that reads them. */
export const HONOURED: Readonly<Record<string, Honoured>> = {
  PodSpec: {
    [PLAN]: 'activeDeadlineSeconds terminationGracePeriodSeconds',
    'src/kubelet/core/pod-plan/snapshot.ts': 'restartPolicy',
    'src/kubelet/core/cgroups/resources.ts': 'overhead priority',
    [NETWORK]: 'dnsPolicy hostname hostnameOverride setHostnameAsFQDN subdomain',
    [ENVIRONMENT]: 'enableServiceLinks',
    [SANDBOX]: 'hostIPC hostNetwork hostPID shareProcessNamespace',
    [`${SCHEDULING}/filters/node.ts`]: 'nodeName',
    ['src/api/podspec/scheduling/node-affinity.ts']: 'nodeSelector',
    [`${SCHEDULING}/preemption.ts`]: 'preemptionPolicy',
    'src/scheduler/epoch.ts': 'schedulerName',
    ['src/apiserver/admission/pods/priority.ts']: 'priorityClassName',
    ['src/apiserver/admission/pods/service-account.ts']: 'automountServiceAccountToken serviceAccountName',
    [`${VALIDATION}/defaults.ts`]: 'serviceAccount',
    [`${KUBELET}/pods/runtime-classes.ts`]: 'runtimeClassName',
    ['src/kubelet/pods/containers/user-namespaces.ts']: 'hostUsers',
    'src/api/devices/pod-claims.ts': 'resourceClaims',
  },
  Container: {
    [CONFIG]: 'args command name stdin stdinOnce terminationMessagePath terminationMessagePolicy tty workingDir',
    [EXECUTOR]: 'image',
    ['src/kubelet/pods/containers/image-puller.ts']: 'imagePullPolicy',
    'src/kubelet/core/pod-plan/snapshot.ts': 'restartPolicy',
  },
  EphemeralContainer: {
    [CONFIG]: 'args command name stdin stdinOnce terminationMessagePath terminationMessagePolicy tty workingDir',
    [EXECUTOR]: 'image targetContainerName',
    ['src/kubelet/pods/containers/image-puller.ts']: 'imagePullPolicy',
    ['src/api/podspec/containers/containers.ts']: 'restartPolicy',
  },
  // The API server's defaults, the binder and the scheduler read the rest of a claim.
  EphemeralVolumeSource: { 'src/controllers/storage/ephemeral-volume/plan.ts': 'volumeClaimTemplate' },
  VolumeDevice: { [VOLUMES]: 'devicePath name' },
  CSIVolumeSource: {
    [`${KUBELET}/volumes/csi/volumes.ts`]: 'driver volumeAttributes',
    [`${KUBELET}/volumes/csi/capability.ts`]: 'fsType',
    [`${KUBELET}/volumes/csi/context.ts`]: 'nodePublishSecretRef',
    [`${TYPES}/csi.ts`]: 'readOnly',
  },
  ImageVolumeSource: { ['src/kubelet/pods/containers/image-puller.ts']: 'pullPolicy reference' },
  NFSVolumeSource: { [`${TYPES}/nfs.ts`]: 'path readOnly server' },
  ISCSIVolumeSource: {
    [`${TYPES}/iscsi.ts`]:
      'chapAuthDiscovery chapAuthSession fsType initiatorName iqn iscsiInterface lun portals readOnly secretRef targetPortal',
  },
  PersistentVolumeClaimVolumeSource: {
    [`${TYPES}/claim.ts`]: 'claimName readOnly',
  },
  EnvVar: { [ENVIRONMENT]: 'name value' },
  ConfigMapKeySelector: KEY_REFERENCE,
  SecretKeySelector: KEY_REFERENCE,
  ObjectFieldSelector: {
    [ENVIRONMENT]: 'fieldPath',
    [PAYLOAD]: 'fieldPath',
    ['src/api/podspec/containers/env.ts']: 'apiVersion',
  },
  ResourceFieldSelector: { [FIELD_PATH]: 'divisor resource', [PAYLOAD]: 'containerName' },
  EnvFromSource: { [ENVIRONMENT]: 'prefix' },
  ConfigMapEnvSource: ENV_REFERENCE,
  SecretEnvSource: ENV_REFERENCE,
  Lifecycle: { [CONFIG]: 'stopSignal' },
  ExecAction: { [HOOKS]: 'command', [CHECKS]: 'command' },
  HTTPGetAction: { [HOOKS]: 'host path port scheme', [CHECKS]: 'host path port scheme' },
  HTTPHeader: { [HOOKS]: 'name value', [CHECKS]: 'name value' },
  SleepAction: { [HOOKS]: 'seconds' },
  TCPSocketAction: { [CHECKS]: 'host port', [HOOKS]: 'host port' },
  GRPCAction: { [CHECKS]: 'port service' },
  Probe: { 'src/kubelet/core/pod-plan/probe.ts': PROBE_FIELDS, [PLAN]: 'terminationGracePeriodSeconds' },
  ContainerPort: {
    'src/kubelet/pods/containers/port-mappings.ts': 'containerPort hostIP hostPort protocol',
    [CHECKS]: 'name',
  },
  ContainerRestartRule: { [RESTART]: 'action' },
  ContainerRestartRuleOnExitCodes: { [RESTART]: 'operator values' },
  ContainerResizePolicy: { [`${KUBELET}/pods/resize.ts`]: 'resourceName restartPolicy' },
  ResourceRequirements: { [CONFIG]: 'limits requests', 'src/kubelet/devices/claims.ts': 'claims' },
  SecurityContext: {
    [CONFIG]: 'allowPrivilegeEscalation privileged procMount readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser',
  },
  PodSecurityContext: {
    [CONFIG]: 'fsGroup runAsGroup runAsNonRoot runAsUser supplementalGroups supplementalGroupsPolicy',
    [`${TYPES}/local.ts`]: 'fsGroupChangePolicy',
  },
  SeccompProfile: { [CONFIG]: 'localhostProfile type' },
  Capabilities: { [CONFIG]: 'add drop' },
  Sysctl: { [SANDBOX]: 'name value' },
  VolumeMount: {
    [VOLUMES]: 'mountPath mountPropagation name readOnly subPath subPathExpr',
    'src/kubelet/core/pod-plan/volume-mounts.ts': 'recursiveReadOnly',
  },
  PodDNSConfig: { [NETWORK]: 'nameservers searches' },
  PodDNSConfigOption: { [NETWORK]: 'name value' },
  HostAlias: { [NETWORK]: 'hostnames ip' },
  LocalObjectReference: { [EXECUTOR]: 'name' },
  PodOS: { [`${KUBELET}/pods/admission.ts`]: 'name' },
  PodReadinessGate: { 'src/kubelet/core/pod-plan/conditions.ts': 'conditionType' },
  // Only the presence of a gate matters.
  PodSchedulingGate: { 'src/scheduler/feed.ts': 'name' },
  Toleration: {
    ['src/api/podspec/scheduling/tolerations.ts']: 'effect key operator value',
    'src/controllers/nodes/taint-eviction/plan.ts': 'tolerationSeconds',
  },
  TopologySpreadConstraint: {
    [`${SCHEDULING}/topology.ts`]:
      'matchLabelKeys maxSkew minDomains nodeAffinityPolicy nodeTaintsPolicy topologyKey whenUnsatisfiable',
  },
  PreferredSchedulingTerm: { [`${SCHEDULING}/scores/node.ts`]: 'weight' },
  NodeSelectorRequirement: { 'src/api/podspec/node-terms.ts': 'key operator values' },
  WeightedPodAffinityTerm: { [`${SCHEDULING}/scores/pods.ts`]: 'weight' },
  PodAffinityTerm: {
    ['src/api/podspec/scheduling/pod-info.ts']: 'matchLabelKeys mismatchLabelKeys namespaces topologyKey',
  },
  LabelSelector: { [SELECTOR]: 'matchLabels' },
  LabelSelectorRequirement: { [SELECTOR]: 'key operator values' },
  Volume: { [VOLUMES]: 'name' },
  ConfigMapVolumeSource: { [`${TYPES}/config-map.ts`]: 'defaultMode name optional' },
  SecretVolumeSource: { [`${TYPES}/secret.ts`]: 'defaultMode secretName optional' },
  KeyToPath: { [PAYLOAD]: 'key mode path' },
  DownwardAPIVolumeSource: { [`${TYPES}/downward-api.ts`]: 'defaultMode' },
  DownwardAPIVolumeFile: { [PAYLOAD]: 'mode path' },
  EmptyDirVolumeSource: {
    [`${TYPES}/empty-dir.ts`]: 'medium sizeLimit',
    ['src/kubelet/housekeeping/storage-limits.ts']: 'sizeLimit',
  },
  HostPathVolumeSource: { [`${TYPES}/host-path.ts`]: 'path type' },
  ProjectedVolumeSource: { [PROJECTED]: 'defaultMode' },
  ConfigMapProjection: PROJECTION,
  SecretProjection: PROJECTION,
  ServiceAccountTokenProjection: { [PROJECTED]: 'audience expirationSeconds path' },
};

/** Where a pod with the field is rejected: `pod` means the kubelet's admission, `mount` its volumes. */
export interface Refusal {
  readonly by: 'pod' | 'mount';
  readonly value: unknown;
  /** Fields of the same object that are required for the field to have an effect. */
  readonly beside?: object;
}

const pod = (value: unknown): Refusal => ({ by: 'pod', value });
const mount = (value: unknown): Refusal => ({ by: 'mount', value });

/** `Unconfined` needs no support by the node. */
const APP_ARMOR = pod({ type: 'Localhost', localhostProfile: 'own' });
const SELINUX = pod({ level: 's0:c1,c2' });
/** The other options apply to Windows containers only. */
const WINDOWS = pod({ hostProcess: true });
const FORBIDDEN_EPHEMERAL = 'livenessProbe readinessProbe startupProbe lifecycle ports resources resizePolicy'.split(
  ' ',
);

/** Fields that are refused as a whole, by type, each with a sample value. */
export const REFUSED: Readonly<Record<string, Readonly<Record<string, Refusal>>>> = {
  PodSpec: {
    schedulingGroup: pod({ podGroupName: 'gang' }),
  },
  PodSecurityContext: {
    appArmorProfile: APP_ARMOR,
    seLinuxOptions: SELINUX,
    seLinuxChangePolicy: pod('Recursive'),
    windowsOptions: WINDOWS,
  },
  SecurityContext: { appArmorProfile: APP_ARMOR, seLinuxOptions: SELINUX, windowsOptions: WINDOWS },
  EnvVarSource: { fileKeyRef: pod({ volumeName: 'v', path: 'p', key: 'K' }) },
  VolumeProjection: {
    clusterTrustBundle: mount({ name: 'roots', path: 'roots.pem' }),
    podCertificate: mount({ signerName: 'example.com/s', keyType: 'ED25519', credentialBundlePath: 'bundle' }),
  },
  Volume: {
    awsElasticBlockStore: mount({ volumeID: 'v' }),
    azureDisk: mount({ diskName: 'd', diskURI: 'u' }),
    azureFile: mount({ secretName: 's', shareName: 's' }),
    cephfs: mount({ monitors: ['m'] }),
    cinder: mount({ volumeID: 'v' }),
    fc: mount({ wwids: ['w'] }),
    flexVolume: mount({ driver: 'd/d' }),
    flocker: mount({ datasetName: 'd' }),
    gcePersistentDisk: mount({ pdName: 'p' }),
    gitRepo: mount({ repository: 'r' }),
    glusterfs: mount({ endpoints: 'e', path: 'p' }),
    photonPersistentDisk: mount({ pdID: 'p' }),
    portworxVolume: mount({ volumeID: 'v' }),
    quobyte: mount({ registry: 'r', volume: 'v' }),
    rbd: mount({ monitors: ['m'], image: 'i' }),
    scaleIO: mount({ gateway: 'g', system: 's', secretRef: { name: 's' } }),
    storageos: mount({ volumeName: 'v' }),
    vsphereVolume: mount({ volumePath: 'p' }),
  },
};

/** Fields of ephemeral containers that validation forbids entirely, so the fields below them are not checked. */
export const FORBIDDEN_BY_VALIDATION: Readonly<Record<string, readonly string[]>> = {
  EphemeralContainer: FORBIDDEN_EPHEMERAL,
};
