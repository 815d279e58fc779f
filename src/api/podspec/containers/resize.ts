/**
 * The subresource `pods/resize`, which changes CPU and memory of running containers. Source:
 * k8s.io/kubernetes/pkg/registry/core/pod, pkg/apis/core/validation ValidatePodResize.
 */
import type { Container, Pod, PodSpec } from '../../generated/core/v1.ts';
import { semanticEqual } from '../../meta/equality.ts';
import { type FieldError, fieldError } from '../../meta/field-error.ts';
import { restoreMetadata, restorePart } from '../../registry/strategies.ts';
import { MIRROR_ANNOTATION } from '../annotations.ts';
import { qosClassOf } from '../qos.ts';
import { containerCounts } from '../update.ts';
import { validatePod } from '../validate.ts';

const SORTS = ['containers', 'initContainers'] as const;

/** Reduces the update to resources and resize policies; all other fields come from the stored pod. */
export function takeResizeOnly(pod: Pod, old: Pod): void {
  const sent = pod.spec;
  const before = old.spec;
  if (sent === undefined || before === undefined || containerCounts(sent, before).length > 0) return;
  const spec: PodSpec = structuredClone(before);
  for (const sort of SORTS) {
    const now = sent[sort] ?? [];
    // If containers were renamed or reordered, the sent list is kept, so that validation reports the change.
    if (now.some((container, index) => container.name !== before[sort]?.[index]?.name)) {
      if (now.length > 0) spec[sort] = now;
      continue;
    }
    (spec[sort] ?? []).forEach((container, index) => {
      for (const field of ['resources', 'resizePolicy'] as const) take(container, now[index], field);
    });
  }
  const whole = (sent as { resources?: unknown }).resources;
  if (whole === undefined) delete (spec as { resources?: unknown }).resources;
  else Object.assign(spec, { resources: whole });
  pod.spec = spec;
  restorePart(pod, old, 'status');
  restoreMetadata(pod, old);
}

function take<K extends 'resizePolicy' | 'resources'>(to: Container, from: Container | undefined, field: K): void {
  const value = from?.[field];
  if (value === undefined) delete to[field];
  else to[field] = value;
}

export function validatePodResize(pod: Pod, old: Pod): FieldError[] {
  const only = (why: string): FieldError[] => [fieldError.forbidden('', why)];
  if (old.metadata?.annotations?.[MIRROR_ANNOTATION] !== undefined) return only('static pods cannot be resized');
  if (old.spec?.os?.name === 'windows') return only('windows pods cannot be resized');
  const errors = validatePod(pod);
  const spec = pod.spec;
  const before = old.spec;
  if (spec === undefined || before === undefined) return errors;
  const counts = containerCounts(spec, before);
  if (counts.length > 0) return [...errors, ...counts];
  const renamed = SORTS.flatMap((sort) => validateNames(spec[sort] ?? [], before[sort] ?? [], `spec.${sort}`));
  if (renamed.length > 0) return [...errors, ...renamed];
  const qosClass = old.status?.qosClass ?? qosClassOf(old);
  if (qosClass !== qosClassOf(pod)) {
    const why = 'Pod QOS Class may not change as a result of resizing';
    errors.push(fieldError.invalid('spec', pod.status?.qosClass ?? '', why));
  }
  const running = (old.status?.containerStatuses ?? []).find((each) => each.state?.running !== undefined);
  if (running !== undefined && running.resources === undefined) {
    errors.push(fieldError.forbidden('spec', 'Pod running on node without support for resize'));
  }
  for (const sort of ['initContainers', 'containers'] as const) {
    (before[sort] ?? []).forEach((container, index) => {
      if (sort === 'initContainers' && container.restartPolicy !== 'Always') return;
      errors.push(...validateRemovals(spec[sort]?.[index], container, `spec.${sort}[${index}].resources`));
    });
  }
  errors.push(...validateUnchanged(spec, before));
  return errors;
}

function validateNames(now: readonly Container[], before: readonly Container[], path: string): FieldError[] {
  const why = 'containers may not be renamed or reordered on resize';
  return now.flatMap(({ name }, index) =>
    name === before[index]?.name ? [] : [fieldError.forbidden(`${path}[${index}].name`, why)],
  );
}

function validateRemovals(container: Container | undefined, before: Container, path: string): FieldError[] {
  return (['requests', 'limits'] as const).flatMap((part) => {
    const now = container?.resources?.[part] ?? {};
    const gone = Object.keys(before.resources?.[part] ?? {}).some((name) => !Object.hasOwn(now, name));
    return gone ? [fieldError.forbidden(`${path}.${part}`, `resource ${part} cannot be removed`)] : [];
  });
}

/** Reports changes of anything except CPU and memory. */
function validateUnchanged(spec: PodSpec, before: PodSpec): FieldError[] {
  const errors: FieldError[] = [];
  for (const sort of SORTS) {
    (spec[sort] ?? []).forEach((container, index) => {
      const old = before[sort]?.[index];
      if (old === undefined) return;
      const sidecar = container.restartPolicy === 'Always';
      if (sort === 'initContainers' && !sidecar) {
        if (semanticEqual(container, old)) return;
        const why = 'resources for non-sidecar init containers are immutable';
        errors.push(fieldError.forbidden(`spec.initContainers[${index}].resources`, why));
      } else if (!semanticEqual(withoutResizable(container), withoutResizable(old))) {
        const whose = sidecar && sort === 'initContainers' ? ' for sidecar containers' : '';
        errors.push(fieldError.forbidden('spec', `only cpu and memory resources${whose} are mutable`));
      }
    });
  }
  if (errors.length > 0) return errors;
  const rest = ({ containers: _containers, initContainers: _init, ...others }: PodSpec): object => ({
    ...others,
    resources: undefined,
  });
  return semanticEqual(rest(spec), rest(before))
    ? []
    : [fieldError.forbidden('spec', 'only cpu and memory resources are mutable')];
}

function withoutResizable({ resources, resizePolicy: _policy, ...rest }: Container): object {
  const others = (amounts: Readonly<Record<string, string>> = {}): object =>
    Object.fromEntries(Object.entries(amounts).filter(([name]) => name !== 'cpu' && name !== 'memory'));
  return {
    ...rest,
    resources: { limits: others(resources?.limits), requests: others(resources?.requests), claims: resources?.claims },
  };
}
