/** Services whose workloads were scaled to zero by `oc idle`. Source: openshift/api unidling/v1alpha1. */
import type { Service } from '../../../generated/core/v1.ts';

export const IDLED_AT = 'idling.alpha.openshift.io/idled-at';
export const UNIDLE_TARGETS = 'idling.alpha.openshift.io/unidle-targets';
/** Reason of the Event for an idled service that receives traffic. */
export const NEED_PODS = 'NeedPods';

export interface UnidleTarget {
  readonly kind: string;
  readonly group: string;
  readonly name: string;
  readonly replicas: number;
}

const MAX_TARGETS = 100;
const MAX_REPLICAS = 10_000;
const NAME = /^[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?$/;

export const isIdled = (service: Service | undefined): boolean =>
  service?.metadata?.annotations?.[IDLED_AT] !== undefined;

/** Workloads to scale up, in the namespace of the service. Malformed targets are ignored. */
export function unidleTargets({ metadata }: Service): UnidleTarget[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(metadata?.annotations?.[UNIDLE_TARGETS] ?? '[]');
  } catch {
    return [];
  }
  return Array.isArray(parsed) ? parsed.slice(0, MAX_TARGETS).flatMap((each) => targetOf(each) ?? []) : [];
}

function targetOf(value: unknown): UnidleTarget | undefined {
  const { kind, group, name, replicas } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (typeof kind !== 'string' || typeof name !== 'string' || !NAME.test(name)) return undefined;
  if (!Number.isInteger(replicas) || Number(replicas) < 1 || Number(replicas) > MAX_REPLICAS) return undefined;
  return { kind, group: typeof group === 'string' ? group : '', name, replicas: Number(replicas) };
}
