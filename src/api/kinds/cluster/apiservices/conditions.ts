/** APIService objects and their conditions. Source: k8s.io/kube-aggregator/pkg/apis/apiregistration/v1. */
import { withCondition } from '../../../meta/conditions.ts';
import type { KubeObject } from '../../../meta/object.ts';

export interface ServiceReference {
  namespace?: string;
  name?: string;
  port?: number;
}

export interface APIServiceSpec {
  /** Service that serves the group and version. If absent, this API server serves them itself. */
  service?: ServiceReference;
  group?: string;
  version?: string;
  insecureSkipTLSVerify?: boolean;
  /** PEM certificates, base64-encoded. */
  caBundle?: string;
  groupPriorityMinimum: number;
  versionPriority: number;
}

export interface APIServiceCondition {
  type: string;
  status: string;
  lastTransitionTime?: string;
  reason?: string;
  message?: string;
}

export interface APIService extends KubeObject {
  spec?: APIServiceSpec;
  status?: { conditions?: APIServiceCondition[] };
}

export type Availability = Pick<APIServiceCondition, 'status' | 'reason' | 'message'>;

export const LOCAL_AVAILABLE = {
  status: 'True',
  reason: 'Local',
  message: 'Local APIServices are always available',
} as const;

export const DEFAULT_PORT = 443;

export function availableCondition(service: APIService): APIServiceCondition | undefined {
  return service.status?.conditions?.find((each) => each.type === 'Available');
}

/** Sets the Available condition. The transition time changes only when the status changes. */
export function setAvailable(service: APIService, now: Availability, time: string): void {
  service.status ??= {};
  service.status.conditions = withCondition(
    service.status.conditions,
    { ...availableCondition(service), ...now, type: 'Available' },
    time,
  );
}
