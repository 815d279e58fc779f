/**
 * Validation of pod status updates. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidatePodStatusUpdate,
 * pkg/registry/core/pod.
 */

import { ipFamilyOf } from '../../base/addresses/addresses.ts';
import { dns1123LabelErrors, dns1123SubdomainErrors, qualifiedNameErrors } from '../../base/names.ts';
import { extendedClaimStatus } from '../devices/extended-resources.ts';
import type {
  Container,
  ContainerExtendedResourceRequest,
  ContainerStatus,
  LinuxContainerUser,
  Pod,
  PodCondition,
  PodExtendedResourceClaimStatus,
  PodSpec,
  PodStatus,
  ResourceStatus,
} from '../generated/core/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, validateImmutable } from '../meta/validation.ts';
import { addressWarnings } from '../validation/address-warnings.ts';
import { validateIp, validateNameRule, validateNonNegative, validateOptionalOneOf } from '../validation/scalars.ts';
import { validateChangedAnnotations } from './update.ts';

const SYSTEM_CONDITIONS = new Set(['PodScheduled', 'Ready', 'Initialized']);
/** User and group IDs are unsigned 31-bit integers. */
const MAX_ID = 2 ** 31 - 1;

/** Keeps observedGeneration fields that an older client does not send. */
export function preserveGenerations(pod: Pod, old: Pod): void {
  const now = pod.status;
  const before = old.status;
  if (now === undefined || before === undefined) return;
  if ((now.observedGeneration ?? 0) === 0 && before.observedGeneration !== undefined) {
    now.observedGeneration = before.observedGeneration;
  }
  const seen = new Map<string, (number | undefined)[]>();
  for (const condition of before.conditions ?? []) {
    const generations = seen.get(condition.type) ?? [];
    generations.push(condition.observedGeneration);
    seen.set(condition.type, generations);
  }
  const occurrences = new Map<string, number>();
  for (const condition of now.conditions ?? []) {
    const place = occurrences.get(condition.type) ?? 0;
    occurrences.set(condition.type, place + 1);
    const generation = seen.get(condition.type)?.[place];
    if ((condition.observedGeneration ?? 0) === 0 && generation !== undefined)
      condition.observedGeneration = generation;
  }
}

export function validatePodStatusUpdate(pod: Pod, old: Pod): FieldError[] {
  const now: PodStatus = pod.status ?? {};
  const before: PodStatus = old.status ?? {};
  const spec: PodSpec = old.spec ?? { containers: [] };
  const errors = validateChangedAnnotations(pod, old);
  errors.push(...validateConditions(now.conditions, 'status.conditions'));
  if ((pod.spec?.nodeName ?? '') !== (spec.nodeName ?? '')) {
    errors.push(fieldError.forbidden('status.nodeName', 'may not be changed directly'));
  }
  const nominated = now.nominatedNodeName ?? '';
  if (nominated !== '' && nominated !== (before.nominatedNodeName ?? '')) {
    errors.push(...validateNameRule(nominated, dns1123SubdomainErrors, 'status.nominatedNodeName'));
    if (isSet(spec.nodeName)) {
      const why = 'may not be set on pods that are already bound to a node';
      errors.push(fieldError.forbidden('status.nominatedNodeName', why));
    }
  }
  if ((now.observedGeneration ?? 0) < 0) {
    const why = 'must be a non-negative integer';
    errors.push(fieldError.invalid('status.observedGeneration', now.observedGeneration, why));
  }
  errors.push(...validateImmutable(now.qosClass ?? '', before.qosClass ?? '', 'status.qosClass'));
  errors.push(...validateStates(now, before, spec), ...validateClaims(pod), ...validateExtendedClaim(pod));
  errors.push(...validateAddresses((now.podIPs ?? []).map(ipOf), 'status.podIPs'));
  errors.push(...validateHostAddresses(now));
  for (const list of LISTS) errors.push(...validateStatuses(now[list], list, pod.spec));
  return errors;
}

const LISTS = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const;
const ipOf = (each: { readonly ip?: string }): string => each.ip ?? '';

function validateConditions(conditions: readonly PodCondition[] | undefined, path: string): FieldError[] {
  return (conditions ?? []).flatMap((condition, index) => {
    const errors = validateNonNegative(condition.observedGeneration, `${path}[${index}].observedGeneration`);
    if (SYSTEM_CONDITIONS.has(condition.type)) return errors;
    return [...errors, ...validateNameRule(condition.type ?? '', qualifiedNameErrors, `${path}[${index}].Type`)];
  });
}

/** Rejects another state for a container that has terminated and is not restarted. */
function validateStates(now: PodStatus, before: PodStatus, spec: PodSpec): FieldError[] {
  const owners = { containerStatuses: spec.containers, initContainerStatuses: spec.initContainers };
  return LISTS.flatMap((list) => {
    const containers = new Map(
      (list === 'ephemeralContainerStatuses' ? [] : (owners[list] ?? [])).map((each) => [each.name, each]),
    );
    const policy = list === 'ephemeralContainerStatuses' ? 'Never' : spec.restartPolicy;
    const alive = new Set(
      (now[list] ?? []).filter((each) => each.state?.terminated === undefined).map((each) => each.name),
    );
    return (before[list] ?? []).flatMap((status, index) => {
      const exitCode = status.state?.terminated?.exitCode;
      if (exitCode === undefined || !alive.has(status.name)) return [];
      if (mayRestart(containers.get(status.name), policy, exitCode)) return [];
      return [
        fieldError.forbidden(`status.${list}[${index}].state`, 'may not be transitioned to non-terminated state'),
      ];
    });
  });
}

function mayRestart(container: Container | undefined, podPolicy: string | undefined, exitCode: number): boolean {
  for (const { exitCodes } of container?.restartPolicyRules ?? []) {
    const listed = exitCodes?.values?.includes(exitCode) === true;
    if (exitCodes !== undefined && listed === (exitCodes.operator === 'In')) return true;
  }
  const policy = container?.restartPolicy ?? podPolicy;
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

function validateClaims(pod: Pod): FieldError[] {
  const names = new Set((pod.spec?.resourceClaims ?? []).map((claim) => claim.name));
  const seen = new Set<string>();
  return (pod.status?.resourceClaimStatuses ?? []).flatMap(({ name, resourceClaimName }, index) => {
    const at = `status.resourceClaimStatuses[${index}].name`;
    const errors: FieldError[] = [];
    if (!names.has(name)) {
      errors.push(fieldError.invalid(at, name, 'must match the name of an entry in `spec.resourceClaims`'));
    }
    if (seen.has(name)) errors.push(fieldError.duplicate(at, name));
    seen.add(name);
    if (resourceClaimName !== undefined)
      errors.push(...validateNameRule(resourceClaimName, dns1123SubdomainErrors, at));
    return errors;
  });
}

/** Validates the reference to the resource claim for the pod's extended resources. */
function validateExtendedClaim(pod: Pod): FieldError[] {
  const status = extendedClaimStatus(pod);
  if (status === undefined) return [];
  const { requestMappings = [], resourceClaimName = '' }: Partial<PodExtendedResourceClaimStatus> = status;
  const at = 'status.extendedResourceClaimStatus';
  const errors: FieldError[] = [];
  if (requestMappings.length === 0) {
    errors.push(fieldError.required(`${at}.requestMappings`, 'at least one request mapping is required'));
  }
  const containers = new Map(
    [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])].map((each) => [each.name, each]),
  );
  const where = (list: string): string => `spec.initContainers.${list} or spec.containers.${list}`;
  const seen = new Set<string>();
  for (const [index, mapping] of requestMappings.entries()) {
    const {
      containerName = '',
      resourceName = '',
      requestName = '',
    }: Partial<ContainerExtendedResourceRequest> = mapping;
    const place = `${at}.requestMappings[${index}]`;
    const container = containers.get(containerName);
    if (container === undefined) {
      const why = `must match the name of an entry in ${where('name')}`;
      errors.push(fieldError.invalid(`${place}.containerName`, containerName, why));
    } else if (!Object.hasOwn(container.resources?.requests ?? {}, resourceName)) {
      const why = `must match the extended resource name of an entry in ${where('resources.requests')}`;
      errors.push(fieldError.invalid(`${place}.resourceName`, resourceName, why));
    }
    errors.push(...validateNameRule(requestName, dns1123LabelErrors, `${at}.requestName`));
    const key = JSON.stringify([containerName, resourceName, requestName]);
    if (seen.has(key)) {
      errors.push(
        fieldError.duplicate(`${place}.containerName`, containerName),
        fieldError.duplicate(`${place}.resourceName`, resourceName),
        fieldError.duplicate(`${place}.requestName`, requestName),
      );
    }
    seen.add(key);
  }
  if (resourceClaimName === '') errors.push(fieldError.required(`${at}.resourceClaimName`));
  else errors.push(...validateNameRule(resourceClaimName, dns1123SubdomainErrors, `${at}.resourceClaimName`));
  return errors;
}

/** Allows at most one address per IP family. */
function validateAddresses(addresses: readonly string[], path: string): FieldError[] {
  const errors = addresses.flatMap((ip, index) => validateIp(ip, `${path}[${index}]`));
  if (addresses.length < 2) return errors;
  const families = new Set(addresses.map(ipFamilyOf));
  if (addresses.length > 2 || families.size !== 2) {
    const shown = addresses.map((ip) => ({ ip }));
    errors.push(fieldError.invalid(path, shown, 'may specify no more than one IP for each IP family'));
  }
  const seen = new Set<string>();
  addresses.forEach((ip, index) => {
    if (seen.has(ip)) errors.push(fieldError.duplicate(`${path}[${index}]`, { ip }));
    seen.add(ip);
  });
  return errors;
}

function validateHostAddresses({ hostIP = '', hostIPs = [] }: PodStatus): FieldError[] {
  const [first, ...others] = hostIPs.map(ipOf);
  if (first === undefined) return [];
  const wrong =
    first === hostIP ? [] : [fieldError.invalid('status.hostIPs[0].ip', first, 'must be equal to `hostIP`')];
  return [...wrong, ...validateAddresses([first, ...others], 'status.hostIPs')];
}

function validateStatuses(
  statuses: readonly ContainerStatus[] | undefined,
  list: (typeof LISTS)[number],
  spec: PodSpec | undefined,
): FieldError[] {
  const owners = new Map(
    [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])].map((each) => [each.name, each]),
  );
  return (statuses ?? []).flatMap((status, index) => {
    const at = `status.${list}[${index}]`;
    const errors = validateUser(status.user?.linux, `${at}.linux`, spec?.os?.name);
    const allocated = status.allocatedResourcesStatus ?? [];
    if (list === 'ephemeralContainerStatuses') {
      if (allocated.length === 0) return errors;
      const why = 'must not be specified in container status';
      return [...errors, fieldError.forbidden(`${at}.allocatedResourcesStatus`, why)];
    }
    const resources = owners.get(status.name)?.resources;
    const known = owners.has(status.name);
    const claims = new Set(
      (resources?.claims ?? []).map(({ name, request }) =>
        isSet(request) ? `claim:${name}/${request}` : `claim:${name}`,
      ),
    );
    allocated.forEach((health, position) => {
      const path = `${at}.allocatedResourcesStatus[${position}]`;
      const isClaim = health.name.startsWith('claim:');
      const found = isClaim ? claims.has(health.name) : Object.hasOwn(resources?.requests ?? {}, health.name);
      if (known && !found) {
        const why = isClaim
          ? "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
          : "must match one of the container's resource requests";
        errors.push(fieldError.invalid(`${path}.name`, health.name, why));
      }
      errors.push(...validateHealth(health, path));
    });
    return errors;
  });
}

function validateHealth({ resources = [] }: ResourceStatus, path: string): FieldError[] {
  const ids = new Set<string>();
  return resources.flatMap(({ resourceID, health = '' }, index) => {
    const at = `${path}.resources[${index}]`;
    const values = ['Healthy', 'Unhealthy', 'Unknown'];
    const errors = validateOptionalOneOf(health, values, `${at}.health`);
    if (ids.has(resourceID)) errors.push(fieldError.duplicate(`${at}.resourceID`, resourceID));
    ids.add(resourceID);
    return errors;
  });
}

function validateUser(user: LinuxContainerUser | undefined, path: string, os: string | undefined): FieldError[] {
  if (user === undefined) return [];
  if (os === 'windows') return [fieldError.forbidden(path, 'cannot be set for a windows pod')];
  const id = (value: number, at: string): FieldError[] =>
    value < 0 || value > MAX_ID ? [fieldError.invalid(at, value, `must be between 0 and ${MAX_ID}, inclusive`)] : [];
  return [
    ...id(user.uid ?? 0, `${path}.uid`),
    ...id(user.gid ?? 0, `${path}.gid`),
    ...(user.supplementalGroups ?? []).flatMap((group, index) => id(group, `${path}.supplementalGroups[${index}]`)),
  ];
}

export function podStatusWarnings(pod: Pod): string[] {
  return (['podIPs', 'hostIPs'] as const).flatMap((list) =>
    (pod.status?.[list] ?? []).flatMap((each, index) => addressWarnings(ipOf(each), `status.${list}[${index}].ip`)),
  );
}
