/** Deletes pods that do not tolerate their node's NoExecute taints after the toleration period. */

import type { Node, Pod, Taint } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { observedGeneration } from '../../../api/podspec/generation.ts';
import { tolerates } from '../../../api/podspec/scheduling/tolerations.ts';
import { resources } from '../../../api/resources.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { indexByNode, podsOnNode } from '../../framework/owner-indices.ts';
import { noExecuteTaints, planEviction } from './plan.ts';

export const taintEvictionController: ControllerSpec = {
  name: 'taint-eviction',
  reads: [resources.nodes, resources.pods],
  writes: [resources.pods],
  prepare,
};

const taintKey = (taint: Taint): string => `${taint.key}=${taint.value ?? ''}:${taint.effect}`;

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    nodes: handle.informer(resources.nodes),
    pods: handle.informer(resources.pods),
    client: handle.writer(resources.pods),
  };
  indexByNode(access.pods);
  return (scope) => new TaintEviction(handle, access, scope).start();
}

interface Access {
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly client: ResourceClient<Pod>;
}

class TaintEviction extends ControllerTerm {
  readonly #access: Access;
  /**
   * Time at which this process first observed each taint, by node. The taint's own time is not used, because the wall
   * clock may change. A new leader restarts the periods, as upstream does.
   */
  readonly #seenAt = new Map<string, Map<string, number>>();

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 4);
    this.#access = access;
  }

  override start(): void {
    const { nodes, pods } = this.#access;
    this.scope.onChange(nodes, {
      added: (node) => this.#observeTaints(node),
      updated: (node, old) => {
        if (noExecuteTaints(node).length + noExecuteTaints(old).length > 0) this.#observeTaints(node);
      },
      deleted: (node) => this.#seenAt.delete(node.metadata?.name ?? ''),
    });
    const wake = (pod: Pod): void => {
      if (this.#seenAt.has(pod.spec?.nodeName ?? '')) this.queue.add(objectKey(pod));
    };
    this.scope.onChange(pods, { added: wake, updated: wake });
  }

  #observeTaints(node: Node): void {
    const name = node.metadata?.name ?? '';
    const taints = noExecuteTaints(node);
    if (taints.length === 0) {
      this.#seenAt.delete(name);
      return;
    }
    const known = this.#seenAt.get(name);
    const now = this.handle.clock.monotonicMs();
    this.#seenAt.set(name, new Map(taints.map((taint) => [taintKey(taint), known?.get(taintKey(taint)) ?? now])));
    for (const pod of podsOnNode(this.#access.pods, name)) this.queue.add(objectKey(pod));
  }

  protected override async sync(key: string): Promise<void> {
    const pod = this.#access.pods.get(key);
    const nodeName = pod?.spec?.nodeName ?? '';
    const node = this.#access.nodes.get(nodeName);
    if (pod === undefined || node === undefined) return;
    const plan = planEviction(pod, node, {
      tolerates,
      heldForMs: (taint) => {
        const now = this.handle.clock.monotonicMs();
        return now - (this.#seenAt.get(nodeName)?.get(taintKey(taint)) ?? now);
      },
    });
    if (plan.kind === 'stay') return;
    if (plan.inMs > 0) this.queue.addAfter(key, plan.inMs);
    else await this.#evict(pod);
  }

  async #evict(pod: Pod): Promise<void> {
    const { client } = this.#access;
    const { name = '', namespace, uid } = pod.metadata ?? {};
    this.handle.recorder.event(pod, 'Normal', 'TaintManagerEviction', `Marking for deletion Pod ${objectKey(pod)}`);
    const condition = {
      type: 'DisruptionTarget',
      ...observedGeneration(pod),
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: timestamp(this.handle.plan().nowMs),
    };
    const patch = { metadata: { uid }, status: { conditions: [condition] } };
    await ignoreNotFound(async () => {
      await client.patch(name, namespace, 'strategic', patch, { subresource: 'status' });
      await client.delete(name, namespace, uid === undefined ? {} : { preconditions: { uid } });
    });
  }
}
