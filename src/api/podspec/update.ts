/**
 * Rules for updates of pods. Source: k8s.io/kubernetes/pkg/apis/core/validation ValidatePodUpdate,
 * ValidatePodEphemeralContainersUpdate.
 */
import type { Container, NodeSelectorTerm, Pod, PodSpec, Toleration } from '../generated/core/v1.ts';
import { semanticEqual } from '../meta/equality.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { isSet } from '../meta/validation.ts';
import { MIRROR_ANNOTATION, validateAnnotationUpdate, validateDeletionCost } from './annotations.ts';
import { validatePod } from './validate.ts';

const ALLOWED_CHANGES =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

/** Validates the changes of an update. Call after `validatePod`, which validates the new pod. */
export function validatePodUpdate(pod: Pod, old: Pod): FieldError[] {
  const errors: FieldError[] = [];
  const spec = pod.spec;
  const before = old.spec;
  if (spec === undefined || before === undefined) return errors;
  errors.push(...validateChangedAnnotations(pod, old));
  const counts = containerCounts(spec, before);
  if (counts.length > 0) return [...errors, ...counts];
  for (const [sort, containers] of [
    ['containers', spec.containers],
    ['initContainers', spec.initContainers ?? []],
  ] as const) {
    containers.forEach((container, index) => {
      const { image } = container;
      const at = `spec.${sort}[${index}].image`;
      if (!isSet(image)) errors.push(fieldError.required(at));
      else if (image.trim() !== image) {
        errors.push(fieldError.invalid(at, image, 'must not have leading or trailing whitespace'));
      }
    });
  }
  errors.push(...validateDeadline(spec, before));
  errors.push(...validateGateRemoval(spec, before));
  errors.push(...validateAddedTolerations(spec.tolerations ?? [], before.tolerations ?? []));
  if ((before.schedulingGates ?? []).length > 0) errors.push(...validateNarrowing(spec, before));
  if (!semanticEqual(withoutChangeable(spec, before), before)) {
    errors.push(fieldError.forbidden('spec', ALLOWED_CHANGES));
  }
  return errors;
}

/** Validates annotations of an existing pod. */
export function validateChangedAnnotations(pod: Pod, old: Pod): FieldError[] {
  const path = 'metadata.annotations';
  const errors = validateAnnotationUpdate(pod, old, path);
  const before = validateDeletionCost(old.metadata?.annotations, path);
  return before.length > 0 ? errors : [...errors, ...validateDeletionCost(pod.metadata?.annotations, path)];
}

export function containerCounts(spec: PodSpec, before: PodSpec): FieldError[] {
  const message = 'pod updates may not add or remove containers';
  const count = (of: PodSpec): number => of.containers?.length ?? 0;
  if (count(spec) !== count(before)) return [fieldError.forbidden('spec.containers', message)];
  return (spec.initContainers?.length ?? 0) === (before.initContainers?.length ?? 0)
    ? []
    : [fieldError.forbidden('spec.initContainers', message)];
}

/** Validates activeDeadlineSeconds, which may be set or reduced. */
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
            `spec.schedulingGates[${index}].name`,
            `only deletion is allowed, but found new scheduling gate '${gate.name}'`,
          ),
    )
    .filter((error) => error !== undefined);
}

/** Validates tolerations. They may be added and their seconds changed, but existing tolerations must remain. */
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

/**
 * The new spec with every mutable field restored to its old value. It equals the old spec if only mutable fields
 * changed.
 */
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
  restore(munged, before, 'schedulingGates');
  if ((before.schedulingGates ?? []).length > 0) {
    // A gated pod is not scheduled yet. Its node selection may be narrowed, which `validateNarrowing` checks.
    restore(munged, before, 'nodeSelector');
    const { nodeAffinity: _now, ...others } = munged.affinity ?? {};
    const nodeAffinity = before.affinity?.nodeAffinity;
    if (nodeAffinity !== undefined) munged.affinity = { ...others, nodeAffinity };
    else if (Object.keys(others).length > 0) munged.affinity = others;
    else restore(munged, before, 'affinity');
  }
  if ((before.terminationGracePeriodSeconds ?? 0) < 0 && spec.terminationGracePeriodSeconds === 1) {
    restore(munged, before, 'terminationGracePeriodSeconds');
  }
  return munged;
}

/** Validates the node selection of a gated pod, which may become stricter but not wider. */
function validateNarrowing(spec: PodSpec, before: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const selector = spec.nodeSelector ?? {};
  if (Object.entries(before.nodeSelector ?? {}).some(([key, value]) => selector[key] !== value)) {
    const why = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
    errors.push(fieldError.invalid('spec.nodeSelector', selector, why));
  }
  const termsOf = (of: PodSpec): readonly NodeSelectorTerm[] =>
    of.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const [now, then] = [termsOf(spec), termsOf(before)];
  const path = 'spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms';
  if (then.length > 0 && then.length !== now.length) {
    const why = 'no additions/deletions to non-empty NodeSelectorTerms list are allowed';
    return [...errors, fieldError.invalid(path, now, why)];
  }
  then.forEach((term, index) => {
    const changed = now[index] ?? {};
    if (hasOnlyAdditions(changed, term)) return;
    errors.push(
      fieldError.invalid(`${path}[${index}]`, changed, 'only additions are allowed (no mutations or deletions)'),
    );
  });
  return errors;
}

const TERM_PARTS = ['matchExpressions', 'matchFields'] as const;

/**
 * Whether the new term only adds expressions. Existing expressions must come first, unchanged. An empty term matches no
 * node, so it must stay empty.
 */
function hasOnlyAdditions(now: NodeSelectorTerm, before: NodeSelectorTerm): boolean {
  const isEmpty = (term: NodeSelectorTerm): boolean => TERM_PARTS.every((part) => (term[part] ?? []).length === 0);
  if (isEmpty(before)) return isEmpty(now);
  return TERM_PARTS.every((part) => {
    const kept = before[part] ?? [];
    return semanticEqual((now[part] ?? []).slice(0, kept.length), kept);
  });
}

function restore<K extends keyof PodSpec>(spec: PodSpec, before: PodSpec, field: K): void {
  if (before[field] === undefined) delete spec[field];
  else spec[field] = before[field];
}

/** Validates `pods/ephemeralcontainers`: ephemeral containers may be added, and nothing else may change. */
export function validateEphemeralContainersUpdate(pod: Pod, old: Pod): FieldError[] {
  if (old.metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined) {
    return [fieldError.forbidden('', 'static pods do not support ephemeral containers')];
  }
  const errors = [...validatePod(pod), ...validateChangedAnnotations(pod, old)];
  const now = pod.spec?.ephemeralContainers ?? [];
  const byName = new Map(now.map((container) => [container.name, container]));
  for (const container of old.spec?.ephemeralContainers ?? []) {
    const found = byName.get(container.name);
    const did = found === undefined ? 'removed' : semanticEqual(found, container) ? undefined : 'changed';
    if (did === undefined) continue;
    const why = `existing ephemeral containers ${JSON.stringify(container.name)} may not be ${did}\n`;
    errors.push(fieldError.forbidden('spec.ephemeralContainers', why));
  }
  return errors;
}
