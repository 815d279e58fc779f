/**
 * Fields that pods must not set for their operating system. Source: k8s.io/kubernetes/pkg/apis/core/validation
 * validateOS, validateWindowsHostProcessPod.
 */
import type { PodSpec } from '../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet } from '../../meta/validation.ts';
import { containersWithPath } from '../annotations.ts';

const SYSTEMS = ['linux', 'windows'];
/** Fields that Windows pods must not set, in upstream's order. A leading dot marks fields of the security context. */
const NOT_WINDOWS_POD = [
  '.appArmorProfile',
  '.seLinuxOptions',
  'hostUsers',
  'hostPID',
  'hostIPC',
  '.seccompProfile',
  '.fsGroup',
  '.fsGroupChangePolicy',
  '.sysctls',
  'shareProcessNamespace',
  '.runAsUser',
  '.runAsGroup',
  '.supplementalGroups',
  '.supplementalGroupsPolicy',
  '.seLinuxChangePolicy',
];
const NOT_WINDOWS_CONTAINER = [
  'appArmorProfile',
  'seLinuxOptions',
  'seccompProfile',
  'capabilities',
  'readOnlyRootFilesystem',
  'privileged',
  'allowPrivilegeEscalation',
  'procMount',
  'runAsUser',
  'runAsGroup',
];
/** Fields whose false or empty value counts as absent. */
const FLAGS = new Set(['hostPID', 'hostIPC', '.sysctls']);

type Fields = Readonly<Record<string, unknown>>;

export function validateOperatingSystem(spec: PodSpec, path: string): FieldError[] {
  const os = spec.os;
  if (os === undefined) return [];
  if (!isSet(os.name)) return [fieldError.required(`${path}.os.name`, 'cannot be empty')];
  if (!SYSTEMS.includes(os.name)) return [fieldError.notSupported(`${path}.os`, os.name, SYSTEMS)];
  return os.name === 'linux' ? validateLinux(spec, path) : validateWindows(spec, path);
}

function validateLinux(spec: PodSpec, path: string): FieldError[] {
  return [[spec, path] as const, ...containersWithPath(spec, path)]
    .filter(([part]) => part.securityContext?.windowsOptions !== undefined)
    .map(([, at]) =>
      fieldError.forbidden(`${at}.securityContext.windowsOptions`, 'windows options cannot be set for a linux pod'),
    );
}

function validateWindows(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const forbid = (fields: Fields, name: string, at: string, flag = false): void => {
    const value = fields[name];
    const absent = value === undefined || (flag && (value === false || (Array.isArray(value) && value.length === 0)));
    if (!absent) errors.push(fieldError.forbidden(at, 'cannot be set for a windows pod'));
  };
  for (const field of NOT_WINDOWS_POD) {
    const inContext = field.startsWith('.');
    const owner = (inContext ? (spec.securityContext ?? {}) : spec) as Fields;
    const at = inContext ? `${path}.securityContext${field}` : `${path}.${field}`;
    forbid(owner, inContext ? field.slice(1) : field, at, FLAGS.has(field));
  }
  for (const [container, at] of containersWithPath(spec, path)) {
    for (const field of NOT_WINDOWS_CONTAINER) {
      forbid((container.securityContext ?? {}) as Fields, field, `${at}.securityContext.${field}`);
    }
  }
  return errors;
}

/** Validates Windows HostProcess containers: either all containers of a pod are HostProcess containers or none. */
export function validateHostProcesses(spec: PodSpec, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const ofPod = spec.securityContext?.windowsOptions?.hostProcess;
  const containers = containersWithPath(spec, path);
  let count = 0;
  for (const [container, at] of containers) {
    const own = container.securityContext?.windowsOptions?.hostProcess;
    if (ofPod !== undefined && own !== undefined && ofPod !== own) {
      const why = `pod hostProcess value must be identical if both are specified, was ${ofPod}`;
      errors.push(fieldError.invalid(`${at}.securityContext.windowsOptions.hostProcess`, own, why));
    }
    if (own ?? ofPod ?? false) count++;
  }
  if (count === 0) return errors;
  if (count !== containers.length) {
    const why = 'If pod contains any hostProcess containers then all containers must be HostProcess containers';
    errors.push(fieldError.invalid(path, '', why));
  }
  if (spec.hostNetwork !== true) {
    const why = 'hostNetwork must be true if pod contains any hostProcess containers';
    errors.push(fieldError.invalid(`${path}.hostNetwork`, false, why));
  }
  return errors;
}
