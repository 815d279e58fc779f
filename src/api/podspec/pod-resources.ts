/**
 * Pod-level resources (KEP-2837). Source: k8s.io/component-helpers/resource, k8s.io/kubernetes/pkg/apis/core/v1
 * defaults, pkg/apis/core/validation validatePodResources.
 */

import {
  addQuantity,
  canonicalQuantity,
  compareQuantity,
  formatQuantity,
  type Quantity,
  tryParseQuantity,
} from '../../base/quantity.ts';
import type { Container, Pod, PodSpec, ResourceRequirements } from '../generated/core/v1.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { validateResourceTypeName } from '../validation/resource-names.ts';
import { HUGE_PAGES, isOvercommitted, validateRequirements } from './containers/resources.ts';

type Part = 'limits' | 'requests';
type Sums = Map<string, Quantity>;

const SUPPORTED = ['cpu', HUGE_PAGES, 'memory'];

const isSupported = (name: string): boolean => name === 'cpu' || name === 'memory' || name.startsWith(HUGE_PAGES);

export function podResourcesOf(spec: PodSpec | undefined): ResourceRequirements | undefined {
  return spec?.resources;
}

function amountsOf(container: Container, part: Part): Sums {
  const sums: Sums = new Map();
  for (const [name, text] of Object.entries(container.resources?.[part] ?? {})) {
    const amount = tryParseQuantity(text);
    if (amount !== undefined) sums.set(name, amount);
  }
  return sums;
}

function add(sums: Sums, more: Sums): void {
  for (const [name, amount] of more) {
    const before = sums.get(name);
    sums.set(name, before === undefined ? amount : addQuantity(before, amount));
  }
}

function raise(sums: Sums, others: Sums): void {
  for (const [name, amount] of others) {
    const before = sums.get(name);
    if (before === undefined || compareQuantity(amount, before) > 0) sums.set(name, amount);
  }
}

/**
 * Maximum of the resources that the containers use at the same time. Sidecars keep running; other init containers run
 * one after the other.
 */
function aggregated(spec: PodSpec, part: Part): Sums {
  const sums: Sums = new Map();
  for (const container of spec.containers ?? []) add(sums, amountsOf(container, part));
  const sidecars: Sums = new Map();
  const peak: Sums = new Map();
  for (const container of spec.initContainers ?? []) {
    const own = amountsOf(container, part);
    if (container.restartPolicy === 'Always') {
      add(sums, own);
      add(sidecars, own);
      raise(peak, sidecars);
    } else {
      add(own, sidecars);
      raise(peak, own);
    }
  }
  raise(sums, peak);
  return sums;
}

/** Derives missing pod-level requests and limits from the containers. Call after the containers' defaults are set. */
export function setPodResourceDefaults(pod: Pod): void {
  const spec = pod.spec;
  const resources = podResourcesOf(spec);
  if (spec === undefined || resources === undefined) return;
  const { limits = {}, requests = {} } = resources;
  if (Object.keys(limits).length + Object.keys(requests).length === 0) return;
  for (const [name, amount] of aggregated(spec, 'limits')) {
    if (name.startsWith(HUGE_PAGES) && !(name in requests)) limits[name] ??= formatQuantity(amount);
  }
  if (Object.keys(limits).length > 0) {
    for (const [name, amount] of aggregated(spec, 'requests')) {
      if (isSupported(name) && isOvercommitted(name)) requests[name] ??= formatQuantity(amount);
    }
    for (const [name, limit] of Object.entries(limits)) if (isSupported(name)) requests[name] ??= limit;
  }
  if (!Object.keys(limits).some(isSupported) && Object.keys(requests).some(isSupported)) {
    defaultLimits(spec, limits);
  }
  if (Object.keys(requests).length > 0) resources.requests = requests;
  if (Object.keys(limits).length > 0) resources.limits = limits;
}

/** Sets the pod-level limit of every resource for which all containers have a limit. */
function defaultLimits(spec: PodSpec, limits: Record<string, string>): void {
  const containers = [...(spec.containers ?? []), ...(spec.initContainers ?? [])];
  for (const [name, amount] of aggregated(spec, 'limits')) {
    const limited = containers.every((container) => container.resources?.limits?.[name] !== undefined);
    if (isSupported(name) && isOvercommitted(name) && limited) limits[name] ??= formatQuantity(amount);
  }
}

export function validatePodResources(spec: PodSpec, path: string): FieldError[] {
  const resources = podResourcesOf(spec);
  if (resources === undefined) return [];
  const errors: FieldError[] = [];
  if (resources.claims !== undefined) {
    errors.push(fieldError.forbidden(`${path}.claims`, 'claims cannot be set for Resources at pod-level'));
  }
  errors.push(...validateRequirements({ ...resources, claims: [] }, path, new Set(), validateName));
  for (const [name, needed] of aggregated(spec, 'requests')) {
    const given = resources.requests?.[name] ?? '0';
    const amount = tryParseQuantity(given);
    if (amount === undefined || compareQuantity(needed, amount) <= 0) continue;
    const why = `must be greater than or equal to aggregate container requests of ${formatQuantity(needed)}`;
    errors.push(fieldError.invalid(`${path}.requests[${name}]`, canonicalQuantity(given), why));
  }
  (spec.containers ?? []).forEach((container, index) => {
    for (const [name, text] of Object.entries(container.resources?.limits ?? {})) {
      const limit = tryParseQuantity(text);
      const bound = resources.limits?.[name];
      const most = tryParseQuantity(bound);
      if (bound === undefined || limit === undefined || most === undefined || compareQuantity(limit, most) <= 0)
        continue;
      const why = `must be less than or equal to pod limits of ${canonicalQuantity(bound)}`;
      errors.push(fieldError.invalid(`${path}.containers[${index}][${name}].limits`, canonicalQuantity(text), why));
    }
  });
  return errors;
}

function validateName(name: string, path: string): FieldError[] {
  const errors = validateResourceTypeName(name, path);
  if (errors.length > 0 || isSupported(name)) return errors;
  return [fieldError.notSupported(path, name, SUPPORTED)];
}
