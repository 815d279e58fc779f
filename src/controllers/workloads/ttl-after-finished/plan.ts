/** Deletion of finished jobs after their TTL. Source: upstream's pkg/controller/ttlafterfinished. */

import type { Job } from '../../../api/generated/batch/v1.ts';
import { timeMs } from '../../../base/time/timestamps.ts';

/** Milliseconds until the job's TTL has passed; 0 if it has. Undefined if the job has not finished or has no TTL. */
export function expiresInMs(job: Job, nowMs: number): number | undefined {
  const seconds = job.spec?.ttlSecondsAfterFinished;
  if (seconds === undefined || job.metadata?.deletionTimestamp !== undefined) return undefined;
  const finished = job.status?.conditions?.find(
    ({ type, status }) => (type === 'Complete' || type === 'Failed') && status === 'True',
  );
  if (finished === undefined) return undefined;
  return Math.max(0, timeMs(finished.lastTransitionTime) + seconds * 1000 - nowMs);
}
