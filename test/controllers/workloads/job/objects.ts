/** Jobs, their pods, and a simulation that executes their plans. */
import type { Job, JobSpec, JobStatus } from '../../../../src/api/generated/batch/v1.ts';
import type { Pod } from '../../../../src/api/generated/core/v1.ts';
import { type Backoff, NO_BACKOFF } from '../../../../src/controllers/workloads/job/backoff.ts';
import { type JobPlan, planJob } from '../../../../src/controllers/workloads/job/plan.ts';
import { TRACKING_FINALIZER } from '../../../../src/controllers/workloads/job/pod.ts';
import { NOW, nextUid } from '../../objects.ts';

export function job(spec: Partial<JobSpec> = {}, status?: JobStatus): Job {
  return {
    metadata: { name: 'j', namespace: 'ns', uid: 'j', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      parallelism: 1,
      completions: 1,
      backoffLimit: 6,
      completionMode: 'NonIndexed',
      suspend: false,
      podReplacementPolicy: 'TerminatingOrFailed',
      template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

/** Simulates the API server, the kubelet and the controller for one job. */
export class World {
  nowMs = NOW;
  job: Job;
  pods: Pod[] = [];
  backoff: Backoff = NO_BACKOFF;
  /** Outcome of every pod that ever existed. */
  readonly fates = new Map<string, string>();
  last: JobPlan | undefined;
  readonly events: string[] = [];

  constructor(spec: Partial<JobSpec>) {
    this.job = job(spec);
  }

  get status(): JobStatus {
    return this.job.status ?? {};
  }

  get conditions(): string[] {
    return (this.status.conditions ?? []).map((each) => `${each.type}=${each.status} ${each.reason ?? ''}`);
  }

  get indexes(): string[] {
    return this.pods
      .filter((pod) => pod.status?.phase === 'Running')
      .map((pod) => pod.metadata?.annotations?.['batch.kubernetes.io/job-completion-index'] ?? '')
      .sort();
  }

  /** Reconciles once. With `fails`, the status write is lost and no later step is executed. */
  step(fails = false): JobPlan {
    const plan = planJob({ job: this.job, pods: this.pods, untracked: new Set(), settled: true }, this.backoff, {
      nowMs: this.nowMs,
      random: () => 0,
    });
    this.last = plan;
    for (const pod of plan.create) this.#create(pod);
    for (const { pod, uncounted } of plan.delete) {
      if (uncounted) this.#untrack(pod);
      this.terminate(pod.metadata?.uid ?? '');
    }
    if (fails) return plan;
    if (plan.status !== undefined) this.job = { ...this.job, status: plan.status };
    this.backoff = plan.backoff;
    this.events.push(...plan.events.map((event) => event.reason));
    for (const pod of plan.removeFinalizers) this.#untrack(pod);
    this.#collect();
    return plan;
  }

  /** Reconciles until nothing changes. */
  settle(): this {
    for (let round = 0; round < 30; round++) {
      const before = JSON.stringify([this.job.status, this.pods]);
      this.step();
      this.#collect();
      if (JSON.stringify([this.job.status, this.pods]) === before) break;
    }
    return this;
  }

  running(): Pod[] {
    return this.pods.filter((pod) => pod.status?.phase === 'Running' && pod.metadata?.deletionTimestamp === undefined);
  }

  terminate(uid: string): void {
    this.#change(uid, (pod) => ({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }));
  }

  /** Ends a container of the pod. `condition` is added to the pod. */
  end(pod: Pod | undefined, exitCode: number, condition?: string): void {
    const phase = exitCode === 0 ? 'Succeeded' : 'Failed';
    const uid = pod?.metadata?.uid ?? '';
    this.fates.set(uid, phase);
    const finishedAt = new Date(this.nowMs).toISOString();
    this.#change(uid, (each) => ({
      ...each,
      status: {
        phase,
        conditions: condition === undefined ? [] : [{ type: condition, status: 'True' }],
        containerStatuses: [
          {
            name: 'c',
            image: '',
            imageID: '',
            ready: false,
            restartCount: 0,
            state: { terminated: { exitCode, finishedAt } },
          },
        ],
      },
    }));
  }

  #create(pod: Pod): void {
    const uid = nextUid();
    this.fates.set(uid, 'Running');
    this.pods.push({ ...pod, metadata: { ...pod.metadata, uid, name: uid }, status: { phase: 'Running' } });
  }

  #untrack(pod: Pod): void {
    this.#change(pod.metadata?.uid ?? '', (each) => ({
      ...each,
      metadata: {
        ...each.metadata,
        finalizers: (each.metadata?.finalizers ?? []).filter((f) => f !== TRACKING_FINALIZER),
      },
    }));
  }

  /** Simulates the kubelet: deleted pods terminate and are removed if they have no finalizers. */
  #collect(): void {
    this.pods = this.pods.filter(
      (pod) => pod.metadata?.deletionTimestamp === undefined || (pod.metadata.finalizers ?? []).length > 0,
    );
  }

  #change(uid: string, change: (pod: Pod) => Pod): void {
    this.pods = this.pods.map((pod) => (pod.metadata?.uid === uid ? change(pod) : pod));
  }
}
