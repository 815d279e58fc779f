/** Jobs. Plans in controllers/workloads/job. */
import type { Job } from '../../../api/generated/batch/v1.ts';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { matchesLabels, storedSelectorOf } from '../../../base/selector.ts';
import type { Informer, ResourceClient, WorkQueue } from '../../../client/types.ts';
import { carryOutClaim } from '../../framework/adoption.ts';
import { type CandidateWaker, candidateWaker } from '../../framework/candidate-waker.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import { claimObjects, controllerOf } from '../../framework/core/ownership.ts';
import { Expectations } from '../../framework/expectations.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { ignoreNotFound } from '../../framework/ignore-not-found.ts';
import { observePods } from '../../framework/owned-pods.ts';
import { controlledBy, indexByController, orphansIn, ownerIn } from '../../framework/owner-indices.ts';
import { createPodControl, isNamespaceTerminating, type PodControl } from '../../framework/pod-control.ts';
import { slowStart } from '../../framework/slow-start.ts';
import { type Backoff, NO_BACKOFF } from './backoff.ts';
import { type JobPlan, planJob } from './plan.ts';
import { isTracked, TRACKING_FINALIZER, uidOf } from './pod.ts';

export const jobController: ControllerSpec = {
  name: 'job',
  reads: [resources.jobs, resources.pods],
  writes: [resources.jobs, resources.pods],
  prepare,
};

const OWN_NAME = 'kubernetes.io/job-controller';
/** Delay that combines a burst of pod changes into one plan for their job. */
const BATCH_MS = 100;
/**
 * Maximum number of plans per sync. Each plan depends on the writes of the previous one: finalizers, counters and the
 * final condition.
 */
const MAX_ROUNDS = 4;
/** Maximum number of concurrent requests of one job. */
const PARALLEL_PATCHES = 32;

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    jobs: handle.informer(resources.jobs),
    pods: handle.informer(resources.pods),
    jobClient: handle.writer(resources.jobs),
    podClient: handle.writer(resources.pods),
  };
  indexByController(access.pods);
  return (scope) => new JobController(handle, access, scope).start();
}

interface Access {
  readonly jobs: Informer<Job>;
  readonly pods: Informer<Pod>;
  readonly jobClient: ResourceClient<Job>;
  readonly podClient: ResourceClient<Pod>;
}

/** State of a job kept between plans. */
interface Memory {
  readonly uid: string;
  backoff: Backoff;
  /** The job as last written. The informer's copy may be older and must not be used for counting. */
  written: Job | undefined;
  /** Pods whose finalizers were removed, until the watch shows the removal. */
  readonly untracked: Set<string>;
}

class JobController extends ControllerTerm {
  readonly #access: Access;
  readonly #control: PodControl;
  readonly #expectations: Expectations;
  readonly #wakeJobs: CandidateWaker<Job>;
  readonly #memories = new Map<string, Memory>();
  readonly #batched = new Set<string>();
  readonly #orphans: WorkQueue;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 5);
    this.#access = access;
    this.#control = createPodControl(access.podClient, handle.recorder);
    this.#expectations = new Expectations(handle.clock);
    this.#wakeJobs = candidateWaker(scope, access.jobs, (job) => this.queue.add(objectKey(job)));
    this.#orphans = scope.queue(this.#syncOrphan, 2);
  }

  override start(): void {
    this.scope.onChange(this.#access.jobs, {
      added: (job) => this.queue.add(objectKey(job)),
      updated: (job) => this.queue.add(objectKey(job)),
      deleted: (job) => {
        this.#forget(objectKey(job));
        for (const pod of controlledBy(this.#access.pods, job.metadata?.uid ?? '')) this.#checkOrphan(pod);
      },
    });
    const observed = observePods(this.#expectations, {
      keyOf: (pod) => this.#ownerKey(pod),
      wake: (key) => this.#wake(key),
      wakeAdopters: (pod) => this.#wakeAdopters(pod),
    });
    this.scope.onChange(this.#access.pods, {
      added: (pod) => {
        if (this.#ownerOf(pod) === undefined) this.#checkOrphan(pod);
        observed.added(pod);
      },
      updated: (pod, old) => {
        const key = this.#ownerKey(pod);
        if (key === undefined) this.#checkOrphan(pod);
        else if (!isTracked(pod)) this.#memories.get(key)?.untracked.delete(uidOf(pod));
        observed.updated(pod, old);
      },
      deleted: (pod) => {
        const key = this.#ownerKey(pod);
        if (key !== undefined) this.#memories.get(key)?.untracked.delete(uidOf(pod));
        observed.deleted(pod);
      },
    });
  }

  #wake(key: string): void {
    if (this.#batched.has(key)) return;
    this.#batched.add(key);
    this.scope.after(BATCH_MS, () => {
      this.#batched.delete(key);
      this.queue.add(key);
    });
  }

  #forget(key: string): void {
    this.#expectations.forget(key);
    this.#memories.delete(key);
  }

  #ownerOf(pod: Pod): Job | undefined {
    return ownerIn(this.#access.jobs, 'Job', pod);
  }

  #ownerKey(pod: Pod): string | undefined {
    const job = this.#ownerOf(pod);
    return job === undefined ? undefined : objectKey(job);
  }

  #wakeAdopters(pod: Pod): void {
    if (pod.metadata?.deletionTimestamp !== undefined) return;
    this.#wakeJobs(pod.metadata?.namespace, (job) => isSelecting(job, pod));
  }

  /** Queues a pod without a job, whose finalizer is removed unless a job may adopt it. */
  #checkOrphan(pod: Pod): void {
    if (isTracked(pod)) this.#orphans.add(objectKey(pod));
  }

  readonly #syncOrphan = async (key: string): Promise<void> => {
    const pod = this.#access.pods.get(key);
    if (pod === undefined || !isTracked(pod) || this.#ownerOf(pod) !== undefined) return;
    const isAdoptable = controllerOf(pod) === undefined && pod.metadata?.deletionTimestamp === undefined;
    const jobs = isAdoptable ? this.#access.jobs.list(pod.metadata?.namespace) : [];
    if (jobs.some((job) => isSelecting(job, pod))) return;
    await this.#untrack(pod);
  };

  async #untrack(pod: Pod): Promise<void> {
    const { name = '', namespace, uid } = pod.metadata ?? {};
    const body = { metadata: { uid, '$deleteFromPrimitiveList/finalizers': [TRACKING_FINALIZER] } };
    await ignoreNotFound(() => this.#access.podClient.patch(name, namespace, 'strategic', body));
  }

  protected override async sync(key: string): Promise<void> {
    const observed = this.#access.jobs.get(key);
    if (observed === undefined) return this.#forget(key);
    if ((observed.spec?.managedBy ?? OWN_NAME) !== OWN_NAME) return;
    const memory = this.#memoryOf(key, observed);
    let job = newer(observed, memory.written);
    // The watch events of the adopted or released pods queue this key again. The next sync then plans with their new
    // versions.
    if (await this.#claim(job)) return;
    let failure: unknown;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const settled = this.#expectations.settled(key);
      // No await may separate the read from the plan, because `untracked` covers exactly the removals that this copy
      // lacks.
      const pods = this.#podsOf(job);
      const plan = planJob({ job, pods, untracked: memory.untracked, settled }, memory.backoff, this.handle.plan());
      if (round === 0) failure = await this.#carryOut(key, job, plan);
      if (plan.status !== undefined) {
        job = await this.#access.jobClient.update({ ...job, status: plan.status }, { subresource: 'status' });
        memory.written = job;
      }
      memory.backoff = plan.backoff;
      for (const event of plan.events) this.handle.recorder.event(job, event.type, event.reason, event.message);
      if (plan.recheckAfterMs !== undefined) this.queue.addAfter(key, plan.recheckAfterMs);
      if (plan.removeFinalizers.length === 0) break;
      await this.#removeFinalizers(memory, plan.removeFinalizers);
    }
    if (failure !== undefined) throw failure;
  }

  #memoryOf(key: string, job: Job): Memory {
    const uid = job.metadata?.uid ?? '';
    let memory = this.#memories.get(key);
    if (memory?.uid !== uid) {
      memory = { uid, backoff: NO_BACKOFF, written: undefined, untracked: new Set() };
      this.#memories.set(key, memory);
      this.#expectations.forget(key);
    }
    return memory;
  }

  #podsOf(job: Job): Pod[] {
    const selector = storedSelectorOf(job.spec?.selector);
    return controlledBy(this.#access.pods, job.metadata?.uid ?? '').filter((pod) =>
      matchesLabels(selector, pod.metadata?.labels),
    );
  }

  /**
   * Adopts and releases pods. Returns true when a pod was adopted or released. An adopted pod gets the finalizer, so
   * that it is counted.
   */
  async #claim(job: Job): Promise<boolean> {
    const { namespace = '', uid = '' } = job.metadata ?? {};
    const selector = storedSelectorOf(job.spec?.selector);
    const claim = claimObjects(
      job,
      [...controlledBy(this.#access.pods, uid), ...orphansIn(this.#access.pods, namespace)],
      (pod) => matchesLabels(selector, pod.metadata?.labels),
    );
    if (claim.adopt.length === 0 && claim.release.length === 0) return false;
    await carryOutClaim(job, claim, {
      ownerType: resources.jobs,
      owners: this.#access.jobClient,
      objects: this.#access.podClient,
    });
    for (const pod of claim.adopt) {
      const { name = '', uid: podUid } = pod.metadata ?? {};
      const body = { metadata: { uid: podUid, finalizers: [TRACKING_FINALIZER] } };
      await ignoreNotFound(() => this.#access.podClient.patch(name, namespace, 'strategic', body));
    }
    return true;
  }

  async #removeFinalizers(memory: Memory, pods: readonly Pod[]): Promise<void> {
    for (let from = 0; from < pods.length; from += PARALLEL_PATCHES) {
      await Promise.all(
        pods.slice(from, from + PARALLEL_PATCHES).map(async (pod) => {
          await this.#untrack(pod);
          memory.untracked.add(uidOf(pod));
        }),
      );
    }
  }

  async #carryOut(key: string, job: Job, plan: JobPlan): Promise<unknown> {
    if (plan.create.length === 0 && plan.delete.length === 0) return undefined;
    this.#expectations.expect(
      key,
      plan.create.length,
      plan.delete.map(({ pod }) => uidOf(pod)),
    );
    const created = await slowStart(plan.create.length, async (index) => {
      const pod = plan.create[index];
      if (pod !== undefined) await this.#control.create(job, pod);
    });
    this.#expectations.creationObserved(key, plan.create.length - created.succeeded);
    const deleted = await Promise.allSettled(
      plan.delete.map(async ({ pod, uncounted }) => {
        let awaited = false;
        try {
          if (uncounted && isTracked(pod)) {
            await this.#untrack(pod);
            this.#memories.get(key)?.untracked.add(uidOf(pod));
          }
          awaited = await this.#control.delete(job, pod);
        } finally {
          if (!awaited) this.#expectations.deletionObserved(key, uidOf(pod));
        }
      }),
    );
    if (created.error !== undefined && !isNamespaceTerminating(created.error)) return created.error;
    return deleted.find((result) => result.status === 'rejected')?.reason;
  }
}

const isSelecting = (job: Job, pod: Pod): boolean =>
  matchesLabels(storedSelectorOf(job.spec?.selector), pod.metadata?.labels);

/** Returns the informer's copy, unless this process wrote a later version. */
function newer(observed: Job, written: Job | undefined): Job {
  const version = (job: Job): bigint => BigInt(job.metadata?.resourceVersion ?? '0');
  return written !== undefined && version(written) > version(observed) ? written : observed;
}
