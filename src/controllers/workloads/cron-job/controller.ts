/** Cron jobs. Plans in controllers/workloads/cron-job. */
import type { CronJob, CronJobStatus, Job } from '../../../api/generated/batch/v1.ts';
import { objectKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { attemptAll } from '../../framework/attempt-all.ts';
import { ControllerTerm } from '../../framework/controller-term.ts';
import { equalIgnoringEmptyLists } from '../../framework/core/equality.ts';
import { controllerOf, isControlledBy } from '../../framework/core/ownership.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec, RunScope } from '../../framework/framework.ts';
import { controlledBy, indexByController } from '../../framework/owner-indices.ts';
import { isNamespaceTerminating } from '../../framework/pod-control.ts';
import { planCronJob, withStarted } from './plan.ts';

export const cronJobController: ControllerSpec = {
  name: 'cronjob',
  reads: [resources.cronJobs, resources.jobs],
  writes: [resources.cronJobs, resources.jobs],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const access: Access = {
    cronJobs: handle.informer(resources.cronJobs),
    jobs: handle.informer(resources.jobs),
    cronJobClient: handle.writer(resources.cronJobs),
    jobClient: handle.writer(resources.jobs),
  };
  indexByController(access.jobs);
  return (scope) => new CronJobController(handle, access, scope).start();
}

interface Access {
  readonly cronJobs: Informer<CronJob>;
  readonly jobs: Informer<Job>;
  readonly cronJobClient: ResourceClient<CronJob>;
  readonly jobClient: ResourceClient<Job>;
}

class CronJobController extends ControllerTerm {
  readonly #access: Access;
  #localZone: string | undefined;

  constructor(handle: ControllerHandle, access: Access, scope: RunScope) {
    super(handle, scope, 5);
    this.#access = access;
  }

  override start(): void {
    this.scope.onChange(this.#access.cronJobs, {
      added: (cronJob) => this.queue.add(objectKey(cronJob)),
      updated: (cronJob) => this.queue.add(objectKey(cronJob)),
    });
    const wakeOwner = (job: Job): void => {
      const reference = controllerOf(job);
      if (reference?.kind === 'CronJob') this.queue.add(`${job.metadata?.namespace ?? ''}/${reference.name}`);
    };
    this.scope.onChange(this.#access.jobs, { added: wakeOwner, updated: wakeOwner, deleted: wakeOwner });
  }

  protected override async sync(key: string): Promise<void> {
    const cronJob = this.#access.cronJobs.get(key);
    if (cronJob === undefined) return;
    const jobs = await this.#jobsOf(cronJob);
    // The zone is read only when a CronJob exists, because the first lookup of a time zone in a process takes 8 MB.
    this.#localZone ??= new Intl.DateTimeFormat().resolvedOptions().timeZone;
    const plan = planCronJob({ cronJob, jobs, localZone: this.#localZone }, this.handle.plan());
    for (const event of plan.events) this.handle.recorder.event(cronJob, event.type, event.reason, event.message);
    for (const job of plan.replace) await this.#delete(cronJob, job);
    const started = plan.create === undefined ? undefined : await this.#create(cronJob, plan.create);
    await this.#writeStatus(cronJob, started === undefined ? plan.status : withStarted(plan.status, started));
    if (plan.recheckAfterMs !== undefined) this.queue.addAfter(key, plan.recheckAfterMs);
    // Finished jobs are deleted last, so that a job that cannot be deleted does not delay the next start.
    await attemptAll(plan.clean, (job) => this.#delete(cronJob, job));
  }

  /** Jobs of a cron job. Jobs in `status.active` that are missing in the local copy are read live. */
  async #jobsOf(cronJob: CronJob): Promise<Job[]> {
    const jobs = controlledBy(this.#access.jobs, cronJob.metadata?.uid ?? '');
    const known = new Set(jobs.map((job) => job.metadata?.uid));
    const missing = (cronJob.status?.active ?? []).filter((reference) => !known.has(reference.uid ?? ''));
    for (const { name = '', namespace, uid } of missing) {
      try {
        const job = await this.#access.jobClient.get(name, namespace);
        if (job.metadata?.uid === uid) jobs.push(job);
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
      }
    }
    return jobs;
  }

  async #writeStatus(cronJob: CronJob, status: CronJobStatus): Promise<void> {
    if (equalIgnoringEmptyLists(cronJob.status ?? {}, status)) return;
    await this.#access.cronJobClient.update({ ...cronJob, status }, { subresource: 'status' });
  }

  /**
   * Creates a job. Returns undefined when the namespace is terminating, and the existing job when an earlier attempt
   * created it.
   */
  async #create(cronJob: CronJob, job: Job): Promise<Job | undefined> {
    try {
      const created = await this.#access.jobClient.create(job);
      this.#record(cronJob, 'Normal', 'SuccessfulCreate', `Created job ${created.metadata?.name ?? ''}`);
      return created;
    } catch (error) {
      if (isNamespaceTerminating(error)) return undefined;
      if (isApiError(error, 'AlreadyExists')) {
        const present = await this.#access.jobClient.get(job.metadata?.name ?? '', job.metadata?.namespace);
        if (isControlledBy(present, cronJob.metadata?.uid)) return present;
      }
      this.#record(cronJob, 'Warning', 'FailedCreate', `Error creating job: ${messageOf(error)}`);
      throw error;
    }
  }

  async #delete(cronJob: CronJob, job: Job): Promise<void> {
    const { name = '', namespace, uid = '' } = job.metadata ?? {};
    try {
      await this.#access.jobClient.delete(name, namespace, {
        propagationPolicy: 'Background',
        preconditions: { uid },
      });
      this.#record(cronJob, 'Normal', 'SuccessfulDelete', `Deleted job ${name}`);
    } catch (error) {
      if (isApiError(error, 'NotFound') || isApiError(error, 'Conflict')) return;
      this.#record(cronJob, 'Warning', 'FailedDelete', `Deleted job: ${messageOf(error)}`);
      throw error;
    }
  }

  #record(cronJob: CronJob, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.handle.recorder.event(cronJob, type, reason, message);
  }
}
