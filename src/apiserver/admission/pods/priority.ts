/** Resolves priorityClassName to a priority. Source: plugin/pkg/admission/priority. */

import type { Pod } from '../../../api/generated/core/v1.ts';
import type { PriorityClass } from '../../../api/generated/scheduling/v1.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor } from '../subject.ts';

export function priority(classes: () => KindCache): AdmissionPlugin {
  const resolve = (request: AdmissionRequest, pod: Pod): void => {
    const { spec } = pod;
    if (spec === undefined) return;
    let found: Readonly<PriorityClass> | undefined;
    if (spec.priorityClassName !== undefined && spec.priorityClassName !== '') {
      found = classes().get('', spec.priorityClassName)?.shared<PriorityClass>();
      if (found === undefined) {
        throw forbid(request, `no PriorityClass with name ${spec.priorityClassName} was found`);
      }
    } else {
      for (const object of classes()) {
        const candidate = object.shared<PriorityClass>();
        if (candidate.globalDefault === true && (found === undefined || (candidate.value ?? 0) < (found.value ?? 0)))
          found = candidate;
      }
      if (found?.metadata?.name !== undefined) spec.priorityClassName = found.metadata.name;
    }
    const value = found?.value ?? 0;
    if (spec.priority !== undefined && spec.priority !== value) {
      throw forbid(
        request,
        `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`,
      );
    }
    spec.priority = value;
    const policy = found?.preemptionPolicy ?? 'PreemptLowerPriority';
    if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== policy) {
      throw forbid(
        request,
        `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${policy} from the given PriorityClass name`,
      );
    }
    spec.preemptionPolicy = policy;
  };
  return {
    name: 'Priority',
    resources: ['pods'],
    mutate(request) {
      if (!isFor(request, '', 'pods') || request.subresource !== '') return;
      const pod = request.object as Pod | undefined;
      if (pod?.spec === undefined) return;
      if (request.operation === 'CREATE') resolve(request, pod);
      else if (request.operation === 'UPDATE') {
        // An update without a priority leaves the stored priority unchanged.
        const before = (request.old as Pod | undefined)?.spec;
        if (pod.spec.priority === undefined && before?.priority !== undefined) pod.spec.priority = before.priority;
        if (pod.spec.preemptionPolicy === undefined && before?.preemptionPolicy !== undefined) {
          pod.spec.preemptionPolicy = before.preemptionPolicy;
        }
      }
    },
  };
}
