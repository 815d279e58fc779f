/** Events. Source: k8s.io/kubernetes/pkg/registry/core/event, pkg/apis/core/validation ValidateEventCreate. */
import type { Event } from '../../../generated/core/v1.ts';
import { isSet } from '../../../meta/validation.ts';
import { column, nameColumn } from '../../../printing/columns.ts';
import { since } from '../../../printing/duration.ts';
import type { KindDefinition } from '../../../registry/definition.ts';
import { ALL_VERBS } from '../../../registry/strategies.ts';
import { EVENTS_FIELD_LABELS, eventFromCore, eventToCore } from './conversion.ts';
import { validateEvent, validateEventVersion } from './validation.ts';

const TTL_SECONDS = 3600;

interface Times {
  readonly first: string | undefined;
  readonly last: string | undefined;
  readonly count: number;
}

function timesOf(event: Event): Times {
  const first = event.firstTimestamp || event.eventTime;
  if (event.series !== undefined) {
    return { first, last: event.series.lastObservedTime, count: event.series.count ?? 0 };
  }
  return { first, last: event.lastTimestamp || first, count: event.count || 1 };
}

function objectText(event: Event): string {
  const kind = (event.involvedObject?.kind ?? '').toLowerCase();
  return isSet(event.involvedObject?.name) ? `${kind}/${event.involvedObject.name}` : kind;
}

function sourceText(event: Event): string {
  const component = event.source?.component || event.reportingComponent || '';
  return isSet(event.source?.host) ? `${component}, ${event.source.host}` : component;
}

const eventsView = { convertTo: eventToCore, convertFrom: eventFromCore, fieldLabels: EVENTS_FIELD_LABELS };

const wide = { wide: true };

/** Empty fields that `events.k8s.io/v1` objects always have. */
const VIEW_SKELETON = {
  eventTime: null,
  regarding: {},
  deprecatedSource: {},
  deprecatedFirstTimestamp: null,
  deprecatedLastTimestamp: null,
};

export const events: KindDefinition<Event> = {
  group: '',
  version: 'v1',
  kind: 'Event',
  plural: 'events',
  singular: 'event',
  listKind: 'EventList',
  namespaced: true,
  shortNames: ['ev'],
  verbs: ALL_VERBS,
  schemaName: 'io.k8s.api.core.v1.Event',
  skeleton: {
    involvedObject: {},
    source: {},
    firstTimestamp: null,
    lastTimestamp: null,
    eventTime: null,
    reportingComponent: '',
    reportingInstance: '',
  },
  storagePrefix: 'events',
  nameRule: 'pathSegment',
  durability: 'relaxed',
  ttlSeconds: TTL_SECONDS,
  allowCreateOnUpdate: true,
  aliases: [
    { group: 'events.k8s.io', version: 'v1', skeleton: VIEW_SKELETON, ...eventsView },
    { group: 'events.k8s.io', version: 'v1beta1', deprecated: { since: '1.19', removed: '1.25' }, ...eventsView },
  ],
  setDefaults(event) {
    event.source ??= {};
    event.reportingComponent ??= '';
    event.reportingInstance ??= '';
  },
  strategy: { validate: validateEvent, validateVersion: validateEventVersion },
  columns: [
    column<Event>('Last Seen', 'Time since the event was last seen.', (event, nowMs) =>
      since(timesOf(event).last, nowMs),
    ),
    column<Event>('Type', 'Normal or Warning.', (event) => event.type ?? ''),
    column<Event>('Reason', 'Reason of the event, in one word.', (event) => event.reason ?? ''),
    column<Event>('Object', 'Object of the event.', objectText),
    column<Event>('Subobject', 'Field path of the object.', (event) => event.involvedObject?.fieldPath ?? '', wide),
    column<Event>('Source', 'Component that reported the event.', sourceText, wide),
    column<Event>('Message', 'Message of the event.', (event) => (event.message ?? '').trim()),
    column<Event>(
      'First Seen',
      'Time since the event was first seen.',
      (event, nowMs) => since(timesOf(event).first, nowMs),
      wide,
    ),
    column<Event>('Count', 'Number of times the event was seen.', (event) => timesOf(event).count, wide),
    { ...nameColumn, priority: 1 },
  ],
  fieldSelectors: {
    'involvedObject.kind': (event) => event.involvedObject?.kind ?? '',
    'involvedObject.namespace': (event) => event.involvedObject?.namespace ?? '',
    'involvedObject.name': (event) => event.involvedObject?.name ?? '',
    'involvedObject.uid': (event) => event.involvedObject?.uid ?? '',
    'involvedObject.apiVersion': (event) => event.involvedObject?.apiVersion ?? '',
    'involvedObject.resourceVersion': (event) => event.involvedObject?.resourceVersion ?? '',
    'involvedObject.fieldPath': (event) => event.involvedObject?.fieldPath ?? '',
    reason: (event) => event.reason ?? '',
    reportingComponent: (event) => event.reportingComponent ?? '',
    source: (event) => event.source?.component || event.reportingComponent || '',
    type: (event) => event.type ?? '',
  },
};
