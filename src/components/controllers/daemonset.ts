/** Daemon sets. Plans in core/reconcile/daemonset; whether a node suits a pod is the scheduler's rule. */
import type { ControllerRevision, DaemonSet } from 'kubernetes-types/apps/v1';
import type { Node, Pod } from 'kubernetes-types/core/v1';
import { objectKey, splitKey } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { isEverything, labelSelectorOf, matchesLabels } from '../../base/selector.ts';
import { type HistoryPlan, hasSameTemplate, planHistory } from '../../core/reconcile/daemonset/history.ts';
import {
  type DaemonPlan,
  type DaemonSnapshot,
  type NodeVerdict,
  planDaemonPods,
  planDaemonStatus,
} from '../../core/reconcile/daemonset/plan.ts';
import { daemonPod } from '../../core/reconcile/daemonset/pod.ts';
import { claimObjects, controllerOf, isControlledBy } from '../../core/reconcile/ownership.ts';
import { matchesNode } from '../../core/scheduling/node-affinity.ts';
import { untoleratedTaint } from '../../core/scheduling/tolerations.ts';
import { carryOutClaim } from './claim.ts';
import { Expectations } from './expectations.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from './framework.ts';
import { controlledBy, indexByController, orphansIn } from './indices.ts';
import { createPodControl, isNamespaceTerminating } from './pod-control.ts';
import { slowStart } from './slow-start.ts';

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
  const { clock, recorder } = handle;
  const sets = handle.informer(resources.daemonSets);
  const revisions = handle.informer(resources.controllerRevisions);
  const pods = handle.informer(resources.pods);
  const nodes = handle.informer(resources.nodes);
  const setClient = handle.writer(resources.daemonSets);
  const revisionClient = handle.writer(resources.controllerRevisions);
  const podClient = handle.writer(resources.pods);
  const control = createPodControl(podClient, recorder);
  indexByController(pods);
  indexByController(revisions);

  return (scope) => {
    const expectations = new Expectations(clock);
    const failures = new Map<string, { readonly untilMs: number; readonly delayMs: number }>();
    const queue = scope.queue(sync, 2);

    scope.onChange(sets, {
      added: (set) => queue.add(objectKey(set)),
      updated: (set) => queue.add(objectKey(set)),
      deleted: (set) => {
        expectations.forget(objectKey(set));
        for (const key of failures.keys()) if (key.startsWith(`${set.metadata?.uid ?? ''}/`)) failures.delete(key);
      },
    });
    const wakeAll = (): void => {
      for (const set of sets.list()) queue.add(objectKey(set));
    };
    scope.onChange(nodes, {
      added: wakeAll,
      updated: (node, old) => {
        if (suitability(node) !== suitability(old)) wakeAll();
      },
      deleted: wakeAll,
    });
    const ownerKey = (object: Pod | ControllerRevision): string | undefined => {
      const reference = controllerOf(object);
      if (reference?.kind !== 'DaemonSet') return undefined;
      const set = sets.get(`${object.metadata?.namespace ?? ''}/${reference.name}`);
      return set?.metadata?.uid === reference.uid ? objectKey(set) : undefined;
    };
    const wakeAdopters = (pod: Pod): void => {
      if (controllerOf(pod) !== undefined) return;
      for (const set of sets.list(pod.metadata?.namespace)) {
        if (matchesLabels(labelSelectorOf(set.spec?.selector), pod.metadata?.labels)) queue.add(objectKey(set));
      }
    };
    scope.onChange(pods, {
      added: (pod) => {
        const key = ownerKey(pod);
        if (key === undefined) {
          wakeAdopters(pod);
          return;
        }
        if (pod.metadata?.deletionTimestamp === undefined) expectations.creationObserved(key);
        else expectations.deletionObserved(key, pod.metadata.uid ?? '');
        queue.add(key);
      },
      updated: (pod, old) => {
        const key = ownerKey(pod);
        const oldKey = ownerKey(old);
        if (oldKey !== undefined && oldKey !== key) queue.add(oldKey);
        if (key === undefined) {
          if (oldKey !== undefined || pod.metadata?.labels !== old.metadata?.labels) wakeAdopters(pod);
          return;
        }
        if (pod.metadata?.deletionTimestamp !== undefined) expectations.deletionObserved(key, pod.metadata.uid ?? '');
        queue.add(key);
      },
      deleted: (pod) => {
        const key = ownerKey(pod);
        if (key === undefined) return;
        expectations.deletionObserved(key, pod.metadata?.uid ?? '');
        queue.add(key);
      },
    });
    const wakeByRevision = (revision: ControllerRevision): void => {
      const key = ownerKey(revision);
      if (key !== undefined) queue.add(key);
    };
    scope.onChange(revisions, { added: wakeByRevision, updated: wakeByRevision, deleted: wakeByRevision });

    async function sync(key: string): Promise<void> {
      const set = sets.get(key);
      if (set === undefined) {
        expectations.forget(key);
        return;
      }
      const selector = labelSelectorOf(set.spec?.selector);
      if (isEverything(selector)) {
        recorder.event(
          set,
          'Warning',
          'SelectingAll',
          'This daemon set is selecting all pods. A non-empty selector is required.',
        );
        return;
      }
      const { namespace = '' } = splitKey(key);
      const uid = set.metadata?.uid ?? '';
      const claim = claimObjects(set, [...controlledBy(pods, uid), ...orphansIn(pods, namespace)], (pod) =>
        matchesLabels(selector, pod.metadata?.labels),
      );
      const owned = await carryOutClaim(set, claim, {
        ownerType: resources.daemonSets,
        owners: setClient,
        objects: podClient,
      });
      const history = planHistory(set, controlledBy(revisions, uid), owned);
      if (set.metadata?.deletionTimestamp === undefined && !(await writeHistory(set, history))) return;
      const snapshot: DaemonSnapshot = {
        set,
        pods: owned,
        nodes: nodes.list().map((node) => verdict(set, node)),
        hash: history.hash,
        settled: expectations.settled(key),
        mayReplaceFailed: (node) => mayReplaceFailed(key, uid, node),
      };
      const plan = planDaemonPods(snapshot, handle.plan());
      const error = await carryOut(key, set, history.hash, plan);
      const next = planDaemonStatus(snapshot, handle.plan());
      if (next.status !== undefined) await setClient.update({ ...set, status: next.status }, { subresource: 'status' });
      if (next.recheckAfterMs !== undefined) queue.addAfter(key, next.recheckAfterMs);
      if (error !== undefined) throw error;
    }

    function mayReplaceFailed(key: string, uid: string, node: string): boolean {
      const id = `${uid}/${node}`;
      const now = clock.monotonicMs();
      const known = failures.get(id);
      if (known !== undefined && now < known.untilMs) {
        queue.addAfter(key, known.untilMs - now);
        return false;
      }
      // One that held for twice the longest back-off has recovered.
      const isFresh = known === undefined || now - known.untilMs > 2 * FAILED_MAX_MS;
      const delayMs = isFresh ? FAILED_INITIAL_MS : Math.min(FAILED_MAX_MS, known.delayMs * 2);
      failures.set(id, { untilMs: now + delayMs, delayMs });
      return true;
    }

    /** False when the plan does not hold: another template has the same hash, or the copy lags. */
    async function writeHistory(set: DaemonSet, history: HistoryPlan): Promise<boolean> {
      if (history.create !== undefined) {
        try {
          await revisionClient.create(history.create);
        } catch (error) {
          if (isNamespaceTerminating(error)) return false;
          if (!isApiError(error, 'AlreadyExists')) throw error;
          const { name = '', namespace } = history.create.metadata ?? {};
          const existing = await revisionClient.get(name, namespace);
          if (!isControlledBy(existing, set.metadata?.uid) || !hasSameTemplate(existing, set)) {
            const collisionCount = (set.status?.collisionCount ?? 0) + 1;
            const status = { ...emptyStatus, ...set.status, collisionCount };
            await setClient.update({ ...set, status }, { subresource: 'status' });
            return false;
          }
        }
      }
      if (history.update !== undefined) await revisionClient.update(history.update);
      for (const revision of history.delete) {
        try {
          await revisionClient.delete(revision.metadata?.name ?? '', revision.metadata?.namespace);
        } catch (error) {
          if (!isApiError(error, 'NotFound')) throw error;
        }
      }
      return true;
    }

    async function carryOut(key: string, set: DaemonSet, hash: string, plan: DaemonPlan): Promise<unknown> {
      for (const event of plan.events) recorder.event(set, event.type, event.reason, event.message);
      if (plan.create.length === 0 && plan.delete.length === 0) return undefined;
      expectations.expect(
        key,
        plan.create.length,
        plan.delete.map((pod) => pod.metadata?.uid ?? ''),
      );
      const created = await slowStart(plan.create.length, (index) =>
        control.create(set, daemonPod(set, plan.create[index] ?? '', hash)),
      );
      expectations.creationObserved(key, plan.create.length - created.succeeded);
      const deleted = await Promise.allSettled(
        plan.delete.map(async (pod) => {
          let awaited = false;
          try {
            awaited = await control.delete(set, pod);
          } finally {
            if (!awaited) expectations.deletionObserved(key, pod.metadata?.uid ?? '');
          }
        }),
      );
      if (created.error !== undefined && !isNamespaceTerminating(created.error)) return created.error;
      return deleted.find((result) => result.status === 'rejected')?.reason;
    }
  };
}

const emptyStatus = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };

function verdict(set: DaemonSet, node: Node): NodeVerdict {
  const name = node.metadata?.name ?? '';
  const pod = daemonPod(set, name, '');
  const tolerations = pod.spec?.tolerations;
  const isPlace = matchesNode(pod, node) && (set.spec?.template.spec?.nodeName ?? name) === name;
  const isExpelled = untoleratedTaint(node.spec?.taints, tolerations, ['NoExecute']) !== undefined;
  const isBarred = untoleratedTaint(node.spec?.taints, tolerations, ['NoSchedule', 'NoExecute']) !== undefined;
  return { name, shouldRun: isPlace && !isBarred, shouldContinue: isPlace && !isExpelled };
}

/** What of a node decides whether daemon pods belong there. */
function suitability(node: Node): string {
  return JSON.stringify([node.metadata?.labels, node.spec?.taints, node.spec?.unschedulable]);
}
