/**
 * Conversion between core/v1 and events.k8s.io/v1, two API views of the same stored event. Source:
 * k8s.io/kubernetes/pkg/apis/events/v1 conversion.
 */
import type { Event as CoreEvent } from '../../../generated/core/v1.ts';
import type { KubeObject } from '../../../meta/object.ts';

/** Field names in events.k8s.io/v1 and in core/v1. Other fields have the same name in both. */
const RENAMED: readonly (readonly [string, string])[] = [
  ['regarding', 'involvedObject'],
  ['note', 'message'],
  ['reportingController', 'reportingComponent'],
  ['deprecatedSource', 'source'],
  ['deprecatedFirstTimestamp', 'firstTimestamp'],
  ['deprecatedLastTimestamp', 'lastTimestamp'],
  ['deprecatedCount', 'count'],
];
const TO_CORE: ReadonlyMap<string, string> = new Map(RENAMED);
const FROM_CORE: ReadonlyMap<string, string> = new Map(RENAMED.map(([events, core]) => [core, events]));

export function eventToCore(object: KubeObject): CoreEvent {
  return rename(object, TO_CORE) as CoreEvent;
}

export function eventFromCore(object: CoreEvent): KubeObject {
  return rename(object, FROM_CORE);
}

function rename(object: object, names: ReadonlyMap<string, string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).map(([field, value]) => [names.get(field) ?? field, value]));
}

/** Field selector names of events.k8s.io/v1, with their names in core/v1. */
export const EVENTS_FIELD_LABELS: Readonly<Record<string, string>> = {
  'regarding.kind': 'involvedObject.kind',
  'regarding.namespace': 'involvedObject.namespace',
  'regarding.name': 'involvedObject.name',
  'regarding.uid': 'involvedObject.uid',
  'regarding.apiVersion': 'involvedObject.apiVersion',
  'regarding.resourceVersion': 'involvedObject.resourceVersion',
  'regarding.fieldPath': 'involvedObject.fieldPath',
  reason: 'reason',
  reportingController: 'reportingComponent',
  type: 'type',
};
