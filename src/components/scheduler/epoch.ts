/**
 * One leadership epoch: keeps the cluster snapshot, pops pods from the queue one at a time, and binds asynchronously.
 */
import { setImmediate as yieldToLoop } from 'node:timers';
import type { Node, Pod } from 'kubernetes-types/core/v1';
import { isApiError } from '../../api/meta/status.ts';
import type { Timer } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { Cluster, type ClusterView } from '../../core/scheduling/cluster.ts';
import { type PodInfo, podInfoOf } from '../../core/scheduling/pod-info.ts';
import { type ClusterEvent, type QueuedPod, SchedulingQueue } from '../../core/scheduling/queue.ts';
import { reservePod, unreservePod } from '../../core/scheduling/reserve.ts';
import { podRequests } from '../../core/scheduling/resources.ts';
import { type Decision, schedulePod } from '../../core/scheduling/schedule.ts';
import { differs, isNodeRelevant, isPlaced, isPodRelevant, isTerminal, nodeEvents } from './changes.ts';
import { DEFAULT_SCHEDULER_NAME, type SchedulerDeps } from './deps.ts';
import { ClaimAllocator } from './devices.ts';
import { type BindingPlugin, preBindPod } from './plugins.ts';
import {
  discoverOptionalSources,
  disruptionBudgets,
  noOptionalSources,
  type OptionalSources,
  type Sources,
  viewSupport,
} from './sources.ts';
import { VolumeBinder } from './volumes.ts';
import { createWrites } from './writes.ts';

/** Bindings under way at a time. */
const MAX_BINDINGS = 64;
/** The event loop gets its turn at least this often while many pods are decided. */
const SLICE_MS = 10;
const DISCOVERY_RETRY_MS = 2_000;

export function startEpoch(deps: SchedulerDeps, sources: Sources): () => Promise<void> {
  const epoch = new Epoch(deps, sources);
  epoch.start();
  return () => epoch.stop();
}

class Epoch {
  readonly #deps: SchedulerDeps;
  readonly #sources: Sources;
  readonly #name: string;
  readonly #cluster = new Cluster();
  readonly #queue = new SchedulingQueue();
  readonly #writes: ReturnType<typeof createWrites>;
  readonly #active = new Set<Promise<void>>();
  readonly #unsubscribes: (() => void)[] = [];
  #more: OptionalSources = noOptionalSources;
  #support: Omit<ClusterView, 'nodes'>;
  /** In upstream's order of Reserve. */
  readonly #plugins: BindingPlugin[] = [];
  #bindings = 0;
  #isPumping = false;
  #stopped = false;
  #timer: Timer | undefined;
  #discoveryTimer: Timer | undefined;

  constructor(deps: SchedulerDeps, sources: Sources) {
    this.#deps = deps;
    this.#sources = sources;
    this.#name = deps.schedulerName ?? DEFAULT_SCHEDULER_NAME;
    this.#writes = createWrites(deps.client, () => deps.clock.nowMs());
    this.#support = viewSupport(sources, this.#more);
  }

  start(): void {
    const { nodes, pods, namespaces } = this.#sources;
    // Nodes first: pods are then placed on them at once. Bound pods of the first list come before any decision, since
    // deciding starts only after this function has returned.
    this.#unsubscribes.push(
      nodes.onChange({
        added: (node) => {
          this.#cluster.setNode(node);
          this.#happened('NodeAdded');
        },
        updated: (node, old) => this.#nodeChanged(node, old),
        deleted: (node) => this.#cluster.removeNode(node.metadata?.name ?? ''),
      }),
      pods.onChange({
        added: (pod) => this.#podAdded(pod),
        updated: (pod, old) => this.#podChanged(pod, old),
        deleted: (pod) => this.#podGone(pod),
      }),
      namespaces.onChange({
        updated: (namespace, old) => {
          if (differs(namespace.metadata?.labels, old.metadata?.labels)) this.#happened('NamespaceChanged');
        },
      }),
    );
    this.#discover();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#discoveryTimer?.cancel();
    for (const plugin of this.#plugins) plugin.stop();
    for (const unsubscribe of this.#unsubscribes) unsubscribe();
    await Promise.all(this.#active);
  }

  #discover(): void {
    // Not awaited when the epoch ends: discovery may hang while the server is unreachable and has no effect once
    // stopped.
    void discoverOptionalSources(this.#deps).then(
      (more) => {
        if (this.#stopped) return;
        this.#more = more;
        this.#addPlugins(more);
        for (const informer of [more.claims, more.volumes, more.classes]) {
          const changed = (): void => this.#happened('VolumesChanged');
          if (informer !== undefined) {
            this.#unsubscribes.push(informer.onChange({ added: changed, updated: changed, deleted: changed }));
          }
        }
      },
      (error: unknown) => {
        if (this.#stopped) return;
        this.#deps.log.v(2, 'discovery failed, trying again', { error: messageOf(error) });
        this.#discoveryTimer = this.#deps.clock.setTimer(DISCOVERY_RETRY_MS, () => this.#discover());
      },
    );
  }

  #addPlugins(more: OptionalSources): void {
    const { claims, volumes } = more;
    const binder =
      claims === undefined || volumes === undefined
        ? undefined
        : new VolumeBinder(this.#deps, { pods: this.#sources.pods, claims, volumes });
    if (binder !== undefined) this.#plugins.push(binder);
    const changed = (): void => this.#happened('DevicesChanged');
    const allocator =
      more.devices === undefined ? undefined : new ClaimAllocator(this.#deps.client, more.devices, changed);
    if (allocator !== undefined) this.#plugins.push(allocator);
    const support = viewSupport(this.#sources, more, (volume) => binder?.isReserved(volume) === true);
    this.#support = { ...support, devices: allocator };
  }

  #nodeChanged(node: Node, old: Node): void {
    if (!isNodeRelevant(node, old)) return;
    this.#cluster.setNode(node);
    for (const event of nodeEvents(node, old)) this.#happened(event);
  }

  #podAdded(pod: Pod): void {
    if (isTerminal(pod)) return;
    if (isPlaced(pod)) {
      this.#cluster.setPod(pod);
      this.#queue.remove(pod.metadata?.uid ?? '');
      this.#happened('PodPlaced');
    } else this.#enqueue(pod);
  }

  #podChanged(pod: Pod, old: Pod): void {
    if (isTerminal(pod)) {
      if (!isTerminal(old)) this.#podGone(pod);
      return;
    }
    if (!isPlaced(pod)) {
      if (pod.metadata?.deletionTimestamp !== undefined) this.#queue.remove(pod.metadata.uid ?? '');
      else if (isPodRelevant(pod, old)) this.#enqueue(pod);
      return;
    }
    if (!isPlaced(old)) {
      this.#podAdded(pod);
      return;
    }
    const isRelabelled = differs(pod.metadata?.labels, old.metadata?.labels);
    const isLeaving = pod.metadata?.deletionTimestamp !== old.metadata?.deletionTimestamp;
    const isResized = differs([...podRequests(pod)], [...podRequests(old)]);
    if (!isRelabelled && !isLeaving && !isResized && pod.status?.startTime === old.status?.startTime) return;
    this.#cluster.setPod(pod);
    if (isRelabelled || isLeaving) this.#happened('PodLabelsChanged');
    if (isResized) this.#happened('PodLeft');
  }

  #podGone(pod: Pod): void {
    const uid = pod.metadata?.uid ?? '';
    this.#cluster.removePod(uid);
    this.#queue.remove(uid);
    if (isPlaced(pod)) this.#happened('PodLeft');
  }

  #enqueue(pod: Pod): void {
    if ((pod.spec?.schedulerName ?? DEFAULT_SCHEDULER_NAME) !== this.#name) return;
    if (pod.metadata?.deletionTimestamp !== undefined || hasGates(pod)) return;
    const uid = pod.metadata?.uid ?? '';
    if (this.#cluster.isAssumed(uid)) return;
    const info = podInfoOf(pod);
    const nominated = pod.status?.nominatedNodeName ?? '';
    if (nominated !== '') this.#cluster.nominate(info, nominated);
    this.#queue.add({ key: info.key, uid, priority: info.priority }, this.#nowMs());
    this.#pump();
  }

  #happened(event: ClusterEvent): void {
    if (this.#queue.onEvent(event) > 0) this.#pump();
  }

  /** Decides pods soon, outside whatever called; many calls make one run. */
  #pump(): void {
    if (this.#isPumping || this.#stopped) return;
    this.#isPumping = true;
    yieldToLoop(() => {
      this.#isPumping = false;
      this.#run();
    });
  }

  #run(): void {
    if (this.#stopped) return;
    const { clock } = this.#deps;
    const startedMs = clock.monotonicMs();
    this.#queue.flush(this.#nowMs());
    while (this.#bindings < MAX_BINDINGS) {
      const next = this.#queue.pop(this.#nowMs());
      if (next === undefined) break;
      this.#attempt(next);
      if (clock.monotonicMs() - startedMs > SLICE_MS) break;
    }
    // At the bound, the end of a binding calls again.
    if (this.#bindings >= MAX_BINDINGS) return;
    const dueMs = this.#queue.nextDueInMs(this.#nowMs());
    this.#timer?.cancel();
    this.#timer = undefined;
    if (dueMs === 0) this.#pump();
    else if (dueMs !== undefined) this.#timer = clock.setTimer(dueMs, () => this.#pump());
  }

  /** Back-off is measured on the monotonic clock: a wall clock set back must not keep pods waiting. */
  #nowMs(): number {
    return this.#deps.clock.monotonicMs();
  }

  #attempt(queued: QueuedPod): void {
    const pod = this.#sources.pods.get(queued.key);
    if (pod === undefined || pod.metadata?.uid !== queued.uid || isPlaced(pod) || isTerminal(pod)) {
      this.#queue.remove(queued.uid);
      return;
    }
    if (pod.metadata.deletionTimestamp !== undefined || hasGates(pod)) {
      this.#queue.remove(queued.uid);
      return;
    }
    const info = podInfoOf(pod);
    const view = { ...this.#support, nodes: this.#cluster.nodes };
    let decision: Decision;
    try {
      decision = schedulePod({
        pod: info,
        cluster: this.#cluster,
        view,
        budgets: disruptionBudgets(this.#more),
        random: () => this.#deps.random.random(),
      });
    } catch (error) {
      // A defect met by one pod must not keep all others from being scheduled.
      this.#deps.log.error('scheduling failed', { pod: info.key, error: messageOf(error) });
      this.#queue.failed(info.uid, this.#nowMs());
      return;
    }
    if (decision.kind === 'bind') this.#reserve(info, decision.node, view);
    else this.#giveUp(info, decision);
  }

  #reserve(info: PodInfo, node: string, view: ClusterView): void {
    const host = this.#cluster.node(node);
    if (host === undefined) return;
    this.#cluster.assume(info, node);
    const rejection = reservePod(this.#plugins, info, host, view);
    if (rejection === undefined) {
      this.#bind(info, host.node);
      return;
    }
    this.#cluster.forget(info.uid);
    const message = `running Reserve plugin "${rejection.filter}": ${rejection.reasons.join(', ')}`;
    this.#giveUp(info, {
      kind: 'unschedulable',
      message,
      filters: new Set([rejection.filter]),
      preemption: undefined,
    });
  }

  #bind(info: PodInfo, host: Node): void {
    const { log, recorder } = this.#deps;
    const node = host.metadata?.name ?? '';
    const prepared = preBindPod(this.#plugins, info, host);
    const bind = async (): Promise<void> => {
      this.#bindings++;
      try {
        await this.#writes.bind(info.pod, node);
        this.#queue.remove(info.uid);
        this.#cluster.clearNomination(info.uid);
        log.v(2, 'bound', { pod: info.key, node });
        recorder.event(info.pod, 'Normal', 'Scheduled', `Successfully assigned ${info.key} to ${node}`);
      } catch (error) {
        await this.#bindingFailed(info, node, error);
      } finally {
        this.#bindings--;
        this.#pump();
      }
    };
    if (prepared === undefined) {
      this.#track(bind());
      return;
    }
    // A pod that waits for a volume is no binding under way: a slow provisioner must not keep other pods waiting.
    const bindWhenPrepared = prepared.then(bind, async (error: unknown) => {
      await this.#bindingFailed(info, node, error);
      this.#pump();
    });
    this.#track(bindWhenPrepared);
  }

  async #bindingFailed(info: PodInfo, node: string, error: unknown): Promise<void> {
    unreservePod(this.#plugins, info, node);
    this.#cluster.forget(info.uid);
    if (this.#stopped) return;
    if (this.#sources.pods.get(info.key)?.metadata?.uid !== info.uid) {
      this.#queue.remove(info.uid);
      return;
    }
    const message = `binding rejected: ${messageOf(error)}`;
    this.#deps.log.v(2, 'binding failed', { pod: info.key, node, error: messageOf(error) });
    this.#queue.failed(info.uid, this.#nowMs());
    // Someone else bound it (another scheduler, a restored leader): the watch will say so, there is nothing to report.
    if (isApiError(error, 'Conflict')) return;
    this.#deps.recorder.event(info.pod, 'Warning', 'FailedScheduling', message);
    await this.#report(info, 'SchedulerError', message, undefined);
  }

  #giveUp(info: PodInfo, decision: Decision & { readonly kind: 'unschedulable' }): void {
    const { log, recorder } = this.#deps;
    this.#queue.rejected(info.uid, decision.filters, this.#nowMs());
    log.v(3, 'unschedulable', { pod: info.key, reason: decision.message });
    recorder.event(info.pod, 'Warning', 'FailedScheduling', decision.message);
    const { preemption } = decision;
    if (preemption === undefined) {
      const wasNominated = this.#cluster.nominatedNode(info.uid) !== undefined;
      const isStillPromised = decision.message.includes('not eligible due to a terminating pod');
      if (wasNominated && !isStillPromised) this.#cluster.clearNomination(info.uid);
      const nominated = wasNominated && !isStillPromised ? '' : undefined;
      this.#track(this.#report(info, 'Unschedulable', decision.message, nominated));
      return;
    }
    this.#cluster.nominate(info, preemption.node);
    for (const other of preemption.displaced) this.#cluster.clearNomination(other.uid);
    const preempt = async (): Promise<void> => {
      try {
        for (const victim of preemption.victims) {
          if (!(await this.#writes.evict(victim.pod, this.#name))) continue;
          recorder.event(victim.pod, 'Normal', 'Preempted', `Preempted by pod ${info.uid} on node ${preemption.node}`);
        }
        await this.#report(info, 'Unschedulable', decision.message, preemption.node);
        for (const other of preemption.displaced) await this.#writes.clearNomination(other.pod);
      } catch (error) {
        log.warn('preemption failed', { pod: info.key, node: preemption.node, error: messageOf(error) });
        this.#cluster.clearNomination(info.uid);
        this.#queue.failed(info.uid, this.#nowMs());
        this.#pump();
      }
    };
    this.#track(preempt());
  }

  async #report(info: PodInfo, reason: string, message: string, nominated: string | undefined): Promise<void> {
    const pod = this.#sources.pods.get(info.key) ?? info.pod;
    if (pod.metadata?.uid !== info.uid) return;
    try {
      await this.#writes.report(pod, reason, message, nominated);
    } catch (error) {
      if (!isApiError(error, 'NotFound')) {
        this.#deps.log.v(2, 'could not report', { pod: info.key, error: messageOf(error) });
      }
    }
  }

  #track(work: Promise<void>): void {
    const tracked = work.finally(() => this.#active.delete(tracked));
    this.#active.add(tracked);
  }
}

function hasGates(pod: Pod): boolean {
  return (pod.spec?.schedulingGates?.length ?? 0) > 0;
}
