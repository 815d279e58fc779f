import type { Event } from '../../api/generated/core/v1.ts';
import { BoundedMap } from '../../base/bounded-map.ts';

/**
 * Decides whether an event is written as new, counted on an earlier event, merged into a combined event, or dropped.
 * This limits the cost of repeated events of a faulty pod. The correlator performs no I/O; the recorder writes the
 * events. Source: client-go's EventCorrelator (spam filter, aggregator, logger), KEP-383.
 */

/**
 * Number of events that each source may report about an object in a burst. After a burst, one event per five minutes is
 * permitted.
 */
const SPAM_BURST = 25;
const SPAM_REFILL_PER_MS = 1 / 300_000;
/** Number of different messages of one kind in the interval above which they are combined. */
const AGGREGATE_FROM = 10;
const AGGREGATE_INTERVAL_MS = 600_000;
const COMBINED_PREFIX = '(combined from similar events): ';
/** Maximum number of entries per table. The least recently used entry is evicted. */
const MAX_ENTRIES = 4096;

export interface Written {
  readonly name: string;
  readonly count: number;
  readonly firstTimestamp: string;
}

export type Correlation =
  | { readonly action: 'drop' }
  | { readonly action: 'create'; readonly event: Event; readonly key: string }
  | { readonly action: 'count'; readonly event: Event; readonly key: string };

interface Bucket {
  tokens: number;
  atMs: number;
}

interface Similar {
  readonly messages: Set<string>;
  lastMs: number;
}

export class EventCorrelator {
  readonly #buckets = new BoundedMap<string, Bucket>(MAX_ENTRIES);
  readonly #similar = new BoundedMap<string, Similar>(MAX_ENTRIES);
  readonly #written = new BoundedMap<string, Written>(MAX_ENTRIES);

  /** Determines what is done with an event. `event` must have count 1, time stamps and a name. */
  correlate(event: Event, nowMs: number): Correlation {
    if (!this.#admit(subjectKey(event), nowMs)) return { action: 'drop' };
    const combined = this.#aggregate(event, nowMs);
    const key = combined ? similarKey(event) : `${similarKey(event)}\0${event.message ?? ''}`;
    const outgoing = combined ? { ...event, message: COMBINED_PREFIX + (event.message ?? '') } : event;
    const before = this.#written.get(key);
    if (before === undefined) {
      this.#remember(key, outgoing);
      return { action: 'create', event: outgoing, key };
    }
    const counted: Event = {
      ...outgoing,
      metadata: { ...outgoing.metadata, name: before.name },
      firstTimestamp: before.firstTimestamp,
      count: before.count + 1,
    };
    this.#remember(key, counted);
    return { action: 'count', event: counted, key };
  }

  /** Called if the counted event had expired and was created again with the name of `event`. */
  rewritten(key: string, event: Event): void {
    this.#remember(key, event);
  }

  #remember(key: string, event: Event): void {
    this.#written.set(key, {
      name: event.metadata.name ?? '',
      count: event.count ?? 1,
      firstTimestamp: event.firstTimestamp ?? '',
    });
  }

  #admit(key: string, nowMs: number): boolean {
    const bucket = this.#buckets.get(key) ?? { tokens: SPAM_BURST, atMs: nowMs };
    bucket.tokens = Math.min(SPAM_BURST, bucket.tokens + Math.max(0, nowMs - bucket.atMs) * SPAM_REFILL_PER_MS);
    bucket.atMs = nowMs;
    this.#buckets.set(key, bucket);
    if (bucket.tokens < 1) return false;
    bucket.tokens -= 1;
    return true;
  }

  #aggregate(event: Event, nowMs: number): boolean {
    const key = similarKey(event);
    let similar = this.#similar.get(key);
    if (similar === undefined || nowMs - similar.lastMs > AGGREGATE_INTERVAL_MS) {
      similar = { messages: new Set(), lastMs: nowMs };
    }
    similar.lastMs = nowMs;
    similar.messages.add(event.message ?? '');
    this.#similar.set(key, similar);
    if (similar.messages.size < AGGREGATE_FROM) return false;
    // Remove the oldest message to keep the set at its limit.
    const oldest = similar.messages.values().next();
    if (oldest.done !== true) similar.messages.delete(oldest.value);
    return true;
  }
}

function subjectKey(event: Event): string {
  const { involvedObject: about, source } = event;
  return [
    source?.component,
    source?.host,
    about.kind,
    about.namespace,
    about.name,
    about.fieldPath,
    about.uid,
    about.apiVersion,
  ].join('\0');
}

function similarKey(event: Event): string {
  return [subjectKey(event), event.type, event.reason, event.reportingComponent, event.reportingInstance].join('\0');
}
