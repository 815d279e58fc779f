import type { Event } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { ignore, messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource } from '../../base/time/clock.ts';
import { sleep } from '../../base/time/sleep.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import { isConnectionError } from '../errors.ts';
import type { ApiClient, EventRecorder, ResourceClient } from '../types.ts';
import { type Correlation, EventCorrelator } from './event-correlator.ts';

export interface EventRecorderOptions {
  readonly client: ApiClient;
  /** Source of the events, for example `kubelet` or `deployment-controller`. */
  readonly component: string;
  /** Node name, for components that run on a node. */
  readonly host?: string;
  /** Delay before events are written, so that they do not slow down the work that they report. Default: 0. */
  readonly settleMs?: number;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}

/** Maximum number of queued events. Further events are dropped. */
const MAX_QUEUED = 1000;
/** Maximum number of attempts for an event while the server is unreachable. Source: client-go's maxTriesPerEvent. */
const MAX_TRIES = 12;
const RETRY_MS = 2_000;
/** Default time limit for `stop`, which writes the queued events. */
const FLUSH_MS = 2_000;
/** Upstream's limit for the message of an event. */
const MAX_MESSAGE = 1024;

/** Correlates and writes events in the background, one at a time. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { clock, random, log, settleMs = 0 } = options;
  const events = options.client.resource(resources.events);
  const correlator = new EventCorrelator();
  const queue: Event[] = [];
  const stopping = new AbortController();
  const flushing = new AbortController();
  let draining: Promise<void> | undefined;
  let dropped = 0;

  const drain = async (): Promise<void> => {
    if (settleMs > 0) await sleep(clock, settleMs, flushing.signal).catch(ignore('an aborted pause ends early'));
    for (let event = queue.shift(); event !== undefined; event = queue.shift()) {
      const outcome = correlator.correlate(event, clock.nowMs());
      if (outcome.action === 'drop') log.v(4, 'event dropped by the spam filter', about(event));
      else await write(outcome);
    }
    if (dropped > 0) {
      log.warn('events dropped: queue full', { count: dropped });
      dropped = 0;
    }
  };

  const write = async (outcome: Exclude<Correlation, { readonly action: 'drop' }>): Promise<void> => {
    for (let tries = 1; ; tries++) {
      try {
        await writeOnce(events, outcome, correlator);
        return;
      } catch (error) {
        // A rejection by the server, for example in a terminating namespace, is final. The event is retried only if the
        // server did not respond.
        const final = !isConnectionError(error) || tries >= MAX_TRIES || stopping.signal.aborted;
        if (final) {
          log.v(isNamespaceNotFound(error) ? 4 : 2, 'event not recorded', {
            ...about(outcome.event),
            error: messageOf(error),
          });
          return;
        }
      }
      try {
        await sleep(clock, RETRY_MS * (0.5 + random.random()), stopping.signal);
      } catch {
        // The recorder is stopping. This event gets one last attempt; then the next event is written.
      }
    }
  };

  return {
    event(object, type, reason, message, { fieldPath, component = options.component } = {}) {
      log.v(3, message, { type, reason, object: `${object.kind}/${object.metadata?.name}` });
      if (stopping.signal.aborted) return;
      if (queue.length >= MAX_QUEUED) {
        dropped++;
        return;
      }
      queue.push(eventAbout(object, { type, reason, message, fieldPath, component }, options));
      draining ??= drain()
        .catch((error: unknown) => log.error('event recorder failed', { error: messageOf(error) }))
        .finally(() => {
          draining = undefined;
        });
    },
    async stop(flushMs = FLUSH_MS) {
      flushing.abort();
      if (draining !== undefined) {
        const late = new AbortController();
        await Promise.race([draining, sleep(clock, flushMs, late.signal).catch(ignore('an aborted pause ends early'))]);
        late.abort();
      }
      stopping.abort();
      queue.length = 0;
      await draining;
    },
  };
}

async function writeOnce(
  events: ResourceClient<Event>,
  outcome: Exclude<Correlation, { readonly action: 'drop' }>,
  correlator: EventCorrelator,
): Promise<void> {
  const { event, key, action } = outcome;
  if (action === 'create') {
    try {
      await events.create(event);
    } catch (error) {
      // The event exists: an earlier attempt has created it, but its response was lost.
      if (!isApiError(error, 'AlreadyExists')) throw error;
    }
    return;
  }
  const { count, lastTimestamp, message, metadata } = event;
  try {
    await events.patch(metadata.name ?? '', metadata.namespace, 'merge', { count, lastTimestamp, message });
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    await events.create(event);
    correlator.rewritten(key, event);
  }
}

function eventAbout(
  object: KubeObject,
  what: {
    readonly type: string;
    readonly reason: string;
    readonly message: string;
    readonly fieldPath: string | undefined;
    readonly component: string;
  },
  options: EventRecorderOptions,
): Event {
  const metadata = object.metadata ?? {};
  const nowMs = options.clock.nowMs();
  const time = timestamp(nowMs);
  const namespace = metadata.namespace ?? 'default';
  const suffix = Buffer.from(options.random.bytes(4)).toString('hex');
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: `${metadata.name ?? ''}.${nowMs.toString(16)}${suffix}`, namespace },
    involvedObject: {
      ...(object.kind === undefined ? {} : { kind: object.kind }),
      ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
      ...(metadata.name === undefined ? {} : { name: metadata.name }),
      ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
      ...(object.apiVersion === undefined ? {} : { apiVersion: object.apiVersion }),
      ...(metadata.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion }),
      ...(what.fieldPath === undefined ? {} : { fieldPath: what.fieldPath }),
    },
    type: what.type,
    reason: what.reason,
    message: what.message.length > MAX_MESSAGE ? `${what.message.slice(0, MAX_MESSAGE - 1)}…` : what.message,
    source: { component: what.component, ...(options.host === undefined ? {} : { host: options.host }) },
    reportingComponent: what.component,
    ...(options.host === undefined ? {} : { reportingInstance: options.host }),
    firstTimestamp: time,
    lastTimestamp: time,
    count: 1,
  };
}

function isNamespaceNotFound(error: unknown): boolean {
  return isApiError(error, 'NotFound') || isApiError(error, 'Forbidden');
}

function about(event: Event): { readonly object: string; readonly reason: string | undefined } {
  return { object: `${event.involvedObject.kind}/${event.involvedObject.name}`, reason: event.reason };
}
