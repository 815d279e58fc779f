/** LimitRange: defaults and limits for containers, pods and claims. Source: plugin/pkg/admission/limitranger. */

import type {
  Container,
  LimitRange,
  LimitRangeItem,
  PersistentVolumeClaim,
  Pod,
  ResourceRequirements,
} from '../../../api/generated/core/v1.ts';
import {
  addQuantity,
  compareQuantity,
  formatQuantity,
  type Quantity,
  quantityOf,
  tryParseQuantity,
} from '../../../base/quantity.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor } from '../subject.ts';

type Amounts = Readonly<Record<string, string>>;

const ANNOTATION = 'kubernetes.io/limit-ranger';
const zero = (): Quantity => quantityOf(0);

export function limitRanger(ranges: (namespace: string) => readonly CachedObject[]): AdmissionPlugin {
  const itemsFor = (request: AdmissionRequest, type: string): LimitRangeItem[] =>
    ranges(request.namespace).flatMap((object) =>
      (object.shared<LimitRange>().spec?.limits ?? []).filter((item) => item.type === type),
    );
  const concernsPod = (request: AdmissionRequest): boolean =>
    isFor(request, '', 'pods') && request.subresource === '' && request.operation === 'CREATE';
  return {
    name: 'LimitRanger',
    resources: ['pods', 'persistentvolumeclaims'],
    mutate(request) {
      if (!concernsPod(request)) return;
      const found = itemsFor(request, 'Container');
      if (found.length > 0) setDefaults(request.object as Pod, found);
    },
    validate(request) {
      const resized = isFor(request, '', 'pods') && request.subresource === 'resize' && request.operation === 'UPDATE';
      let problems: string[] = [];
      if (concernsPod(request) || resized) {
        const pod = request.object as Pod;
        const containers = itemsFor(request, 'Container').flatMap((item) => containerProblems(pod, item));
        problems = [...containers, ...itemsFor(request, 'Pod').flatMap((item) => podProblems(pod, item))];
      } else if (
        isFor(request, '', 'persistentvolumeclaims') &&
        request.subresource === '' &&
        request.object !== undefined
      ) {
        const claim = request.object as PersistentVolumeClaim;
        problems = itemsFor(request, 'PersistentVolumeClaim').flatMap((item) => claimProblems(claim, item));
      }
      if (problems.length > 0)
        throw forbid(request, problems.length === 1 ? (problems[0] ?? '') : `[${problems.join(', ')}]`);
    },
  };
}

function setDefaults(pod: Pod, items: readonly LimitRangeItem[]): void {
  const requests = merged(items.map((item) => item.defaultRequest as Amounts | undefined));
  const limits = merged(items.map((item) => item.default as Amounts | undefined));
  const notes: string[] = [];
  const each = (container: Container, noun: string): void => {
    const resources = container.resources ?? {};
    const set: string[] = [];
    for (const [field, defaults] of [
      ['limits', limits],
      ['requests', requests],
    ] as const) {
      const given: Record<string, string> = { ...(resources[field] as Amounts | undefined) };
      const added = Object.keys(defaults).filter((name) => !Object.hasOwn(given, name));
      if (added.length === 0) continue;
      for (const name of added) given[name] = defaults[name] ?? '';
      resources[field] = given;
      set.push(`${added.sort().join(', ')} ${field.slice(0, -1)} for ${noun} ${container.name}`);
    }
    if (set.length > 0) {
      container.resources = resources;
      notes.push(...set.reverse());
    }
  };
  for (const container of pod.spec?.containers ?? []) each(container, 'container');
  for (const container of pod.spec?.initContainers ?? []) each(container, 'init container');
  if (notes.length === 0) return;
  pod.metadata ??= {};
  pod.metadata.annotations = {
    ...pod.metadata.annotations,
    [ANNOTATION]: `LimitRanger plugin set: ${notes.join('; ')}`,
  };
}

/** Merges amounts. The first entry that sets a resource takes precedence. */
function merged(all: readonly (Amounts | undefined)[]): Amounts {
  return Object.assign({}, ...[...all].reverse());
}

const amount = (amounts: unknown, name: string): Quantity | undefined => {
  const given = amounts as Amounts | undefined;
  return given !== undefined && Object.hasOwn(given, name) ? tryParseQuantity(given[name]) : undefined;
};

function containerProblems(pod: Pod, item: LimitRangeItem): string[] {
  const containers = [...(pod.spec?.containers ?? []), ...(pod.spec?.initContainers ?? [])];
  return containers.flatMap(({ resources = {} }) => resourceProblems(resources, item));
}

function resourceProblems(resources: ResourceRequirements, item: LimitRangeItem): string[] {
  const { type } = item;
  const problems: string[] = [];
  for (const [name, text] of Object.entries((item.min ?? {}) as Amounts)) {
    const bound = tryParseQuantity(text);
    const [request, limit] = [amount(resources.requests, name), amount(resources.limits, name)];
    if (bound === undefined) continue;
    if (request === undefined) problems.push(`minimum ${name} usage per ${type} is ${text}.  No request is specified`);
    else if (compareQuantity(request, bound) < 0) {
      problems.push(`minimum ${name} usage per ${type} is ${text}, but request is ${textOf(resources.requests, name)}`);
    }
    if (limit !== undefined && compareQuantity(limit, bound) < 0) {
      problems.push(`minimum ${name} usage per ${type} is ${text}, but limit is ${textOf(resources.limits, name)}`);
    }
  }
  for (const [name, text] of Object.entries((item.max ?? {}) as Amounts)) {
    const bound = tryParseQuantity(text);
    const [request, limit] = [amount(resources.requests, name), amount(resources.limits, name)];
    if (bound === undefined) continue;
    if (limit === undefined) problems.push(`maximum ${name} usage per ${type} is ${text}.  No limit is specified`);
    else if (compareQuantity(limit, bound) > 0) {
      problems.push(`maximum ${name} usage per ${type} is ${text}, but limit is ${textOf(resources.limits, name)}`);
    }
    if (request !== undefined && compareQuantity(request, bound) > 0) {
      problems.push(`maximum ${name} usage per ${type} is ${text}, but request is ${textOf(resources.requests, name)}`);
    }
  }
  return [...problems, ...ratioProblems(resources, item)];
}

function ratioProblems(resources: ResourceRequirements, item: LimitRangeItem): string[] {
  return Object.entries((item.maxLimitRequestRatio ?? {}) as Amounts).flatMap(([name, text]) => {
    const head = `${name} max limit to request ratio per ${item.type} is ${text}`;
    const [request, limit] = [amount(resources.requests, name), amount(resources.limits, name)];
    const bound = tryParseQuantity(text);
    if (bound === undefined) return [];
    if (request === undefined || compareQuantity(request, zero()) === 0)
      return [`${head}, but no request is specified or request is 0`];
    if (limit === undefined || compareQuantity(limit, zero()) === 0)
      return [`${head}, but no limit is specified or limit is 0`];
    const ratio = Number(limit.nanos) / Number(request.nanos);
    return ratio > Number(bound.nanos) / 1e9 ? [`${head}, but provided ratio is ${ratio.toFixed(6)}`] : [];
  });
}

const textOf = (amounts: unknown, name: string): string => String((amounts as Amounts | undefined)?.[name]);

/**
 * Problems of the pod's total. The amounts of app containers are added, because these containers run together. Init
 * containers run before them, one after the other. A restartable init container (sidecar) runs together with all later
 * containers.
 */
function podProblems(pod: Pod, item: LimitRangeItem): string[] {
  const names = new Set([
    ...Object.keys(item.min ?? {}),
    ...Object.keys(item.max ?? {}),
    ...Object.keys(item.maxLimitRequestRatio ?? {}),
  ]);
  const total = (field: 'requests' | 'limits'): Record<string, string> => {
    const result: Record<string, string> = {};
    for (const name of names) {
      const sum = totalOf(pod, field, name);
      if (sum !== undefined) result[name] = formatQuantity(sum);
    }
    return result;
  };
  return resourceProblems({ requests: total('requests'), limits: total('limits') }, item);
}

function totalOf(pod: Pod, field: 'requests' | 'limits', name: string): Quantity | undefined {
  let found = false;
  const of = (container: Container): Quantity => {
    const value = amount(container.resources?.[field], name);
    if (value !== undefined) found = true;
    return value ?? zero();
  };
  let running = zero();
  let peak = zero();
  for (const container of pod.spec?.initContainers ?? []) {
    const needed = addQuantity(running, of(container));
    if (container.restartPolicy === 'Always') running = needed;
    if (compareQuantity(needed, peak) > 0) peak = needed;
  }
  for (const container of pod.spec?.containers ?? []) running = addQuantity(running, of(container));
  if (!found) return undefined;
  return compareQuantity(running, peak) > 0 ? running : peak;
}

function claimProblems(claim: PersistentVolumeClaim, item: LimitRangeItem): string[] {
  const requested = amount(claim.spec?.resources?.requests, 'storage');
  const text = textOf(claim.spec?.resources?.requests, 'storage');
  const problems: string[] = [];
  const [min, max] = [amount(item.min, 'storage'), amount(item.max, 'storage')];
  if (min !== undefined && requested !== undefined && compareQuantity(requested, min) < 0) {
    problems.push(`minimum storage usage per ${item.type} is ${textOf(item.min, 'storage')}, but request is ${text}`);
  }
  if (max !== undefined && requested !== undefined && compareQuantity(requested, max) > 0) {
    problems.push(`maximum storage usage per ${item.type} is ${textOf(item.max, 'storage')}, but request is ${text}`);
  }
  return problems;
}
