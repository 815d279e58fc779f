/**
 * Fields of a PodSpec that a component honours, in addition to those of `table.ts`, which the container runtime gets.
 * Fields are grouped by their type and by the file that reads them. In `name@1.19`, 1.19 is the release of Kubernetes
 * that introduced the field; a field without `@` exists since 1.0. Validation that forbids a field counts as reading
 * it.
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
const TABLE = 'src/api/podspec/fields/table.ts';
const SELECTOR = 'src/base/selector.ts';

type Honoured = Readonly<Record<string, string>>;

const KEY_REFERENCE: Honoured = { [ENVIRONMENT]: 'key name optional@1.6' };
const ENV_REFERENCE: Honoured = { [ENVIRONMENT]: 'name@1.6 optional@1.6' };
const PROJECTION: Honoured = { [PROJECTED]: 'name@1.6 optional@1.6' };
const PROBE_FIELDS = 'periodSeconds@1.2 timeoutSeconds initialDelaySeconds successThreshold@1.2 failureThreshold@1.2';

/** Fields by type and by the file that reads them. */
export const HONOURED: Readonly<Record<string, Honoured>> = {
  PodSpec: {
    [PLAN]: 'activeDeadlineSeconds@1.1 terminationGracePeriodSeconds@1.1',
    'src/kubelet/core/pod-plan/snapshot.ts': 'restartPolicy',
    'src/kubelet/core/cgroups/resources.ts': 'overhead@1.16 priority@1.8',
    [NETWORK]: 'dnsPolicy hostname@1.3 hostnameOverride@1.34 setHostnameAsFQDN@1.19 subdomain@1.3',
    [ENVIRONMENT]: 'enableServiceLinks@1.13',
    [SANDBOX]: 'hostIPC@1.1 hostNetwork hostPID@1.1 shareProcessNamespace@1.10',
    [`${SCHEDULING}/filters/node.ts`]: 'nodeName',
    ['src/api/podspec/scheduling/node-affinity.ts']: 'nodeSelector',
    [`${SCHEDULING}/preemption.ts`]: 'preemptionPolicy@1.15',
    'src/scheduler/epoch.ts': 'schedulerName@1.6',
    ['src/apiserver/admission/pods/priority.ts']: 'priorityClassName@1.8',
    ['src/apiserver/admission/pods/service-account.ts']: 'automountServiceAccountToken@1.6 serviceAccountName@1.1',
    [`${VALIDATION}/defaults.ts`]: 'serviceAccount',
    [`${KUBELET}/pods/runtime-classes.ts`]: 'runtimeClassName@1.12',
    ['src/kubelet/pods/containers/user-namespaces.ts']: 'hostUsers@1.25',
    'src/api/devices/pod-claims.ts': 'resourceClaims@1.26',
  },
  Container: {
    [CONFIG]: 'args command name terminationMessagePath terminationMessagePolicy@1.6',
    [EXECUTOR]: 'image',
    ['src/kubelet/pods/containers/image-puller.ts']: 'imagePullPolicy',
    'src/kubelet/core/pod-plan/snapshot.ts': 'restartPolicy@1.28',
  },
  EphemeralContainer: {
    [CONFIG]: 'args@1.16 command@1.16 name@1.16 terminationMessagePath@1.16 terminationMessagePolicy@1.16',
    [EXECUTOR]: 'image@1.16 targetContainerName@1.16',
    ['src/kubelet/pods/containers/image-puller.ts']: 'imagePullPolicy@1.16',
    ['src/api/podspec/containers/containers.ts']: 'restartPolicy@1.28',
  },
  // The API server's defaults, the binder and the scheduler read the fields of the claim template.
  EphemeralVolumeSource: { 'src/controllers/storage/ephemeral-volume/plan.ts': 'volumeClaimTemplate@1.19' },
  VolumeDevice: { [VOLUMES]: 'devicePath@1.9 name@1.9' },
  CSIVolumeSource: {
    [`${KUBELET}/volumes/csi/volumes.ts`]: 'driver@1.15 volumeAttributes@1.15',
    [`${KUBELET}/volumes/csi/capability.ts`]: 'fsType@1.15',
    [`${KUBELET}/volumes/csi/context.ts`]: 'nodePublishSecretRef@1.15',
    [`${TYPES}/csi.ts`]: 'readOnly@1.15',
  },
  ImageVolumeSource: { ['src/kubelet/pods/containers/image-puller.ts']: 'pullPolicy@1.31 reference@1.31' },
  NFSVolumeSource: { [`${TYPES}/nfs.ts`]: 'path readOnly server' },
  ISCSIVolumeSource: {
    [`${TYPES}/iscsi.ts`]:
      'chapAuthDiscovery@1.6 chapAuthSession@1.6 fsType initiatorName@1.8 iqn iscsiInterface@1.2 lun portals@1.5 readOnly secretRef@1.6 targetPortal',
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
  ResourceFieldSelector: { [FIELD_PATH]: 'divisor@1.3 resource@1.3', [PAYLOAD]: 'containerName@1.3' },
  EnvFromSource: { [ENVIRONMENT]: 'prefix@1.6' },
  ConfigMapEnvSource: ENV_REFERENCE,
  SecretEnvSource: ENV_REFERENCE,
  ExecAction: { [HOOKS]: 'command', [CHECKS]: 'command' },
  HTTPGetAction: { [HOOKS]: 'host path port scheme@1.1', [CHECKS]: 'host path port scheme@1.1' },
  HTTPHeader: { [HOOKS]: 'name@1.2 value@1.2', [CHECKS]: 'name@1.2 value@1.2' },
  SleepAction: { [HOOKS]: 'seconds@1.29' },
  TCPSocketAction: { [CHECKS]: 'host port', [HOOKS]: 'host port' },
  GRPCAction: { [CHECKS]: 'port@1.23 service@1.23' },
  Probe: { 'src/kubelet/core/pod-plan/probe.ts': PROBE_FIELDS, [PLAN]: 'terminationGracePeriodSeconds@1.21' },
  ContainerPort: {
    'src/kubelet/pods/containers/port-mappings.ts': 'containerPort hostIP hostPort protocol',
    [CHECKS]: 'name',
  },
  ContainerRestartRule: { [RESTART]: 'action@1.34' },
  ContainerRestartRuleOnExitCodes: { [RESTART]: 'operator@1.34 values@1.34' },
  ContainerResizePolicy: { [`${KUBELET}/pods/resize.ts`]: 'resourceName@1.27 restartPolicy@1.27' },
  ResourceRequirements: { [CONFIG]: 'limits requests', 'src/kubelet/devices/claims.ts': 'claims@1.26' },
  SecurityContext: {
    [CONFIG]: 'runAsNonRoot',
  },
  PodSecurityContext: {
    [CONFIG]: 'runAsNonRoot@1.2',
    [TABLE]: 'fsGroup@1.2 runAsGroup@1.10 runAsUser@1.2',
    [`${TYPES}/local.ts`]: 'fsGroupChangePolicy@1.18',
  },
  SeccompProfile: { [CONFIG]: 'localhostProfile@1.19 type@1.19' },
  Sysctl: { [SANDBOX]: 'name@1.11 value@1.11' },
  VolumeMount: {
    [VOLUMES]: 'mountPath mountPropagation@1.8 name readOnly subPath@1.2 subPathExpr@1.14',
    'src/kubelet/core/pod-plan/volume-mounts.ts': 'recursiveReadOnly@1.30',
  },
  PodDNSConfig: { [NETWORK]: 'nameservers@1.9 searches@1.9' },
  PodDNSConfigOption: { [NETWORK]: 'name@1.9 value@1.9' },
  HostAlias: { [NETWORK]: 'hostnames@1.7 ip@1.7' },
  LocalObjectReference: { [EXECUTOR]: 'name' },
  PodOS: { [`${KUBELET}/pods/admission.ts`]: 'name@1.23' },
  PodReadinessGate: { 'src/kubelet/core/pod-plan/conditions.ts': 'conditionType@1.11' },
  // Only the presence of a gate matters.
  PodSchedulingGate: { 'src/scheduler/feed.ts': 'name@1.26' },
  Toleration: {
    ['src/api/podspec/scheduling/tolerations.ts']: 'effect@1.6 key@1.6 operator@1.6 value@1.6',
    'src/controllers/nodes/taint-eviction/plan.ts': 'tolerationSeconds@1.6',
  },
  TopologySpreadConstraint: {
    [`${SCHEDULING}/topology.ts`]:
      'matchLabelKeys@1.25 maxSkew@1.16 minDomains@1.24 nodeAffinityPolicy@1.25 nodeTaintsPolicy@1.25 topologyKey@1.16 whenUnsatisfiable@1.16',
  },
  PreferredSchedulingTerm: { [`${SCHEDULING}/scores/node.ts`]: 'weight@1.6' },
  NodeSelectorRequirement: { 'src/api/podspec/node-terms.ts': 'key@1.6 operator@1.6 values@1.6' },
  WeightedPodAffinityTerm: { [`${SCHEDULING}/scores/pods.ts`]: 'weight@1.6' },
  PodAffinityTerm: {
    ['src/api/podspec/scheduling/pod-info.ts']:
      'matchLabelKeys@1.29 mismatchLabelKeys@1.29 namespaces@1.6 topologyKey@1.6',
  },
  LabelSelector: { [SELECTOR]: 'matchLabels' },
  LabelSelectorRequirement: { [SELECTOR]: 'key operator values' },
  Volume: { [VOLUMES]: 'name' },
  ConfigMapVolumeSource: { [`${TYPES}/config-map.ts`]: 'defaultMode@1.4 name@1.2 optional@1.6' },
  SecretVolumeSource: { [`${TYPES}/secret.ts`]: 'defaultMode@1.4 secretName optional@1.6' },
  KeyToPath: { [PAYLOAD]: 'key@1.2 mode@1.4 path@1.2' },
  DownwardAPIVolumeSource: { [`${TYPES}/downward-api.ts`]: 'defaultMode@1.4' },
  DownwardAPIVolumeFile: { [PAYLOAD]: 'mode@1.4 path@1.1' },
  EmptyDirVolumeSource: {
    [`${TYPES}/empty-dir.ts`]: 'medium sizeLimit@1.7',
    ['src/kubelet/housekeeping/storage-limits.ts']: 'sizeLimit@1.7',
  },
  HostPathVolumeSource: { [`${TYPES}/host-path.ts`]: 'path type@1.8' },
  ProjectedVolumeSource: { [PROJECTED]: 'defaultMode@1.6' },
  ConfigMapProjection: PROJECTION,
  SecretProjection: PROJECTION,
  ServiceAccountTokenProjection: { [PROJECTED]: 'audience@1.10 expirationSeconds@1.10 path@1.10' },
};
