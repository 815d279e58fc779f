import type { Pod } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import type { EventRecorder } from '../../client/types.ts';

/** Records events about pods and the node. Events are dropped while there is no connection to an API server. */
export class KubeletEvents {
  private recorder: EventRecorder | undefined;

  connect(recorder: EventRecorder): void {
    this.recorder = recorder;
  }

  about(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.recorder?.event(object, type, reason, message);
  }

  pod(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string, container?: string): void {
    const list = pod.spec?.initContainers?.some((each) => each.name === container)
      ? 'initContainers'
      : pod.spec?.ephemeralContainers?.some((each) => each.name === container)
        ? 'ephemeralContainers'
        : 'containers';
    const reference = { apiVersion: 'v1', kind: 'Pod', ...pod };
    if (container === undefined) this.recorder?.event(reference, type, reason, message);
    else this.recorder?.event(reference, type, reason, message, { fieldPath: `spec.${list}{${container}}` });
  }
}
