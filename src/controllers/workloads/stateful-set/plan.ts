/**
 * Stateful sets: the pods to create, replace or delete next, and the status. Ordered sets perform one action at a time
 * and wait until the pod is available; parallel sets perform all at once. Source: upstream's stateful_set_control.go.
 */

import type { StatefulSet, StatefulSetStatus } from '../../../api/generated/apps/v1.ts';
import type { PersistentVolumeClaim, Pod } from '../../../api/generated/core/v1.ts';
import type { OwnerReference } from '../../../api/generated/meta/v1.ts';
import { omitEmpty, omitUndefined } from '../../../base/json/omit-fields.ts';
import { templateOf } from '../../framework/core/controller-revisions.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';
import { resolveIntOrPercent } from '../../framework/core/int-or-percent.ts';
import type { PlanContext } from '../../framework/core/plan-context.ts';
import { availableInMs, isPodReady, isPodTerminal } from '../../framework/core/pods.ts';
import type { StatefulHistory } from './history.ts';
import { claimsOf, missingIdentity, ordinalOf, podName, REVISION_LABEL, statefulPod } from './pod.ts';
import { isStaleClaim, retainedBy } from './retention.ts';

export interface StatefulSnapshot {
  readonly set: StatefulSet;
  readonly pods: readonly Pod[];
  readonly history: StatefulHistory;
  claim(name: string): PersistentVolumeClaim | undefined;
}

export type StatefulAction =
  /** `pod` is undefined if the pod exists and only its claims are missing. */
  | {
      readonly type: 'create';
      readonly name: string;
      readonly pod: Pod | undefined;
      readonly claims: readonly PersistentVolumeClaim[];
    }
  | { readonly type: 'delete'; readonly pod: Pod }
  | { readonly type: 'label'; readonly pod: Pod; readonly labels: Readonly<Record<string, string>> }
  | {
      readonly type: 'own';
      readonly claim: PersistentVolumeClaim;
      readonly ownerReferences: readonly OwnerReference[];
    };

export interface StatefulPlan {
  /** Actions in order. The actions of a parallel set are independent of each other. */
  readonly actions: readonly StatefulAction[];
  /** New status; undefined if it is unchanged. */
  readonly status: StatefulSetStatus | undefined;
  /** Time until the next ready pod becomes available. */
  readonly recheckAfterMs: number | undefined;
}

/** Pods created per plan of a parallel set. Their watch events trigger the next plan, which creates more. */
const CREATE_BURST = 500;

export function planStatefulSet(snapshot: StatefulSnapshot, context: PlanContext): StatefulPlan {
  const { set, history } = snapshot;
  const view = new Replicas(snapshot, context.nowMs);
  const status = nextStatus(set, history, view);
  const actions: StatefulAction[] = [];
  if (set.metadata?.deletionTimestamp === undefined && planReplicas(snapshot, view, actions)) {
    if (planCondemned(snapshot, view, actions)) planUpdate(snapshot, view, actions);
  }
  return {
    actions,
    status: equalIgnoringEmptyLists(set.status, status) ? undefined : status,
    recheckAfterMs: view.recheckAfterMs,
  };
}

/** State of the set's pods by ordinal. */
class Replicas {
  readonly start: number;
  readonly count: number;
  /** Existing pods of the range by position (ordinal minus start), lowest first. */
  readonly present: ReadonlyMap<number, Pod>;
  /** Pods beyond the range, lowest ordinal first. */
  readonly condemned: readonly Pod[];
  readonly all: readonly Pod[];
  recheckAfterMs: number | undefined;
  readonly #minReadySeconds: number;
  readonly #nowMs: number;

  constructor({ set, pods }: StatefulSnapshot, nowMs: number) {
    this.start = set.spec?.ordinals?.start ?? 0;
    this.count = set.spec?.replicas ?? 1;
    this.#minReadySeconds = set.spec?.minReadySeconds ?? 0;
    this.#nowMs = nowMs;
    const present: [number, Pod][] = [];
    const condemned: { readonly ordinal: number; readonly pod: Pod }[] = [];
    for (const pod of pods) {
      const ordinal = ordinalOf(set, pod);
      if (ordinal === undefined) continue;
      const position = ordinal - this.start;
      if (position >= 0 && position < this.count) present.push([position, pod]);
      else condemned.push({ ordinal, pod });
    }
    this.present = new Map(present.sort(([a], [b]) => a - b));
    this.condemned = condemned.sort((a, b) => a.ordinal - b.ordinal).map((each) => each.pod);
    this.all = [...this.present.values(), ...this.condemned];
    for (const pod of this.all) {
      const waitMs = availableInMs(pod, this.#minReadySeconds, nowMs);
      if (waitMs !== undefined && waitMs > 0) this.recheckAfterMs = Math.min(this.recheckAfterMs ?? waitMs, waitMs);
    }
  }

  isAvailable(pod: Pod): boolean {
    return isRunningAndReady(pod) && availableInMs(pod, this.#minReadySeconds, this.#nowMs) === 0;
  }

  /** Whether the pod is available and not terminating. */
  isHealthy(pod: Pod | undefined): boolean {
    return pod !== undefined && this.isAvailable(pod) && !isTerminating(pod);
  }
}

/** Plans creations. Returns true if every replica has the state that the policy requires before pods are removed. */
function planReplicas(snapshot: StatefulSnapshot, view: Replicas, actions: StatefulAction[]): boolean {
  const ordered = snapshot.set.spec?.podManagementPolicy !== 'Parallel';
  const creatable = ordered ? 1 : CREATE_BURST;
  for (const position of positions(view, creatable)) {
    const done = planReplica(snapshot, view.present.get(position), view.start + position, view, actions);
    if (!done && ordered) return false;
  }
  return true;
}

/** Positions of all existing pods and of the first `creatable` missing ones, ascending. */
function* positions({ present, count }: Replicas, creatable: number): Generator<number> {
  const existing = [...present.keys(), count];
  let next = 0;
  let left = creatable;
  for (const position of existing) {
    for (; next < position && left > 0; next++, left--) yield next;
    if (position < count) yield position;
    next = position + 1;
  }
}

function planReplica(
  snapshot: StatefulSnapshot,
  pod: Pod | undefined,
  ordinal: number,
  view: Replicas,
  actions: StatefulAction[],
): boolean {
  const { set } = snapshot;
  const present = claimsOf(set, ordinal).map((wanted) => ({
    wanted,
    claim: snapshot.claim(wanted.metadata?.name ?? ''),
  }));
  const missing = present.filter(({ claim }) => claim === undefined).map(({ wanted }) => wanted);
  if (pod === undefined) {
    const name = podName(set, ordinal);
    // No pod is created while its claim is being deleted together with the previous pod of that name.
    if (present.some(({ claim }) => claim !== undefined && isStaleClaim(claim, name, undefined))) return false;
    // Claims that are being deleted are part of the creation too, so that the failure to create them is recorded.
    const doomed = present.filter(({ claim }) => claim?.metadata?.deletionTimestamp !== undefined);
    const claims = [...missing, ...doomed.map(({ wanted }) => wanted)].map((claim) => owned(set, claim));
    actions.push({ type: 'create', name, pod: newPod(snapshot, ordinal), claims });
    return false;
  }
  if (isPodTerminal(pod)) {
    if (!isTerminating(pod)) actions.push({ type: 'delete', pod });
    return false;
  }
  if (isTerminating(pod)) return false;
  if (pod.status?.phase === 'Pending' && missing.length > 0) {
    const claims = missing.map((claim) => owned(set, claim));
    actions.push({ type: 'create', name: podName(set, ordinal), pod: undefined, claims });
  }
  const labels = missingIdentity(set, pod, ordinal);
  if (labels !== undefined) actions.push({ type: 'label', pod, labels });
  planOwners(snapshot, pod, ordinal, { condemned: false }, actions);
  return view.isAvailable(pod);
}

function owned(set: StatefulSet, claim: PersistentVolumeClaim): PersistentVolumeClaim {
  const ownerReferences = retainedBy(set, claim, undefined, { condemned: false });
  return ownerReferences === undefined ? claim : { ...claim, metadata: { ...claim.metadata, ownerReferences } };
}

function planOwners(
  { set, claim }: StatefulSnapshot,
  pod: Pod,
  ordinal: number,
  { condemned }: { readonly condemned: boolean },
  actions: StatefulAction[],
): void {
  for (const { metadata } of claimsOf(set, ordinal)) {
    const present = claim(metadata?.name ?? '');
    if (present === undefined || present.metadata?.deletionTimestamp !== undefined) continue;
    const ownerReferences = retainedBy(set, present, pod, { condemned });
    if (ownerReferences !== undefined) actions.push({ type: 'own', claim: present, ownerReferences });
  }
}

/** Pod of an ordinal. Pods below the partition are created from the current revision instead of the update revision. */
function newPod({ set, history }: StatefulSnapshot, ordinal: number): Pod {
  const { updateStrategy, ordinals } = set.spec ?? {};
  const boundary = (ordinals?.start ?? 0) + (updateStrategy?.rollingUpdate?.partition ?? 0);
  const isOld = updateStrategy?.type !== 'OnDelete' && ordinal < boundary;
  const revision = isOld ? history.current : history.update;
  const template = isOld ? (templateOf(revision) ?? set.spec?.template) : set.spec?.template;
  return statefulPod(set, template, ordinal, revision.metadata?.name ?? '');
}

/** Scales down from the highest ordinal. Returns true if no pod beyond the range is left. */
function planCondemned(snapshot: StatefulSnapshot, view: Replicas, actions: StatefulAction[]): boolean {
  const { set } = snapshot;
  const ordered = set.spec?.podManagementPolicy !== 'Parallel';
  const firstUnhealthy = view.all.find((pod) => !view.isHealthy(pod));
  for (const pod of view.condemned) planOwners(snapshot, pod, ordinalOf(set, pod) ?? 0, { condemned: true }, actions);
  for (const pod of view.condemned.toReversed()) {
    if (isTerminating(pod)) {
      if (ordered) return false;
      continue;
    }
    if (ordered && !view.isAvailable(pod) && pod !== firstUnhealthy) return false;
    actions.push({ type: 'delete', pod });
    if (ordered) return false;
  }
  return true;
}

/** Replaces pods of older revisions from the highest ordinal down to the partition, within the unavailability limit. */
function planUpdate({ set, history }: StatefulSnapshot, view: Replicas, actions: StatefulAction[]): void {
  const strategy = set.spec?.updateStrategy;
  if (strategy?.type === 'OnDelete') return;
  const rolling = strategy?.rollingUpdate;
  const max = Math.max(1, resolveIntOrPercent(rolling?.maxUnavailable, view.count, 'up', 1));
  let budget = max - view.count + [...view.present.values()].filter((pod) => view.isHealthy(pod)).length;
  for (const [position, pod] of [...view.present].reverse()) {
    if (position < (rolling?.partition ?? 0)) break;
    if (isTerminating(pod) || isPodTerminal(pod)) continue;
    if (revisionOf(pod) === history.update.metadata?.name) continue;
    if (view.isHealthy(pod)) {
      if (budget <= 0) return;
      budget--;
    }
    actions.push({ type: 'delete', pod });
  }
}

function nextStatus(set: StatefulSet, history: StatefulHistory, view: Replicas): StatefulSetStatus {
  const current = history.current.metadata?.name ?? '';
  const update = history.update.metadata?.name ?? '';
  const staying = view.all.filter((pod) => !isTerminating(pod));
  const updated = staying.filter((pod) => revisionOf(pod) === update).length;
  const ready = view.all.filter(isRunningAndReady).length;
  const isComplete =
    set.spec?.updateStrategy?.type !== 'OnDelete' &&
    updated === view.count &&
    ready === view.count &&
    view.all.length === view.count;
  const currentReplicas = isComplete ? updated : staying.filter((pod) => revisionOf(pod) === current).length;
  const old = set.status;
  return {
    ...omitUndefined({ observedGeneration: set.metadata?.generation }),
    replicas: view.all.length,
    ...omitEmpty({ readyReplicas: ready, currentReplicas, updatedReplicas: updated }),
    currentRevision: isComplete ? update : current,
    updateRevision: update,
    collisionCount: old?.collisionCount ?? 0,
    availableReplicas: view.all.filter((pod) => view.isAvailable(pod)).length,
    ...omitUndefined({ conditions: old?.conditions }),
  };
}

const isTerminating = (pod: Pod): boolean => pod.metadata?.deletionTimestamp !== undefined;
const isRunningAndReady = (pod: Pod): boolean => pod.status?.phase === 'Running' && isPodReady(pod);
const revisionOf = (pod: Pod): string | undefined => pod.metadata?.labels?.[REVISION_LABEL];
