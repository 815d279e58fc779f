/**
 * Progress of a job, derived from its pods and its status. A finished pod is counted exactly once: it is added to
 * `uncountedTerminatedPods`, its finalizer is removed, and only then it is added to the counters. Source: KEP-2307,
 * upstream's job_controller.go.
 */
import type { Job } from '../../../api/generated/batch/v1.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { isPodActive, isPodTerminal } from '../../framework/core/pods.ts';
import { Indexes } from './indexes.ts';
import { failuresBefore, indexOf, isIndexed, isPodFailed, isTracked, uidOf } from './pod.ts';
import { evaluateFailure, type FailureDecision } from './policies.ts';

export interface JobSnapshot {
  readonly job: Job;
  readonly pods: readonly Pod[];
  /** UIDs of pods whose finalizer has been removed, even if the snapshot still has it. */
  readonly untracked: ReadonlySet<string>;
  /** Whether the watch has delivered all creations and deletions of earlier plans. */
  readonly settled: boolean;
}

export class JobProgress {
  readonly job: Job;
  readonly indexed: boolean;
  readonly completions: number;
  readonly active: readonly Pod[];
  readonly terminating: readonly Pod[];
  /** Pods that have not been counted yet. */
  readonly tracked: readonly Pod[];
  /**
   * UIDs of finished pods that the status records in `uncountedTerminatedPods` and whose finalizers are still present.
   */
  readonly uncounted: { readonly succeeded: readonly string[]; readonly failed: readonly string[] };
  /** Counters of the status, plus the recorded pods whose finalizers have been removed. */
  readonly counted: { readonly succeeded: number; readonly failed: number };
  readonly newSucceeded: readonly Pod[];
  readonly newFailed: readonly Pod[];
  readonly succeededIndexes: Indexes;
  readonly failedIndexes: Indexes;
  /** Last failed pod of each index that has no successor yet. The pod records the failures of its index. */
  readonly lastFailed: ReadonlyMap<number, Pod>;
  readonly #failureDecisions = new Map<Pod, FailureDecision>();

  constructor({ job, pods, untracked }: JobSnapshot) {
    this.job = job;
    this.indexed = isIndexed(job);
    this.completions = job.spec?.completions ?? 0;
    this.active = pods.filter(isPodActive);
    this.terminating = pods.filter((pod) => !isPodTerminal(pod) && pod.metadata?.deletionTimestamp !== undefined);
    this.tracked = pods.filter((pod) => isTracked(pod) && !untracked.has(uidOf(pod)));
    const pending = new Set(this.tracked.map(uidOf));
    const { succeeded = [], failed = [] } = job.status?.uncountedTerminatedPods ?? {};
    this.uncounted = {
      succeeded: succeeded.filter((uid) => pending.has(uid)),
      failed: failed.filter((uid) => pending.has(uid)),
    };
    this.counted = {
      succeeded: (job.status?.succeeded ?? 0) + succeeded.length - this.uncounted.succeeded.length,
      failed: (job.status?.failed ?? 0) + failed.length - this.uncounted.failed.length,
    };
    const known = new Set([...this.uncounted.succeeded, ...this.uncounted.failed]);
    const fresh = this.tracked.filter((pod) => !known.has(uidOf(pod)) && this.#hasPlace(pod));
    this.newSucceeded = fresh.filter((pod) => pod.status?.phase === 'Succeeded');
    this.newFailed = fresh.filter((pod) => isPodFailed(pod, job));
    const limit = this.completions;
    this.succeededIndexes = !this.indexed
      ? Indexes.none
      : Indexes.parse(job.status?.completedIndexes, limit).union(Indexes.of(this.newSucceeded.map(placeOf)));
    this.failedIndexes =
      job.spec?.backoffLimitPerIndex === undefined
        ? Indexes.none
        : Indexes.parse(job.status?.failedIndexes, limit).union(
            Indexes.of(this.newFailed.filter((pod) => this.#isIndexFailed(pod)).map(placeOf)),
          );
    this.lastFailed = this.#lastFailed();
  }

  get parallelism(): number {
    return this.job.spec?.parallelism ?? 1;
  }

  /** Number of successes, including those not counted yet. */
  get succeeded(): number {
    if (this.indexed) return this.succeededIndexes.total;
    return this.counted.succeeded + this.uncounted.succeeded.length + this.newSucceeded.length;
  }

  /** Number of failures that count towards limits, including those not counted yet. */
  get failed(): number {
    const fresh = this.newFailed.filter((pod) => this.failureDecision(pod).counts).length;
    return this.counted.failed + this.uncounted.failed.length + fresh;
  }

  failureDecision(pod: Pod): FailureDecision {
    let decision = this.#failureDecisions.get(pod);
    if (decision === undefined) {
      decision = evaluateFailure(this.job, pod);
      this.#failureDecisions.set(pod, decision);
    }
    return decision;
  }

  #hasPlace(pod: Pod): boolean {
    return !this.indexed || (indexOf(pod) ?? Number.POSITIVE_INFINITY) < this.completions;
  }

  #isIndexFailed(pod: Pod): boolean {
    const decision = this.failureDecision(pod);
    if (decision.action === 'FailIndex') return true;
    return decision.counts && failuresBefore(pod).counted >= (this.job.spec?.backoffLimitPerIndex ?? 0);
  }

  #lastFailed(): Map<number, Pod> {
    const last = new Map<number, Pod>();
    if (this.job.spec?.backoffLimitPerIndex === undefined) return last;
    const running = new Set(this.active.map(indexOf));
    for (const pod of this.newFailed) {
      const index = placeOf(pod);
      if (running.has(index) || this.succeededIndexes.has(index) || this.failedIndexes.has(index)) continue;
      const before = last.get(index);
      if (before === undefined || failureTotal(pod) > failureTotal(before)) last.set(index, pod);
    }
    return last;
  }
}

const placeOf = (pod: Pod): number => indexOf(pod) ?? 0;

/** Number of failures of the pod's index before it, including ignored ones. */
export function failureTotal(pod: Pod): number {
  const { counted, ignored } = failuresBefore(pod);
  return counted + ignored;
}
