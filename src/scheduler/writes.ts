/** Writes of the scheduler: bindings, the PodScheduled condition, nominations and evictions. */

import type { Pod, PodCondition } from '../api/generated/core/v1.ts';
import { transitionTime } from '../api/meta/conditions.ts';
import { isApiError } from '../api/meta/status.ts';
import { observedGeneration } from '../api/podspec/generation.ts';
import { resources } from '../api/resources.ts';
import { timestamp } from '../base/time/timestamps.ts';
import type { ApiClient } from '../client/types.ts';

export interface SchedulingWrites {
  bind(pod: Pod, node: string): Promise<void>;
  /**
   * Writes the PodScheduled condition and, if given, the nominated node ('' clears it). Unchanged values are not
   * written.
   */
  report(pod: Pod, reason: string, message: string, nominatedNode: string | undefined): Promise<void>;
  clearNomination(pod: Pod): Promise<void>;
  /** Marks the victim as preempted and deletes it gracefully. Returns false if the victim no longer exists. */
  evict(victim: Pod, schedulerName: string): Promise<boolean>;
}

export function createWrites(client: ApiClient, nowMs: () => number): SchedulingWrites {
  const pods = client.resource(resources.pods);
  const now = (): string => timestamp(nowMs());
  const patchStatus = async (pod: Pod, status: object): Promise<void> => {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    await pods.patch(name, namespace, 'strategic', { metadata: { uid }, status }, { subresource: 'status' });
  };

  return {
    async bind(pod, node) {
      const { name = '', namespace = '', uid = '' } = pod.metadata ?? {};
      await pods.createSubresource(name, namespace, 'binding', {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name, namespace, uid },
        target: { apiVersion: 'v1', kind: 'Node', name: node },
      });
    },

    async report(pod, reason, message, nominatedNode) {
      const current = pod.status?.conditions?.find((condition) => condition.type === 'PodScheduled');
      const nominated = pod.status?.nominatedNodeName ?? '';
      const isSame = current?.status === 'False' && current.reason === reason && current.message === message;
      if (isSame && (nominatedNode === undefined || nominatedNode === nominated)) return;
      const condition: PodCondition = {
        type: 'PodScheduled',
        ...observedGeneration(pod),
        status: 'False',
        reason,
        message,
        lastTransitionTime: transitionTime(current, 'False', now()),
      };
      await patchStatus(pod, {
        conditions: [condition],
        ...(nominatedNode === undefined ? {} : { nominatedNodeName: nominatedNode === '' ? null : nominatedNode }),
      });
    },

    async clearNomination(pod) {
      await patchStatus(pod, { nominatedNodeName: null });
    },

    async evict(victim, schedulerName) {
      const { name = '', namespace, uid } = victim.metadata ?? {};
      try {
        if (victim.metadata?.deletionTimestamp === undefined) {
          const condition: PodCondition = {
            type: 'DisruptionTarget',
            ...observedGeneration(victim),
            status: 'True',
            reason: 'PreemptionByScheduler',
            message: `${schedulerName}: preempting to accommodate a higher priority pod`,
            lastTransitionTime: now(),
          };
          await patchStatus(victim, { conditions: [condition] });
        }
        await pods.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
        return true;
      } catch (error) {
        if (isApiError(error, 'NotFound')) return false;
        throw error;
      }
    },
  };
}
