/**
 * Pods that wait for a node: ready to be tried (active), resting after a failure (back-off), or waiting for the cluster
 * to change (unschedulable). Time is an argument; nothing here runs by itself. Source: KEP-4247 and upstream's
 * scheduling queue.
 */
import type { FilterName } from './filters/filter.ts';

export interface QueuedPod {
  readonly key: string;
  readonly uid: string;
  readonly priority: number;
}

/** Something that may make a rejected pod schedulable. */
export type ClusterEvent =
  | 'NodeAdded'
  | 'NodeAllocatableChanged'
  | 'NodeLabelsChanged'
  | 'NodeTaintsChanged'
  | 'PodLeft'
  | 'PodPlaced'
  | 'PodLabelsChanged'
  | 'NamespaceChanged'
  | 'VolumesChanged'
  | 'DevicesChanged';

/** Which events can change a filter's mind. */
const INTERESTS: Readonly<Record<FilterName, readonly ClusterEvent[]>> = {
  NodeUnschedulable: ['NodeAdded', 'NodeTaintsChanged'],
  NodeName: ['NodeAdded'],
  TaintToleration: ['NodeAdded', 'NodeTaintsChanged'],
  NodeAffinity: ['NodeAdded', 'NodeLabelsChanged'],
  NodePorts: ['NodeAdded', 'PodLeft'],
  NodeResourcesFit: ['NodeAdded', 'NodeAllocatableChanged', 'PodLeft'],
  VolumeRestrictions: ['PodLeft', 'VolumesChanged'],
  VolumeBinding: ['NodeAdded', 'NodeLabelsChanged', 'VolumesChanged'],
  DynamicResources: ['NodeAdded', 'NodeLabelsChanged', 'DevicesChanged'],
  PodTopologySpread: [
    'NodeAdded',
    'NodeLabelsChanged',
    'NodeTaintsChanged',
    'PodLeft',
    'PodPlaced',
    'PodLabelsChanged',
  ],
  InterPodAffinity: ['NodeAdded', 'NodeLabelsChanged', 'PodLeft', 'PodPlaced', 'PodLabelsChanged', 'NamespaceChanged'],
};

/**
 * Shorter than upstream's second: a decision costs well under a millisecond on clusters of this size, waiting costs the
 * user's time.
 */
const INITIAL_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 10_000;
/**
 * A pod is tried again after this long even if no event spoke for it: the net below the event logic. Upstream's value.
 */
export const MAX_WAIT_MS = 5 * 60_000;

interface Entry {
  readonly pod: QueuedPod;
  readonly sequence: number;
  attempts: number;
  state: 'active' | 'backoff' | 'waiting' | 'inFlight';
  sinceMs: number;
  readyAtMs: number;
  filters: ReadonlySet<FilterName>;
  /** Events since the attempt began: they came too late for it, and must not be lost. */
  missed: Set<ClusterEvent>;
  isDirty: boolean;
}

export class SchedulingQueue {
  readonly #entries = new Map<string, Entry>();
  #sequence = 0;

  get size(): number {
    return this.#entries.size;
  }

  /** A new pod, or one whose own description changed: worth a try now. */
  add(pod: QueuedPod, nowMs: number): void {
    const known = this.#entries.get(pod.uid);
    if (known?.state === 'inFlight') {
      known.isDirty = true;
      return;
    }
    this.#entries.set(pod.uid, {
      pod,
      sequence: known?.sequence ?? this.#sequence++,
      attempts: known?.attempts ?? 0,
      state: 'active',
      sinceMs: nowMs,
      readyAtMs: nowMs,
      filters: new Set(),
      missed: new Set(),
      isDirty: false,
    });
  }

  /** The pod is bound, gone, or no longer ours. */
  remove(uid: string): void {
    this.#entries.delete(uid);
  }

  /**
   * The most important pod that is due; the longest queued among equals. It is in flight until `done`, `rejected` or
   * `failed`.
   */
  pop(nowMs: number): QueuedPod | undefined {
    let best: Entry | undefined;
    for (const entry of this.#entries.values()) {
      if (entry.state === 'backoff' && entry.readyAtMs <= nowMs) entry.state = 'active';
      if (entry.state !== 'active') continue;
      if (best === undefined || isBefore(entry, best)) best = entry;
    }
    if (best === undefined) return undefined;
    best.state = 'inFlight';
    best.attempts++;
    best.missed = new Set();
    best.isDirty = false;
    return best.pod;
  }

  /** No node fits; the pod waits for an event that one of `filters` cares about. */
  rejected(uid: string, filters: ReadonlySet<FilterName>, nowMs: number): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    entry.filters = filters;
    entry.sinceMs = nowMs;
    entry.readyAtMs = nowMs + backoffMs(entry.attempts);
    if (entry.isDirty || [...entry.missed].some((event) => concerns(filters, event))) entry.state = 'backoff';
    else entry.state = 'waiting';
  }

  /** The attempt failed for a reason that is not the cluster's shape (the API refused the binding). */
  failed(uid: string, nowMs: number): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    entry.state = 'backoff';
    entry.readyAtMs = nowMs + backoffMs(entry.attempts);
  }

  /** Wakes the waiting pods an event may help. Returns how many. */
  onEvent(event: ClusterEvent): number {
    let woken = 0;
    for (const entry of this.#entries.values()) {
      if (entry.state === 'inFlight') entry.missed.add(event);
      if (entry.state !== 'waiting' || !concerns(entry.filters, event)) continue;
      entry.state = 'backoff';
      woken++;
    }
    return woken;
  }

  /** Wakes the pods that have waited for too long. */
  flush(nowMs: number): void {
    for (const entry of this.#entries.values()) {
      if (entry.state === 'waiting' && nowMs - entry.sinceMs >= MAX_WAIT_MS) entry.state = 'backoff';
    }
  }

  /** When something becomes due: 0 now, undefined never by itself. */
  nextDueInMs(nowMs: number): number | undefined {
    let due: number | undefined;
    for (const entry of this.#entries.values()) {
      let at: number | undefined;
      if (entry.state === 'active') return 0;
      if (entry.state === 'backoff') at = entry.readyAtMs;
      else if (entry.state === 'waiting') at = entry.sinceMs + MAX_WAIT_MS;
      if (at !== undefined) due = Math.min(due ?? Number.POSITIVE_INFINITY, Math.max(0, at - nowMs));
    }
    return due;
  }
}

/** An empty set of filters (no node at all, or an inner error) cares about everything. */
function concerns(filters: ReadonlySet<FilterName>, event: ClusterEvent): boolean {
  if (filters.size === 0) return true;
  for (const filter of filters) if (INTERESTS[filter].includes(event)) return true;
  return false;
}

function backoffMs(attempts: number): number {
  return Math.min(MAX_BACKOFF_MS, INITIAL_BACKOFF_MS * 2 ** Math.max(0, attempts - 1));
}

function isBefore(a: Entry, b: Entry): boolean {
  if (a.pod.priority !== b.pod.priority) return a.pod.priority > b.pod.priority;
  return a.sequence < b.sequence;
}
