/**
 * Validation of resource requests and limits. Source: k8s.io/kubernetes/pkg/apis/core/validation
 * validateResourceRequirements.
 */

import { dns1123LabelErrors, qualifiedNameErrors } from '../../../base/names.ts';
import { canonicalQuantity, compareQuantity, tryParseQuantity } from '../../../base/quantity.ts';
import type { ResourceRequirements } from '../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { validateResourceTypeName } from '../../validation/resource-names.ts';
import { validateNameRule } from '../../validation/scalars.ts';

const STANDARD_CONTAINER_RESOURCES = new Set(['cpu', 'memory', 'ephemeral-storage']);
const INTEGER_RESOURCES = new Set([
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
  'services.nodeports',
  'services.loadbalancers',
]);
export const HUGE_PAGES = 'hugepages-';
const REQUESTS = 'requests.';

/** Validates requests, limits and claims of a container. `podClaims`: claim names that the container may reference. */
export function validateResources(
  resources: ResourceRequirements | undefined,
  path: string,
  podClaims: ReadonlySet<string> = new Set(),
): FieldError[] {
  return validateRequirements(resources, path, podClaims, validateContainerResourceName);
}

export function validateRequirements(
  resources: ResourceRequirements | undefined,
  path: string,
  podClaims: ReadonlySet<string>,
  validateName: (name: string, path: string) => FieldError[],
): FieldError[] {
  const errors: FieldError[] = [];
  const limits = resources?.limits ?? {};
  const requests = resources?.requests ?? {};
  let hugePages = false;
  let cpuOrMemory = false;
  for (const [part, values] of [
    ['limits', limits],
    ['requests', requests],
  ] as const) {
    for (const [name, text] of Object.entries(values)) {
      const at = `${path}.${part}[${name}]`;
      errors.push(...validateName(name, at), ...validateResourceQuantity(name, text, at));
      if (part === 'requests') errors.push(...validateAgainstLimit(name, text, limits, path));
      if (name.startsWith(HUGE_PAGES)) {
        hugePages = true;
        errors.push(...validatePages(name, text, at));
      }
      if (name === 'cpu' || name === 'memory') cpuOrMemory = true;
    }
  }
  if (hugePages && !cpuOrMemory) {
    errors.push(fieldError.forbidden(path, 'HugePages require cpu or memory'));
  }
  errors.push(...validateClaims(resources?.claims ?? [], `${path}.claims`, podClaims));
  return errors;
}

function validateAgainstLimit(
  name: string,
  text: string,
  limits: Readonly<Record<string, string>>,
  path: string,
): FieldError[] {
  const limitText = Object.hasOwn(limits, name) ? limits[name] : undefined;
  if (limitText === undefined) {
    return isOvercommitted(name)
      ? []
      : [fieldError.required(`${path}.limits`, 'Limit must be set for non overcommitable resources')];
  }
  const request = tryParseQuantity(text);
  const limit = tryParseQuantity(limitText);
  if (request === undefined || limit === undefined) return [];
  const order = compareQuantity(request, limit);
  const must = order !== 0 && !isOvercommitted(name) ? 'equal to' : order > 0 ? 'less than or equal to' : undefined;
  return must === undefined
    ? []
    : [
        fieldError.invalid(
          `${path}.requests`,
          canonicalQuantity(text),
          `must be ${must} ${name} limit of ${canonicalQuantity(limitText)}`,
        ),
      ];
}

/** Requires whole multiples of the page size for huge pages. */
function validatePages(name: string, text: string, at: string): FieldError[] {
  const amount = tryParseQuantity(text);
  const size = tryParseQuantity(name.slice(HUGE_PAGES.length));
  const whole =
    amount !== undefined &&
    size !== undefined &&
    size.nanos > 0n &&
    amount.nanos >= 0n &&
    amount.nanos % size.nanos === 0n;
  return whole
    ? []
    : [
        fieldError.invalid(
          at,
          canonicalQuantity(text),
          `${canonicalQuantity(text)} is not positive integer multiple of ${name}`,
        ),
      ];
}

interface ClaimReference {
  readonly name: string;
  readonly request?: string;
}

function validateClaims(claims: readonly ClaimReference[], path: string, podClaims: ReadonlySet<string>): FieldError[] {
  const errors: FieldError[] = [];
  const whole = new Set<string>();
  /** Requests to which the container refers, by claim name. */
  const parts = new Map<string, Set<string>>();
  claims.forEach(({ name, request = '' }, index) => {
    const at = `${path}[${index}]`;
    if (name === '' || name === undefined) {
      errors.push(fieldError.required(at));
      return;
    }
    const known = parts.get(name) ?? new Set();
    if (whole.has(name)) errors.push(fieldError.duplicate(at, name));
    else if (request === '') {
      for (const _ of known) errors.push(fieldError.duplicate(at, name));
      whole.add(name);
    } else {
      errors.push(...validateNameRule(request, dns1123LabelErrors, `${at}.request`));
      if (known.has(request)) errors.push(fieldError.duplicate(at, `${name}/${request}`));
      parts.set(name, known.add(request));
    }
    if (!podClaims.has(name)) errors.push(unknownClaim(at, name, podClaims));
  });
  return errors;
}

function unknownClaim(at: string, name: string, podClaims: ReadonlySet<string>): FieldError {
  const names = podClaims.size === 0 ? ' which is empty' : `: ${[...podClaims].sort().join(', ')}`;
  const error = fieldError.notFound(at, name);
  return { ...error, message: `${error.message}: must be one of the names in pod.spec.resourceClaims${names}` };
}

/** Validates the name of a resource that a container requests. */
export function validateContainerResourceName(name: string, path: string): FieldError[] {
  const errors = validateResourceTypeName(name, path);
  if (!name.includes('/')) {
    if (!STANDARD_CONTAINER_RESOURCES.has(name) && !name.startsWith(HUGE_PAGES)) {
      errors.push(fieldError.invalid(path, name, 'must be a standard resource for containers'));
    }
  } else if (!isNative(name) && !isExtendedName(name)) {
    errors.push(fieldError.invalid(path, name, "doesn't follow extended resource name standard"));
  }
  return errors;
}

/** Requires a non-negative quantity, and a whole one for resources that cannot be divided. */
export function validateResourceQuantity(name: string, text: string, path: string): FieldError[] {
  const quantity = tryParseQuantity(text);
  if (quantity === undefined) return [fieldError.invalid(path, text, 'must be a quantity')];
  const errors =
    quantity.nanos < 0n
      ? [fieldError.invalid(path, canonicalQuantity(text), 'must be greater than or equal to 0')]
      : [];
  const whole = INTEGER_RESOURCES.has(name) || isExtendedName(name);
  if (whole && quantity.nanos % 1_000_000_000n !== 0n) {
    errors.push(fieldError.invalid(path, canonicalQuantity(text), 'must be an integer'));
  }
  return errors;
}

/** Whether the resource is defined by Kubernetes: without a domain or in `kubernetes.io/`. */
const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/');

function isExtendedName(name: string): boolean {
  return !isNative(name) && !name.startsWith(REQUESTS) && qualifiedNameErrors(`${REQUESTS}${name}`).length === 0;
}

/** Whether the resource is outside Kubernetes' domains. Such resources are whole units and cannot be overcommitted. */
export function isExtended(name: string): boolean {
  return !isNative(name);
}

/** Whether limits of the resource may exceed what the node has. */
export const isOvercommitted = (name: string): boolean => isNative(name) && !name.startsWith(HUGE_PAGES);
