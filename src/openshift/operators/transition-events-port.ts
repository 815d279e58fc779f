/** Events of OpenShift's operators. */
import type { KubeObject } from '../../api/meta/object.ts';
import type { EventRecorder } from '../../client/types.ts';

export interface Transition {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface Recorded {
  /** Cluster-scoped object of the Event. */
  readonly object: KubeObject;
  /** Namespace in which upstream's operator records its Events. */
  readonly namespace: string;
  /** Event source, such as `kube-apiserver-operator`. */
  readonly component: string;
}

/**
 * Records a transition in two namespaces: `oc describe` shows Events of a cluster-scoped object only if they are in
 * `default`, and upstream's operators record them in their own namespace.
 */
export function recordTransition(
  recorder: Pick<EventRecorder, 'event'>,
  { object, namespace, component }: Recorded,
  { type, reason, message }: Transition,
): void {
  recorder.event(object, type, reason, message, { component });
  recorder.event({ ...object, metadata: { ...object.metadata, namespace } }, type, reason, message, { component });
}
