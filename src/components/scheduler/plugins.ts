/** What a plug-in of the scheduler does around a binding, beside its filter and score in core/scheduling. */
import type { Node } from 'kubernetes-types/core/v1';
import type { ClusterView } from '../../core/scheduling/cluster.ts';
import type { PodInfo } from '../../core/scheduling/pod-info.ts';
import type { ReservePlugin } from '../../core/scheduling/reserve.ts';

export interface BindingPlugin extends ReservePlugin {
  /**
   * Upstream's PreBind: writes what must stand before the pod is bound. Undefined: nothing to do. A rejection of the
   * promise unreserves the pod, which is then retried after its back-off.
   */
  preBind(pod: PodInfo, node: Node): Promise<void> | undefined;
  /** For a pod that this plug-in's filter rejected: writes what may make it fit. Undefined: nothing to do. */
  postFilter?(pod: PodInfo, view: ClusterView): Promise<void> | undefined;
  /** Ends the waiting of promises that are pending. */
  stop(): void;
}

/** All plug-ins at once; undefined: none has anything to do. */
export function preBindPod(plugins: readonly BindingPlugin[], pod: PodInfo, node: Node): Promise<void> | undefined {
  const pending = plugins.map((plugin) => plugin.preBind(pod, node)).filter((each) => each !== undefined);
  return pending.length === 0 ? undefined : Promise.all(pending).then(() => {});
}
