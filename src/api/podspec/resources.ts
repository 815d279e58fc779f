/** Validation of resource requests and limits. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidateResourceRequirements. */
import type { ResourceRequirements } from 'kubernetes-types/core/v1';
import { qualifiedNameErrors } from '../../base/names.ts';
import { compareQuantity, tryParseQuantity } from '../../base/quantity.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { validateNameRule } from '../validation/scalars.ts';

const STANDARD_CONTAINER_RESOURCES = new Set(['cpu', 'memory', 'ephemeral-storage']);
const INTEGER_RESOURCES = new Set([
  'pods',
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
]);
const HUGE_PAGES = 'hugepages-';

/** `podClaims`: names that `claims` may refer to. */
export function validateResources(
  resources: ResourceRequirements | undefined,
  path: string,
  podClaims: ReadonlySet<string> = new Set(),
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
      const at = `${path}.${part}`;
      errors.push(...validateContainerResourceName(name, at));
      errors.push(...validateResourceQuantity(name, text, `${at}[${name}]`));
      if (name.startsWith(HUGE_PAGES)) hugePages = true;
      if (name === 'cpu' || name === 'memory') cpuOrMemory = true;
    }
  }
  for (const [name, text] of Object.entries(requests)) {
    const request = tryParseQuantity(text);
    const limit = Object.hasOwn(limits, name) ? tryParseQuantity(limits[name]) : undefined;
    if (request === undefined) continue;
    if (limit !== undefined) {
      const order = compareQuantity(request, limit);
      if (isExtended(name) || name.startsWith(HUGE_PAGES)) {
        if (order !== 0) {
          errors.push(
            fieldError.invalid(`${path}.requests`, text, `must be equal to ${name} limit of ${limits[name]}`),
          );
        }
      } else if (order > 0) {
        errors.push(
          fieldError.invalid(
            `${path}.requests`,
            text,
            `must be less than or equal to ${name} limit of ${limits[name]}`,
          ),
        );
      }
    } else if (isExtended(name) || name.startsWith(HUGE_PAGES)) {
      errors.push(fieldError.required(`${path}.limits`, 'Limit must be set for non overcommitable resources'));
    }
  }
  if (hugePages && !cpuOrMemory) {
    errors.push(fieldError.forbidden(path, 'HugePages require cpu or memory'));
  }
  const seen = new Set<string>();
  (resources?.claims ?? []).forEach((claim, index) => {
    const at = `${path}.claims[${index}]`;
    if (claim.name === '' || claim.name === undefined) errors.push(fieldError.required(`${at}.name`));
    else if (seen.has(claim.name)) errors.push(fieldError.duplicate(at, claim.name));
    else if (!podClaims.has(claim.name)) errors.push(fieldError.notFound(`${at}.name`, claim.name));
    seen.add(claim.name);
  });
  return errors;
}

/** The name of something a container may ask for. */
export function validateContainerResourceName(name: string, path: string): FieldError[] {
  const errors = validateNameRule(name, qualifiedNameErrors, path);
  if (errors.length > 0) return errors;
  if (!name.includes('/') && !STANDARD_CONTAINER_RESOURCES.has(name) && !name.startsWith(HUGE_PAGES)) {
    errors.push(fieldError.invalid(path, name, 'must be a standard resource for containers'));
  }
  return errors;
}

/** Non-negative, and whole where parts make no sense. */
export function validateResourceQuantity(name: string, text: string, path: string): FieldError[] {
  const quantity = tryParseQuantity(text);
  if (quantity === undefined) return [fieldError.invalid(path, text, 'must be a quantity')];
  if (quantity.nanos < 0n) return [fieldError.invalid(path, text, 'must be greater than or equal to 0')];
  const whole = INTEGER_RESOURCES.has(name) || isExtended(name) || name.startsWith(HUGE_PAGES);
  return whole && quantity.nanos % 1_000_000_000n !== 0n ? [fieldError.invalid(path, text, 'must be an integer')] : [];
}

/** A resource of somebody else's domain, counted in whole units and never overcommitted. */
export function isExtended(name: string): boolean {
  return name.includes('/') && !name.slice(0, name.indexOf('/')).endsWith('kubernetes.io');
}
