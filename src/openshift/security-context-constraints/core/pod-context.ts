/**
 * Applies the defaults and checks of an SCC to the fields of the pod. Source: openshift/apiserver-library-go
 * pkg/securitycontextconstraints/{group,selinux,sysctl,sccmatching}.
 */
import type { Pod, PodSecurityContext, PodSpec, SELinuxOptions, Volume } from '../../../api/generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import { SECCOMP_POD } from '../../../api/podspec/annotations.ts';
import type { GroupStrategy, SecurityContextConstraints } from '../kinds/securitycontextconstraints/types.ts';
import { ALL_VOLUMES, FLEX_VOLUME } from '../kinds/securitycontextconstraints/volumes.ts';
import { defaultProfile, podProfile, profileErrors, profileField } from './seccomp.ts';

/** Safe sysctls, which are namespaced and isolated per pod. Source: k8s.io/kubernetes/pkg/kubelet/sysctl. */
const SAFE_SYSCTLS = new Set([
  'kernel.shm_rmid_forced',
  'net.ipv4.ip_local_port_range',
  'net.ipv4.ip_local_reserved_ports',
  'net.ipv4.ip_unprivileged_port_start',
  'net.ipv4.ping_group_range',
  'net.ipv4.tcp_fin_timeout',
  'net.ipv4.tcp_keepalive_intvl',
  'net.ipv4.tcp_keepalive_probes',
  'net.ipv4.tcp_keepalive_time',
  'net.ipv4.tcp_rmem',
  'net.ipv4.tcp_syncookies',
  'net.ipv4.tcp_wmem',
]);
/** Volume types in SCCs by name of their field in a volume, for types whose name differs from the field. */
const VOLUME_FIELDS: ReadonlyMap<string, string> = new Map([
  ['cephfs', 'cephFS'],
  ['storageos', 'storageOS'],
  ['vsphereVolume', 'vsphere'],
]);
const ROOT_CA_MAP = 'kube-root-ca.crt';

/** Sets missing fields to the defaults of the SCC. Modifies `pod`. */
export function fillPod(scc: SecurityContextConstraints, pod: Pod): void {
  const { spec } = pod;
  if (spec === undefined) return;
  const context: PodSecurityContext = spec.securityContext ?? {};
  if (scc.seLinuxContext?.type === 'MustRunAs' && context.seLinuxOptions === undefined)
    context.seLinuxOptions = { ...scc.seLinuxContext.seLinuxOptions };
  const volumeGroup = firstGroup(scc.fsGroup);
  if (volumeGroup !== undefined) context.fsGroup ??= volumeGroup;
  const group = firstGroup(scc.supplementalGroups);
  if (group !== undefined && (context.supplementalGroups ?? []).length === 0) context.supplementalGroups = [group];
  const profile = profileField(podProfile(pod) || defaultProfile(scc.seccompProfiles ?? []));
  if (profile !== undefined) context.seccompProfile ??= profile;
  if (Object.keys(context).length > 0) spec.securityContext = context;
}

export function podErrors(scc: SecurityContextConstraints, pod: Pod, at: string): FieldError[] {
  const { spec } = pod;
  const context = spec?.securityContext ?? {};
  const path = `${at}.spec.securityContext`;
  return [
    ...hostErrors(scc, spec, path),
    ...selinuxErrors(scc, context.seLinuxOptions, path),
    ...groupErrors(scc.fsGroup, context.fsGroup === undefined ? [] : [context.fsGroup], `${path}.fsGroup`),
    ...groupErrors(scc.supplementalGroups, context.supplementalGroups ?? [], `${path}.supplementalGroups`),
    ...profileErrors(podProfile(pod), scc.seccompProfiles ?? [], `${at}.metadata.annotations[${SECCOMP_POD}]`),
    ...sysctlErrors(scc, context, `${path}.sysctls`),
    ...volumeErrors(scc, spec?.volumes ?? [], `${at}.spec.volumes`),
  ];
}

const firstGroup = (strategy: GroupStrategy | undefined): number | undefined =>
  strategy?.type === 'MustRunAs' ? strategy.ranges?.[0]?.min : undefined;

function hostErrors(scc: SecurityContextConstraints, spec: PodSpec | undefined, path: string): FieldError[] {
  const fields = [
    ['hostPID', scc.allowHostPID, 'Host PID is not allowed to be used'],
    ['hostNetwork', scc.allowHostNetwork, 'Host network is not allowed to be used'],
    ['hostIPC', scc.allowHostIPC, 'Host IPC is not allowed to be used'],
  ] as const;
  return fields
    .filter(([field, allowed]) => allowed !== true && spec?.[field] === true)
    .map(([field, , detail]) => fieldError.invalid(`${path}.${field}`, true, detail));
}

export function selinuxErrors(
  { seLinuxContext }: SecurityContextConstraints,
  options: SELinuxOptions | undefined,
  path: string,
): FieldError[] {
  if (seLinuxContext?.type !== 'MustRunAs') return [];
  if (options === undefined) return [fieldError.required(`${path}.seLinuxOptions`)];
  const wanted = seLinuxContext.seLinuxOptions ?? {};
  const found: FieldError[] = [];
  for (const field of ['level', 'role', 'type', 'user'] as const) {
    const [is, must] = [options[field] ?? '', wanted[field] ?? ''];
    if (is === must || (field === 'level' && sortedLevel(is) === sortedLevel(must))) continue;
    found.push(fieldError.invalid(`${path}.seLinuxOptions.${field}`, is, `must be ${must}`));
  }
  return found;
}

/** Sorts the categories of an SELinux level. Their order has no meaning: `s0:c1,c0` equals `s0:c0,c1`. */
function sortedLevel(level: string): string {
  const colon = level.indexOf(':');
  if (colon < 0) return level;
  return `${level.slice(0, colon)}:${level
    .slice(colon + 1)
    .split(',')
    .sort()
    .join(',')}`;
}

function groupErrors(strategy: GroupStrategy | undefined, groups: readonly number[], path: string): FieldError[] {
  if (strategy?.type !== 'MustRunAs') return [];
  const ranges = strategy.ranges ?? [];
  /** Value as upstream's message shows it, in the syntax of Go. */
  const shown = `[]int64{${groups.join(', ')}}`;
  const invalid = (detail: string): FieldError => ({
    type: 'FieldValueInvalid',
    field: path,
    message: `Invalid value: ${shown}: ${detail}`,
  });
  if (groups.length === 0) return [invalid('unable to validate empty groups against required ranges')];
  return groups
    .filter((group) => !ranges.some(({ min = 0, max = 0 }) => group >= min && group <= max))
    .map((group) => invalid(`${group} is not an allowed group`));
}

function sysctlErrors(
  scc: SecurityContextConstraints,
  { sysctls = [] }: PodSecurityContext,
  path: string,
): FieldError[] {
  // A sysctl may be written with dots or slashes.
  const plain = (name: string): string => name.replaceAll('/', '.');
  const matches = (patterns: readonly string[], name: string): boolean =>
    patterns
      .map(plain)
      .some((pattern) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : pattern === name));
  return sysctls.flatMap(({ name: written }, index) => {
    const name = plain(written);
    if (matches(scc.forbiddenSysctls ?? [], name))
      return [fieldError.forbidden(`${path}[${index}]`, `sysctl ${JSON.stringify(written)} is not allowed`)];
    if (SAFE_SYSCTLS.has(name) || matches(scc.allowedUnsafeSysctls ?? [], name)) return [];
    return [fieldError.forbidden(`${path}[${index}]`, `unsafe sysctl ${JSON.stringify(written)} is not allowed`)];
  });
}

function volumeErrors(scc: SecurityContextConstraints, volumes: readonly Volume[], path: string): FieldError[] {
  const allowed = new Set(scc.volumes ?? []);
  const drivers = (scc.allowedFlexVolumes ?? []).map(({ driver }) => driver);
  return volumes.flatMap((volume, index) => {
    const type = volumeType(volume);
    if (!allowed.has(ALL_VOLUMES) && !allowed.has(type) && !(allowed.has('secret') && isToken(volume)))
      return [fieldError.invalid(`${path}[${index}]`, type, `${type} volumes are not allowed to be used`)];
    const driver = volume.flexVolume?.driver;
    if (type !== FLEX_VOLUME || drivers.length === 0 || drivers.includes(driver)) return [];
    return [fieldError.invalid(`${path}[${index}].driver`, driver, 'Flexvolume driver is not allowed to be used')];
  });
}

/** Type of the volume. A volume without a source is an emptyDir. */
function volumeType(volume: Volume): string {
  const field = Object.entries(volume).find(([key, value]) => key !== 'name' && value !== undefined && value !== null);
  const name = field?.[0] ?? 'emptyDir';
  return VOLUME_FIELDS.get(name) ?? name;
}

/**
 * Whether the volume contains only the service account token and its usual companions. Such a volume counts as a
 * secret.
 */
function isToken({ projected }: Volume): boolean {
  const sources = projected?.sources ?? [];
  return (
    sources.length > 0 &&
    sources.every(
      (source) =>
        source.secret === undefined &&
        (source.serviceAccountToken !== undefined ||
          source.downwardAPI !== undefined ||
          source.configMap?.name === ROOT_CA_MAP),
    )
  );
}
