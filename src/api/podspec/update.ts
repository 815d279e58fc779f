/**
 * What may change in a pod after it was created. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidatePodUpdate,
 * ValidatePodStatusUpdate, ValidatePodEphemeralContainersUpdate, ValidatePodResize.
 */
import type { Container, Pod, PodSpec, ResourceRequirements, Toleration } from 'kubernetes-types/core/v1';
import { semanticEqual } from '../meta/equality.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet, validateImmutable } from '../meta/validation.ts';
import { validateNonNegative } from '../validation/scalars.ts';
import { qosClassOf } from './qos.ts';
import { MIRROR_ANNOTATION, validatePodSpec } from './validate.ts';

const ALLOWED_CHANGES =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

/** What of a container can be changed while it runs. */
const RESIZED = ['cpu', 'memory'];

type ResourceList = Readonly<Record<string, string>>;

/** Runs after `validatePod`. */
export function validatePodUpdate(pod: Pod, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  const spec = pod.spec;
  const before = old.spec;
  if (spec === undefined || before === undefined) return errors;
  if (!semanticEqual(pod.metadata?.annotations?.[MIRROR_ANNOTATION], old.metadata?.annotations?.[MIRROR_ANNOTATION])) {
    const path = `metadata.annotations[${MIRROR_ANNOTATION}]`;
    const value = pod.metadata?.annotations?.[MIRROR_ANNOTATION] ?? '';
    errors.push(fieldError.invalid(path, value, 'may not remove or update mirror pod annotation'));
  }
  const counts = containerCounts(spec, before);
  if (counts.length > 0) return [...errors, ...counts];
  for (const [sort, containers] of [
    ['containers', spec.containers],
    ['initContainers', spec.initContainers ?? []],
  ] as const) {
    containers.forEach((container, index) => {
      if (!isSet(container.image)) errors.push(fieldError.required(`spec.${sort}[${index}].image`));
    });
  }
  errors.push(...validateDeadline(spec, before));
  errors.push(...validateGateRemoval(spec, before));
  errors.push(...validateAddedTolerations(spec.tolerations ?? [], before.tolerations ?? []));
  if (!semanticEqual(withoutChangeable(spec, before), before)) {
    errors.push(fieldError.forbidden('spec', ALLOWED_CHANGES));
  }
  return errors;
}

function containerCounts(spec: PodSpec, before: PodSpec): FieldError[] {
  const message = 'pod updates may not add or remove containers';
  const count = (of: PodSpec): number => of.containers?.length ?? 0;
  if (count(spec) !== count(before)) return [fieldError.forbidden('spec.containers', message)];
  return (spec.initContainers?.length ?? 0) === (before.initContainers?.length ?? 0)
    ? []
    : [fieldError.forbidden('spec.initContainers', message)];
}

/** A deadline may be set, and shortened. */
function validateDeadline(spec: PodSpec, before: PodSpec): FieldError[] {
  const path = 'spec.activeDeadlineSeconds';
  const now = spec.activeDeadlineSeconds;
  const then = before.activeDeadlineSeconds;
  if (now !== undefined) {
    if (now < 0 || now > 2 ** 31 - 1)
      return [fieldError.invalid(path, now, 'must be between 0 and 2147483647, inclusive')];
    return then !== undefined && then < now
      ? [fieldError.invalid(path, now, 'must be less than or equal to previous value')]
      : [];
  }
  return then === undefined
    ? []
    : [fieldError.invalid(path, null, 'must not update from a positive integer to nil value')];
}

function validateGateRemoval(spec: PodSpec, before: PodSpec): FieldError[] {
  const old = new Set((before.schedulingGates ?? []).map((gate) => gate.name));
  return (spec.schedulingGates ?? [])
    .map((gate, index): FieldError | undefined =>
      old.has(gate.name)
        ? undefined
        : fieldError.forbidden(
            `spec.schedulingGates[${index}]`,
            `only deletion is allowed, but found new scheduling gate '${gate.name}'`,
          ),
    )
    .filter((error) => error !== undefined);
}

/** Tolerations may be added, and their seconds changed; nothing that was tolerated may stop being so. */
function validateAddedTolerations(tolerations: readonly Toleration[], old: readonly Toleration[]): FieldError[] {
  const identity = ({ key = '', operator = 'Equal', value = '', effect = '' }: Toleration): string =>
    JSON.stringify([key, operator, value, effect]);
  const present = new Set(tolerations.map(identity));
  const kept = old.every((before) => present.has(identity(before)));
  return kept
    ? []
    : [
        fieldError.forbidden(
          'spec.tolerations',
          'existing toleration can not be modified except its tolerationSeconds',
        ),
      ];
}

/** The new spec with everything that may change put back to what it was; equal to the old one when only that changed. */
function withoutChangeable(spec: PodSpec, before: PodSpec): PodSpec {
  const images = (containers: readonly Container[] | undefined, old: readonly Container[] | undefined): Container[] =>
    (containers ?? []).map((container, index) => {
      const image = old?.[index]?.image;
      return image === undefined ? container : { ...container, image };
    });
  const munged: PodSpec = {
    ...spec,
    containers: images(spec.containers, before.containers),
    initContainers: images(spec.initContainers, before.initContainers),
  };
  restore(munged, before, 'activeDeadlineSeconds');
  restore(munged, before, 'tolerations');
  if ((before.schedulingGates ?? []).length > 0) {
    // A gated pod is not scheduled yet: its placement may still be narrowed.
    restore(munged, before, 'schedulingGates');
    if (narrows(spec.nodeSelector, before.nodeSelector)) restore(munged, before, 'nodeSelector');
    if (before.affinity?.nodeAffinity === undefined && spec.affinity !== undefined) restore(munged, before, 'affinity');
  }
  if ((before.terminationGracePeriodSeconds ?? 0) < 0 && spec.terminationGracePeriodSeconds === 1) {
    restore(munged, before, 'terminationGracePeriodSeconds');
  }
  return munged;
}

function narrows(now: Readonly<Record<string, string>> = {}, before: Readonly<Record<string, string>> = {}): boolean {
  return Object.entries(before).every(([key, value]) => now[key] === value);
}

function restore<K extends keyof PodSpec>(spec: PodSpec, before: PodSpec, field: K): void {
  if (before[field] === undefined) delete spec[field];
  else spec[field] = before[field];
}

export function validatePodStatusUpdate(pod: Pod, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  const now = pod.status ?? {};
  const before = old.status ?? {};
  if (isSet(before.qosClass) && isSet(now.qosClass)) {
    errors.push(...validateImmutable(now.qosClass, before.qosClass, 'status.qosClass'));
  }
  if (isSet(pod.spec?.nodeName) && pod.spec.nodeName !== old.spec?.nodeName) {
    errors.push(fieldError.forbidden('spec.nodeName', 'may not be changed directly'));
  }
  errors.push(...validateRestartCounts(pod));
  for (const [index, condition] of (now.conditions ?? []).entries()) {
    if (!isSet(condition.type)) errors.push(fieldError.required(`status.conditions[${index}].type`));
    errors.push(
      ...validateNonNegative(
        (condition as { observedGeneration?: number }).observedGeneration,
        `status.conditions[${index}].observedGeneration`,
      ),
    );
  }
  return errors;
}

/** With restartPolicy Never or OnFailure a terminated container does not come back to life. */
function validateRestartCounts(pod: Pod): FieldError[] {
  const errors: FieldError[] = [];
  for (const list of ['containerStatuses', 'initContainerStatuses'] as const) {
    for (const [index, status] of (pod.status?.[list] ?? []).entries()) {
      errors.push(...validateNonNegative(status.restartCount, `status.${list}[${index}].restartCount`));
    }
  }
  return errors;
}

/** `pods/ephemeralcontainers`: ephemeral containers may be added, nothing else may change. */
export function validateEphemeralContainersUpdate(pod: Pod, old: Pod): FieldError[] {
  const errors = validatePodSpec(pod.spec, 'spec');
  const now = pod.spec?.ephemeralContainers ?? [];
  const before = old.spec?.ephemeralContainers ?? [];
  const byName = new Map(now.map((container) => [container.name, container]));
  for (const container of before) {
    const found = byName.get(container.name);
    if (found === undefined) {
      errors.push(
        fieldError.forbidden(
          'spec.ephemeralContainers',
          `existing ephemeral containers ${JSON.stringify(container.name)} may not be removed\n`,
        ),
      );
    } else if (!semanticEqual(found, container)) {
      errors.push(
        fieldError.forbidden(
          'spec.ephemeralContainers',
          `existing ephemeral containers ${JSON.stringify(container.name)} may not be changed\n`,
        ),
      );
    }
  }
  return errors;
}

/** `pods/resize`: cpu and memory of containers may change as long as the quality of service stays. */
export function validatePodResize(pod: Pod, old: Pod): FieldError[] {
  const errors = validatePodSpec(pod.spec, 'spec');
  const spec = pod.spec;
  const before = old.spec;
  if (spec === undefined || before === undefined) return errors;
  if (qosClassOf(pod) !== qosClassOf(old)) {
    errors.push(fieldError.invalid('spec', qosClassOf(pod), 'Pod QOS Class may not change as a result of resizing'));
  }
  const counts = containerCounts(spec, before);
  if (counts.length > 0) return [...errors, ...counts];
  const renamed = spec.containers.flatMap(({ name }, index) =>
    name === before.containers[index]?.name
      ? []
      : [
          fieldError.forbidden(
            `spec.containers[${index}].name`,
            'containers may not be renamed or reordered on resize',
          ),
        ],
  );
  if (renamed.length > 0) return [...errors, ...renamed];
  const munged = {
    ...spec,
    containers: resized(spec.containers, before.containers, 'spec.containers', errors),
    initContainers: resized(spec.initContainers ?? [], before.initContainers ?? [], 'spec.initContainers', errors),
  };
  if (!semanticEqual(munged, before)) {
    errors.push(fieldError.forbidden('spec', 'only cpu and memory resources are mutable'));
  }
  return errors;
}

/** The containers with the cpu and memory they had; what may not change of these is added to `errors`. */
function resized(
  containers: readonly Container[],
  before: readonly Container[],
  path: string,
  errors: FieldError[],
): Container[] {
  return containers.map((container, index) => {
    const at = `${path}[${index}]`;
    const old = before[index]?.resources;
    // Init containers that have ended have no resources that could change.
    if (path === 'spec.initContainers' && container.restartPolicy !== 'Always') {
      if (semanticEqual(container.resources, old)) return container;
      errors.push(fieldError.forbidden(`${at}.resources`, 'resources for non-sidecar init containers are immutable'));
      return withResources(container, old);
    }
    for (const sort of ['requests', 'limits'] as const) {
      const now = container.resources?.[sort] ?? {};
      if (!RESIZED.some((name) => Object.hasOwn(old?.[sort] ?? {}, name) && !Object.hasOwn(now, name))) continue;
      errors.push(fieldError.forbidden(`${at}.resources.${sort}`, `resource ${sort} cannot be removed`));
    }
    const { requests, limits, ...rest } = container.resources ?? {};
    return withResources(container, {
      ...rest,
      ...amountsKept('requests', requests, old?.requests),
      ...amountsKept('limits', limits, old?.limits),
    });
  });
}

function withResources(container: Container, resources: ResourceRequirements | undefined): Container {
  const { resources: _, ...rest } = container;
  return resources === undefined ? rest : { ...rest, resources };
}

function amountsKept(
  sort: 'requests' | 'limits',
  now: ResourceList = {},
  old: ResourceList = {},
): ResourceRequirements {
  const amounts = [
    ...Object.entries(now).filter(([name]) => !RESIZED.includes(name)),
    ...Object.entries(old).filter(([name]) => RESIZED.includes(name)),
  ];
  return amounts.length === 0 ? {} : { [sort]: Object.fromEntries(amounts) };
}
