/** Sources: plugin/pkg/admission/defaulttolerationseconds and nodetaint. */
import type { Node, Pod, Toleration } from 'kubernetes-types/core/v1';
import type { AdmissionPlugin } from './admission.ts';
import type { TolerationSeconds } from './settings.ts';
import { isFor } from './subject.ts';

const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';
const DEFAULT_SECONDS: TolerationSeconds = { notReady: 300, unreachable: 300 };

const tolerates = (toleration: Toleration, key: string): boolean =>
  (toleration.key === key || toleration.key === undefined || toleration.key === '') &&
  (toleration.effect === 'NoExecute' || toleration.effect === undefined || toleration.effect === '');

/** A pod stays this long on a node that is not ready or out of reach, unless it says otherwise. */
export function defaultTolerationSeconds(seconds: TolerationSeconds = DEFAULT_SECONDS): AdmissionPlugin {
  const missing = [
    [NOT_READY, seconds.notReady],
    [UNREACHABLE, seconds.unreachable],
  ] as const;
  return {
    name: 'DefaultTolerationSeconds',
    resources: ['pods'],
    mutate(request) {
      // Updates too: who sends a pod without what was added to it has not taken it away.
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

/** A new node takes no pods until it has been seen ready: whatever it says of itself. */
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
