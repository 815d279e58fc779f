/**
 * Pods that wait for a node: ready to be tried (active), resting after a failure (back-off), or waiting for the cluster
 * to change (unschedulable). Time is an argument; nothing here runs by itself. Source: KEP-4247 and upstream's
 * scheduling queue.
 */
import type { FilterName } from './filters/filter.ts';
import { Heap } from './heap.ts';
import { type ClusterEvent, helps, mayHelp } from './hints.ts';
import type { PodInfo } from './pod-info.ts';

export interface QueueOptions {
  readonly initialBackoffMs: number;
  readonly maxBackoffMs: number;
}

/**
 * Shorter than upstream's second: a decision costs well under a millisecond on clusters of this size, waiting costs the
 * user's time.
 */
const DEFAULTS: QueueOptions = { initialBackoffMs: 100, maxBackoffMs: 10_000 };
/**
 * A pod is tried again after this long even if no event spoke for it: the net below the event logic. Upstream's value.
 */
export const MAX_WAIT_MS = 5 * 60_000;
/** Outdated items of a heap are removed once they are this many more than the pods. */
const MAX_OUTDATED = 1_024;

interface Entry {
  pod: PodInfo;
  readonly sequence: number;
  attempts: number;
  state: 'active' | 'backoff' | 'waiting' | 'inFlight';
  /** Changes with the state, so that items in the heaps are outdated. */
  generation: number;
  sinceMs: number;
  readyAtMs: number;
  filters: ReadonlySet<FilterName>;
  /** Events after this one came too late for the attempt, and must not be lost. */
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
  readonly #entries = new Map<string, Entry>();
  #active = new Heap<Item>((a, b) => isBefore(a.entry, b.entry));
  #backoff = new Heap<Item>((a, b) => a.readyAtMs < b.readyAtMs);
  /** Longest waiting first. */
  readonly #waiting = new Set<Entry>();
  /** The same by the filters that rejected them; pods that no filter rejected wait for any event. */
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

  /** A new pod, or one whose own description changed: worth a try now. */
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

  /** The pod is bound, deleted, or belongs to another scheduler. */
  remove(uid: string): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    this.#entries.delete(uid);
    this.#leave(entry);
  }

  get(uid: string): PodInfo | undefined {
    return this.#entries.get(uid)?.pod;
  }

  /**
   * The most important pod that is due; the longest queued among equals. It is in flight until `rejected`, `failed` or
   * `remove`.
   */
  pop(nowMs: number): PodInfo | undefined {
    this.#wakeDue(nowMs);
    const item = top(this.#active);
    if (item === undefined) return undefined;
    this.#active.pop();
    return this.#start(item.entry);
  }

  /** Takes a pod out of its order, whatever it waits for; undefined when it is unknown or in flight. */
  take(uid: string): PodInfo | undefined {
    const entry = this.#entries.get(uid);
    return entry === undefined || entry.state === 'inFlight' ? undefined : this.#start(entry);
  }

  /** No node fits; the pod waits for an event that one of `filters` cares about. */
  rejected(uid: string, filters: ReadonlySet<FilterName>, nowMs: number): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    entry.filters = filters;
    entry.sinceMs = nowMs;
    entry.readyAtMs = nowMs + this.#backoffMs(entry.attempts);
    const isMissed = (kind: ClusterEvent['kind']): boolean => (this.#lastEvents.get(kind) ?? 0) > entry.startedAt;
    if (entry.isDirty || [...this.#lastEvents.keys()].some((kind) => isMissed(kind) && mayHelp(filters, kind))) {
      this.#rest(entry);
      return;
    }
    this.#leave(entry);
    entry.state = 'waiting';
    this.#waiting.add(entry);
    for (const name of keysOf(filters)) this.#bucket(name).add(entry);
  }

  /** The attempt failed for a reason that is not the cluster's shape (the API refused the binding). */
  failed(uid: string, nowMs: number): void {
    const entry = this.#entries.get(uid);
    if (entry === undefined) return;
    entry.readyAtMs = nowMs + this.#backoffMs(entry.attempts);
    this.#rest(entry);
  }

  /** Wakes the waiting pods an event may help. Returns how many. */
  onEvent(event: ClusterEvent): number {
    this.#lastEvents.set(event.kind, ++this.#events);
    let woken = 0;
    for (const [name, entries] of this.#waitingFor) {
      if (name !== 'anything' && !mayHelp(new Set([name]), event.kind)) continue;
      for (const entry of entries) {
        if (name !== 'anything' && !helps(name, entry.pod, event)) continue;
        this.#rest(entry);
        woken++;
      }
    }
    return woken;
  }

  /** Wakes the pods that have waited for too long. */
  flush(nowMs: number): void {
    for (const entry of this.#waiting) {
      if (nowMs - entry.sinceMs < MAX_WAIT_MS) return;
      this.#rest(entry);
    }
  }

  /** When something becomes due: 0 now, undefined never by itself. */
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

/** The first item that is not outdated. */
function top(heap: Heap<Item>): Item | undefined {
  for (let item = heap.peek(); item !== undefined; item = heap.peek()) {
    if (item.generation === item.entry.generation) return item;
    heap.pop();
  }
  return undefined;
}

/** An empty set of filters (no node at all, or an inner error) cares about everything. */
const keysOf = (filters: ReadonlySet<FilterName>): Iterable<FilterName | 'anything'> =>
  filters.size === 0 ? ['anything'] : filters;

function isBefore(a: Entry, b: Entry): boolean {
  if (a.pod.priority !== b.pod.priority) return a.pod.priority > b.pod.priority;
  return a.sequence < b.sequence;
}
