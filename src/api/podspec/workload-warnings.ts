/**
 * Warnings for authors of workloads. Source: `WarningsOnCreate` and `WarningsOnUpdate` in
 * k8s.io/kubernetes/pkg/registry/{apps,batch,core}.
 */
import type { PodTemplateSpec } from 'kubernetes-types/core/v1';
import { dns1123LabelErrors } from '../../base/names.ts';
import { templateWarnings } from './warnings.ts';

interface Named {
  readonly metadata?: { readonly name?: string; readonly generation?: number };
}

interface Workload extends Named {
  readonly spec?: { readonly template?: PodTemplateSpec };
}

/** Whether there is anything new to warn of: a new object, or another spec. */
export const isNewSpec = (object: Named, old: Named | undefined): boolean =>
  object.metadata?.generation !== old?.metadata?.generation;

/** Of a template that may have changed: at `path`. */
export function changedTemplateWarnings(
  template: PodTemplateSpec | undefined,
  path: string,
  object: Named,
  old: Named | undefined,
): string[] {
  return isNewSpec(object, old) ? templateWarnings(template, path) : [];
}

export function workloadWarnings(object: Workload, old: Workload | undefined): string[] {
  return changedTemplateWarnings(object.spec?.template, 'spec.template', object, old);
}

/** Where pods are called after it, and the name of a pod is one part of a host name. */
export function podNameWarnings({ metadata }: Named, old: Named | undefined): string[] {
  const wrong = old === undefined ? dns1123LabelErrors(metadata?.name ?? '') : [];
  if (wrong.length === 0) return [];
  const surprise = 'this is used in Pod names and hostnames, which can result in surprising behavior';
  return [`metadata.name: ${surprise}; a DNS label is recommended: [${wrong.join(' ')}]`];
}

export function namedWorkloadWarnings(object: Workload, old: Workload | undefined): string[] {
  return [...podNameWarnings(object, old), ...workloadWarnings(object, old)];
}
