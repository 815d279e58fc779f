/** State that the parts of the scheduler share during one period of leadership. */

import type { PodInfo } from '../api/podspec/scheduling/pod-info.ts';
import type { Cluster, ClusterView } from './core/cluster.ts';
import type { Profile } from './core/profile.ts';
import type { SchedulingQueue } from './core/queue.ts';
import type { OptionalSources, Sources } from './data-sources.ts';
import type { SchedulerDeps } from './deps.ts';
import type { Extenders } from './extenders.ts';
import type { GroupMembers } from './gang/group-members.ts';
import type { BindingPlugin } from './plugins.ts';
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
  /** Informers of kinds that a server may not serve. */
  readonly more: OptionalSources;
  readonly stopped: boolean;
  /** Profile with the scheduler name of the pod; undefined if the pod belongs to another scheduler. */
  profileOf(pod: PodInfo): Profile | undefined;
  view(): ClusterView;
  /** Monotonic time, so that setting back the clock does not delay pods in back-off. */
  nowMs(): number;
  /** Requeues pods that may use what a pod has released: its resources, volumes or devices. */
  released(pod: PodInfo): void;
  /** Starts decisions in a later turn of the event loop. */
  pump(): void;
  /** Registers work that must end before the period of leadership ends. */
  track(work: Promise<void>): void;
}
