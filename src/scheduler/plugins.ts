/** Plug-in interface around a binding, in addition to filters and scores in scheduler/core. */
import type { Node } from '../api/generated/core/v1.ts';
import type { PodInfo } from '../api/podspec/scheduling/pod-info.ts';
import type { ClusterView } from './core/cluster.ts';
import type { ReservePlugin } from './core/reserve.ts';

export interface BindingPlugin extends ReservePlugin {
  /**
   * Upstream's PreBind: performs the writes that must precede binding. Returns undefined when there are none. A
   * rejection unreserves the pod, which is retried after its back-off.
   */
  preBind(pod: PodInfo, node: Node): Promise<void> | undefined;
  /**
   * For a pod that this plug-in's filter rejected: performs writes that may make it fit. Returns undefined when there
   * are none.
   */
  postFilter?(pod: PodInfo, view: ClusterView): Promise<void> | undefined;
  /** Rejects pending waits. */
  stop(): void;
}

/** Runs all plug-ins concurrently. Returns undefined when none has work to do. */
export function preBindPod(plugins: readonly BindingPlugin[], pod: PodInfo, node: Node): Promise<void> | undefined {
  const pending = plugins.map((plugin) => plugin.preBind(pod, node)).filter((each) => each !== undefined);
  return pending.length === 0 ? undefined : Promise.all(pending).then(() => {});
}
