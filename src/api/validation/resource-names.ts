/**
 * Validation of names of compute resources and of resources in quotas. Source:
 * k8s.io/kubernetes/pkg/apis/core/validation, pkg/apis/core/helper.
 */
import { qualifiedNameErrors } from '../../base/names.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { validateNameRule } from './scalars.ts';

/** Object counts that a quota can limit by plain name. */
const COUNTED = [
  'configmaps',
  'persistentvolumeclaims',
  'pods',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'services',
  'services.loadbalancers',
  'services.nodeports',
];
const QUOTA_RESOURCES = new Set([
  ...COUNTED,
  'cpu',
  'memory',
  'ephemeral-storage',
  'requests.cpu',
  'requests.memory',
  'requests.storage',
  'requests.ephemeral-storage',
  'limits.cpu',
  'limits.memory',
  'limits.ephemeral-storage',
]);
const STANDARD_RESOURCES = new Set([...QUOTA_RESOURCES, 'storage']);

const isHugePages = (name: string): boolean => /^(?:requests\.)?hugepages-/.test(name);

export function validateQualifiedName(name: string, path: string): FieldError[] {
  return validateNameRule(name, qualifiedNameErrors, path);
}

/** Requires a standard resource name or a name with a domain. */
export function validateResourceTypeName(name: string, path: string): FieldError[] {
  const errors = validateQualifiedName(name, path);
  if (errors.length > 0 || name.includes('/') || STANDARD_RESOURCES.has(name) || isHugePages(name)) return errors;
  return [fieldError.invalid(path, name, 'must be a standard resource type or fully qualified')];
}

export function validateQuotaResourceName(name: string, path: string): FieldError[] {
  const errors = validateResourceTypeName(name, path);
  if (name.includes('/') || QUOTA_RESOURCES.has(name) || isHugePages(name)) return errors;
  return [...errors, fieldError.invalid(path, name, 'must be a standard resource for quota')];
}
