/** Defaults of pods and pod templates. Source: k8s.io/kubernetes/pkg/apis/core/v1 SetDefaults_*. */
import type {
  Container,
  ContainerPort,
  DownwardAPIVolumeFile,
  EphemeralContainer,
  Lifecycle,
  Pod,
  PodSpec,
  PodTemplateSpec,
  Probe,
  Volume,
} from '../generated/core/v1.ts';
import { isSet } from '../meta/validation.ts';
import { setPodResourceDefaults } from './pod-resources.ts';

/** Default mode of files from secrets, config maps, downward API and projected volumes. */
const DEFAULT_FILE_MODE = 0o644;
const DEFAULT_TOKEN_SECONDS = 3600;

/** Init, regular and ephemeral containers, in this order. */
export function allContainers(spec: PodSpec | undefined): (Container | EphemeralContainer)[] {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? []), ...(spec?.ephemeralContainers ?? [])];
}

/**
 * Sets defaults that pods have in addition to those of templates: requests from limits, and host ports from container
 * ports with hostNetwork.
 */
export function setPodDefaults(pod: Pod): void {
  pod.spec ??= emptySpec();
  const spec = pod.spec;
  for (const container of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    const limits = container.resources?.limits;
    if (container.resources === undefined || limits === undefined) continue;
    container.resources.requests ??= {};
    for (const [name, limit] of Object.entries(limits)) {
      if (!Object.hasOwn(container.resources.requests, name)) container.resources.requests[name] = limit;
    }
  }
  setPodResourceDefaults(pod);
  if (spec.enableServiceLinks === undefined) spec.enableServiceLinks = true;
  setPodSpecDefaults(spec);
  if (spec.hostNetwork === true) {
    for (const container of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
      for (const port of container.ports ?? []) if ((port.hostPort ?? 0) === 0) port.hostPort = port.containerPort;
    }
  }
}

export function setPodTemplateDefaults(template: PodTemplateSpec): void {
  template.spec ??= emptySpec();
  setPodSpecDefaults(template.spec);
}

/** Spec for a pod that has none. The spec also gets defaults; validation then reports its required fields. */
function emptySpec(): PodSpec {
  return {} as PodSpec;
}

export function setPodSpecDefaults(spec: PodSpec): void {
  if (!isSet(spec.dnsPolicy)) spec.dnsPolicy = 'ClusterFirst';
  if (!isSet(spec.restartPolicy)) spec.restartPolicy = 'Always';
  spec.securityContext ??= {};
  spec.terminationGracePeriodSeconds ??= 30;
  if (!isSet(spec.schedulerName)) spec.schedulerName = 'default-scheduler';
  // Old clients read serviceAccount, the deprecated name of serviceAccountName.
  if (isSet(spec.serviceAccountName)) spec.serviceAccount = spec.serviceAccountName;
  else if (isSet(spec.serviceAccount)) spec.serviceAccountName = spec.serviceAccount;
  for (const container of allContainers(spec)) setContainerDefaults(container);
  for (const volume of spec.volumes ?? []) setVolumeDefaults(volume);
}

function setContainerDefaults(container: Container | EphemeralContainer): void {
  if (!isSet(container.imagePullPolicy)) container.imagePullPolicy = pullPolicyOf(container.image ?? '');
  if (!isSet(container.terminationMessagePath)) container.terminationMessagePath = '/dev/termination-log';
  if (!isSet(container.terminationMessagePolicy)) container.terminationMessagePolicy = 'File';
  container.resources ??= {};
  for (const port of (container.ports ?? []) as ContainerPort[]) if (!isSet(port.protocol)) port.protocol = 'TCP';
  for (const variable of container.env ?? []) {
    const field = variable.valueFrom?.fieldRef;
    if (field !== undefined && !isSet(field.apiVersion)) field.apiVersion = 'v1';
    const resource = variable.valueFrom?.resourceFieldRef;
    if (resource !== undefined && resource.divisor === undefined) resource.divisor = '0';
  }
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe !== undefined) setProbeDefaults(probe);
  }
  setLifecycleDefaults(container.lifecycle);
}

/**
 * Default pull policy: Always for `:latest` and for images without a tag, otherwise IfNotPresent. An invalid name, such
 * as the blank that `oc new-app` sends, gets IfNotPresent.
 */
export function pullPolicyOf(image: string): 'Always' | 'IfNotPresent' {
  if (image !== '' && image.trim() === '') return 'IfNotPresent';
  if (image.includes('@')) return 'IfNotPresent';
  const lastPart = image.slice(image.lastIndexOf('/') + 1);
  const colon = lastPart.lastIndexOf(':');
  return colon < 0 || lastPart.slice(colon + 1) === 'latest' ? 'Always' : 'IfNotPresent';
}

function setProbeDefaults(probe: Probe): void {
  if ((probe.timeoutSeconds ?? 0) === 0) probe.timeoutSeconds = 1;
  if ((probe.periodSeconds ?? 0) === 0) probe.periodSeconds = 10;
  if ((probe.successThreshold ?? 0) === 0) probe.successThreshold = 1;
  if ((probe.failureThreshold ?? 0) === 0) probe.failureThreshold = 3;
  setHttpDefaults(probe.httpGet);
  if (probe.grpc !== undefined) probe.grpc.service ??= '';
}

function setLifecycleDefaults(lifecycle: Lifecycle | undefined): void {
  setHttpDefaults(lifecycle?.postStart?.httpGet);
  setHttpDefaults(lifecycle?.preStop?.httpGet);
}

function setHttpDefaults(action: Probe['httpGet']): void {
  if (action === undefined) return;
  if (!isSet(action.path)) action.path = '/';
  if (!isSet(action.scheme)) action.scheme = 'HTTP';
}

function setVolumeDefaults(volume: Volume): void {
  if (Object.keys(volume).every((field) => field === 'name')) volume.emptyDir = {};
  if (volume.hostPath !== undefined) volume.hostPath.type ??= '';
  if (volume.secret !== undefined) volume.secret.defaultMode ??= DEFAULT_FILE_MODE;
  if (volume.configMap !== undefined) volume.configMap.defaultMode ??= DEFAULT_FILE_MODE;
  if (volume.downwardAPI !== undefined) {
    volume.downwardAPI.defaultMode ??= DEFAULT_FILE_MODE;
    setDownwardDefaults(volume.downwardAPI.items);
  }
  if (volume.projected !== undefined) {
    volume.projected.defaultMode ??= DEFAULT_FILE_MODE;
    for (const source of volume.projected.sources ?? []) {
      if (source.serviceAccountToken !== undefined) {
        source.serviceAccountToken.expirationSeconds ??= DEFAULT_TOKEN_SECONDS;
      }
      setDownwardDefaults(source.downwardAPI?.items);
    }
  }
  const { image } = volume;
  if (image !== undefined && !isSet(image.pullPolicy)) image.pullPolicy = pullPolicyOf(image.reference ?? '');
  if (volume.iscsi !== undefined && !isSet(volume.iscsi.iscsiInterface)) volume.iscsi.iscsiInterface = 'default';
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec;
  if (claim !== undefined && !isSet(claim.volumeMode)) claim.volumeMode = 'Filesystem';
}

function setDownwardDefaults(items: readonly DownwardAPIVolumeFile[] | undefined): void {
  for (const item of items ?? []) {
    if (item.fieldRef !== undefined && !isSet(item.fieldRef.apiVersion)) item.fieldRef.apiVersion = 'v1';
    if (item.resourceFieldRef !== undefined && item.resourceFieldRef.divisor === undefined) {
      item.resourceFieldRef.divisor = '0';
    }
  }
}
