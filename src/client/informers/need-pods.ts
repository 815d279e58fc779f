/** Reports requests to idled Services, so that the controllers scale up the workloads of these Services. */

import type { Service } from '../../api/generated/core/v1.ts';
import { NEED_PODS } from '../../api/kinds/network/services/idling.ts';
import { objectKey } from '../../api/meta/object.ts';
import { BoundedMap } from '../../base/bounded-map.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { EventRecorder } from '../types.ts';

/** Interval at which requests to the same Service are reported again, because an Event may be lost. */
const AGAIN_MS = 15_000;
const MAX_REPORTED = 1_000;

export type NeedPods = (service: Service) => void;

/** Returns a function that reports a request to an idled Service. It is fast enough to be called for every request. */
export function createNeedPods(recorder: EventRecorder, clock: Clock): NeedPods {
  const reported = new BoundedMap<string, number>(MAX_REPORTED);
  return (service) => {
    // The key contains the resource version, so that a Service that is idled again is reported again.
    const key = `${objectKey(service)} ${service.metadata?.resourceVersion ?? ''}`;
    const nowMs = clock.monotonicMs();
    const last = reported.get(key);
    if (last !== undefined && nowMs - last < AGAIN_MS) return;
    reported.set(key, nowMs);
    const about = { apiVersion: 'v1', kind: 'Service', ...service };
    recorder.event(about, 'Normal', NEED_PODS, `The service ${objectKey(service)} needs pods.`);
  };
}
