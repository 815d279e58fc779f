/**
 * Evicts a pod: a delete that the pod's disruption budget must allow. Source:
 * k8s.io/kubernetes/pkg/registry/core/pod/storage EvictionREST.
 */

import type { Pod } from '../../../api/generated/core/v1.ts';
import type { PodDisruptionBudget } from '../../../api/generated/policy/v1.ts';
import { transitionTime } from '../../../api/meta/conditions.ts';
import { ApiError, errors, type Status } from '../../../api/meta/status.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import { matchesLabels, storedSelectorOf } from '../../../base/selector.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { isPodReady } from '../../../controllers/framework/core/pods.ts';
import type { DeleteOptions } from '../../pipeline/write-options.ts';
import { conflictMessage, placeOf, type WriteRequest } from '../../pipeline/write-request.ts';
import type { WriteContext } from '../context.ts';
import { deleteObject } from '../writes/delete.ts';
import { updateObject } from '../writes/update.ts';
import { strategyAt } from './strategies.ts';

const MAX_TRIES = 1000;
/**
 * Maximum number of evictions in a budget's status that the disruption controller has not processed. It limits the size
 * of the status.
 */
const MAX_DISRUPTED_PODS = 2000;
const OWN: UserInfo = { name: 'system:apiserver', groups: ['system:masters', 'system:authenticated'] };

/**
 * Evicts a pod. Resolves when the pod has been deleted or marked for deletion. Throws 'TooManyRequests' while its
 * budget allows no disruption, 'Forbidden' for a budget that cannot be counted down, and 'Conflict' if the caller's
 * preconditions fail.
 */
export async function evictPod(context: WriteContext, request: WriteRequest, options: DeleteOptions): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const found = await context.objects.readStored(placeOf(request, request.name));
    if (found === undefined) throw errors.notFound(request.kind, request.name);
    const pod = found.parse<Pod>();
    const requested = options.resourceVersion;
    if (!isDisruption(pod)) {
      // A pending pod may become ready in the meantime, which would require the budget. The delete therefore requires
      // the revision that was checked; on conflict the pod is checked again.
      const guarded = mayBecomeReady(pod)
        ? { ...options, resourceVersion: requested ?? String(found.revision) }
        : options;
      try {
        await markAndDelete(context, request, guarded);
        return;
      } catch (error) {
        if (!isConflict(error) || requested !== undefined || attempt >= MAX_TRIES) throw error;
        continue;
      }
    }
    const budget = await budgetOf(context, pod);
    if (budget === undefined) return markAndDelete(context, request, options);
    if (mayGoUncounted(pod, budget)) {
      try {
        return await markAndDelete(context, request, {
          ...options,
          resourceVersion: requested ?? String(found.revision),
        });
      } catch (error) {
        if (isConflict(error) && requested === undefined) throw unsettled(budget);
        throw error;
      }
    }
    await countDown(context, request, budget, options.dryRun);
    return markAndDelete(context, request, options);
  }
}

/**
 * Reports whether the eviction counts as a disruption. Pending, terminated and terminating pods are deleted without a
 * budget.
 */
function isDisruption(pod: Pod): boolean {
  const phase = pod.status?.phase ?? '';
  return (
    !['Succeeded', 'Failed', 'Pending'].includes(phase) && (pod.metadata?.deletionTimestamp ?? undefined) === undefined
  );
}

function mayBecomeReady(pod: Pod): boolean {
  return pod.status?.phase === 'Pending' && pod.metadata?.deletionTimestamp === undefined;
}

const isConflict = (error: unknown): boolean => error instanceof ApiError && error.reason === 'Conflict';

async function budgetOf(context: WriteContext, pod: Pod): Promise<PodDisruptionBudget | undefined> {
  const labels = pod.metadata?.labels;
  if (labels === undefined || Object.keys(labels).length === 0) return undefined;
  await context.cache.freshen();
  const kind = context.kinds.stored('poddisruptionbudgets', 'policy');
  const found = (kind.cache?.list(pod.metadata?.namespace) ?? [])
    .map((each) => each.parse<PodDisruptionBudget>())
    .filter((budget) => selects(budget, labels));
  if (found.length > 1) {
    throw new ApiError(
      'InternalError',
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    );
  }
  return found[0];
}

function selects(budget: PodDisruptionBudget, labels: Readonly<Record<string, string>>): boolean {
  try {
    return matchesLabels(storedSelectorOf(budget.spec?.selector), labels);
  } catch {
    // An invalid selector of an old object selects no pods.
    return false;
  }
}

/**
 * Reports whether a pod that is not ready may be evicted without counting, because the budget counts healthy pods only.
 */
function mayGoUncounted(pod: Pod, budget: PodDisruptionBudget): boolean {
  if (isPodReady(pod)) return false;
  if (budget.spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {};
  return desiredHealthy > 0 && currentHealthy >= desiredHealthy;
}

/** Decrements the allowed disruptions of the budget and records the pod for the disruption controller. */
async function countDown(
  context: WriteContext,
  request: WriteRequest,
  budget: PodDisruptionBudget,
  dryRun: boolean,
): Promise<void> {
  const kind = context.kinds.stored('poddisruptionbudgets', 'policy');
  const update: WriteRequest = {
    kind,
    namespace: request.namespace,
    name: budget.metadata?.name ?? '',
    subresource: 'status',
    user: OWN,
    options: { dryRun, validation: 'Ignore', fieldManager: 'kube-apiserver', force: false },
    warnings: [],
  };
  await updateObject(context, update, {
    strategy: strategyAt(kind, 'status') ?? {},
    next: (current) => {
      const now = current as PodDisruptionBudget;
      const status = checked(now);
      return {
        ...now,
        status: {
          ...status,
          disruptionsAllowed: (status.disruptionsAllowed ?? 0) - 1,
          disruptedPods: { ...status.disruptedPods, [request.name]: timestamp(context.clock.nowMs()) },
        },
      };
    },
  });
}

/** The status of a budget that allows a disruption. Throws an ApiError for any other budget. */
function checked(budget: PodDisruptionBudget): NonNullable<PodDisruptionBudget['status']> {
  const name = budget.metadata?.name ?? '';
  const { status } = budget;
  if (status === undefined || (status.observedGeneration ?? 0) < (budget.metadata?.generation ?? 0)) {
    throw unsettled(budget);
  }
  const allowed = status.disruptionsAllowed ?? 0;
  const uncountable = (why: string): ApiError =>
    errors.forbidden(`poddisruptionbudget.policy "${name}" is forbidden: ${why}`, {
      name,
      group: 'policy',
      kind: 'poddisruptionbudget',
    });
  if (allowed < 0) throw uncountable('pdb disruptions allowed is negative');
  if (Object.keys(status.disruptedPods ?? {}).length > MAX_DISRUPTED_PODS) {
    throw uncountable('DisruptedPods map too big - too many evictions not confirmed by PDB controller');
  }
  if (allowed > 0) return { ...status, disruptionsAllowed: allowed };
  const failed = status.conditions?.find(
    (each) => each.type === 'DisruptionAllowed' && each.status === 'False' && each.reason === 'SyncFailed',
  );
  throw violated(
    failed === undefined
      ? `The disruption budget ${name} needs ${status.desiredHealthy ?? 0} healthy pods and has ${status.currentHealthy ?? 0} currently`
      : `The disruption budget ${name} does not currently allow evictions because it failed sync: ${failed.message ?? ''}`,
  );
}

function unsettled(budget: PodDisruptionBudget): ApiError {
  const why = `The disruption budget ${budget.metadata?.name ?? ''} is still being processed by the server.`;
  return violated(why, { retryAfterSeconds: 10 });
}

function violated(message: string, more: Status['details'] = {}): ApiError {
  return new ApiError('TooManyRequests', "Cannot evict pod as it would violate the pod's disruption budget.", {
    ...more,
    causes: [{ reason: 'DisruptionBudget', message }],
  });
}

/** Sets the DisruptionTarget condition of the pod, then deletes it with the same preconditions. */
async function markAndDelete(context: WriteContext, request: WriteRequest, options: DeleteOptions): Promise<void> {
  let { resourceVersion } = options;
  if (!options.dryRun) {
    const { object } = await updateObject(context, request, {
      strategy: strategyAt(request.kind, 'status') ?? {},
      // The evicting client must not become the manager of the pod's conditions.
      owned: true,
      next: (current) => {
        const pod = current as Pod;
        requirePreconditions(request, options, pod);
        return { ...pod, status: { ...pod.status, conditions: withTarget(pod, context.clock.nowMs()) } };
      },
    });
    if (resourceVersion !== undefined) resourceVersion = String(object.revision);
  }
  await deleteObject(context, request, { ...options, resourceVersion });
}

function requirePreconditions(request: WriteRequest, { uid, resourceVersion }: DeleteOptions, pod: Pod): void {
  const { uid: actual, resourceVersion: version } = pod.metadata ?? {};
  if (uid !== undefined && uid !== actual) {
    throw errors.conflict(
      request.kind,
      request.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${actual}`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== version) {
    throw errors.conflict(request.kind, request.name, conflictMessage);
  }
}

function withTarget(pod: Pod, nowMs: number): NonNullable<Pod['status']>['conditions'] {
  const conditions = pod.status?.conditions ?? [];
  const known = conditions.find((each) => each.type === 'DisruptionTarget');
  const target = {
    type: 'DisruptionTarget',
    status: 'True',
    lastTransitionTime: transitionTime(known, 'True', timestamp(nowMs)),
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  return known === undefined
    ? [...conditions, target]
    : conditions.map((each) => (each === known ? { ...known, ...target } : each));
}
