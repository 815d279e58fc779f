/** Interface of plug-ins that take part in binding. Filters and scorers are defined in scheduler/core. */
import type { Node } from '../api/generated/core/v1.ts';
import type { PodInfo } from '../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from './core/cluster.ts';
import type { ReservePlugin } from './core/reserve.ts';

export interface BindingPlugin extends ReservePlugin {
  /**
   * Upstream's PreBind: performs the writes that must precede the binding. Returns undefined if there are none. If it
   * rejects, the pod is unreserved and tried again after its back-off.
   */
  preBind(pod: PodInfo, node: Node): Promise<void> | undefined;
  /**
   * Called for a pod that the filter of this plug-in has rejected. Performs writes that may make the pod fit. Returns
   * undefined if there are none.
   */
  postFilter?(pod: PodInfo, view: ClusterView): Promise<void> | undefined;
  /** Stops the plug-in and rejects its pending waits. */
  stop(): void;
}

/** Runs PreBind of all plug-ins concurrently. Returns undefined if none has work to do. */
export function preBindPod(plugins: readonly BindingPlugin[], pod: PodInfo, node: Node): Promise<void> | undefined {
  const pending = plugins.map((plugin) => plugin.preBind(pod, node)).filter((each) => each !== undefined);
  return pending.length === 0 ? undefined : Promise.all(pending).then(() => {});
}
