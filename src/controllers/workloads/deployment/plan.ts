/**
 * Deployments: the replica sets to create, resize, annotate with revisions and delete, and the status. Source:
 * upstream's pkg/controller/deployment (sync.go, rolling.go, recreate.go).
 */

import type { Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet } from '../../../api/generated/apps/v1.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';
import { controllerReference } from '../../framework/core/ownership.ts';
import type { PlanContext, PlannedEvent } from '../../framework/core/plan-context.ts';
import { isPodTerminal } from '../../framework/core/pods.ts';
import { templateHash } from '../../framework/core/template-hash.ts';
import { currentSetAnnotations, desiredReplicasOf, maxRevision, REVISION, revisionOf } from './annotations.ts';
import { findCondition, setCondition } from './conditions.ts';
import { Draft, sizeAnnotations } from './draft.ts';
import { newSetSize, reconcileOldSets, scaleWithoutRollout } from './rolling.ts';
import { type Sizes, sizesOf, specReplicas } from './sizes.ts';
import { planStatus, progressDeadlineMs, REASON } from './status.ts';

export const TEMPLATE_HASH_LABEL = 'pod-template-hash';

export interface DeploymentSnapshot {
  readonly deployment: Deployment;
  readonly replicaSets: readonly ReplicaSet[];
  /** Pods of the deployment's replica sets, by UID of the set; used only for Recreate. */
  readonly podsBySet: ReadonlyMap<string, readonly Pod[]>;
}

export interface DeploymentPlan {
  readonly create: ReplicaSet | undefined;
  /** Complete objects to write, each conditional on its resourceVersion. */
  readonly update: readonly ReplicaSet[];
  readonly delete: readonly ReplicaSet[];
  /** New revision annotation of the deployment; undefined if unchanged. */
  readonly revision: string | undefined;
  readonly status: DeploymentStatus | undefined;
  readonly events: readonly PlannedEvent[];
  readonly recheckAfterMs: number | undefined;
}

export function planDeployment(snapshot: DeploymentSnapshot, context: PlanContext): DeploymentPlan {
  const planner = new DeploymentPlanner(snapshot, context);
  return planner.plan();
}

class DeploymentPlanner {
  readonly #deployment: Deployment;
  readonly #sizes: Sizes;
  readonly #draft: Draft;
  readonly #nowMs: number;
  readonly #podsBySet: ReadonlyMap<string, readonly Pod[]>;
  #current: ReplicaSet | undefined;
  readonly #old: ReplicaSet[];
  #created: ReplicaSet | undefined;
  #revision: string | undefined;
  #conditions: DeploymentCondition[];
  #doomed: ReplicaSet[] = [];

  constructor(snapshot: DeploymentSnapshot, context: PlanContext) {
    this.#deployment = snapshot.deployment;
    this.#sizes = sizesOf(snapshot.deployment);
    this.#draft = new Draft(this.#sizes);
    this.#nowMs = context.nowMs;
    this.#podsBySet = snapshot.podsBySet;
    this.#conditions = [...(snapshot.deployment.status?.conditions ?? [])];
    const sets = snapshot.replicaSets.map((set) => this.#draft.open(set)).sort(byAge);
    this.#current = sets.find((set) => hasTemplateOf(set, snapshot.deployment));
    this.#old = sets.filter((set) => set !== this.#current);
  }

  plan(): DeploymentPlan {
    if (this.#deployment.metadata?.deletionTimestamp !== undefined) return this.#finish({ assessProgress: false });
    const isPaused = this.#deployment.spec?.paused === true;
    this.#markPause(isPaused);
    if (isPaused || this.#isScaling()) {
      this.#adoptRevision({ mayCreate: false });
      scaleWithoutRollout(this.#draft, this.#sizes, this.#current, this.#old);
      if (isPaused) this.#cleanUp();
      return this.#finish({ assessProgress: false });
    }
    if (this.#sizes.rolling) this.#roll();
    else this.#recreate();
    return this.#finish({ assessProgress: true });
  }

  #roll(): void {
    this.#adoptRevision({ mayCreate: true });
    const current = this.#current;
    if (current === undefined) return;
    const isScaled =
      current !== this.#created && this.#draft.scale(current, newSetSize(this.#sizes, current, this.#old));
    if (!isScaled) reconcileOldSets(this.#draft, this.#sizes, current, this.#old);
  }

  #recreate(): void {
    this.#adoptRevision({ mayCreate: false });
    let isScaledDown = false;
    for (const set of this.#old) {
      if (specReplicas(set) > 0) isScaledDown = this.#draft.scale(set, 0) || isScaledDown;
    }
    if (isScaledDown || this.#oldPodsRun()) return;
    if (this.#current === undefined) this.#adoptRevision({ mayCreate: true });
    else this.#draft.scale(this.#current, this.#sizes.replicas);
  }

  #oldPodsRun(): boolean {
    for (const set of this.#old) {
      if ((set.status?.replicas ?? 0) > 0) return true;
      const pods = this.#podsBySet.get(set.metadata?.uid ?? '') ?? [];
      if (pods.some((pod) => !isPodTerminal(pod))) return true;
    }
    return false;
  }

  /** Whether the deployment was scaled: an active set has the size annotation of another replica count. */
  #isScaling(): boolean {
    const all = this.#current === undefined ? this.#old : [...this.#old, this.#current];
    return all.some((set) => {
      const desired = desiredReplicasOf(set);
      return specReplicas(set) > 0 && desired !== undefined && desired !== this.#sizes.replicas;
    });
  }

  /** Assigns the highest revision to the set that matches the template, or creates this set. */
  #adoptRevision({ mayCreate }: { readonly mayCreate: boolean }): void {
    const revision = maxRevision(this.#old) + 1n;
    const current = this.#current;
    if (current !== undefined) {
      this.#draft.annotate(
        current,
        currentSetAnnotations(this.#deployment, current.metadata?.annotations ?? {}, revision),
      );
      this.#draft.setMinReadySeconds(current, this.#deployment.spec?.minReadySeconds ?? 0);
      this.#revision = current.metadata?.annotations?.[REVISION];
      if (this.#hasDeadline() && findCondition(this.#conditions, 'Progressing') === undefined) {
        this.#progress('True', REASON.found, `Found new replica set "${current.metadata?.name ?? ''}"`);
      }
      return;
    }
    if (!mayCreate) return;
    const set = this.#newSet(revision);
    const size = newSetSize(this.#sizes, set, this.#old);
    if (set.spec !== undefined) set.spec.replicas = size;
    this.#created = set;
    this.#current = set;
    this.#revision = String(revision);
    if (size > 0) {
      this.#draft.events.push({
        type: 'Normal',
        reason: 'ScalingReplicaSet',
        message: `Scaled up replica set ${set.metadata?.name ?? ''} from 0 to ${size}`,
      });
    }
    if (this.#hasDeadline()) {
      this.#progress('True', REASON.created, `Created new replica set "${set.metadata?.name ?? ''}"`);
    }
  }

  #newSet(revision: bigint): ReplicaSet {
    const { metadata, spec } = this.#deployment;
    const hash = templateHash(spec?.template, this.#deployment.status?.collisionCount);
    const labels = { ...spec?.template.metadata?.labels, [TEMPLATE_HASH_LABEL]: hash };
    return {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        name: `${metadata?.name ?? ''}-${hash}`,
        namespace: metadata?.namespace ?? '',
        labels,
        annotations: {
          ...currentSetAnnotations(this.#deployment, {}, revision),
          ...sizeAnnotations(this.#sizes),
        },
        ownerReferences: [controllerReference(this.#deployment, { group: 'apps', version: 'v1', kind: 'Deployment' })],
      },
      spec: {
        replicas: 0,
        ...(spec?.minReadySeconds === undefined ? {} : { minReadySeconds: spec.minReadySeconds }),
        selector: {
          ...spec?.selector,
          matchLabels: { ...spec?.selector.matchLabels, [TEMPLATE_HASH_LABEL]: hash },
        },
        template: { ...spec?.template, metadata: { ...spec?.template.metadata, labels } },
      },
    };
  }

  /** Records that the deployment was paused or resumed. Pausing stops the progress deadline; resuming restarts it. */
  #markPause(isPaused: boolean): void {
    if (!this.#hasDeadline()) return;
    const progress = findCondition(this.#conditions, 'Progressing');
    if (progress?.reason === REASON.timedOut) return;
    const wasPaused = progress?.reason === REASON.paused;
    if (isPaused && !wasPaused) this.#progress('Unknown', REASON.paused, 'Deployment is paused');
    else if (!isPaused && wasPaused) this.#progress('Unknown', REASON.resumed, 'Deployment is resumed');
  }

  #hasDeadline(): boolean {
    return progressDeadlineMs(this.#deployment) !== undefined;
  }

  #progress(status: 'True' | 'Unknown', reason: string, message: string): void {
    this.#conditions = setCondition(this.#conditions, { type: 'Progressing', status, reason, message }, this.#nowMs);
  }

  /** Deletes the oldest revisions beyond the limit, except sets that have or should have pods. */
  #cleanUp(): void {
    const limit = this.#deployment.spec?.revisionHistoryLimit ?? 10;
    const living = this.#old.filter((set) => set.metadata?.deletionTimestamp === undefined);
    if (living.length <= limit) return;
    this.#doomed = living
      .sort((a, b) => Number(revisionOf(a) - revisionOf(b)) || byAge(a, b))
      .slice(0, living.length - limit)
      .filter(
        (set) =>
          (set.status?.replicas ?? 0) === 0 &&
          specReplicas(set) === 0 &&
          (set.metadata?.generation ?? 0) <= (set.status?.observedGeneration ?? 0),
      );
  }

  #finish({ assessProgress }: { readonly assessProgress: boolean }): DeploymentPlan {
    const next = planStatus({
      deployment: this.#deployment,
      conditions: this.#conditions,
      current: this.#current,
      old: this.#old,
      sizes: this.#sizes,
      nowMs: this.#nowMs,
      assessProgress,
    });
    if (assessProgress && next.complete) this.#cleanUp();
    const shown = this.#deployment.metadata?.annotations?.[REVISION];
    return {
      create: this.#created,
      update: this.#draft.changed(),
      delete: this.#doomed,
      revision: this.#revision === shown ? undefined : this.#revision,
      status: next.status,
      events: this.#draft.events,
      recheckAfterMs: next.recheckAfterMs,
    };
  }
}

/** Whether the set was created from this template. The hash label is ignored. */
export function hasTemplateOf(set: ReplicaSet, deployment: Deployment): boolean {
  const withoutHash = (template: NonNullable<ReplicaSet['spec']>['template']) => {
    const labels = { ...template?.metadata?.labels };
    delete labels[TEMPLATE_HASH_LABEL];
    return { spec: template?.spec, metadata: { ...template?.metadata, labels } };
  };
  return equalIgnoringEmptyLists(withoutHash(set.spec?.template), withoutHash(deployment.spec?.template));
}

/** Status after a hash collision of two templates. With a higher collision count the next name is different. */
export function collidedStatus(deployment: Deployment): DeploymentStatus {
  return { ...deployment.status, collisionCount: (deployment.status?.collisionCount ?? 0) + 1 };
}

export function createFailedStatus(deployment: Deployment, message: string, nowMs: number): DeploymentStatus {
  const conditions = deployment.status?.conditions ?? [];
  return {
    ...deployment.status,
    conditions: setCondition(
      conditions,
      { type: 'Progressing', status: 'False', reason: REASON.createFailed, message },
      nowMs,
    ),
  };
}

function byAge(a: ReplicaSet, b: ReplicaSet): number {
  const age = timeMs(a.metadata?.creationTimestamp) - timeMs(b.metadata?.creationTimestamp);
  return age !== 0 ? age : (a.metadata?.name ?? '') < (b.metadata?.name ?? '') ? -1 : 1;
}
