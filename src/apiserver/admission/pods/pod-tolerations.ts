/**
 * Tolerations by namespace, and for extended resources. Sources:
 * plugin/pkg/admission/{podtolerationrestriction,extendedresourcetoleration}, pkg/util/tolerations.
 */

import type { Pod, Toleration } from '../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { isExtended } from '../../../api/podspec/containers/resources.ts';
import { qosClassOf } from '../../../api/podspec/qos.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { type NamespaceSource, namespaceOf } from '../matching.ts';
import type { PodTolerationSettings } from '../settings.ts';
import { forbid, forbidWithoutName, isFor } from '../subject.ts';

const DEFAULTS_ANNOTATION = 'scheduler.alpha.kubernetes.io/defaultTolerations';
const WHITELIST_ANNOTATION = 'scheduler.alpha.kubernetes.io/tolerationsWhitelist';
const MEMORY_PRESSURE: Toleration = {
  key: 'node.kubernetes.io/memory-pressure',
  operator: 'Exists',
  effect: 'NoSchedule',
};

const writtenPod = (request: AdmissionRequest): Pod | undefined => {
  const isWrite = request.operation === 'CREATE' || request.operation === 'UPDATE';
  if (!isWrite || !isFor(request, '', 'pods') || request.subresource !== '') return undefined;
  return request.object as Pod | undefined;
};

/**
 * Merges the tolerations of the namespace (or the cluster default) into pods. Rejects pods with tolerations that the
 * namespace does not allow.
 */
export function podTolerationRestriction(
  settings: PodTolerationSettings,
  namespaces: NamespaceSource,
): AdmissionPlugin {
  return {
    name: 'PodTolerationRestriction',
    resources: ['pods'],
    async mutate(request) {
      const spec = writtenPod(request)?.spec;
      if (spec === undefined) return;
      const extra: Toleration[] = [];
      if (request.operation === 'CREATE') {
        const namespace = await namespaceOf(request, namespaces);
        extra.push(...(annotated(request, namespace, DEFAULTS_ANNOTATION) ?? settings.defaults));
      }
      if (qosClassOf(request.object as Pod) !== 'BestEffort') extra.push(MEMORY_PRESSURE);
      if (extra.length > 0) spec.tolerations = mergeTolerations([...(spec.tolerations ?? []), ...extra]);
    },
    async validate(request) {
      const tolerations = writtenPod(request)?.spec?.tolerations ?? [];
      if (tolerations.length === 0) return;
      const namespace = await namespaceOf(request, namespaces);
      const whitelist = annotated(request, namespace, WHITELIST_ANNOTATION) ?? settings.whitelist;
      if (whitelist.length === 0) return;
      if (tolerations.some((each) => !whitelist.some((allowed) => covers(allowed, each)))) {
        throw forbidWithoutName(
          request,
          'pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist',
        );
      }
    },
  };
}

/** Tolerations in an annotation of the namespace; undefined without the annotation. */
function annotated(
  request: AdmissionRequest,
  namespace: KubeObject | undefined,
  annotation: string,
): readonly Toleration[] | undefined {
  const annotations = namespace?.metadata?.annotations ?? {};
  if (!Object.hasOwn(annotations, annotation)) return undefined;
  const text = annotations[annotation] ?? '';
  if (text === '') return [];
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    parsed = undefined;
  }
  if (!Array.isArray(parsed) || parsed.some((each) => typeof each !== 'object' || each === null)) {
    throw forbid(request, `the namespace's annotation ${annotation} is not a JSON list of tolerations`);
  }
  return parsed as Toleration[];
}

/** Reports whether every taint that `narrow` tolerates is also tolerated by `wide`. */
function covers(wide: Toleration, narrow: Toleration): boolean {
  if (semanticEqual(wide, narrow)) return true;
  const matchesAll = (wide.key ?? '') === '' && wide.operator === 'Exists';
  if ((wide.key ?? '') !== (narrow.key ?? '') && !matchesAll) return false;
  const effect = wide.effect ?? '';
  if (effect !== '' && effect !== (narrow.effect ?? '')) return false;
  if (effect === 'NoExecute' && wide.tolerationSeconds !== undefined) {
    if (narrow.tolerationSeconds === undefined || narrow.tolerationSeconds > wide.tolerationSeconds) return false;
  }
  if (wide.operator === 'Exists') return true;
  if ((wide.operator ?? 'Equal') !== 'Equal') return false;
  return (narrow.operator ?? 'Equal') === 'Equal' && (wide.value ?? '') === (narrow.value ?? '');
}

/** Removes tolerations that another toleration covers. Of equal tolerations, the first is kept. */
function mergeTolerations(all: readonly Toleration[]): Toleration[] {
  const merged: Toleration[] = [];
  for (const [index, each] of all.entries()) {
    if (merged.some((other) => covers(other, each))) continue;
    if (all.slice(index + 1).some((other) => !semanticEqual(each, other) && covers(other, each))) continue;
    merged.push(each);
  }
  return merged;
}

/**
 * Nodes with special devices are tainted with the resource name of the device. Adds the toleration of this taint to
 * pods that request the resource.
 */
export const extendedResourceToleration: AdmissionPlugin = {
  name: 'ExtendedResourceToleration',
  resources: ['pods'],
  mutate(request) {
    const spec = writtenPod(request)?.spec;
    if (spec === undefined) return;
    const requested = [...spec.containers, ...(spec.initContainers ?? [])].flatMap(({ resources }) =>
      Object.keys(resources?.requests ?? {}).filter(isExtended),
    );
    for (const key of [...new Set(requested)].sort()) {
      const toleration: Toleration = { key, operator: 'Exists', effect: 'NoSchedule' };
      const isThere = (spec.tolerations ?? []).some((each) => semanticEqual(each, toleration));
      if (!isThere) spec.tolerations = [...(spec.tolerations ?? []), toleration];
    }
  },
};
