import type { Pod } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import type { Clock } from '../../base/time/clock.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { EventRecorder } from '../../client/types.ts';

/** An event as it was recorded, for support bundles of a host whose API server does not answer. */
export interface RecentEvent {
  readonly time: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

const MAX_RECENT = 300;
const MAX_MESSAGE = 1024;

/** Records events about pods and the node. They do not reach the API server while there is no connection to it. */
export class KubeletEvents {
  private recorder: EventRecorder | undefined;
  private readonly clock: Pick<Clock, 'nowMs'>;
  private readonly last: RecentEvent[] = [];

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.clock = clock;
  }

  connect(recorder: EventRecorder): void {
    this.recorder = recorder;
  }

  /** The last events, oldest first. */
  recent(): readonly RecentEvent[] {
    return this.last;
  }

  about(object: KubeObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.remember(object, type, reason, message);
    this.recorder?.event(object, type, reason, message);
  }

  pod(pod: Pod, type: 'Normal' | 'Warning', reason: string, message: string, container?: string): void {
    const list = pod.spec?.initContainers?.some((each) => each.name === container)
      ? 'initContainers'
      : pod.spec?.ephemeralContainers?.some((each) => each.name === container)
        ? 'ephemeralContainers'
        : 'containers';
    const reference = { apiVersion: 'v1', kind: 'Pod', ...pod };
    this.remember(reference, type, reason, message);
    if (container === undefined) this.recorder?.event(reference, type, reason, message);
    else this.recorder?.event(reference, type, reason, message, { fieldPath: `spec.${list}{${container}}` });
  }

  private remember({ kind = '', metadata }: KubeObject, type: RecentEvent['type'], reason: string, message: string) {
    this.last.push({
      time: timestamp(this.clock.nowMs()),
      kind,
      type,
      reason,
      namespace: metadata?.namespace ?? '',
      name: metadata?.name ?? '',
      message: message.slice(0, MAX_MESSAGE),
    });
    if (this.last.length > MAX_RECENT) this.last.shift();
  }
}
