/** Validation of environment variables. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateEnv. */
import type {
  EnvFromSource,
  EnvVar,
  EnvVarSource,
  ObjectFieldSelector,
  ResourceFieldSelector,
} from 'kubernetes-types/core/v1';
import {
  configMapKeyErrors,
  dns1123SubdomainErrors,
  environmentNameErrors,
  qualifiedNameErrors,
} from '../../base/names.ts';
import { tryParseQuantity } from '../../base/quantity.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { validateNameRule } from '../validation/scalars.ts';

/** Pod fields that an environment variable may read. */
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
/** Pod fields that a downward API file may read. */
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
    errors.push(...validateResourceFieldRef(source.resourceFieldRef, `${path}.resourceFieldRef`, false));
  }
  for (const field of ['configMapKeyRef', 'secretKeyRef'] as const) {
    const reference = source[field];
    if (reference === undefined) continue;
    if (!isSet(reference.name)) errors.push(fieldError.required(`${path}.${field}.name`));
    if (!isSet(reference.key)) errors.push(fieldError.required(`${path}.${field}.key`));
    else errors.push(...validateNameRule(reference.key, configMapKeyErrors, `${path}.${field}.key`));
  }
  if (sources === 0) {
    errors.push(
      fieldError.invalid(
        path,
        '',
        'must specify one of: `configMapKeyRef`, `fieldRef`, `fileKeyRef`, `resourceFieldRef` or `secretKeyRef`',
      ),
    );
  } else if (isSet(variable.value)) {
    errors.push(fieldError.invalid(path, '', 'may not be specified when `value` is not empty'));
  } else if (sources > 1) {
    errors.push(fieldError.invalid(path, '', 'may not have more than one field specified at a time'));
  }
  return errors;
}

const SUBSCRIPT = /^(metadata\.(?:labels|annotations))\['([^']*)'\]$/;

export function validateFieldRef(
  reference: ObjectFieldSelector,
  allowed: readonly string[],
  path: string,
): FieldError[] {
  if (!isSet(reference.apiVersion)) return [fieldError.required(`${path}.apiVersion`)];
  if (!isSet(reference.fieldPath)) return [fieldError.required(`${path}.fieldPath`)];
  const subscript = SUBSCRIPT.exec(reference.fieldPath);
  if (subscript !== null) {
    const key = subscript[2] ?? '';
    const subject = subscript[1] === 'metadata.annotations' ? key.toLowerCase() : key;
    return qualifiedNameErrors(subject).map((message) => fieldError.invalid(path, key, message));
  }
  return allowed.includes(reference.fieldPath)
    ? []
    : [fieldError.notSupported(`${path}.fieldPath`, reference.fieldPath, allowed)];
}

/** `volume`: a file has to name its container, a variable stands in one. */
export function validateResourceFieldRef(
  reference: ResourceFieldSelector,
  path: string,
  volume: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  if (volume && !isSet(reference.containerName)) errors.push(fieldError.required(`${path}.containerName`));
  if (!isSet(reference.resource)) errors.push(fieldError.required(`${path}.resource`));
  else if (
    !RESOURCE_FIELDS.includes(reference.resource) &&
    !/^(?:limits|requests)\.hugepages-/.test(reference.resource)
  ) {
    errors.push(fieldError.notSupported(`${path}.resource`, reference.resource, RESOURCE_FIELDS));
  }
  const divisor = tryParseQuantity(reference.divisor ?? '0');
  if (divisor === undefined || divisor.nanos < 0n) {
    errors.push(fieldError.invalid(`${path}.divisor`, reference.divisor, 'must be a non-negative quantity'));
  }
  return errors;
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
      errors.push(fieldError.invalid(at, '', 'must specify one of: `configMapRef` or `secretRef`'));
    } else if (count > 1) {
      errors.push(fieldError.invalid(at, '', 'may not have more than one field specified at a time'));
    }
  });
  return errors;
}
