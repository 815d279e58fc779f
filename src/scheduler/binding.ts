/** Executes the steps from a decision to a bound pod: Reserve, PreBind and Bind. Reports failures. */

import type { Node } from '../api/generated/core/v1.ts';
import { isApiError } from '../api/meta/status.ts';
import type { PodInfo } from '../api/podspec/scheduling/pod-info.ts';
import type { NodeName } from '../base/brand.ts';
import { messageOf } from '../base/errors.ts';
import type { FilterName } from './core/filters/filter.ts';
import { reservePod, unreservePod } from './core/reserve.ts';
import type { Unschedulable } from './core/schedule.ts';
import type { EpochState } from './epoch-state.ts';
import { WAITS_FOR_VICTIMS } from './gang/gang-preemption.ts';
import { preBindPod } from './plugins.ts';

/** Maximum number of concurrent bindings. */
const MAX_BINDINGS = 64;

/**
 * Upstream's Permit extension point. `ready` resolves when the pod may be bound and rejects if it must not be bound.
 */
export interface Permit {
  ready(): Promise<void>;
  failed(error: Error): void;
}

export class Binding {
  readonly #state: EpochState;
  #underWay = 0;

  constructor(state: EpochState) {
    this.#state = state;
  }

  get isFull(): boolean {
    return this.#underWay >= MAX_BINDINGS;
  }

  /**
   * Reserves the resources of the node and of plug-ins for the pod. Returns undefined on success. Otherwise nothing is
   * reserved.
   */
  reserve(info: PodInfo, node: NodeName): Unschedulable | undefined {
    const { cluster, plugins } = this.#state;
    const host = cluster.node(node);
    const refuse = (message: string, filters: readonly FilterName[]): Unschedulable => ({
      kind: 'unschedulable',
      message,
      filters: new Set(filters),
      preemption: undefined,
    });
    if (host === undefined) return refuse(`node "${node}" is deleted`, []);
    cluster.assume(info, node);
    const rejection = reservePod(plugins, info, host, this.#state.view());
    if (rejection === undefined) return undefined;
    cluster.forget(info.uid);
    return refuse(`running Reserve plugin "${rejection.filter}": ${rejection.reasons.join(', ')}`, [rejection.filter]);
  }

  release(info: PodInfo, node: NodeName): void {
    unreservePod(this.#state.plugins, info, node);
    this.#state.cluster.forget(info.uid);
  }

  /** Binds a pod for which `reserve` has succeeded. */
  bind(info: PodInfo, node: NodeName, permit?: Permit): void {
    const host = this.#state.cluster.node(node)?.node;
    const prepared = host === undefined ? undefined : this.#prepare(info, host, permit);
    if (prepared === undefined) {
      this.#state.track(this.#post(info, node));
      return;
    }
    // A pod that waits for a volume does not count as a binding in progress, so that a slow provisioner does not delay
    // other pods.
    const posted = prepared.then(
      () => this.#post(info, node),
      async (error: unknown) => {
        await this.#failed(info, node, error);
        this.#state.pump();
      },
    );
    this.#state.track(posted);
  }

  #prepare(info: PodInfo, host: Node, permit: Permit | undefined): Promise<void> | undefined {
    const prepared = preBindPod(this.#state.plugins, info, host);
    if (permit === undefined) return prepared;
    return (prepared ?? Promise.resolve()).then(
      () => permit.ready(),
      (error: unknown) => {
        permit.failed(error instanceof Error ? error : new Error(messageOf(error)));
        throw error;
      },
    );
  }

  async #post(info: PodInfo, node: NodeName): Promise<void> {
    const { cluster, deps, extenders, queue, writes } = this.#state;
    this.#underWay++;
    try {
      const byExtender = extenders?.binder(info);
      if (byExtender === undefined) await writes.bind(info.pod, node);
      else await byExtender(node);
      queue.remove(info.uid);
      const isElsewhere = cluster.nominatedNode(info.uid) !== node;
      if (cluster.clearNomination(info.uid) && isElsewhere) this.#state.released(info);
      deps.log.v(2, 'bound', { pod: info.key, node });
      deps.recorder.event(info.pod, 'Normal', 'Scheduled', `Successfully assigned ${info.key} to ${node}`);
    } catch (error) {
      await this.#failed(info, node, error);
    } finally {
      this.#underWay--;
      this.#state.pump();
    }
  }

  async #failed(info: PodInfo, node: NodeName, error: unknown): Promise<void> {
    const { deps, queue, sources } = this.#state;
    this.release(info, node);
    if (this.#state.stopped) return;
    this.#state.released(info);
    if (sources.pods.get(info.key)?.metadata?.uid !== info.uid) {
      queue.remove(info.uid);
      return;
    }
    const message = `binding rejected: ${messageOf(error)}`;
    deps.log.v(2, 'binding failed', { pod: info.key, node, error: messageOf(error) });
    queue.failed(info.uid, this.#state.nowMs());
    // Another scheduler or an earlier leader has bound the pod. The informer will deliver the binding, so no error is
    // reported.
    if (isApiError(error, 'Conflict')) return;
    deps.recorder.event(info.pod, 'Warning', 'FailedScheduling', message);
    await this.#report(info, 'SchedulerError', message, undefined);
  }

  /**
   * Makes the pod wait for an event that may help, reports the reason, and evicts victims if the decision contains a
   * preemption.
   */
  handleSchedulingFailure(info: PodInfo, decision: Unschedulable): void {
    const { cluster, deps, queue } = this.#state;
    queue.rejected(info.uid, decision.filters, this.#state.nowMs());
    deps.log.v(3, 'unschedulable', { pod: info.key, reason: decision.message });
    deps.recorder.event(info.pod, 'Warning', 'FailedScheduling', decision.message);
    if (decision.filters.has('DynamicResources')) this.#postFilter(info);
    if (decision.preemption !== undefined) {
      this.#state.track(this.#preempt(info, decision, decision.preemption));
      return;
    }
    const wasNominated = cluster.nominatedNode(info.uid) !== undefined;
    const isStillWaiting = decision.message.includes(WAITS_FOR_VICTIMS);
    if (wasNominated && !isStillWaiting) {
      cluster.clearNomination(info.uid);
      this.#state.released(info);
    }
    const nominated = wasNominated && !isStillWaiting ? '' : undefined;
    this.#state.track(this.#report(info, 'Unschedulable', decision.message, nominated));
  }

  #postFilter(info: PodInfo): void {
    for (const plugin of this.#state.plugins) {
      const written = plugin.postFilter?.(info, this.#state.view());
      if (written === undefined) continue;
      const failed = (error: unknown): void =>
        this.#state.deps.log.v(2, 'devices not released', { pod: info.key, error: messageOf(error) });
      this.#state.track(written.catch(failed));
    }
  }

  async #preempt(
    info: PodInfo,
    decision: Unschedulable,
    { node, victims, displaced }: NonNullable<Unschedulable['preemption']>,
  ): Promise<void> {
    const { cluster, deps, queue, writes } = this.#state;
    const former = cluster.nominatedNode(info.uid);
    cluster.nominate(info, node);
    if (former !== undefined && former !== node) this.#state.released(info);
    for (const other of displaced) if (cluster.clearNomination(other.uid)) this.#state.released(other);
    const schedulerName = info.pod.spec?.schedulerName ?? 'default-scheduler';
    try {
      for (const victim of victims) {
        if (!(await writes.evict(victim.pod, schedulerName))) continue;
        deps.recorder.event(victim.pod, 'Normal', 'Preempted', `Preempted by pod ${info.uid} on node ${node}`);
      }
      await this.#report(info, 'Unschedulable', decision.message, node);
      for (const other of displaced) await writes.clearNomination(other.pod);
    } catch (error) {
      deps.log.warn('preemption failed', { pod: info.key, node, error: messageOf(error) });
      if (cluster.clearNomination(info.uid)) this.#state.released(info);
      queue.failed(info.uid, this.#state.nowMs());
      this.#state.pump();
    }
  }

  async #report(info: PodInfo, reason: string, message: string, nominated: string | undefined): Promise<void> {
    const pod = this.#state.sources.pods.get(info.key) ?? info.pod;
    if (pod.metadata?.uid !== info.uid) return;
    try {
      await this.#state.writes.report(pod, reason, message, nominated);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) {
        this.#state.deps.log.v(2, 'pod condition not written', { pod: info.key, error: messageOf(error) });
      }
    }
  }
}
