/** Deletes pods that no other component deletes. */

import type { Node, Pod, PodCondition, PodStatus } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { observedGeneration } from '../../../api/podspec/generation.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
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
  const access: Access = {
    pods: handle.informer(resources.pods),
    nodes: handle.informer(resources.nodes),
    podClient: handle.writer(resources.pods),
    nodeClient: handle.writer(resources.nodes),
  };
  return (scope) => {
    const collector = new PodGarbageCollector(handle, access);
    scope.every(PERIOD_MS, () => collector.collect(scope.signal));
  };
}

interface Access {
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly podClient: ResourceClient<Pod>;
  readonly nodeClient: ResourceClient<Node>;
}

class PodGarbageCollector {
  readonly #handle: ControllerHandle;
  readonly #access: Access;
  /** Monotonic time at which each absent node was first missed. */
  readonly #missedSince = new Map<string, number>();

  constructor(handle: ControllerHandle, access: Access) {
    this.#handle = handle;
    this.#access = access;
  }

  async collect(signal: AbortSignal): Promise<void> {
    const nodes = new Map<string, Node>(
      this.#access.nodes.list().map((node): [string, Node] => [node.metadata?.name ?? '', node]),
    );
    const pods = this.#access.pods.list();
    const removals = planPodGc({
      pods,
      nodes,
      missingNodes: await this.#verifiedMissing(unknownNodes(pods, nodes)),
      terminatedThreshold: this.#handle.options.terminatedPodThreshold,
    });
    for (const removal of removals) {
      if (signal.aborted) return;
      try {
        await this.#remove(removal);
      } catch (error) {
        const { name, namespace } = removal.pod.metadata ?? {};
        this.#handle.log.warn('pod not removed', { pod: `${namespace}/${name}`, error: messageOf(error) });
      }
    }
  }

  /** Nodes of `unknown` that were absent for the whole quarantine and do not exist on the server. */
  async #verifiedMissing(unknown: ReadonlySet<string>): Promise<Set<string>> {
    const { clock, log } = this.#handle;
    for (const name of this.#missedSince.keys()) if (!unknown.has(name)) this.#missedSince.delete(name);
    const missing = new Set<string>();
    for (const name of unknown) {
      const since = this.#missedSince.get(name) ?? clock.monotonicMs();
      this.#missedSince.set(name, since);
      if (clock.monotonicMs() - since < QUARANTINE_MS) continue;
      try {
        await this.#access.nodeClient.get(name);
      } catch (error) {
        if (isApiError(error, 'NotFound')) missing.add(name);
        else log.warn('cannot read a node', { node: name, error: messageOf(error) });
      }
    }
    return missing;
  }

  async #remove(removal: PodRemoval): Promise<void> {
    const { podClient } = this.#access;
    const { name = '', namespace, uid } = removal.pod.metadata ?? {};
    this.#handle.log.info('removing a pod', { pod: `${namespace ?? ''}/${name}`, reason: removal.reason });
    try {
      if (removal.markFailed) {
        const patch = { metadata: { uid }, status: this.#failedStatus(removal) };
        await podClient.patch(name, namespace, 'strategic', patch, { subresource: 'status' });
      }
      await podClient.delete(name, namespace, {
        gracePeriodSeconds: 0,
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      });
    } catch (error) {
      if (!isApiError(error, 'NotFound') && !isApiError(error, 'Conflict')) throw error;
    }
  }

  #failedStatus({ pod, reason }: PodRemoval): PodStatus {
    const condition: PodCondition = {
      type: 'DisruptionTarget',
      ...observedGeneration(pod),
      status: 'True',
      reason: 'DeletionByPodGC',
      message: 'PodGC: node no longer exists',
      lastTransitionTime: timestamp(this.#handle.plan().nowMs),
    };
    return {
      phase: 'Failed',
      ...observedGeneration(pod),
      ...(reason === 'Orphaned' ? { conditions: [condition] } : {}),
    };
  }
}
