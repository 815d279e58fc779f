/**
 * Daemon sets. Plans in controllers/workloads/daemon-set; the scheduler's rules determine whether a node suits a pod.
 */

import type { ControllerRevision, DaemonSet } from '../../../api/generated/apps/v1.ts';
import type { Node, Pod } from '../../../api/generated/core/v1.ts';
import { objectKey, splitKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { matchesNode } from '../../../api/podspec/scheduling/node-affinity.ts';
import { untoleratedTaint } from '../../../api/podspec/scheduling/tolerations.ts';
import { resources } from '../../../api/resources.ts';
import { isEverything, matchesLabels, storedSelectorOf } from '../../../base/selector.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { carryOutClaim } from '../../framework/adoption.ts';
import { type CandidateWaker, candidateWaker } from '../../framework/candidate-waker.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import { claimObjects, isControlledBy } from '../../framework/core/ownership.ts';
import { Expectations } from '../../framework/expectations.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { deletePods, observePods } from '../../framework/owned-pods.ts';
import { controlledBy, indexByController, orphansIn, ownerIn } from '../../framework/owner-indices.ts';
import { createPodControl, isNamespaceTerminating, type PodControl } from '../../framework/pod-control.ts';
import { slowStart } from '../../framework/slow-start.ts';
import { type HistoryPlan, hasSameTemplate, planHistory } from './history.ts';
import { type DaemonPlan, type DaemonSnapshot, type NodeDecision, planDaemonPods, planDaemonStatus } from './plan.ts';
import { daemonPod } from './pod.ts';

export const daemonSetController: ControllerSpec = {
  name: 'daemonset',
  reads: [resources.daemonSets, resources.controllerRevisions, resources.pods, resources.nodes],
  writes: [resources.daemonSets, resources.controllerRevisions, resources.pods],
  prepare,
};

/** Back-off of failing daemon pods on one node. Upstream's values. */
const FAILED_INITIAL_MS = 1_000;
const FAILED_MAX_MS = 15 * 60_000;

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    sets: handle.informer(resources.daemonSets),
    revisions: handle.informer(resources.controllerRevisions),
    pods: handle.informer(resources.pods),
    nodes: handle.informer(resources.nodes),
    setClient: handle.writer(resources.daemonSets),
    revisionClient: handle.writer(resources.controllerRevisions),
    podClient: handle.writer(resources.pods),
  };
  indexByController(access.pods);
  indexByController(access.revisions);
  return (scope) => new DaemonSetController(handle, access, scope).start();
}

interface Access {
  readonly sets: Informer<DaemonSet>;
  readonly revisions: Informer<ControllerRevision>;
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly setClient: ResourceClient<DaemonSet>;
  readonly revisionClient: ResourceClient<ControllerRevision>;
  readonly podClient: ResourceClient<Pod>;
}

class DaemonSetController extends ControllerTerm {
  readonly #access: Access;
  readonly #control: PodControl;
  readonly #expectations: Expectations;
  readonly #wakeSets: CandidateWaker<DaemonSet>;
  readonly #failures = new Map<string, { readonly untilMs: number; readonly delayMs: number }>();

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 2);
    this.#access = access;
    this.#control = createPodControl(access.podClient, handle.recorder);
    this.#expectations = new Expectations(handle.clock);
    this.#wakeSets = candidateWaker(scope, access.sets, (set) => this.queue.add(objectKey(set)));
  }

  override start(): void {
    this.scope.onChange(this.#access.sets, {
      added: (set) => this.queue.add(objectKey(set)),
      updated: (set) => this.queue.add(objectKey(set)),
      deleted: (set) => {
        this.#expectations.forget(objectKey(set));
        for (const key of this.#failures.keys())
          if (key.startsWith(`${set.metadata?.uid ?? ''}/`)) this.#failures.delete(key);
      },
    });
    this.scope.onChange(this.#access.nodes, {
      added: this.#wakeAll,
      updated: (node, old) => {
        if (suitability(node) !== suitability(old)) this.#wakeAll();
      },
      deleted: this.#wakeAll,
    });
    const owners = {
      keyOf: (pod: Pod) => this.#ownerKey(pod),
      wake: (key: string) => this.queue.add(key),
      wakeAdopters: (pod: Pod) => this.#wakeAdopters(pod),
    };
    this.scope.onChange(this.#access.pods, observePods(this.#expectations, owners));
    this.scope.onChange(this.#access.revisions, {
      added: this.#wakeByRevision,
      updated: this.#wakeByRevision,
      deleted: this.#wakeByRevision,
    });
  }

  readonly #wakeAll = (): void => {
    for (const set of this.#access.sets.list()) this.queue.add(objectKey(set));
  };

  #ownerKey(object: Pod | ControllerRevision): string | undefined {
    const set = ownerIn(this.#access.sets, 'DaemonSet', object);
    return set === undefined ? undefined : objectKey(set);
  }

  #wakeAdopters(pod: Pod): void {
    this.#wakeSets(pod.metadata?.namespace, ({ spec }) =>
      matchesLabels(storedSelectorOf(spec?.selector), pod.metadata?.labels),
    );
  }

  readonly #wakeByRevision = (revision: ControllerRevision): void => {
    const key = this.#ownerKey(revision);
    if (key !== undefined) this.queue.add(key);
  };

  protected override async sync(key: string): Promise<void> {
    const set = this.#access.sets.get(key);
    if (set === undefined) {
      this.#expectations.forget(key);
      return;
    }
    const selector = storedSelectorOf(set.spec?.selector);
    if (isEverything(selector)) {
      this.handle.recorder.event(
        set,
        'Warning',
        'SelectingAll',
        'This daemon set is selecting all pods. A non-empty selector is required.',
      );
      return;
    }
    const { namespace = '' } = splitKey(key);
    const uid = set.metadata?.uid ?? '';
    const claim = claimObjects(
      set,
      [...controlledBy(this.#access.pods, uid), ...orphansIn(this.#access.pods, namespace)],
      (pod) => matchesLabels(selector, pod.metadata?.labels),
    );
    const owned = await carryOutClaim(set, claim, {
      ownerType: resources.daemonSets,
      owners: this.#access.setClient,
      objects: this.#access.podClient,
    });
    const history = planHistory(set, controlledBy(this.#access.revisions, uid), owned);
    if (set.metadata?.deletionTimestamp === undefined && !(await this.#writeHistory(set, history))) return;
    const snapshot: DaemonSnapshot = {
      set,
      pods: owned,
      nodes: this.#access.nodes.list().map((node) => nodeDecision(set, node)),
      hash: history.hash,
      settled: this.#expectations.settled(key),
      mayReplaceFailed: (node) => this.#mayReplaceFailed(key, uid, node),
    };
    const plan = planDaemonPods(snapshot, this.handle.plan());
    const error = await this.#carryOut(key, set, history.hash, plan);
    const next = planDaemonStatus(snapshot, this.handle.plan());
    if (next.status !== undefined)
      await this.#access.setClient.update({ ...set, status: next.status }, { subresource: 'status' });
    if (next.recheckAfterMs !== undefined) this.queue.addAfter(key, next.recheckAfterMs);
    if (error !== undefined) throw error;
  }

  #mayReplaceFailed(key: string, uid: string, node: string): boolean {
    const id = `${uid}/${node}`;
    const now = this.handle.clock.monotonicMs();
    const known = this.#failures.get(id);
    if (known !== undefined && now < known.untilMs) {
      this.queue.addAfter(key, known.untilMs - now);
      return false;
    }
    // A pod that ran for twice the longest back-off has recovered.
    const isFresh = known === undefined || now - known.untilMs > 2 * FAILED_MAX_MS;
    const delayMs = isFresh ? FAILED_INITIAL_MS : Math.min(FAILED_MAX_MS, known.delayMs * 2);
    this.#failures.set(id, { untilMs: now + delayMs, delayMs });
    return true;
  }

  /**
   * Writes the planned revisions. Returns false when the plan is outdated: another template has the same hash, or the
   * local copy is behind.
   */
  async #writeHistory(set: DaemonSet, history: HistoryPlan): Promise<boolean> {
    if (history.create !== undefined) {
      try {
        await this.#access.revisionClient.create(history.create);
      } catch (error) {
        if (isNamespaceTerminating(error)) return false;
        if (!isApiError(error, 'AlreadyExists')) throw error;
        const { name = '', namespace } = history.create.metadata ?? {};
        const existing = await this.#access.revisionClient.get(name, namespace);
        if (!isControlledBy(existing, set.metadata?.uid) || !hasSameTemplate(existing, set)) {
          const collisionCount = (set.status?.collisionCount ?? 0) + 1;
          const status = { ...emptyStatus, ...set.status, collisionCount };
          await this.#access.setClient.update({ ...set, status }, { subresource: 'status' });
          return false;
        }
      }
    }
    if (history.update !== undefined) await this.#access.revisionClient.update(history.update);
    for (const revision of history.delete) {
      try {
        await this.#access.revisionClient.delete(revision.metadata?.name ?? '', revision.metadata?.namespace);
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
      }
    }
    return true;
  }

  async #carryOut(key: string, set: DaemonSet, hash: string, plan: DaemonPlan): Promise<unknown> {
    for (const event of plan.events) this.handle.recorder.event(set, event.type, event.reason, event.message);
    if (plan.create.length === 0 && plan.delete.length === 0) return undefined;
    this.#expectations.expect(
      key,
      plan.create.length,
      plan.delete.map((pod) => pod.metadata?.uid ?? ''),
    );
    const created = await slowStart(plan.create.length, (index) =>
      this.#control.create(set, daemonPod(set, plan.create[index] ?? '', hash)),
    );
    this.#expectations.creationObserved(key, plan.create.length - created.succeeded);
    const deleted = await deletePods(this.#control, this.#expectations, { owner: set, key, pods: plan.delete });
    if (created.error !== undefined && !isNamespaceTerminating(created.error)) return created.error;
    return deleted.find((result) => result.status === 'rejected')?.reason;
  }
}

const emptyStatus = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };

function nodeDecision(set: DaemonSet, node: Node): NodeDecision {
  const name = node.metadata?.name ?? '';
  const pod = daemonPod(set, name, '');
  const tolerations = pod.spec?.tolerations;
  const isPlace = matchesNode(pod, node) && (set.spec?.template.spec?.nodeName ?? name) === name;
  const isExpelled = untoleratedTaint(node.spec?.taints, tolerations, ['NoExecute']) !== undefined;
  const isBarred = untoleratedTaint(node.spec?.taints, tolerations, ['NoSchedule', 'NoExecute']) !== undefined;
  return { name, shouldRun: isPlace && !isBarred, shouldContinue: isPlace && !isExpelled };
}

/** Text of the node fields that determine whether daemon pods may run on the node. */
function suitability(node: Node): string {
  return JSON.stringify([node.metadata?.labels, node.spec?.taints, node.spec?.unschedulable]);
}
