import type { Log } from '../base/log.ts';
import type { Clock, RandomSource } from '../base/time/clock.ts';
import type { ApiClient, EventRecorder, InformerFactory, LeaderElector } from '../client/types.ts';
import type { ProfileSettings } from './core/profile.ts';
import type { ExtenderCaller, ExtenderSettings } from './extender-port.ts';

export const SCHEDULER_LEASE = { namespace: 'kube-system', name: 'kube-scheduler' } as const;

/** Dependencies that the composition passes to the scheduler. */
export interface SchedulerDeps {
  readonly client: ApiClient;
  /** Informer factory that the scheduler shares with the controllers in the same process. */
  readonly informers: InformerFactory;
  readonly recorder: EventRecorder;
  /** Elector for the Lease `kube-system/kube-scheduler` (see `SCHEDULER_LEASE`). */
  readonly elector: LeaderElector;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Default: settings of upstream's default configuration. */
  readonly settings?: SchedulerSettings;
  /** Required if `settings.extenders` is not empty. */
  readonly extenders?: ExtenderCaller;
}

/** Settings from a KubeSchedulerConfiguration. */
export interface SchedulerSettings {
  /** Profiles by the scheduler name of the pods to which they apply. Pods with other scheduler names are ignored. */
  readonly profiles: readonly ProfileSettings[];
  readonly extenders: readonly ExtenderSettings[];
  readonly initialBackoffMs: number | undefined;
  readonly maxBackoffMs: number | undefined;
}
