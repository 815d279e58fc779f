/** State shared by the parts of a leadership epoch. */

import type { PodInfo } from '../api/podspec/scheduling/pod-info.ts';
import type { Cluster, ClusterView } from './core/cluster.ts';
import type { Profile } from './core/profile.ts';
import type { SchedulingQueue } from './core/queue.ts';
import type { SchedulerDeps } from './deps.ts';
import type { Extenders } from './extenders.ts';
import type { GroupMembers } from './gang/group-members.ts';
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
  /** Plug-ins in the order in which upstream calls Reserve. */
  readonly plugins: readonly BindingPlugin[];
  /** Kinds that a server may not serve. */
  readonly more: OptionalSources;
  readonly stopped: boolean;
  /** Profile for the pod's scheduler name. Undefined when the pod belongs to another scheduler. */
  profileOf(pod: PodInfo): Profile | undefined;
  view(): ClusterView;
  /** Monotonic time for back-off, so that a clock set back does not delay pods. */
  nowMs(): number;
  /** Queues the pods that may use the resources, volumes or devices of a pod that was assumed or nominated. */
  released(pod: PodInfo): void;
  /** Schedules decisions. */
  pump(): void;
  /** Registers work that the end of the epoch waits for. */
  track(work: Promise<void>): void;
}
