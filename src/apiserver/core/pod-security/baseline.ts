/**
 * Checks of the baseline profile, which prevents known privilege escalations. The IDs are those that upstream reports.
 */
import type { Container, Lifecycle, Probe, SELinuxOptions } from '../../../api/generated/core/v1.ts';
import {
  type Check,
  containersOf,
  containersText,
  containersWhere,
  hasUserNamespace,
  type PodLike,
  plural,
  quotedList,
  settersText,
  unique,
  type Violation,
} from './check.ts';

const APPARMOR_ANNOTATION = 'container.apparmor.security.beta.kubernetes.io/';
const SECCOMP_POD_ANNOTATION = 'seccomp.security.alpha.kubernetes.io/pod';
const SECCOMP_CONTAINER_ANNOTATION = 'container.seccomp.security.alpha.kubernetes.io/';

const CAPABILITIES = new Set([
  'AUDIT_WRITE',
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'MKNOD',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
]);

const SYSCTLS_1_0 = [
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.ping_group_range',
  'net.ipv4.ip_unprivileged_port_start',
];
const SYSCTLS_1_27 = [...SYSCTLS_1_0, 'net.ipv4.ip_local_reserved_ports'];
const SYSCTLS_1_29 = [
  ...SYSCTLS_1_27,
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
];
const SYSCTLS_1_32 = [...SYSCTLS_1_29, 'net.ipv4.tcp_rmem', 'net.ipv4.tcp_wmem'];

const SELINUX_TYPES_1_0 = ['', 'container_t', 'container_init_t', 'container_kvm_t'];
const SELINUX_TYPES_1_31 = [...SELINUX_TYPES_1_0, 'container_engine_t'];

export const isAllowedProfile = (type: string): boolean => type === 'RuntimeDefault' || type === 'Localhost';

function appArmorProfile(pod: PodLike): Violation | undefined {
  const podType = pod.spec.securityContext?.appArmorProfile?.type;
  const typeOf = (container: Container): string | undefined => container.securityContext?.appArmorProfile?.type;
  const isBad = (type: string | undefined): type is string => type !== undefined && !isAllowedProfile(type);
  const containers = containersWhere(pod, (container) => isBad(typeOf(container)));
  const types = unique([podType, ...containersOf(pod).map(typeOf)].filter(isBad));
  const annotations = Object.entries(pod.annotations)
    .filter(([key, value]) => key.startsWith(APPARMOR_ANNOTATION) && !isAllowedAppArmorAnnotation(value))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`)
    .sort();
  const setters = [
    settersText(isBad(podType), containers),
    annotations.length === 0 ? '' : plural('annotation', 'annotations', annotations.length),
  ].filter((text) => text !== '');
  if (setters.length === 0) return undefined;
  const values = [...types, ...annotations];
  return {
    reason: plural('forbidden AppArmor profile', 'forbidden AppArmor profiles', values.length),
    detail: `${setters.join(' and ')} must not set AppArmor profile type to ${quotedList(values)}`,
  };
}

const isAllowedAppArmorAnnotation = (value: string): boolean =>
  value === '' || value === 'runtime/default' || value.startsWith('localhost/');

function capabilities(pod: PodLike): Violation | undefined {
  const added = (container: Container): string[] =>
    (container.securityContext?.capabilities?.add ?? []).filter((each) => !CAPABILITIES.has(each));
  const containers = containersWhere(pod, (container) => added(container).length > 0);
  if (containers.length === 0) return undefined;
  const all = unique(containersOf(pod).flatMap(added));
  return {
    reason: 'non-default capabilities',
    detail: `${containersText(containers)} must not include ${quotedList(all)} in securityContext.capabilities.add`,
  };
}

function hostNamespaces({ spec }: PodLike): Violation | undefined {
  const shared = (['hostNetwork', 'hostPID', 'hostIPC'] as const).filter((field) => spec[field] === true);
  if (shared.length === 0) return undefined;
  return { reason: 'host namespaces', detail: shared.map((field) => `${field}=true`).join(', ') };
}

function hostPathVolumes({ spec }: PodLike): Violation | undefined {
  const names = (spec.volumes ?? []).filter(({ hostPath }) => hostPath !== undefined).map(({ name }) => name);
  if (names.length === 0) return undefined;
  return { reason: 'hostPath volumes', detail: `${plural('volume', 'volumes', names.length)} ${quotedList(names)}` };
}

function hostPorts(pod: PodLike): Violation | undefined {
  const portsOf = (container: Container): string[] =>
    (container.ports ?? []).flatMap(({ hostPort = 0 }) => (hostPort === 0 ? [] : [String(hostPort)]));
  const containers = containersWhere(pod, (container) => portsOf(container).length > 0);
  if (containers.length === 0) return undefined;
  const ports = unique(containersOf(pod).flatMap(portsOf));
  const uses = plural('uses', 'use', containers.length);
  const noun = plural('hostPort', 'hostPorts', ports.length);
  return { reason: 'hostPort', detail: `${containersText(containers)} ${uses} ${noun} ${ports.join(', ')}` };
}

/** A host in a probe would let the kubelet send requests to other hosts from inside the node. */
function probeHosts(pod: PodLike): Violation | undefined {
  const hostsOf = ({ livenessProbe, readinessProbe, startupProbe, lifecycle }: Container): string[] =>
    [livenessProbe, readinessProbe, startupProbe, lifecycle?.postStart, lifecycle?.preStop].flatMap(handlerHosts);
  const containers = unique(containersWhere(pod, (container) => hostsOf(container).length > 0));
  if (containers.length === 0) return undefined;
  const hosts = unique(containersOf(pod).flatMap(hostsOf));
  const uses = plural('uses', 'use', containers.length);
  const noun = plural('probe or lifecycle host', 'probe or lifecycle hosts', hosts.length);
  return {
    reason: 'probe or lifecycle host',
    detail: `${containersText(containers)} ${uses} ${noun} ${quotedList(hosts)}`,
  };
}

function handlerHosts(handler: Probe | Lifecycle['postStart'] | undefined): string[] {
  return [handler?.httpGet?.host ?? '', handler?.tcpSocket?.host ?? ''].filter((host) => host !== '');
}

function privileged(pod: PodLike): Violation | undefined {
  const containers = containersWhere(pod, ({ securityContext }) => securityContext?.privileged === true);
  if (containers.length === 0) return undefined;
  return {
    reason: 'privileged',
    detail: `${containersText(containers)} must not set securityContext.privileged=true`,
  };
}

/** The restricted profile uses this check too, but without the exception for pods with a user namespace. */
export function procMount(pod: PodLike): Violation | undefined {
  const typeOf = ({ securityContext }: Container): string => securityContext?.procMount ?? 'Default';
  const containers = containersWhere(pod, (container) => typeOf(container) !== 'Default');
  if (containers.length === 0) return undefined;
  const types = unique(containersOf(pod).map(typeOf)).filter((type) => type !== 'Default');
  return {
    reason: 'procMount',
    detail: `${containersText(containers)} must not set securityContext.procMount to ${quotedList(types)}`,
  };
}

function seLinuxOptions(pod: PodLike, allowed: readonly string[]): Violation | undefined {
  const isBad = (options: SELinuxOptions | undefined): boolean =>
    options !== undefined &&
    (!allowed.includes(options.type ?? '') || (options.user ?? '') !== '' || (options.role ?? '') !== '');
  const ofPod = pod.spec.securityContext?.seLinuxOptions;
  const ofContainer = (container: Container) => container.securityContext?.seLinuxOptions;
  const setters = settersText(
    isBad(ofPod),
    containersWhere(pod, (container) => isBad(ofContainer(container))),
  );
  if (setters === '') return undefined;
  const all = [ofPod, ...containersOf(pod).map(ofContainer)].filter((options) => options !== undefined);
  const types = unique(all.map(({ type = '' }) => type).filter((type) => !allowed.includes(type)));
  const wrong = [
    ...(types.length === 0 ? [] : [`${plural('type', 'types', types.length)} ${quotedList(types)}`]),
    ...(all.some(({ user = '' }) => user !== '') ? ['user may not be set'] : []),
    ...(all.some(({ role = '' }) => role !== '') ? ['role may not be set'] : []),
  ];
  return {
    reason: 'seLinuxOptions',
    detail: `${setters} set forbidden securityContext.seLinuxOptions: ${wrong.join('; ')}`,
  };
}

function seccompAnnotations(pod: PodLike): Violation | undefined {
  const keys = [
    SECCOMP_POD_ANNOTATION,
    ...containersOf(pod).map(({ name }) => `${SECCOMP_CONTAINER_ANNOTATION}${name}`),
  ];
  const forbidden = unique(keys)
    .filter((key) => Object.hasOwn(pod.annotations, key) && !isAllowedSeccompAnnotation(pod.annotations[key] ?? ''))
    .map((key) => `${key}=${JSON.stringify(pod.annotations[key])}`);
  if (forbidden.length === 0) return undefined;
  const noun = plural('annotation', 'annotations', forbidden.length);
  return { reason: 'seccompProfile', detail: `forbidden ${noun} ${forbidden.join(', ')}` };
}

const isAllowedSeccompAnnotation = (value: string): boolean =>
  value === 'runtime/default' || value === 'docker/default' || value.startsWith('localhost/');

/** Rejects seccomp profiles that do not restrict system calls. The restricted check begins with this check. */
export function badSeccompProfiles(pod: PodLike): Violation | undefined {
  const ofPod = pod.spec.securityContext?.seccompProfile?.type;
  const ofContainer = ({ securityContext }: Container): string | undefined => securityContext?.seccompProfile?.type;
  const isBad = (type: string | undefined): type is string => type !== undefined && !isAllowedProfile(type);
  const setters = settersText(
    isBad(ofPod),
    containersWhere(pod, (container) => isBad(ofContainer(container))),
  );
  if (setters === '') return undefined;
  const types = [ofPod, ...containersOf(pod).map(ofContainer)].filter(isBad);
  return {
    reason: 'seccompProfile',
    detail: `${setters} must not set securityContext.seccompProfile.type to ${quotedList(unique(types))}`,
  };
}

function sysctls({ spec }: PodLike, allowed: readonly string[]): Violation | undefined {
  const forbidden = (spec.securityContext?.sysctls ?? [])
    .map(({ name }) => name)
    .filter((name) => !allowed.includes(name));
  return forbidden.length === 0 ? undefined : { reason: 'forbidden sysctls', detail: forbidden.join(', ') };
}

function windowsHostProcess(pod: PodLike): Violation | undefined {
  const setters = settersText(
    pod.spec.securityContext?.windowsOptions?.hostProcess === true,
    containersWhere(pod, ({ securityContext }) => securityContext?.windowsOptions?.hostProcess === true),
  );
  if (setters === '') return undefined;
  return { reason: 'hostProcess', detail: `${setters} must not set securityContext.windowsOptions.hostProcess=true` };
}

export const BASELINE_CHECKS: readonly Check[] = [
  { id: 'appArmorProfile', versions: [{ since: 0, check: appArmorProfile }] },
  { id: 'capabilities_baseline', versions: [{ since: 0, check: capabilities }] },
  { id: 'hostNamespaces', versions: [{ since: 0, check: hostNamespaces }] },
  { id: 'hostPathVolumes', versions: [{ since: 0, check: hostPathVolumes }] },
  { id: 'hostPorts', versions: [{ since: 0, check: hostPorts }] },
  { id: 'hostProbesAndHostLifecycle', versions: [{ since: 34, check: probeHosts }] },
  { id: 'privileged', versions: [{ since: 0, check: privileged }] },
  {
    id: 'procMount',
    versions: [
      { since: 0, check: procMount },
      { since: 35, check: (pod) => (hasUserNamespace(pod) ? undefined : procMount(pod)) },
    ],
  },
  {
    id: 'seLinuxOptions',
    versions: [
      { since: 0, check: (pod) => seLinuxOptions(pod, SELINUX_TYPES_1_0) },
      { since: 31, check: (pod) => seLinuxOptions(pod, SELINUX_TYPES_1_31) },
    ],
  },
  {
    id: 'seccompProfile_baseline',
    versions: [
      { since: 0, check: seccompAnnotations },
      { since: 19, check: badSeccompProfiles },
    ],
  },
  {
    id: 'sysctls',
    versions: [
      { since: 0, check: (pod) => sysctls(pod, SYSCTLS_1_0) },
      { since: 27, check: (pod) => sysctls(pod, SYSCTLS_1_27) },
      { since: 29, check: (pod) => sysctls(pod, SYSCTLS_1_29) },
      { since: 32, check: (pod) => sysctls(pod, SYSCTLS_1_32) },
    ],
  },
  { id: 'windowsHostProcess', versions: [{ since: 0, check: windowsHostProcess }] },
];
