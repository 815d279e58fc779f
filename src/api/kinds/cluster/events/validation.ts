/** Validation of events. Source: k8s.io/kubernetes/pkg/apis/core/validation/events.go. */

import { qualifiedNameErrors } from '../../../../base/names.ts';
import type { Event } from '../../../generated/core/v1.ts';
import { type FieldError, fieldError } from '../../../meta/field-error.ts';
import { isSet, nameErrors, validateImmutable } from '../../../meta/validation.ts';

const MAX_WORD = 128;
const MAX_MESSAGE = 1024;
/** Namespaces that may hold events about cluster-scoped objects. */
const SYSTEM = 'kube-system';
const USUAL = 'default';

/**
 * Rules for all API versions: the event is in the namespace of the object it is about, and an event with `eventTime`
 * names its reporting controller.
 */
export function validateEvent(event: Event): FieldError[] {
  const isNew = isSet(event.eventTime);
  return [...validateNamespace(event, isNew), ...(isNew ? validateReport(event) : [])];
}

function validateNamespace(event: Event, isNew: boolean): FieldError[] {
  const subject = event.involvedObject?.namespace ?? '';
  const own = event.metadata?.namespace ?? '';
  const fits = subject === '' ? own === USUAL || (isNew ? own === SYSTEM : own === '') : isNew || subject === own;
  return fits ? [] : [fieldError.invalid('involvedObject.namespace', subject, 'does not match event.namespace')];
}

function validateReport(event: Event): FieldError[] {
  const controller = event.reportingComponent ?? '';
  const errors = isSet(controller) ? [] : [fieldError.required('reportingController')];
  for (const message of qualifiedNameErrors(controller))
    errors.push(fieldError.invalid('reportingController', controller, message));
  for (const field of ['reportingInstance', 'action', 'reason'] as const) {
    const text = event[field] ?? '';
    if (text === '') errors.push(fieldError.required(field));
    if (text.length > MAX_WORD) errors.push(tooLong(field, MAX_WORD));
  }
  if ((event.message ?? '').length > MAX_MESSAGE) errors.push(tooLong('message', MAX_MESSAGE));
  return errors;
}

const tooLong = (field: string, limit: number): FieldError =>
  fieldError.invalid(field, '', `can have at most ${limit} characters`);

/** Fields that are immutable when the event is updated as `events.k8s.io/v1`. */
const FIXED = [
  'involvedObject',
  'reason',
  'message',
  'source',
  'firstTimestamp',
  'lastTimestamp',
  'count',
  'type',
  'eventTime',
  'action',
  'related',
  'reportingComponent',
  'reportingInstance',
] as const;

/** Additional rules for `events.k8s.io/v1`. */
export function validateEventVersion(apiVersion: string, event: Event, old: Event | undefined): FieldError[] {
  if (apiVersion !== 'events.k8s.io/v1') return [];
  if (old !== undefined) {
    const series = JSON.stringify(event.series) === JSON.stringify(old.series) ? [] : validateSeries(event);
    return [
      ...series,
      ...FIXED.flatMap((field) =>
        validateImmutable(event[field], old[field], field === 'reportingComponent' ? 'reportingController' : field),
      ),
    ];
  }
  const errors: FieldError[] = [];
  const name = event.metadata?.name ?? '';
  for (const message of nameErrors('dns1123Subdomain', name))
    errors.push(fieldError.invalid('metadata.name', name, message));
  errors.push(...validateSeries(event));
  if (!isSet(event.eventTime)) errors.push(fieldError.required('eventTime'));
  if (event.type !== 'Normal' && event.type !== 'Warning')
    errors.push(fieldError.invalid('type', '', `has invalid value: ${event.type ?? ''}`));
  for (const field of ['firstTimestamp', 'lastTimestamp'] as const) if (isSet(event[field])) errors.push(unset(field));
  if ((event.count ?? 0) !== 0) errors.push(unset('count'));
  if (isSet(event.source?.component) || isSet(event.source?.host)) errors.push(unset('source'));
  return errors;
}

const unset = (field: string): FieldError => fieldError.invalid(field, '', 'needs to be unset');

function validateSeries({ series }: Event): FieldError[] {
  if (series === undefined || series === null) return [];
  const errors: FieldError[] = [];
  if ((series.count ?? 0) < 2) errors.push(fieldError.invalid('series.count', '', 'should be at least 2'));
  if (!isSet(series.lastObservedTime)) errors.push(fieldError.required('series.lastObservedTime'));
  return errors;
}
