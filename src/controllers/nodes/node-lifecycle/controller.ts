/** Monitors nodes: missed heartbeats, conditions and taints. Plans in controllers/nodes/node-lifecycle. */

import type { Lease } from '../../../api/generated/coordination/v1.ts';
import type { Node, NodeCondition, Pod } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { attemptAll } from '../../framework/attempt-all.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { indexByNode, podsOnNode } from '../../framework/owner-indices.ts';
import {
  heartbeatOverdueInMs,
  isFailedInRingOnly,
  isHeartbeatOverdue,
  type NodeHealth,
  observeHealth,
  planUnknownConditions,
  readyCondition,
} from './health.ts';
import { planTaints } from './taints.ts';
import { mayEvict, zoneOf, zoneStates } from './zones.ts';

const LEASE_NAMESPACE = 'kube-node-lease';

export const nodeLifecycleController: ControllerSpec = {
  name: 'node-lifecycle',
  eventSource: 'node-controller',
  reads: [resources.nodes, resources.leases, resources.pods],
  writes: [resources.nodes, resources.pods],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    nodes: handle.informer(resources.nodes),
    leases: handle.informer(resources.leases, { namespace: LEASE_NAMESPACE }),
    pods: handle.informer(resources.pods),
    nodeClient: handle.writer(resources.nodes),
    podClient: handle.writer(resources.pods),
    times: {
      gracePeriodMs: handle.options.nodeMonitorGracePeriodMs,
      startupGracePeriodMs: handle.options.nodeStartupGracePeriodMs,
    },
  };
  indexByNode(access.pods);
  return (scope) => new NodeLifecycleController(handle, access, scope).start();
}

interface Access {
  readonly nodes: Informer<Node>;
  readonly leases: Informer<Lease>;
  readonly pods: Informer<Pod>;
  readonly nodeClient: ResourceClient<Node>;
  readonly podClient: ResourceClient<Pod>;
  readonly times: { gracePeriodMs: number; startupGracePeriodMs: number };
}

class NodeLifecycleController extends ControllerTerm {
  readonly #access: Access;
  readonly #health = new Map<string, NodeHealth>();
  /** Last observed Ready status of each node. */
  readonly #lastReady = new Map<string, string>();
  #wasNoNodeReporting = false;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 4);
    this.#access = access;
  }

  override start(): void {
    this.scope.onChange(this.#access.nodes, {
      added: this.#observeAndWake,
      updated: this.#observeAndWake,
      deleted: (node) => {
        this.#health.delete(node.metadata?.name ?? '');
        this.#lastReady.delete(node.metadata?.name ?? '');
        // Every node is checked again, because the taints of a node depend on how many other nodes report.
        this.#wakeAll();
      },
    });
    this.scope.onChange(this.#access.leases, { added: this.#onLease, updated: this.#onLease });
  }

  async #markPodNotReady(pod: Pod): Promise<void> {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    const condition: NodeCondition = {
      type: 'Ready',
      status: 'False',
      lastTransitionTime: timestamp(this.handle.plan().nowMs),
    };
    try {
      await this.#access.podClient.patch(
        name,
        namespace,
        'strategic',
        { metadata: { uid }, status: { conditions: [condition] } },
        { subresource: 'status' },
      );
      this.handle.recorder.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready');
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }

  #observe(node: Node): NodeHealth {
    const name = node.metadata?.name ?? '';
    const lease = this.#access.leases.get(`${LEASE_NAMESPACE}/${name}`);
    const next = observeHealth(this.#health.get(name), node, lease, this.handle.clock.monotonicMs());
    this.#health.set(name, next);
    return next;
  }

  readonly #observeAndWake = (node: Node): void => {
    this.#observe(node);
    this.queue.add(node.metadata?.name ?? '');
  };

  readonly #onLease = (lease: { readonly metadata?: { readonly name?: string } }): void => {
    const node = this.#access.nodes.get(lease.metadata?.name ?? '');
    if (node !== undefined) this.#observe(node);
  };

  #wakeAll(): void {
    for (const node of this.#access.nodes.list()) this.queue.add(node.metadata?.name ?? '');
  }

  protected override async sync(name: string): Promise<void> {
    const node = this.#access.nodes.get(name);
    if (node === undefined || node.metadata?.deletionTimestamp !== undefined) return;
    const now = this.handle.clock.monotonicMs();
    const state = this.#observe(node);
    if (isHeartbeatOverdue(state, this.#access.times, now)) await this.#markUnknown(node);
    else this.queue.addAfter(name, heartbeatOverdueInMs(state, this.#access.times, now));
    await this.#alignTaints(node);
    await this.#alignPods(node);
  }

  async #markUnknown(node: Node): Promise<void> {
    const conditions = planUnknownConditions(node, this.handle.plan().nowMs);
    if (conditions === undefined) return;
    const name = node.metadata?.name ?? '';
    this.handle.log.warn('node stopped reporting', { node: name });
    if (readyCondition(node)?.status !== 'Unknown')
      this.handle.recorder.event(node, 'Normal', 'NodeNotReady', `Node ${name} status is now: NodeNotReady`);
    await this.#access.nodeClient.update(
      { ...node, status: { ...node.status, conditions } },
      { subresource: 'status' },
    );
  }

  async #alignTaints(node: Node): Promise<void> {
    const health = this.#access.nodes.list().map((each) => ({ node: each, isHealthy: this.#isHealthy(each) }));
    const states = zoneStates(health);
    const isNoNodeReporting = [...states.values()].every((state) => state === 'full');
    if (this.#wasNoNodeReporting && !isNoNodeReporting) {
      // Reports have resumed. A node that is still silent gets a full grace period before its pods are evicted.
      for (const [name, each] of this.#health)
        this.#health.set(name, { ...each, reportedAtMs: this.handle.clock.monotonicMs() });
      this.handle.log.info('nodes report again; evictions resume');
    } else if (!this.#wasNoNodeReporting && isNoNodeReporting && health.length > 1) {
      this.handle.log.warn('no node reports; this host may be disconnected, so no pods are evicted');
    }
    if (this.#wasNoNodeReporting !== isNoNodeReporting) {
      this.#wasNoNodeReporting = isNoNodeReporting;
      this.#wakeAll();
    }
    const taints = planTaints({
      node,
      mayEvict: mayEvict(zoneOf(node), states) && !isFailedInRingOnly(node),
      nowMs: this.handle.plan().nowMs,
    });
    if (taints === undefined) return;
    await this.#access.nodeClient.patch(node.metadata?.name ?? '', undefined, 'merge', {
      metadata: { resourceVersion: node.metadata?.resourceVersion },
      spec: { taints },
    });
  }

  /** Marks the pods of a node that is not ready as not ready, so that they receive no traffic. */
  async #alignPods(node: Node): Promise<void> {
    const ready = readyCondition(node);
    const name = node.metadata?.name ?? '';
    const before = this.#lastReady.get(name);
    if (ready === undefined) return;
    this.#lastReady.set(name, ready.status);
    // A kubelet that reports NotReady still manages its pods, so its pods are marked only once, when the node becomes
    // NotReady.
    if (ready.status === 'True' || (ready.status === 'False' && before !== 'True')) return;
    const serving = podsOnNode(this.#access.pods, name).filter(
      ({ status }) => status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true,
    );
    await attemptAll(serving, (pod) => this.#markPodNotReady(pod));
  }

  #isHealthy(node: Node): boolean {
    return readyCondition(node)?.status === 'True';
  }
}
