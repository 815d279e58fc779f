/** Reports that an idled service has traffic: the controllers scale its workloads up. */
import type { Service } from 'kubernetes-types/core/v1';
import { NEED_PODS } from '../api/kinds/services/idling.ts';
import { objectKey } from '../api/meta/object.ts';
import type { Clock } from '../base/clock.ts';
import type { EventRecorder } from './types.ts';

/** An Event may be lost; a service that still has traffic is reported again. */
const AGAIN_MS = 15_000;
const MAX_REPORTED = 1_000;

export type NeedPods = (service: Service) => void;

/** May be called for every request. */
export function createNeedPods(recorder: EventRecorder, clock: Clock): NeedPods {
  const reported = new Map<string, number>();
  return (service) => {
    // A service that is idled again is another occasion.
    const key = `${objectKey(service)} ${service.metadata?.resourceVersion ?? ''}`;
    const nowMs = clock.monotonicMs();
    const last = reported.get(key);
    if (last !== undefined && nowMs - last < AGAIN_MS) return;
    reported.delete(key);
    if (reported.size >= MAX_REPORTED) {
      const [oldest] = reported.keys();
      if (oldest !== undefined) reported.delete(oldest);
    }
    reported.set(key, nowMs);
    const about = { apiVersion: 'v1', kind: 'Service', ...service };
    recorder.event(about, 'Normal', NEED_PODS, `The service ${objectKey(service)} needs pods.`);
  };
}
