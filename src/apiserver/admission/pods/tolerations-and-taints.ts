/**
 * Default tolerations of pods and the initial taint of nodes. Sources: plugin/pkg/admission/defaulttolerationseconds
 * and nodetaint.
 */
import type { Node, Pod, Toleration } from '../../../api/generated/core/v1.ts';
import type { AdmissionPlugin } from '../admission.ts';
import type { TolerationSeconds } from '../settings.ts';
import { isFor } from '../subject.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const DEFAULT_SECONDS: TolerationSeconds = { notReady: 300, unreachable: 300 };

const tolerates = (toleration: Toleration, key: string): boolean =>
  (toleration.key === key || toleration.key === undefined || toleration.key === '') &&
  (toleration.effect === 'NoExecute' || toleration.effect === undefined || toleration.effect === '');

/**
 * Adds tolerations that keep a pod for a limited time on a node that is not ready or unreachable, unless the pod has
 * its own tolerations of these taints.
 */
export function defaultTolerationSeconds(seconds: TolerationSeconds = DEFAULT_SECONDS): AdmissionPlugin {
  const missing = [
    [NOT_READY, seconds.notReady],
    [UNREACHABLE, seconds.unreachable],
  ] as const;
  return {
    name: 'DefaultTolerationSeconds',
    resources: ['pods'],
    mutate(request) {
      // Updates get the tolerations too, because a client may send the pod without them.
      if (request.operation !== 'CREATE' && request.operation !== 'UPDATE') return;
      if (!isFor(request, '', 'pods') || request.subresource !== '') return;
      const spec = (request.object as Pod | undefined)?.spec;
      if (spec === undefined) return;
      for (const [key, tolerationSeconds] of missing) {
        if ((spec.tolerations ?? []).some((each) => tolerates(each, key))) continue;
        spec.tolerations = [
          ...(spec.tolerations ?? []),
          { key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds },
        ];
      }
    },
  };
}

/** Taints a new node as not ready until its Ready condition has been observed. */
export const taintNodesByCondition: AdmissionPlugin = {
  name: 'TaintNodesByCondition',
  resources: ['nodes'],
  mutate(request) {
    if (request.operation !== 'CREATE' || !isFor(request, '', 'nodes') || request.subresource !== '') return;
    const node = request.object as Node;
    node.spec ??= {};
    const taints = node.spec.taints ?? [];
    if (taints.some((taint) => taint.key === NOT_READY && taint.effect === 'NoSchedule')) return;
    node.spec.taints = [...taints, { key: NOT_READY, effect: 'NoSchedule' }];
  },
};
