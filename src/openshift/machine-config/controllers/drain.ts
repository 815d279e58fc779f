/**
 * Cordons, drains and uncordons nodes when their hosts request it. The plan is made in
 * openshift/machine-config/core/pools/drain. In a cluster with one node, the node is only cordoned, because its pods
 * cannot run elsewhere. Source: pkg/controller/drain of openshift/machine-config-operator 4.12.
 */

import type { Node, Pod } from '../../../api/generated/core/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { countText } from '../../../base/text/count-text.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../../controllers/framework/controller-term.ts';
import type { ControllerHandle, ControllerSpec, RunScope } from '../../../controllers/framework/framework.ts';
import { ATTEMPT_MS, DRAIN_TIMEOUT_MS, drainStep, podsToEvict, retryDelayMs } from '../core/pools/drain.ts';
import { nameOf } from '../core/pools/pools.ts';
import { LAST_APPLIED_DRAIN } from '../kinds/machine-config-types.ts';

export const machineConfigDrainController: ControllerSpec = {
  name: 'machine-config-drain',
  eventSource: 'machineconfigcontroller-nodecontroller',
  reads: [resources.nodes, resources.pods],
  writes: [resources.nodes, resources.pods],
  prepare: (handle) => {
    const nodes = handle.informer(resources.nodes);
    const pods = handle.informer(resources.pods);
    return (scope) => new DrainController(handle, scope, nodes, pods).start();
  },
};

/**
 * Interval after which pods that still run are evicted again, for example if a disruption budget rejected the eviction.
 */
const EVICTION_RETRY_MS = 5_000;

interface Drain {
  readonly wanted: string;
  readonly sinceMs: number;
  /** Start of the current attempt, or of the next one if that is in the future. */
  attemptMs: number;
  reported: boolean;
}

class DrainController extends ControllerTerm {
  readonly #nodes: Informer<Node>;
  readonly #pods: Informer<Pod>;
  readonly #nodeClient: ResourceClient<Node>;
  readonly #podClient: ResourceClient<Pod>;
  readonly #drains = new Map<string, Drain>();

  constructor(handle: ControllerHandle, scope: RunScope, nodes: Informer<Node>, pods: Informer<Pod>) {
    super(handle, scope);
    this.#nodes = nodes;
    this.#pods = pods;
    this.#nodeClient = handle.writer(resources.nodes);
    this.#podClient = handle.writer(resources.pods);
  }

  override start(): void {
    const { scope } = this;
    const wake = (node: Node): void => {
      if (drainStep(node).kind !== 'none') this.queue.add(nameOf(node));
    };
    scope.onChange(this.#nodes, {
      added: wake,
      updated: (node, old) => {
        const [now, before] = [drainStep(node), drainStep(old)];
        if (now.kind !== before.kind || ('wanted' in now && 'wanted' in before && now.wanted !== before.wanted))
          wake(node);
      },
      deleted: (node) => this.#drains.delete(nameOf(node)),
    });
    const podEnded = ({ spec }: Pod): void => {
      if (spec?.nodeName !== undefined && this.#drains.has(spec.nodeName)) this.queue.add(spec.nodeName);
    };
    scope.onChange(this.#pods, { updated: podEnded, deleted: podEnded });
  }

  protected override async sync(name: string): Promise<void> {
    const node = this.#nodes.get(name);
    const step = node === undefined ? undefined : drainStep(node);
    if (node === undefined || step === undefined || step.kind === 'none') {
      this.#drains.delete(name);
      return;
    }
    if (step.kind === 'unknown') {
      this.handle.log.warn('unknown drain request; ignoring it', { node: name, wanted: step.wanted });
      return;
    }
    if (step.kind === 'uncordon') {
      this.#drains.delete(name);
      await this.#finish(node, step.wanted, { cordoned: false });
      return;
    }
    const drain = this.#begin(name, step.wanted);
    if (node.spec?.unschedulable !== true) {
      await this.#nodeClient.patch(name, undefined, 'merge', { spec: { unschedulable: true } });
      this.handle.recorder.event(node, 'Normal', 'Cordon', 'Cordoned node to apply update');
    }
    if (this.#nodes.list().length > 1 && !(await this.#evict(node, drain))) return;
    this.#drains.delete(name);
    await this.#finish(node, step.wanted, { cordoned: true });
  }

  #begin(name: string, wanted: string): Drain {
    const known = this.#drains.get(name);
    if (known?.wanted === wanted) return known;
    const nowMs = this.handle.clock.nowMs();
    const drain: Drain = { wanted, sinceMs: nowMs, attemptMs: nowMs, reported: false };
    this.#drains.set(name, drain);
    this.handle.log.info('drain started', { node: name, wanted });
    return drain;
  }

  /** Evicts the pods of the node. Returns true if no pod is left; otherwise the node is queued again. */
  async #evict(node: Node, drain: Drain): Promise<boolean> {
    const name = nameOf(node);
    const leaving = podsToEvict(name, this.#pods.list());
    if (leaving.length === 0) return true;
    const nowMs = this.handle.clock.nowMs();
    const refused: string[] = [];
    if (nowMs >= drain.attemptMs) {
      for (const pod of leaving) {
        const error = await this.#evictPod(pod);
        if (error !== undefined) refused.push(error);
      }
    }
    return this.#waitOrFail(node, drain, refused, leaving, nowMs);
  }

  #waitOrFail(node: Node, drain: Drain, refused: readonly string[], leaving: readonly Pod[], nowMs: number): boolean {
    const name = nameOf(node);
    const lastedMs = nowMs - drain.sinceMs;
    if (nowMs - drain.attemptMs < ATTEMPT_MS) {
      this.queue.addAfter(name, EVICTION_RETRY_MS);
      return false;
    }
    const why = refused[0] ?? `waiting for ${countText(leaving.length, 'pod')} to terminate`;
    const delayMs = retryDelayMs(lastedMs);
    drain.attemptMs = nowMs + delayMs;
    this.queue.addAfter(name, delayMs);
    this.handle.log.warn('drain failed; retrying', { node: name, retryInSeconds: delayMs / 1000, error: why });
    this.handle.recorder.event(node, 'Warning', 'FailedToDrain', `failed to drain node: ${name}: ${why}`);
    if (lastedMs > DRAIN_TIMEOUT_MS && !drain.reported) {
      drain.reported = true;
      const message = `failed to drain node: ${name} after 1 hour; will continue to retry`;
      this.handle.recorder.event(node, 'Warning', 'DrainTimeout', message);
    }
    return false;
  }

  /** Evicts a pod. Returns an error message, or undefined if the pod was evicted or no longer exists. */
  async #evictPod({ metadata }: Pod): Promise<string | undefined> {
    const { name = '', namespace = '', uid, deletionTimestamp } = metadata ?? {};
    if (deletionTimestamp !== undefined) return undefined;
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name, namespace },
      ...(uid === undefined ? {} : { deleteOptions: { preconditions: { uid } } }),
    };
    try {
      await this.#podClient.createSubresource(name, namespace, 'eviction', eviction);
      this.handle.log.info('pod evicted', { pod: `${namespace}/${name}` });
      return undefined;
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return undefined;
      return `pod ${namespace}/${name}: ${messageOf(error)}`;
    }
  }

  async #finish(node: Node, wanted: string, { cordoned }: { readonly cordoned: boolean }): Promise<void> {
    await this.#nodeClient.patch(nameOf(node), undefined, 'merge', {
      metadata: { annotations: { [LAST_APPLIED_DRAIN]: wanted } },
      spec: { unschedulable: cordoned ? true : null },
    });
    this.handle.log.info('drain applied', { node: nameOf(node), wanted });
    if (!cordoned && node.spec?.unschedulable === true)
      this.handle.recorder.event(node, 'Normal', 'Uncordon', 'Update completed; node uncordoned');
  }
}
