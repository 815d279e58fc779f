import type { Clock, RandomSource } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { ApiClient, EventRecorder, InformerFactory, LeaderElector } from '../../client/types.ts';

export const SCHEDULER_LEASE = { namespace: 'kube-system', name: 'kube-scheduler' } as const;

export const DEFAULT_SCHEDULER_NAME = 'default-scheduler';

/** What the composition hands to the scheduler. */
export interface SchedulerDeps {
  readonly client: ApiClient;
  /** Shared with the controllers in the same process. */
  readonly informers: InformerFactory;
  readonly recorder: EventRecorder;
  /** For the Lease `kube-system/kube-scheduler` (see `SCHEDULER_LEASE`). */
  readonly elector: LeaderElector;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Pods with this `spec.schedulerName` are ours. Default 'default-scheduler'. */
  readonly schedulerName?: string;
}
