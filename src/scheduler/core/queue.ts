/**
 * Queue of pods without a node. A pod is ready to be tried (active), delayed after a failure (back-off), or waiting for
 * a change of the cluster (unschedulable). The queue has no timers; callers pass the time. Source: KEP-4247 and
 * upstream's scheduling queue.
 */

import type { PodInfo } from '../../api/podspec/scheduling/pod-info.ts';
import type { Uid } from '../../base/brand.ts';
import type { FilterName } from './filters/filter.ts';
import { Heap } from './heap.ts';
import { type ClusterEvent, canChangeResult, mayChangeResult } from './hints.ts';

export interface QueueOptions {
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
}

/**
 * Default back-off. The first delay is shorter than upstream's second, because a decision takes less than a millisecond
 * here.
 */
const DEFAULTS: QueueOptions = { initialBackoffMs: 100, maxBackoffMs: 10_000 };
/**
 * Time after which a waiting pod is tried again even without an event, in case a hint has missed one. It is the same in
 * upstream.
 */
export const MAX_WAIT_MS = 5 * 60_000;
/** Number of outdated items in the heaps, in addition to one item per pod, at which outdated items are removed. */
const MAX_OUTDATED = 1_024;

interface Entry {
  pod: PodInfo;
  readonly sequence: number;
  attempts: number;
  state: 'active' | 'backoff' | 'waiting' | 'inFlight';
  /** Counter that changes with the state. Items in the heaps with an earlier generation are outdated. */
  generation: number;
  sinceMs: number;
  readyAtMs: number;
  filters: ReadonlySet<FilterName>;
  /** Number of the last event before the attempt started. Events with a higher number happened during the attempt. */
  startedAt: number;
  isDirty: boolean;
}

interface Item {
  readonly entry: Entry;
  readonly generation: number;
  readonly readyAtMs: number;
}

export class SchedulingQueue {
  readonly #options: QueueOptions;
  readonly #entries = new Map<Uid, Entry>();
  #active = new Heap<Item>((a, b) => isBefore(a.entry, b.entry));
  #backoff = new Heap<Item>((a, b) => a.readyAtMs < b.readyAtMs);
  /** Waiting pods. The pod that has waited longest comes first. */
  readonly #waiting = new Set<Entry>();
  /** Waiting pods by the filters that have rejected them. Pods under `anything` wait for any event. */
  readonly #waitingFor = new Map<FilterName | 'anything', Set<Entry>>();
  readonly #lastEvents = new Map<ClusterEvent['kind'], number>();
  #sequence = 0;
  #events = 0;

  constructor(options: Partial<QueueOptions> = {}) {
    this.#options = { ...DEFAULTS, ...options };
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Adds a pod to be tried now. Called for new pods, and for pods whose spec has changed. */
  add(pod: PodInfo, nowMs: number): void {
    const known = this.#entries.get(pod.uid);
    if (known?.state === 'inFlight') {
      known.isDirty = true;
      known.pod = pod;
      return;
    }
    if (known !== undefined) this.remove(pod.uid);
    const entry: Entry = {
      pod,
      sequence: known?.sequence ?? this.#sequence++,
      attempts: known?.attempts ?? 0,
      state: 'active',
      generation: 0,
      sinceMs: nowMs,
      readyAtMs: nowMs,
      filters: new Set(),
      startedAt: this.#events,
      isDirty: false,
    };
    this.#entries.set(pod.uid, entry);
    this.#activate(entry);
    this.#compact();
  }

  /** Removes a pod. Called if the pod was bound or deleted, or belongs to another scheduler. */
  remove(uid: Uid): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    this.#entries.delete(uid);
    this.#leave(entry);
  }

  get(uid: Uid): PodInfo | undefined {
    return this.#entries.get(uid)?.pod;
  }

  /**
   * Returns the most important pod that is due; of equally important pods, the one that was added first. The pod is
   * then in flight until `rejected`, `failed` or `remove` is called for it.
   */
  pop(nowMs: number): PodInfo | undefined {
    this.#wakeDue(nowMs);
    const item = top(this.#active);
    if (item === undefined) return undefined;
    this.#active.pop();
    return this.#start(item.entry);
  }

  /**
   * Starts an attempt for a pod regardless of its position and back-off. Returns undefined if it is unknown or in
   * flight.
   */
  take(uid: Uid): PodInfo | undefined {
    const entry = this.#entries.get(uid);
    return entry === undefined || entry.state === 'inFlight' ? undefined : this.#start(entry);
  }

  /** Records that no node fits. The pod then waits for an event that can change the result of one of `filters`. */
  rejected(uid: Uid, filters: ReadonlySet<FilterName>, nowMs: number): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    entry.filters = filters;
    entry.sinceMs = nowMs;
    entry.readyAtMs = nowMs + this.#backoffMs(entry.attempts);
    const isMissed = (kind: ClusterEvent['kind']): boolean => (this.#lastEvents.get(kind) ?? 0) > entry.startedAt;
    if (
      entry.isDirty ||
      [...this.#lastEvents.keys()].some((kind) => isMissed(kind) && mayChangeResult(filters, kind))
    ) {
      this.#rest(entry);
      return;
    }
    this.#leave(entry);
    entry.state = 'waiting';
    this.#waiting.add(entry);
    for (const name of keysOf(filters)) this.#bucket(name).add(entry);
  }

  /**
   * Records that the attempt failed for a reason that no event announces, such as a binding that the API has rejected.
   * The pod is tried again after its back-off.
   */
  failed(uid: Uid, nowMs: number): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    entry.readyAtMs = nowMs + this.#backoffMs(entry.attempts);
    this.#rest(entry);
  }

  /** Requeues the waiting pods that the event may make schedulable. Returns their number. */
  onEvent(event: ClusterEvent): number {
    this.#lastEvents.set(event.kind, ++this.#events);
    let woken = 0;
    for (const [name, entries] of this.#waitingFor) {
      if (name !== 'anything' && !mayChangeResult(new Set([name]), event.kind)) continue;
      for (const entry of entries) {
        if (name !== 'anything' && !canChangeResult(name, entry.pod, event)) continue;
        this.#rest(entry);
        woken++;
      }
    }
    return woken;
  }

  /** Requeues the pods that have waited for MAX_WAIT_MS. */
  flush(nowMs: number): void {
    for (const entry of this.#waiting) {
      if (nowMs - entry.sinceMs < MAX_WAIT_MS) return;
      this.#rest(entry);
    }
  }

  /** Milliseconds until a pod is due; 0 if one is due now, undefined if no pod becomes due without an event. */
  nextDueInMs(nowMs: number): number | undefined {
    if (top(this.#active) !== undefined) return 0;
    const due: number[] = [];
    const resting = top(this.#backoff);
    if (resting !== undefined) due.push(resting.readyAtMs);
    for (const { sinceMs } of this.#waiting) {
      due.push(sinceMs + MAX_WAIT_MS);
      break;
    }
    return due.length === 0 ? undefined : Math.max(0, Math.min(...due) - nowMs);
  }

  #start(entry: Entry): PodInfo {
    this.#leave(entry);
    entry.state = 'inFlight';
    entry.attempts++;
    entry.startedAt = this.#events;
    entry.isDirty = false;
    return entry.pod;
  }

  #activate(entry: Entry): void {
    this.#leave(entry);
    entry.state = 'active';
    this.#active.push({ entry, generation: entry.generation, readyAtMs: 0 });
  }

  #rest(entry: Entry): void {
    this.#leave(entry);
    entry.state = 'backoff';
    this.#backoff.push({ entry, generation: entry.generation, readyAtMs: entry.readyAtMs });
  }

  #leave(entry: Entry): void {
    entry.generation++;
    if (!this.#waiting.delete(entry)) return;
    for (const name of keysOf(entry.filters)) this.#bucket(name).delete(entry);
  }

  #wakeDue(nowMs: number): void {
    for (let item = top(this.#backoff); item !== undefined && item.readyAtMs <= nowMs; item = top(this.#backoff)) {
      this.#backoff.pop();
      this.#activate(item.entry);
    }
  }

  #bucket(name: FilterName | 'anything'): Set<Entry> {
    let bucket = this.#waitingFor.get(name);
    if (bucket === undefined) {
      bucket = new Set();
      this.#waitingFor.set(name, bucket);
    }
    return bucket;
  }

  #compact(): void {
    if (this.#active.size + this.#backoff.size <= this.#entries.size + MAX_OUTDATED) return;
    const active = new Heap<Item>((a, b) => isBefore(a.entry, b.entry));
    const backoff = new Heap<Item>((a, b) => a.readyAtMs < b.readyAtMs);
    for (const entry of this.#entries.values()) {
      const item = { entry, generation: entry.generation, readyAtMs: entry.readyAtMs };
      if (entry.state === 'active') active.push(item);
      if (entry.state === 'backoff') backoff.push(item);
    }
    this.#active = active;
    this.#backoff = backoff;
  }

  #backoffMs(attempts: number): number {
    const { initialBackoffMs, maxBackoffMs } = this.#options;
    return Math.min(maxBackoffMs, initialBackoffMs * 2 ** Math.max(0, attempts - 1));
  }
}

/** First item of the heap that is not outdated. Outdated items before it are removed. */
function top(heap: Heap<Item>): Item | undefined {
  for (let item = heap.peek(); item !== undefined; item = heap.peek()) {
    if (item.generation === item.entry.generation) return item;
    heap.pop();
  }
  return undefined;
}

/** Keys in `#waitingFor`. A rejection without filters (no nodes, or an internal error) waits for any event. */
const keysOf = (filters: ReadonlySet<FilterName>): Iterable<FilterName | 'anything'> =>
  filters.size === 0 ? ['anything'] : filters;

function isBefore(a: Entry, b: Entry): boolean {
  if (a.pod.priority !== b.pod.priority) return a.pod.priority > b.pod.priority;
  return a.sequence < b.sequence;
}
