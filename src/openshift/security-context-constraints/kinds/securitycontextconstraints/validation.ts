/**
 * Validation of security context constraints. Source: openshift/apiserver-library-go pkg/securitycontextconstraints.
 */
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { isSet } from '../../../../api/meta/validation.ts';
import { validateIdRanges } from '../../../../api/validation/id-ranges.ts';
import type { GroupStrategy, SecurityContextConstraints } from './types.ts';
import { ALL_VOLUMES, FLEX_VOLUME, NO_VOLUMES } from './volumes.ts';

const USER_STRATEGIES = ['MustRunAs', 'MustRunAsNonRoot', 'MustRunAsRange', 'RunAsAny'];
const STRATEGIES = ['MustRunAs', 'RunAsAny'];
const SYSCTL = /^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]$/;
const SYSCTL_SHAPE = '([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]';
const MAX_SYSCTL = 253;
const ALL = '*';

export function validateConstraints(scc: SecurityContextConstraints): FieldError[] {
  const { allowedUnsafeSysctls = [], forbiddenSysctls = [] } = scc;
  return [
    ...strategyErrors(scc),
    ...capabilityErrors(scc),
    ...volumeErrors(scc),
    ...sysctlErrors(allowedUnsafeSysctls, 'allowedUnsafeSysctls'),
    ...sysctlErrors(forbiddenSysctls, 'forbiddenSysctls'),
    ...overlapErrors(allowedUnsafeSysctls, forbiddenSysctls),
  ];
}

function strategyErrors({
  priority,
  runAsUser,
  seLinuxContext,
  fsGroup,
  supplementalGroups,
}: SecurityContextConstraints) {
  const found: FieldError[] = [];
  const wrongType = (field: string, type: string | undefined, valid: readonly string[]): void => {
    if (valid.includes(type ?? '')) return;
    const detail = `invalid strategy type.  Valid values are ${valid.join(', ')}`;
    found.push(fieldError.invalid(`${field}.type`, type ?? '', detail));
  };
  if (priority !== undefined && priority < 0)
    found.push(fieldError.invalid('priority', priority, 'priority cannot be negative'));
  wrongType('runAsUser', runAsUser?.type, USER_STRATEGIES);
  const { type, uid, uidRangeMin: min, uidRangeMax: max } = runAsUser ?? {};
  if (uid !== undefined && uid < 0) found.push(fieldError.invalid('runAsUser.uid', uid, 'uid cannot be negative'));
  if (type === 'MustRunAs' && uid === undefined)
    found.push(fieldError.required('runAsUser.uid', 'MustRunAs needs a uid'));
  if (type === 'MustRunAsRange') {
    for (const [field, value] of Object.entries({ uidRangeMin: min, uidRangeMax: max }))
      if (value !== undefined && value < 0)
        found.push(fieldError.invalid(`runAsUser.${field}`, value, `${field} cannot be negative`));
    if ((min === undefined) !== (max === undefined))
      found.push(
        fieldError.required(
          `runAsUser.${min === undefined ? 'uidRangeMin' : 'uidRangeMax'}`,
          'a range needs both ends, or none for the range of the namespace',
        ),
      );
    if (min !== undefined && max !== undefined && min > max)
      found.push(fieldError.invalid('runAsUser.uidRangeMin', min, 'uidRangeMin cannot be greater than uidRangeMax'));
  }
  wrongType('seLinuxContext', seLinuxContext?.type, STRATEGIES);
  return [...found, ...groupErrors(fsGroup, 'fsGroup'), ...groupErrors(supplementalGroups, 'supplementalGroups')];
}

function groupErrors(strategy: GroupStrategy | undefined, path: string): FieldError[] {
  const found = STRATEGIES.includes(strategy?.type ?? '')
    ? []
    : [fieldError.notSupported(`${path}.type`, strategy?.type ?? '', STRATEGIES)];
  return [...found, ...validateIdRanges(strategy?.ranges, `${path}.ranges`)];
}

function capabilityErrors(scc: SecurityContextConstraints): FieldError[] {
  const found: FieldError[] = [];
  const drops = scc.requiredDropCapabilities ?? [];
  for (const field of ['defaultAddCapabilities', 'allowedCapabilities'] as const)
    for (const capability of scc[field] ?? []) {
      if (!drops.includes(capability)) continue;
      const detail = `capability is listed in ${field} and requiredDropCapabilities`;
      found.push(fieldError.invalid(field, capability, detail));
    }
  if (drops.length > 0 && scc.allowedCapabilities?.includes(ALL) === true) {
    const detail = 'required capabilities must be empty when all capabilities are allowed by a wildcard';
    found.push(fieldError.invalid('requiredDropCapabilities', drops, detail));
  }
  if (scc.defaultAllowPrivilegeEscalation === true && scc.allowPrivilegeEscalation === false) {
    const detail =
      'Cannot set DefaultAllowPrivilegeEscalation to true without also setting AllowPrivilegeEscalation to true';
    found.push(fieldError.invalid('defaultAllowPrivilegeEscalation', true, detail));
  }
  return found;
}

function volumeErrors({ volumes = [], allowedFlexVolumes = [] }: SecurityContextConstraints): FieldError[] {
  const found: FieldError[] = [];
  if (volumes.includes(NO_VOLUMES) && volumes.length > 1)
    found.push(fieldError.invalid('volumes', volumes, "if 'none' is specified, no other values are allowed"));
  if (allowedFlexVolumes.length === 0) return found;
  if (!volumes.includes(FLEX_VOLUME) && !volumes.includes(ALL_VOLUMES)) {
    const detail = "volumes does not include 'flexVolume' or '*', so no flex volumes are allowed";
    return [...found, fieldError.invalid('allowedFlexVolumes', allowedFlexVolumes, detail)];
  }
  for (const [index, { driver }] of allowedFlexVolumes.entries())
    if (!isSet(driver)) found.push(fieldError.required(`allowedFlexVolumes[${index}].driver`, 'must specify a driver'));
  return found;
}

function sysctlErrors(sysctls: readonly string[], path: string): FieldError[] {
  const found: FieldError[] = [];
  for (const [index, sysctl] of sysctls.entries()) {
    const at = `${path}[${index}]`;
    if (sysctl === '') found.push(fieldError.invalid(at, sysctl, 'empty sysctl not allowed'));
    else if (sysctl.length > MAX_SYSCTL || !SYSCTL.test(sysctl)) {
      const detail = `must have at most ${MAX_SYSCTL} characters and match regex ${SYSCTL_SHAPE}`;
      found.push(fieldError.invalid(at, sysctl, detail));
    }
  }
  if (sysctls.length > 1 && sysctls.includes(ALL))
    found.push(fieldError.forbidden(`${path}.items`, "if '*' is present, must not specify other sysctls"));
  return found;
}

function overlapErrors(allowed: readonly string[], forbidden: readonly string[]): FieldError[] {
  const found: FieldError[] = [];
  const covers = (pattern: string, name: string): boolean =>
    pattern.endsWith(ALL) ? name.startsWith(pattern.slice(0, -1)) : pattern === name;
  const plain = (pattern: string): string => (pattern.endsWith(ALL) ? pattern.slice(0, -1) : pattern);
  for (const [i, one] of allowed.entries())
    for (const [j, other] of forbidden.entries()) {
      if (covers(other, plain(one)))
        found.push(fieldError.invalid(`allowedUnsafeSysctls[${i}]`, one, `sysctl overlaps with ${other}`));
      else if (covers(one, plain(other)))
        found.push(fieldError.invalid(`forbiddenSysctls[${j}]`, other, `sysctl overlaps with ${one}`));
    }
  return found;
}
