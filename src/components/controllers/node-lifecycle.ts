/** Watches over nodes: silence, conditions, taints. Plans in core/reconcile/node-lifecycle. */
import type { Node, NodeCondition, Pod } from 'kubernetes-types/core/v1';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { timestamp } from '../../core/reconcile/context.ts';
import {
  isUnheard,
  type NodeHealth,
  observeHealth,
  planUnknownConditions,
  readyCondition,
  unheardInMs,
} from '../../core/reconcile/node-lifecycle/health.ts';
import { planTaints } from '../../core/reconcile/node-lifecycle/taints.ts';
import { mayEvict, zoneOf, zoneStates } from '../../core/reconcile/node-lifecycle/zones.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from './framework.ts';
import { indexByNode, podsOnNode } from './indices.ts';

const LEASE_NAMESPACE = 'kube-node-lease';

export const nodeLifecycleController: ControllerSpec = {
  name: 'node-lifecycle',
  eventSource: 'node-controller',
  reads: [resources.nodes, resources.leases, resources.pods],
  writes: [resources.nodes, resources.pods],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const { clock, recorder } = handle;
  const nodes = handle.informer(resources.nodes);
  const leases = handle.informer(resources.leases, { namespace: LEASE_NAMESPACE });
  const pods = handle.informer(resources.pods);
  const nodeClient = handle.writer(resources.nodes);
  const podClient = handle.writer(resources.pods);
  const times = {
    gracePeriodMs: handle.options.nodeMonitorGracePeriodMs,
    startupGracePeriodMs: handle.options.nodeStartupGracePeriodMs,
  };
  indexByNode(pods);

  return (scope) => {
    const health = new Map<string, NodeHealth>();
    /** The Ready status each node had when it was last looked at. */
    const lastReady = new Map<string, string>();
    let wasAllSilent = false;
    const queue = scope.queue(sync, 4);

    const observe = (node: Node): NodeHealth => {
      const name = node.metadata?.name ?? '';
      const lease = leases.get(`${LEASE_NAMESPACE}/${name}`);
      const next = observeHealth(health.get(name), node, lease, clock.monotonicMs());
      health.set(name, next);
      return next;
    };
    const observeAndWake = (node: Node): void => {
      observe(node);
      queue.add(node.metadata?.name ?? '');
    };
    scope.onChange(nodes, {
      added: observeAndWake,
      updated: observeAndWake,
      deleted: (node) => {
        health.delete(node.metadata?.name ?? '');
        lastReady.delete(node.metadata?.name ?? '');
        // Whether anybody else is heard may decide about the others' taints.
        wakeAll();
      },
    });
    const heard = (lease: { readonly metadata?: { readonly name?: string } }): void => {
      const node = nodes.get(lease.metadata?.name ?? '');
      if (node !== undefined) observe(node);
    };
    scope.onChange(leases, { added: heard, updated: heard });

    function wakeAll(): void {
      for (const node of nodes.list()) queue.add(node.metadata?.name ?? '');
    }

    async function sync(name: string): Promise<void> {
      const node = nodes.get(name);
      if (node === undefined || node.metadata?.deletionTimestamp !== undefined) return;
      const now = clock.monotonicMs();
      const state = observe(node);
      if (isUnheard(state, times, now)) await markUnknown(node);
      else queue.addAfter(name, unheardInMs(state, times, now));
      await alignTaints(node);
      await alignPods(node);
    }

    async function markUnknown(node: Node): Promise<void> {
      const conditions = planUnknownConditions(node, handle.plan().nowMs);
      if (conditions === undefined) return;
      const name = node.metadata?.name ?? '';
      handle.log.warn('a node is not heard any more', { node: name });
      recorder.event(node, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`);
      await nodeClient.update({ ...node, status: { ...node.status, conditions } }, { subresource: 'status' });
    }

    async function alignTaints(node: Node): Promise<void> {
      const verdicts = nodes.list().map((each) => ({ node: each, isHealthy: isHealthy(each) }));
      const states = zoneStates(verdicts);
      const isAllSilent = [...states.values()].every((state) => state === 'full');
      if (wasAllSilent && !isAllSilent) {
        // Reports resumed: a node that is still silent gets a whole grace period before its pods are evicted.
        for (const [name, each] of health) health.set(name, { ...each, heardAtMs: clock.monotonicMs() });
        handle.log.info('nodes are heard again, evictions may go on');
      } else if (!wasAllSilent && isAllSilent && verdicts.length > 1) {
        handle.log.warn('no node at all is heard: this host is taken for the one that is cut off, nothing is evicted');
      }
      if (wasAllSilent !== isAllSilent) {
        wasAllSilent = isAllSilent;
        wakeAll();
      }
      const taints = planTaints({
        node,
        mayEvict: mayEvict(zoneOf(node), states),
        nowMs: handle.plan().nowMs,
      });
      if (taints === undefined) return;
      await nodeClient.patch(node.metadata?.name ?? '', undefined, 'merge', {
        metadata: { resourceVersion: node.metadata?.resourceVersion },
        spec: { taints },
      });
    }

    /** Nothing on a node that is not ready may receive traffic. */
    async function alignPods(node: Node): Promise<void> {
      const ready = readyCondition(node);
      const name = node.metadata?.name ?? '';
      const before = lastReady.get(name);
      if (ready === undefined) return;
      lastReady.set(name, ready.status);
      // A kubelet that says "not ready" is alive and answers for its pods itself, but for the moment of the change.
      if (ready.status === 'True' || (ready.status === 'False' && before !== 'True')) return;
      for (const pod of podsOnNode(pods, name)) {
        if (pod.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') !== true) continue;
        await markPodNotReady(pod);
      }
    }

    function isHealthy(node: Node): boolean {
      return readyCondition(node)?.status === 'True';
    }
  };

  async function markPodNotReady(pod: Pod): Promise<void> {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    const condition: NodeCondition = {
      type: 'Ready',
      status: 'False',
      lastTransitionTime: timestamp(handle.plan().nowMs),
    };
    try {
      await podClient.patch(
        name,
        namespace,
        'strategic',
        { metadata: { uid }, status: { conditions: [condition] } },
        { subresource: 'status' },
      );
      recorder.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready');
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }
}
