/** Events of the operators of OpenShift. */
import type { KubeObject } from '../../api/meta/object.ts';
import type { EventRecorder } from '../../client/types.ts';

export interface Transition {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface Recorded {
  /** Cluster-scoped. */
  readonly object: KubeObject;
  /** Where upstream's operator records its Events. */
  readonly namespace: string;
  /** The source: `kube-apiserver-operator`. */
  readonly component: string;
}

/**
 * Records a transition twice: `oc describe` shows Events of a cluster-scoped object only when they are in `default`,
 * and upstream's operators record them in a namespace of their own.
 */
export function recordTransition(
  recorder: Pick<EventRecorder, 'event'>,
  { object, namespace, component }: Recorded,
  { type, reason, message }: Transition,
): void {
  recorder.event(object, type, reason, message, { component });
  recorder.event({ ...object, metadata: { ...object.metadata, namespace } }, type, reason, message, { component });
}
