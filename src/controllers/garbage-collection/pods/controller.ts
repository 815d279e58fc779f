/** Deletes pods that no other component deletes. */

import type { Node, Pod } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { observedGeneration } from '../../../api/podspec/generation.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { type PodRemoval, planPodGc, unknownNodes } from './plan.ts';

/**
 * Upstream's interval of checks, and the time that a node must be absent before its pods are deleted. A node without an
 * object may just not have been observed yet.
 */
const PERIOD_MS = 20_000;
const QUARANTINE_MS = 40_000;

export const podGcController: ControllerSpec = {
  name: 'pod-garbage-collector',
  reads: [resources.pods, resources.nodes],
  writes: [resources.pods, resources.nodes],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const pods = handle.informer(resources.pods);
  const nodes = handle.informer(resources.nodes);
  const podClient = handle.writer(resources.pods);
  const nodeClient = handle.writer(resources.nodes);
  const { clock } = handle;

  return (scope) => {
    /** Monotonic time at which each absent node was first missed. */
    const missedSince = new Map<string, number>();
    scope.every(PERIOD_MS, async () => {
      const byName = new Map<string, Node>(nodes.list().map((node) => [node.metadata?.name ?? '', node]));
      const all = pods.list();
      const removals = planPodGc({
        pods: all,
        nodes: byName,
        missingNodes: await verifiedMissing(all, byName),
        terminatedThreshold: handle.options.terminatedPodThreshold,
      });
      for (const removal of removals) {
        if (scope.signal.aborted) return;
        try {
          await carryOut(removal);
        } catch (error) {
          const { name, namespace } = removal.pod.metadata ?? {};
          handle.log.warn('pod not removed', { pod: `${namespace}/${name}`, error: messageOf(error) });
        }
      }
    });

    async function verifiedMissing(all: readonly Pod[], known: ReadonlyMap<string, Node>): Promise<Set<string>> {
      const unknown = unknownNodes(all, known);
      for (const name of missedSince.keys()) if (!unknown.has(name)) missedSince.delete(name);
      const missing = new Set<string>();
      for (const name of unknown) {
        const since = missedSince.get(name) ?? clock.monotonicMs();
        missedSince.set(name, since);
        if (clock.monotonicMs() - since < QUARANTINE_MS) continue;
        try {
          await nodeClient.get(name);
        } catch (error) {
          if (isApiError(error, 'NotFound')) missing.add(name);
          else handle.log.warn('cannot read a node', { node: name, error: messageOf(error) });
        }
      }
      return missing;
    }
  };

  async function carryOut(removal: PodRemoval): Promise<void> {
    const { name = '', namespace, uid } = removal.pod.metadata ?? {};
    handle.log.info('removing a pod', { pod: `${namespace ?? ''}/${name}`, reason: removal.reason });
    try {
      if (removal.markFailed) {
        const condition = {
          type: 'DisruptionTarget',
          ...observedGeneration(removal.pod),
          status: 'True',
          reason: 'DeletionByPodGC',
          message: 'PodGC: node no longer exists',
          lastTransitionTime: timestamp(handle.plan().nowMs),
        };
        await podClient.patch(
          name,
          namespace,
          'strategic',
          {
            metadata: { uid },
            status: {
              phase: 'Failed',
              ...observedGeneration(removal.pod),
              ...(removal.reason === 'Orphaned' ? { conditions: [condition] } : {}),
            },
          },
          { subresource: 'status' },
        );
      }
      await podClient.delete(name, namespace, {
        gracePeriodSeconds: 0,
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      });
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  }
}
