/** Applies a RuntimeClass to a pod: overhead and scheduling constraints. Source: plugin/pkg/admission/runtimeclass. */

import type { Pod, PodSpec } from '../../../api/generated/core/v1.ts';
import type { RuntimeClass } from '../../../api/generated/node/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor } from '../subject.ts';

export function runtimeClass(classes: (name: string) => CachedObject | undefined): AdmissionPlugin {
  const find = (request: AdmissionRequest, spec: PodSpec): Readonly<RuntimeClass> | undefined => {
    const name = spec.runtimeClassName ?? '';
    if (name === '') return undefined;
    const found = classes(name);
    if (found === undefined) throw forbid(request, `pod rejected: RuntimeClass ${JSON.stringify(name)} not found`);
    return found.shared<RuntimeClass>();
  };
  const specOf = (request: AdmissionRequest): PodSpec | undefined => {
    if (request.operation !== 'CREATE' || !isFor(request, '', 'pods') || request.subresource !== '') return undefined;
    return (request.object as Pod).spec;
  };
  return {
    name: 'RuntimeClass',
    resources: ['pods'],
    mutate(request) {
      const spec = specOf(request);
      const found = spec === undefined ? undefined : find(request, spec);
      if (spec === undefined || found === undefined) return;
      const overhead = found.overhead?.podFixed;
      if (overhead !== undefined) {
        if (spec.overhead !== undefined && !semanticEqual(spec.overhead, overhead)) throw mismatch(request);
        spec.overhead = { ...overhead };
      }
      if (found.scheduling !== undefined) place(request, spec, found.scheduling);
    },
    validate(request) {
      const spec = specOf(request);
      if (spec === undefined) return;
      const overhead = find(request, spec)?.overhead?.podFixed;
      if (overhead === undefined) {
        if (spec.overhead === undefined || Object.keys(spec.overhead).length === 0) return;
        throw forbid(request, 'pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead');
      }
      if (!semanticEqual(spec.overhead, overhead)) throw mismatch(request);
    },
  };
}

const mismatch = (request: AdmissionRequest) =>
  forbid(request, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");

function place(request: AdmissionRequest, spec: PodSpec, scheduling: NonNullable<RuntimeClass['scheduling']>): void {
  const selector: Record<string, string> = { ...spec.nodeSelector };
  for (const [key, value] of Object.entries(scheduling.nodeSelector ?? {})) {
    if (Object.hasOwn(selector, key) && selector[key] !== value) {
      throw forbid(
        request,
        `conflict: runtimeClass.scheduling.nodeSelector[${key}] = ${value}; pod.spec.nodeSelector[${key}] = ${selector[key]}`,
      );
    }
    selector[key] = value;
  }
  if (Object.keys(selector).length > 0) spec.nodeSelector = selector;
  const present = spec.tolerations ?? [];
  const added = (scheduling.tolerations ?? []).filter((each) => !present.some((other) => semanticEqual(other, each)));
  if (added.length > 0) spec.tolerations = [...present, ...structuredClone(added)];
}
