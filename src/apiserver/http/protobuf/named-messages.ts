/**
 * Messages that are missing in kubectl's sources, from which the table is generated. The format is the format of the
 * table, except that messages are referred to by name. Source: generated.proto of
 * k8s.io/kube-aggregator/pkg/apis/apiregistration/v1, and of k8s.io/api/policy/v1beta1 1.20.
 */
import { EXTENSION_MESSAGES } from './extension-messages.ts';

const PACKAGE = 'io.k8s.kube-aggregator.pkg.apis.apiregistration.v1';
const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';

const API_SERVICE = `1 metadata m{${META}.ObjectMeta};2 spec m{${PACKAGE}.APIServiceSpec};3 status m{${PACKAGE}.APIServiceStatus}`;

const POLICY = 'io.k8s.api.policy.v1beta1';
const RANGES = `2 ranges *m{${POLICY}.IDRange}`;

const NAMED: Readonly<Record<string, string>> = {
  ...EXTENSION_MESSAGES,
  [`${PACKAGE}.APIService`]: API_SERVICE,
  // v1beta1 has the same fields.
  [`${PACKAGE}beta1.APIService`]: API_SERVICE,
  [`${PACKAGE}.APIServiceSpec`]: `1 service m{${PACKAGE}.ServiceReference};2 group s!;3 version s!;4 insecureSkipTLSVerify b!;5 caBundle y;7 groupPriorityMinimum i;8 versionPriority i`,
  [`${PACKAGE}.ServiceReference`]: '1 namespace s!;2 name s!;3 port i',
  [`${PACKAGE}.APIServiceStatus`]: `1 conditions *m{${PACKAGE}.APIServiceCondition}`,
  [`${PACKAGE}.APIServiceCondition`]: `1 type s;2 status s;3 lastTransitionTime m{${META}.Time};4 reason s!;5 message s!`,
  [`${POLICY}.PodSecurityPolicy`]: `1 metadata m{${META}.ObjectMeta};2 spec m{${POLICY}.PodSecurityPolicySpec}`,
  [`${POLICY}.PodSecurityPolicySpec`]: [
    '1 privileged b!;2 defaultAddCapabilities *s;3 requiredDropCapabilities *s;4 allowedCapabilities *s;5 volumes *s',
    `6 hostNetwork b!;7 hostPorts *m{${POLICY}.HostPortRange};8 hostPID b!;9 hostIPC b!`,
    `10 seLinux m{${POLICY}.SELinuxStrategyOptions};11 runAsUser m{${POLICY}.RunAsUserStrategyOptions}`,
    `12 supplementalGroups m{${POLICY}.SupplementalGroupsStrategyOptions};13 fsGroup m{${POLICY}.FSGroupStrategyOptions}`,
    '14 readOnlyRootFilesystem b!;15 defaultAllowPrivilegeEscalation b;16 allowPrivilegeEscalation b',
    `17 allowedHostPaths *m{${POLICY}.AllowedHostPath};18 allowedFlexVolumes *m{${POLICY}.AllowedFlexVolume}`,
    '19 allowedUnsafeSysctls *s;20 forbiddenSysctls *s;21 allowedProcMountTypes *s',
    `22 runAsGroup m{${POLICY}.RunAsGroupStrategyOptions};23 allowedCSIDrivers *m{${POLICY}.AllowedCSIDriver}`,
    `24 runtimeClass m{${POLICY}.RuntimeClassStrategyOptions}`,
  ].join(';'),
  [`${POLICY}.AllowedCSIDriver`]: '1 name s',
  [`${POLICY}.AllowedFlexVolume`]: '1 driver s',
  [`${POLICY}.AllowedHostPath`]: '1 pathPrefix s!;2 readOnly b!',
  [`${POLICY}.HostPortRange`]: '1 min i;2 max i',
  [`${POLICY}.IDRange`]: '1 min i;2 max i',
  [`${POLICY}.FSGroupStrategyOptions`]: `1 rule s!;${RANGES}`,
  [`${POLICY}.RunAsGroupStrategyOptions`]: `1 rule s;${RANGES}`,
  [`${POLICY}.RunAsUserStrategyOptions`]: `1 rule s;${RANGES}`,
  [`${POLICY}.SupplementalGroupsStrategyOptions`]: `1 rule s!;${RANGES}`,
  [`${POLICY}.RuntimeClassStrategyOptions`]: '1 allowedRuntimeClassNames *s;2 defaultRuntimeClassName s',
  [`${POLICY}.SELinuxStrategyOptions`]: '1 rule s;2 seLinuxOptions m{io.k8s.api.core.v1.SELinuxOptions}',
};

/** Appends these messages to `table`. */
export function withNamed(table: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const names = [...Object.keys(table), ...Object.keys(NAMED)];
  const rows = Object.entries(NAMED).map(([name, row]) => [
    name,
    row.replaceAll(/m\{([^}]+)\}/g, (_, referred: string) => `m${names.indexOf(referred)}`),
  ]);
  return { ...table, ...Object.fromEntries(rows) };
}
