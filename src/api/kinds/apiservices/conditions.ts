/**
 * API services as this server handles them, and their conditions. Source:
 * k8s.io/kube-aggregator/pkg/apis/apiregistration/v1.
 */
import type { KubeObject } from '../../meta/object.ts';

export interface ServiceReference {
  namespace?: string;
  name?: string;
  port?: number;
}

export interface APIServiceSpec {
  /** Absent: this server itself has the group and version. */
  service?: ServiceReference;
  group?: string;
  version?: string;
  insecureSkipTLSVerify?: boolean;
  /** Base64 of PEM. */
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

/** Sets whether it is available; the time changes with the status only. */
export function setAvailable(service: APIService, now: Availability, time: string): void {
  service.status ??= {};
  service.status.conditions ??= [];
  const { conditions } = service.status;
  const known = conditions.find((each) => each.type === 'Available');
  if (known === undefined) {
    conditions.push({ type: 'Available', lastTransitionTime: time, ...now });
    return;
  }
  if (known.status !== now.status) known.lastTransitionTime = time;
  Object.assign(known, now);
}
