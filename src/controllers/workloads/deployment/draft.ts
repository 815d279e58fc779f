/** Copies of replica sets that a plan modifies, with a record of those that must be written. */
import type { ReplicaSet } from '../../../api/generated/apps/v1.ts';
import type { PlannedEvent } from '../../framework/core/plan-context.ts';
import { DESIRED_REPLICAS, MAX_REPLICAS } from './annotations.ts';
import { type Sizes, specReplicas } from './sizes.ts';

export class Draft {
  readonly #original = new Map<ReplicaSet, ReplicaSet>();
  readonly #changed = new Set<ReplicaSet>();
  readonly #sizes: Sizes;
  readonly events: PlannedEvent[] = [];

  constructor(sizes: Sizes) {
    this.#sizes = sizes;
  }

  /** Returns a copy that may be modified through this draft. */
  open(set: ReplicaSet): ReplicaSet {
    const copy: ReplicaSet = {
      ...set,
      metadata: { ...set.metadata, annotations: { ...set.metadata?.annotations } },
      ...(set.spec === undefined ? {} : { spec: { ...set.spec } }),
    };
    this.#original.set(copy, set);
    return copy;
  }

  annotate(set: ReplicaSet, annotations: Readonly<Record<string, string>>): void {
    const current = set.metadata?.annotations ?? {};
    if (Object.entries(annotations).every(([key, value]) => current[key] === value)) return;
    if (set.metadata !== undefined) set.metadata.annotations = { ...current, ...annotations };
    this.#changed.add(set);
  }

  setMinReadySeconds(set: ReplicaSet, seconds: number): void {
    if (set.spec === undefined || (set.spec.minReadySeconds ?? 0) === seconds) return;
    set.spec.minReadySeconds = seconds;
    this.#changed.add(set);
  }

  /** Sets the size and the size annotations. Returns true if the size changed. */
  scale(set: ReplicaSet, replicas: number): boolean {
    this.annotate(set, sizeAnnotations(this.#sizes));
    const before = specReplicas(set);
    if (before === replicas || set.spec === undefined) return false;
    set.spec.replicas = replicas;
    this.#changed.add(set);
    const direction = replicas > before ? 'up' : 'down';
    this.events.push({
      type: 'Normal',
      reason: 'ScalingReplicaSet',
      message: `Scaled ${direction} replica set ${set.metadata?.name ?? ''} from ${before} to ${replicas}`,
    });
    return true;
  }

  /** Sets that must be written, in the order of their first change. */
  changed(): ReplicaSet[] {
    return [...this.#changed].filter((set) => this.#original.has(set));
  }
}

export function sizeAnnotations(sizes: Sizes): Record<string, string> {
  return {
    [DESIRED_REPLICAS]: String(sizes.replicas),
    [MAX_REPLICAS]: String(sizes.replicas + sizes.maxSurge),
  };
}
