/**
 * Warnings for workloads. Source: `WarningsOnCreate` and `WarningsOnUpdate` in
 * k8s.io/kubernetes/pkg/registry/{apps,batch,core}.
 */

import { dns1123LabelErrors } from '../../../base/names.ts';
import type { PodTemplateSpec } from '../../generated/core/v1.ts';
import { templateWarnings } from './warnings.ts';

interface Named {
  readonly metadata?: { readonly name?: string; readonly generation?: number };
}

interface Workload extends Named {
  readonly spec?: { readonly template?: PodTemplateSpec };
}

/** Whether the object is new or its spec has changed. Warnings are returned only in these cases. */
export const isNewSpec = (object: Named, old: Named | undefined): boolean =>
  object.metadata?.generation !== old?.metadata?.generation;

/** Warnings for the template at `path`; none if the spec of the object is unchanged. */
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

/**
 * Warns if the name is not a DNS label. Pod names begin with the name of their workload, and a pod name is a host name.
 */
export function podNameWarnings({ metadata }: Named, old: Named | undefined): string[] {
  const wrong = old === undefined ? dns1123LabelErrors(metadata?.name ?? '') : [];
  if (wrong.length === 0) return [];
  const surprise = 'this is used in Pod names and hostnames, which can result in surprising behavior';
  return [`metadata.name: ${surprise}; a DNS label is recommended: [${wrong.join(' ')}]`];
}

export function namedWorkloadWarnings(object: Workload, old: Workload | undefined): string[] {
  return [...podNameWarnings(object, old), ...workloadWarnings(object, old)];
}
