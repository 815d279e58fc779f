/** Validation of environment variables. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateEnv. */

import {
  configMapKeyErrors,
  dns1123SubdomainErrors,
  environmentNameErrors,
  qualifiedNameErrors,
} from '../../../base/names.ts';
import { formatQuantity, tryParseQuantity } from '../../../base/quantity.ts';
import type {
  EnvFromSource,
  EnvVar,
  EnvVarSource,
  ObjectFieldSelector,
  ResourceFieldSelector,
} from '../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { isSet } from '../../meta/validation.ts';
import { validateNameRule } from '../../validation/scalars.ts';

/** Field paths that environment variables may reference. */
const ENV_FIELD_PATHS = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];
/** Field paths that downward API files may reference. */
export const VOLUME_FIELD_PATHS = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];
const RESOURCE_FIELDS = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
];

export function validateEnv(variables: readonly EnvVar[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  (variables ?? []).forEach((variable, index) => {
    const at = `${path}[${index}]`;
    if (!isSet(variable.name)) errors.push(fieldError.required(`${at}.name`));
    else errors.push(...validateNameRule(variable.name, environmentNameErrors, `${at}.name`));
    if (variable.valueFrom !== undefined)
      errors.push(...validateValueFrom(variable, variable.valueFrom, `${at}.valueFrom`));
  });
  return errors;
}

function validateValueFrom(variable: EnvVar, source: EnvVarSource, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const sources = Object.values(source).filter((each) => each !== undefined).length;
  if (source.fieldRef !== undefined) {
    errors.push(...validateFieldRef(source.fieldRef, ENV_FIELD_PATHS, `${path}.fieldRef`));
  }
  if (source.resourceFieldRef !== undefined) {
    errors.push(...validateResourceFieldRef(source.resourceFieldRef, `${path}.resourceFieldRef`, 'variable'));
  }
  for (const field of ['configMapKeyRef', 'secretKeyRef'] as const) {
    const reference = source[field];
    if (reference === undefined) continue;
    errors.push(...validateNameRule(reference.name ?? '', dns1123SubdomainErrors, `${path}.${field}.name`));
    if (!isSet(reference.key)) errors.push(fieldError.required(`${path}.${field}.key`));
    else errors.push(...validateNameRule(reference.key, configMapKeyErrors, `${path}.${field}.key`));
  }
  const file = source.fileKeyRef;
  if (file !== undefined) {
    for (const field of ['volumeName', 'path', 'key'] as const) {
      if (!isSet(file[field])) errors.push(fieldError.required(`${path}.fileKeyRef.${field}`));
    }
  }
  if (sources === 0) {
    errors.push(
      fieldError.invalid(
        path,
        '',
        'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`',
      ),
    );
  } else if (isSet(variable.value)) {
    errors.push(fieldError.invalid(path, '', 'may not be specified when `value` is not empty'));
  } else if (sources > 1) {
    errors.push(fieldError.invalid(path, '', 'may not have more than one field specified at a time'));
  }
  return errors;
}

const SUBSCRIPT = /^([^[]*)\['([^']*)'\]$/;
/** Field paths that environment variables or downward API files may reference. */
const READABLE = new Set([
  ...ENV_FIELD_PATHS,
  ...VOLUME_FIELD_PATHS,
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
]);

export function validateFieldRef(
  reference: ObjectFieldSelector,
  allowed: readonly string[],
  path: string,
): FieldError[] {
  if (!isSet(reference.apiVersion)) return [fieldError.required(`${path}.apiVersion`)];
  if (!isSet(reference.fieldPath)) return [fieldError.required(`${path}.fieldPath`)];
  const unreadable = (why: string): FieldError[] => [
    fieldError.invalid(`${path}.fieldPath`, reference.fieldPath, `error converting fieldPath: ${why}`),
  ];
  if (reference.apiVersion !== 'v1') return unreadable(`unsupported pod version: ${reference.apiVersion}`);
  const subscript = SUBSCRIPT.exec(reference.fieldPath);
  if (subscript !== null) {
    const [, field, key = ''] = subscript;
    if (field !== 'metadata.annotations' && field !== 'metadata.labels') {
      return unreadable(`field label does not support subscript: ${reference.fieldPath}`);
    }
    const subject = field === 'metadata.annotations' ? key.toLowerCase() : key;
    return validateNameRule(subject, qualifiedNameErrors, path);
  }
  // Before v1, spec.nodeName was called spec.host.
  const field = reference.fieldPath === 'spec.host' ? 'spec.nodeName' : reference.fieldPath;
  if (!READABLE.has(field)) return unreadable(`field label not supported: ${field}`);
  return allowed.includes(field) ? [] : [fieldError.notSupported(`${path}.fieldPath`, field, allowed)];
}

/**
 * Validates a reference to a container's resource. `volume`: a file of a volume refers to it and names the container.
 */
export function validateResourceFieldRef(
  reference: ResourceFieldSelector,
  path: string,
  user: 'volume' | 'variable',
): FieldError[] {
  const errors: FieldError[] = [];
  const { resource = '' } = reference;
  if (user === 'volume' && !isSet(reference.containerName)) errors.push(fieldError.required(`${path}.containerName`));
  else if (resource === '') errors.push(fieldError.required(`${path}.resource`));
  else if (!RESOURCE_FIELDS.includes(resource) && !HUGE_PAGES_FIELD.test(resource)) {
    errors.push(fieldError.notSupported(`${path}.resource`, resource, RESOURCE_FIELDS));
  }
  return [...errors, ...validateDivisor(resource, reference.divisor, `${path}.divisor`)];
}

const HUGE_PAGES_FIELD = /^(?:limits|requests)\.hugepages-/;
const BYTE_DIVISORS = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'];

/** Validates the divisor of a resource. An omitted divisor is 0. */
function validateDivisor(resource: string, divisor: string | undefined, path: string): FieldError[] {
  const quantity = tryParseQuantity(divisor ?? '0');
  if (quantity?.nanos === 0n) return [];
  const text = quantity === undefined ? '' : formatQuantity(quantity);
  const unless = (allowed: readonly string[], why: string): FieldError[] =>
    allowed.includes(text) ? [] : [fieldError.invalid(path, resource, `only divisor's values ${why} resource`)];
  const bytes = `${BYTE_DIVISORS.join(', ')} are supported with the`;
  const kind = resource.slice(resource.indexOf('.') + 1);
  if (kind === 'cpu') return unless(['1m', '1'], '1m and 1 are supported with the cpu');
  if (kind === 'memory') return unless(BYTE_DIVISORS, `${bytes} memory`);
  if (kind === 'ephemeral-storage') return unless(BYTE_DIVISORS, `${bytes} local ephemeral storage`);
  return HUGE_PAGES_FIELD.test(resource) ? unless(BYTE_DIVISORS, `${bytes} hugepages`) : [];
}

export function validateEnvFrom(sources: readonly EnvFromSource[] | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  (sources ?? []).forEach((source, index) => {
    const at = `${path}[${index}]`;
    if (isSet(source.prefix)) errors.push(...validateNameRule(source.prefix, environmentNameErrors, `${at}.prefix`));
    let count = 0;
    for (const field of ['configMapRef', 'secretRef'] as const) {
      const reference = source[field];
      if (reference === undefined) continue;
      count++;
      if (!isSet(reference.name)) errors.push(fieldError.required(`${at}.${field}.name`));
      else errors.push(...validateNameRule(reference.name, dns1123SubdomainErrors, `${at}.${field}.name`));
    }
    if (count === 0) {
      errors.push(fieldError.invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'));
    } else if (count > 1) {
      errors.push(fieldError.invalid(path, '', 'may not have more than one field specified at a time'));
    }
  });
  return errors;
}
