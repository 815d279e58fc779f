/** What the parts of a leadership epoch share. */
import type { Cluster, ClusterView } from '../../core/scheduling/cluster.ts';
import type { PodInfo } from '../../core/scheduling/pod-info.ts';
import type { Profile } from '../../core/scheduling/profile.ts';
import type { SchedulingQueue } from '../../core/scheduling/queue.ts';
import type { SchedulerDeps } from './deps.ts';
import type { Extenders } from './extenders.ts';
import type { GroupMembers } from './group-members.ts';
import type { BindingPlugin } from './plugins.ts';
import type { OptionalSources, Sources } from './sources.ts';
import type { SchedulingWrites } from './writes.ts';

export interface EpochState {
  readonly deps: SchedulerDeps;
  readonly sources: Sources;
  readonly cluster: Cluster;
  readonly queue: SchedulingQueue;
  readonly members: GroupMembers;
  readonly writes: SchedulingWrites;
  readonly extenders: Extenders | undefined;
  /** In upstream's order of Reserve. */
  readonly plugins: readonly BindingPlugin[];
  /** Kinds that a server may or may not have. */
  readonly more: OptionalSources;
  readonly stopped: boolean;
  /** The profile of the pod's scheduler name; undefined: the pod belongs to another scheduler. */
  profileOf(pod: PodInfo): Profile | undefined;
  view(): ClusterView;
  /** Back-off is measured on the monotonic clock: a wall clock set back must not keep pods waiting. */
  nowMs(): number;
  /** Wakes the pods that may use what a pod held that was assumed or nominated: room, volumes or devices. */
  released(pod: PodInfo): void;
  /** Decides pods soon. */
  pump(): void;
  /** The end of the epoch waits for this. */
  track(work: Promise<void>): void;
}
