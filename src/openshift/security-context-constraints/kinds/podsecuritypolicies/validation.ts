/**
 * Validation of pod security policies. Source: k8s.io/kubernetes/pkg/apis/policy/validation of the last release with
 * this kind.
 */

import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { validateDriverName } from '../../../../api/validation/csi.ts';
import { validateIdRanges } from '../../../../api/validation/id-ranges.ts';
import { validateNameRule, validateOptionalOneOf } from '../../../../api/validation/scalars.ts';
import { dns1123SubdomainErrors } from '../../../../base/names.ts';
import type { PodSecurityPolicy, PolicySpec, Strategy } from './types.ts';

const VOLUMES = [
  ...['*', 'awsElasticBlockStore', 'azureDisk', 'azureFile', 'cephFS', 'cinder', 'configMap', 'csi', 'downwardAPI'],
  ...['emptyDir', 'ephemeral', 'fc', 'flexVolume', 'flocker', 'gcePersistentDisk', 'gitRepo', 'glusterfs', 'hostPath'],
  ...['iscsi', 'nfs', 'persistentVolumeClaim', 'photonPersistentDisk', 'portworxVolume', 'projected', 'quobyte', 'rbd'],
  ...['scaleIO', 'secret', 'storageos', 'vsphereVolume'],
];
const SYSCTL = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?\.)*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]$/;
const MAX_SYSCTL = 253;
const ALL = '*';
const GROUP_RULES = ['MayRunAs', 'MustRunAs', 'RunAsAny'];

export function validatePolicy({ metadata, spec = {} }: PodSecurityPolicy): FieldError[] {
  return [
    ...profileErrors(metadata?.annotations ?? {}),
    ...strategyErrors(spec.runAsUser, ['MustRunAs', 'MustRunAsNonRoot', 'RunAsAny'], 'spec.runAsUser'),
    ...(spec.runAsGroup === undefined ? [] : runAsGroupErrors(spec.runAsGroup)),
    ...strategyErrors(spec.seLinux, ['MustRunAs', 'RunAsAny'], 'spec.seLinux'),
    ...strategyErrors(spec.supplementalGroups, GROUP_RULES, 'spec.supplementalGroups'),
    ...strategyErrors(spec.fsGroup, GROUP_RULES, 'spec.fsGroup'),
    ...(spec.volumes ?? []).flatMap((volume) => validateOptionalOneOf(volume, VOLUMES, 'spec.volumes')),
    ...capabilityErrors(spec),
    ...placeErrors(spec),
    ...sysctlErrors(spec.allowedUnsafeSysctls ?? [], 'spec.allowedUnsafeSysctls'),
    ...sysctlErrors(spec.forbiddenSysctls ?? [], 'spec.forbiddenSysctls'),
    ...overlapErrors(spec.allowedUnsafeSysctls ?? [], spec.forbiddenSysctls ?? []),
    ...runtimeClassErrors(spec.runtimeClass),
  ];
}

/** Validates the seccomp and AppArmor annotations, which never became fields of this kind. */
function profileErrors(annotations: Readonly<Record<string, string>>): FieldError[] {
  const found: FieldError[] = [];
  const check = (key: string, isRight: (profile: string) => boolean, detail: string): void => {
    const value = annotations[key] ?? '';
    const profiles = key.includes('allowedProfile') ? value.split(',') : [value];
    if (value !== '' && !profiles.every(isRight))
      found.push(fieldError.invalid(`metadata.annotations[${key}]`, value, detail));
  };
  const isArmor = (profile: string): boolean => /^(?:|runtime\/default|unconfined|localhost\/.*)$/.test(profile);
  for (const which of ['defaultProfileName', 'allowedProfileNames'])
    check(`apparmor.security.beta.kubernetes.io/${which}`, isArmor, 'invalid AppArmor profile name');
  const isSeccomp = (profile: string): boolean =>
    /^(?:(?:runtime|docker)\/default|unconfined|localhost\/(?!\/)(?!(?:.*\/)?\.\.(?:\/|$)).+)$/.test(profile);
  const seccomp = 'seccomp.security.alpha.kubernetes.io';
  check(`${seccomp}/defaultProfileName`, isSeccomp, 'must be a valid seccomp profile');
  const isAllowed = (profile: string): boolean => profile === ALL || isSeccomp(profile);
  check(`${seccomp}/allowedProfileNames`, isAllowed, 'must be a valid seccomp profile');
  return found;
}

function strategyErrors(strategy: Strategy | undefined, rules: readonly string[], path: string): FieldError[] {
  const found = rules.includes(strategy?.rule ?? '')
    ? []
    : [fieldError.notSupported(`${path}.rule`, strategy?.rule ?? '', rules)];
  return [...found, ...validateIdRanges(strategy?.ranges, `${path}.ranges`)];
}

function runAsGroupErrors(strategy: Strategy): FieldError[] {
  const path = 'spec.runAsGroup';
  const { rule = '', ranges = [] } = strategy;
  if (!GROUP_RULES.includes(rule))
    return [fieldError.notSupported(`${path}.rule`, rule, ['MustRunAs', 'RunAsAny', 'MayRunAs'])];
  if (rule === 'RunAsAny')
    return ranges.length === 0 ? [] : [fieldError.invalid(`${path}.ranges`, ranges, 'Ranges must be empty')];
  if (ranges.length === 0) return [fieldError.invalid(`${path}.ranges`, ranges, 'must provide at least one range')];
  return validateIdRanges(ranges, `${path}.ranges`);
}

function capabilityErrors(spec: PolicySpec): FieldError[] {
  const found: FieldError[] = [];
  const drops = spec.requiredDropCapabilities ?? [];
  if (drops.length > 0 && spec.allowedCapabilities?.includes(ALL) === true) {
    const what = 'must be empty when all capabilities are allowed by a wildcard';
    found.push(fieldError.invalid('requiredDropCapabilities', drops, what));
  }
  for (const name of ['defaultAddCapabilities', 'allowedCapabilities'] as const) {
    for (const capability of spec[name] ?? []) {
      if (!drops.includes(capability)) continue;
      const what = `capability is listed in ${name} and requiredDropCapabilities`;
      found.push(fieldError.invalid(name, capability, what));
    }
  }
  if (spec.defaultAllowPrivilegeEscalation === true && spec.allowPrivilegeEscalation === false) {
    const what =
      'Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true';
    found.push(fieldError.invalid('spec.defaultAllowPrivilegeEscalation', true, what));
  }
  for (const [index, type] of (spec.allowedProcMountTypes ?? []).entries())
    found.push(...validateOptionalOneOf(type, ['Default', 'Unmasked'], `spec.allowedProcMountTypes[${index}]`));
  return found;
}

function placeErrors(spec: PolicySpec): FieldError[] {
  const found: FieldError[] = [];
  for (const [index, { pathPrefix = '' }] of (spec.allowedHostPaths ?? []).entries()) {
    const at = `spec.allowedHostPaths[${index}]`;
    if (pathPrefix === '') {
      found.push(fieldError.required(at, 'is required'));
      break;
    }
    if (pathPrefix.split('/').includes('..')) found.push(fieldError.invalid(at, pathPrefix, "must not contain '..'"));
  }
  for (const [index, { driver }] of (spec.allowedFlexVolumes ?? []).entries()) {
    const at = `spec.allowedFlexVolumes.allowedFlexVolumes[${index}].driver`;
    if (!isSet(driver)) found.push(fieldError.required(at, 'must specify a driver'));
  }
  for (const [index, { name }] of (spec.allowedCSIDrivers ?? []).entries())
    found.push(...validateDriverName(name ?? '', `spec.allowedCSIDrivers.allowedCSIDriver[${index}].name`));
  return found;
}

function sysctlErrors(sysctls: readonly string[], path: string): FieldError[] {
  const found: FieldError[] = [];
  for (const [index, sysctl] of sysctls.entries()) {
    const at = `${path}[${index}]`;
    if (sysctl === '') found.push(fieldError.invalid(at, sysctl, 'empty sysctl not allowed'));
    else if (sysctl.length > MAX_SYSCTL || !SYSCTL.test(sysctl)) {
      const shape = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?\\.)*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]';
      found.push(fieldError.invalid(at, sysctl, `must have at most ${MAX_SYSCTL} characters and match regex ${shape}`));
    }
  }
  if (sysctls.length > 1 && sysctls.some((each) => each === ALL))
    found.push(fieldError.forbidden(`${path}.items`, "if '*' is present, must not specify other sysctls"));
  return found;
}

function overlapErrors(allowed: readonly string[], forbidden: readonly string[]): FieldError[] {
  const found: FieldError[] = [];
  const overlaps = (path: string, value: string, other: string): void =>
    void found.push(fieldError.invalid(path, value, `sysctl overlaps with ${other}`));
  const covers = (pattern: string, name: string): boolean =>
    pattern.endsWith(ALL) ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
  for (const [i, one] of allowed.entries()) {
    for (const [j, other] of forbidden.entries()) {
      const [plain, otherPlain] = [one, other].map((each) => (each.endsWith(ALL) ? each.slice(0, -1) : each));
      if (covers(other, plain ?? '')) overlaps(`spec.allowedUnsafeSysctls[${i}]`, one, other);
      else if (covers(one, otherPlain ?? '')) overlaps(`spec.forbiddenSysctls[${j}]`, other, one);
    }
  }
  return found;
}

function runtimeClassErrors(strategy: PolicySpec['runtimeClass']): FieldError[] {
  if (strategy === undefined) return [];
  const at = 'spec.runtimeClass.allowedRuntimeClassNames';
  const { allowedRuntimeClassNames: names = [], defaultRuntimeClassName: byDefault } = strategy;
  const found: FieldError[] = [];
  for (const [index, name] of names.entries()) {
    if (name !== ALL) found.push(...validateNameRule(name, dns1123SubdomainErrors, `${at}[${index}]`));
    if (names.indexOf(name) < index) found.push(fieldError.duplicate(`${at}[${index}]`, name));
  }
  if (byDefault !== undefined) {
    found.push(...validateNameRule(byDefault, dns1123SubdomainErrors, 'spec.runtimeClass.defaultRuntimeClassName'));
    if (!names.includes(byDefault) && !names.includes(ALL))
      found.push(fieldError.required(at, `default ${JSON.stringify(byDefault)} must be allowed`));
  }
  if (names.includes(ALL) && names.length > 1)
    found.push(fieldError.invalid(at, names, "if '*' is present, must not specify other RuntimeClass names"));
  return found;
}
