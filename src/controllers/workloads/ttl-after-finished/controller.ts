/** Deletes finished jobs after `ttlSecondsAfterFinished`. */
import type { Job } from '../../../api/generated/batch/v1.ts';
import { objectKey, splitKey } from '../../../api/meta/object.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerHandle, ControllerRun, ControllerSpec } from '../../framework/framework.ts';
import { expiresInMs } from './plan.ts';

export const ttlAfterFinishedController: ControllerSpec = {
  name: 'ttl-after-finished',
  reads: [resources.jobs],
  writes: [resources.jobs],
  prepare,
};

function prepare(handle: ControllerHandle): ControllerRun {
  const jobs = handle.informer(resources.jobs);
  const client = handle.writer(resources.jobs);
  return (scope) => {
    const queue = scope.queue(async (key) => {
      const observed = jobs.get(key);
      if (observed === undefined) return;
      const waitMs = expiresInMs(observed, handle.clock.nowMs());
      if (waitMs === undefined) return;
      if (waitMs > 0) return queue.addAfter(key, waitMs);
      // The live job is checked again, because its TTL may have been raised in the meantime.
      const { name, namespace } = splitKey(key);
      try {
        const job = await client.get(name, namespace);
        if (expiresInMs(job, handle.clock.nowMs()) !== 0) return;
        const { uid = '', resourceVersion = '' } = job.metadata ?? {};
        await client.delete(name, namespace, {
          propagationPolicy: 'Foreground',
          preconditions: { uid, resourceVersion },
        });
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
      }
    });
    const wake = (job: Job): void => queue.add(objectKey(job));
    scope.onChange(jobs, { added: wake, updated: wake });
  };
}
