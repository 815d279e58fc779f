/**
 * Updates in the status of disruption budgets how many evictions they allow, and resets the DisruptionTarget condition
 * of pods that were not disrupted after all. Plans in controllers/workloads/disruption. Evictions in the API server
 * decrease the allowed number.
 */

import type { Deployment, ReplicaSet, StatefulSet } from '../../../api/generated/apps/v1.ts';
import type { Pod, ReplicationController } from '../../../api/generated/core/v1.ts';
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from '../../../api/generated/policy/v1.ts';
import { type KubeObject, objectKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { observedGeneration } from '../../../api/podspec/generation.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import { matchesLabels, storedSelectorOf } from '../../../base/selector.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { Informer, ResourceClient, WorkQueue } from '../../../client/types.ts';
import { candidateWaker } from '../../framework/candidate-waker.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';
import { controllerOf } from '../../framework/core/ownership.ts';
import { isPodReady } from '../../framework/core/pods.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { readScale } from '../../framework/scale.ts';
import { controllersToRead, isCountedByScale, planBudget, planFailure } from './plan.ts';
import { type ControllerScale, knownScale, type Workloads } from './scale.ts';
import { targetStaleInMs } from './stale-target.ts';

/** Resync period of a budget whose pods' controllers are not watched or could not be read. */
const RESYNC_MS = 30_000;

export const disruptionController: ControllerSpec = {
  name: 'disruption',
  eventSource: 'controllermanager',
  reads: [
    resources.podDisruptionBudgets,
    resources.pods,
    resources.replicationControllers,
    resources.replicaSets,
    resources.deployments,
    resources.statefulSets,
  ],
  writes: [resources.podDisruptionBudgets, resources.pods],
  uses: ['read'],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    read: handle.use('read'),
    budgets: handle.informer(resources.podDisruptionBudgets),
    pods: handle.informer(resources.pods),
    budgetClient: handle.writer(resources.podDisruptionBudgets),
    podClient: handle.writer(resources.pods),
    replicationControllers: handle.informer(resources.replicationControllers),
    replicaSets: handle.informer(resources.replicaSets),
    deployments: handle.informer(resources.deployments),
    statefulSets: handle.informer(resources.statefulSets),
  };

  return (scope) => new DisruptionController(handle, access, scope).start();
}

interface Access {
  readonly read: <R>(path: string, signal: AbortSignal) => Promise<R>;
  readonly budgets: Informer<PodDisruptionBudget>;
  readonly pods: Informer<Pod>;
  readonly budgetClient: ResourceClient<PodDisruptionBudget>;
  readonly podClient: ResourceClient<Pod>;
  readonly replicationControllers: Informer<ReplicationController>;
  readonly replicaSets: Informer<ReplicaSet>;
  readonly deployments: Informer<Deployment>;
  readonly statefulSets: Informer<StatefulSet>;
}

class DisruptionController extends ControllerTerm {
  readonly #access: Access;
  readonly #targets: WorkQueue;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 2);
    this.#access = access;
    this.#targets = scope.queue(async (key) => {
      const pod = access.pods.get(key);
      const inMs = pod === undefined ? undefined : targetStaleInMs(pod, handle.plan().nowMs);
      if (pod === undefined || inMs === undefined) return;
      if (inMs > 0) this.#targets.addAfter(key, inMs);
      else await this.#withdrawTarget(pod);
    }, 1);
  }

  override start(): void {
    followBudgets(this.scope, this.queue, this.#access.budgets, this.#access.pods);
    followWorkloads(this.scope, this.queue, this.#access.budgets, this.#access.replicationControllers);
    followWorkloads(this.scope, this.queue, this.#access.budgets, this.#access.replicaSets);
    followWorkloads(this.scope, this.queue, this.#access.budgets, this.#access.deployments);
    followWorkloads(this.scope, this.queue, this.#access.budgets, this.#access.statefulSets);
    this.scope.onChange(this.#access.pods, { added: this.#awaitTarget, updated: this.#awaitTarget });
  }

  #workloadsIn(namespace: string): Workloads {
    return {
      replicationController: (name) => this.#access.replicationControllers.get(`${namespace}/${name}`),
      replicaSet: (name) => this.#access.replicaSets.get(`${namespace}/${name}`),
      deployment: (name) => this.#access.deployments.get(`${namespace}/${name}`),
      statefulSet: (name) => this.#access.statefulSets.get(`${namespace}/${name}`),
    };
  }

  /**
   * Writes the status, conditional on the version that the plan used, so that an eviction counted in the meantime is
   * not reverted.
   */
  async #write(budget: PodDisruptionBudget, status: PodDisruptionBudgetStatus | undefined): Promise<void> {
    if (status === undefined) return;
    try {
      await this.#access.budgetClient.update({ ...budget, status }, { subresource: 'status' });
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }

  async #withdrawTarget(pod: Pod): Promise<void> {
    const { name = '', namespace, uid, resourceVersion } = pod.metadata ?? {};
    const condition = {
      type: 'DisruptionTarget',
      ...observedGeneration(pod),
      status: 'False',
      lastTransitionTime: timestamp(this.handle.plan().nowMs),
      reason: null,
      message: null,
    };
    try {
      await this.#access.podClient.patch(
        name,
        namespace,
        'strategic',
        { metadata: { uid, resourceVersion }, status: { conditions: [condition] } },
        { subresource: 'status' },
      );
    } catch (error) {
      if (!isApiError(error, 'NotFound')) throw error;
    }
  }

  readonly #awaitTarget = (pod: Pod): void => {
    const inMs = targetStaleInMs(pod, this.handle.plan().nowMs);
    if (inMs !== undefined) this.#targets.addAfter(objectKey(pod), inMs);
  };

  protected override async sync(key: string): Promise<void> {
    const budget = this.#access.budgets.get(key);
    if (budget === undefined) return;
    let reason = 'NoPods';
    let what = 'Failed to get pods';
    try {
      const selected = podsOf(budget, this.#access.pods);
      reason = 'CalculateExpectedPodCountFailed';
      what = 'Failed to calculate the number of expected pods';
      const { scales, didRequest } = await this.#scalesFor(budget, selected);
      await this.#settle(budget, selected, scales);
      if (didRequest) this.queue.addAfter(key, RESYNC_MS);
    } catch (error) {
      if (!(error instanceof Uncountable) || this.scope.signal.aborted) throw error;
      this.handle.recorder.event(budget, 'Warning', reason, `${what}: ${error.message}`);
      await this.#write(budget, planFailure(budget, error.message, this.handle.plan()));
      this.queue.addAfter(key, RESYNC_MS);
    }
  }

  async #settle(
    budget: PodDisruptionBudget,
    selected: readonly Pod[],
    scales: ReadonlyMap<string, ControllerScale>,
  ): Promise<void> {
    const plan = planBudget({ budget, pods: selected, scales }, this.handle.plan());
    for (const { type, reason, message } of plan.events) this.handle.recorder.event(budget, type, reason, message);
    await this.#write(budget, plan.status);
    for (const pod of plan.notDeleted) {
      const message = `Pod was expected by PDB ${objectKey(budget)} to be deleted but it wasn't`;
      this.handle.recorder.event(pod, 'Warning', 'NotDeleted', message);
    }
    if (plan.recheckAfterMs !== undefined) this.queue.addAfter(objectKey(budget), plan.recheckAfterMs);
  }

  /**
   * `didRequest`: some of the scales were read by a request, so no watch reports their changes. Throws `Uncountable`.
   */
  async #scalesFor(
    budget: PodDisruptionBudget,
    selected: readonly Pod[],
  ): Promise<{ readonly scales: ReadonlyMap<string, ControllerScale>; readonly didRequest: boolean }> {
    const namespace = budget.metadata?.namespace ?? '';
    const scales = new Map<string, ControllerScale>();
    let didRequest = false;
    for (const reference of controllersToRead(budget, selected)) {
      let scale = knownScale(reference, this.#workloadsIn(namespace));
      if (scale === undefined) {
        didRequest = true;
        scale = await uncountableIfThrown(readScale(this.#access.read, reference, namespace, this.scope.signal));
      }
      if (scale === undefined) {
        const pod = selected.find((each) => controllerOf(each)?.uid === reference.uid);
        const message = `found no controllers for pod ${JSON.stringify(pod?.metadata?.name ?? '')}`;
        this.handle.recorder.event(budget, 'Warning', 'NoControllers', message);
        throw new Uncountable(message);
      }
      scales.set(reference.uid, scale);
    }
    return { scales, didRequest };
  }
}

/** Error that the allowed disruptions cannot be computed, because of a fault in the budget or a temporary failure. */
class Uncountable extends Error {}

async function uncountableIfThrown<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new Uncountable(messageOf(error));
  }
}

function podsOf(budget: PodDisruptionBudget, pods: Informer<Pod>): Pod[] {
  let selector: ReturnType<typeof storedSelectorOf>;
  try {
    selector = storedSelectorOf(budget.spec?.selector);
  } catch (error) {
    throw new Uncountable(messageOf(error));
  }
  if (selector.nothing) return [];
  return pods.list(budget.metadata?.namespace).filter((pod) => matchesLabels(selector, pod.metadata?.labels));
}

function followBudgets(
  scope: RunScope,
  queue: WorkQueue,
  budgets: Informer<PodDisruptionBudget>,
  pods: Informer<Pod>,
): void {
  const wakeBudgets = candidateWaker(scope, budgets, (budget) => queue.add(objectKey(budget)));
  const wake = (pod: Pod): void => wakeBudgets(pod.metadata?.namespace, (budget) => isSelected(budget, pod));
  scope.onChange(budgets, {
    added: (budget) => queue.add(objectKey(budget)),
    updated: (budget) => queue.add(objectKey(budget)),
  });
  scope.onChange(pods, {
    added: wake,
    updated: (pod, old) => {
      if (equalIgnoringEmptyLists(countedFacts(pod), countedFacts(old))) return;
      wake(old);
      wake(pod);
    },
    deleted: wake,
  });
}

/** Pod fields that influence a budget. */
function countedFacts(pod: Pod): object {
  const { labels, deletionTimestamp, uid } = pod.metadata ?? {};
  return { labels, deletionTimestamp, uid, ready: isPodReady(pod), controller: controllerOf(pod)?.uid };
}

function isSelected(budget: PodDisruptionBudget, pod: Pod): boolean {
  try {
    return matchesLabels(storedSelectorOf(budget.spec?.selector), pod.metadata?.labels);
  } catch {
    // The selector is invalid, which the sync after the budget's last change has reported in the budget's status.
    return false;
  }
}

type Workload = KubeObject & { readonly spec?: { readonly replicas?: number } };

/** Queues the budgets that depend on a scale when the replicas or the owner of a workload change. */
function followWorkloads<T extends Workload>(
  scope: RunScope,
  queue: WorkQueue,
  budgets: Informer<PodDisruptionBudget>,
  workloads: Informer<T>,
): void {
  const wakeBudgets = candidateWaker(scope, budgets, (budget) => queue.add(objectKey(budget)));
  const wake = (workload: Workload): void => wakeBudgets(workload.metadata?.namespace, isCountedByScale);
  scope.onChange(workloads, {
    added: wake,
    updated: (workload, old) => {
      const isSame =
        workload.spec?.replicas === old.spec?.replicas && controllerOf(workload)?.uid === controllerOf(old)?.uid;
      if (!isSame) wake(workload);
    },
    deleted: wake,
  });
}
