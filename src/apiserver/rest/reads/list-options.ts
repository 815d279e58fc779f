/** Parses and validates the query parameters of reads, and evaluates their selectors. */

import { type FieldError, fieldError, invalid } from '../../../api/meta/field-error.ts';
import { ApiError } from '../../../api/meta/status.ts';
import {
  everything,
  type FieldSelector,
  isEverything,
  type LabelSelector,
  matchesFields,
  matchesLabels,
  parseFieldSelector,
  parseLabelSelector,
} from '../../../base/selector.ts';
import { isTrue } from '../../http/request-info.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';

export interface ListOptions {
  readonly labels: LabelSelector;
  readonly fields: FieldSelector;
  readonly limit: number | undefined;
  readonly continueToken: string | undefined;
  /** Requested revision. Undefined: the current revision. 0: any cached revision. */
  readonly resourceVersion: number | undefined;
  readonly match: 'Exact' | 'NotOlderThan' | undefined;
  readonly timeoutSeconds: number | undefined;
  readonly bookmarks: boolean;
  readonly sendInitialEvents: boolean | undefined;
  /** Filter of kinds whose objects are only partly visible to the user (readable.ts). */
  readonly visible?: (object: CachedObject) => boolean;
}

const bad = (message: string): ApiError => new ApiError('BadRequest', message);

/**
 * Error of contradicting options. As in upstream, its reason is `Invalid`, because client-go's reflector falls back
 * from watch-lists on this reason.
 */
function contradiction(failure: FieldError): ApiError {
  return invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', [failure]);
}

const matchForbidden = (detail: string): FieldError => fieldError.forbidden('resourceVersionMatch', detail);

export function parseRevision(text: string | null | undefined): number | undefined {
  if (text === null || text === undefined || text === '') return undefined;
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(value)) {
    throw bad(
      `resourceVersion: Invalid value: ${JSON.stringify(text.slice(0, 64))}: strconv.ParseUint: parsing ${JSON.stringify(text.slice(0, 64))}: invalid syntax`,
    );
  }
  return value;
}

/** Parses a 64-bit integer as Go does. */
function integer(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  const shown = `strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, 64))}`;
  if (!/^[+-]?\d+$/.test(text)) throw bad(`${shown}: invalid syntax`);
  if (!Number.isSafeInteger(Number(text))) throw bad(`${shown}: value out of range`);
  return Number(text);
}

/** Zero and negative values count as absent. */
const positive = (value: number | undefined): number | undefined =>
  value === undefined || value <= 0 ? undefined : value;

/** Options of a list request. Throws ApiError if options are invalid or contradict each other. */
export function parseListOptions(kind: ServedKind, query: URLSearchParams): ListOptions {
  const options = parseOptions(kind, query);
  if (options.sendInitialEvents !== undefined) {
    throw contradiction(fieldError.forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  }
  if (options.match === undefined) return options;
  if (options.resourceVersion === undefined) {
    throw contradiction(matchForbidden('resourceVersionMatch is forbidden unless resourceVersion is provided'));
  }
  if (options.continueToken !== undefined) {
    throw contradiction(matchForbidden('resourceVersionMatch is forbidden when continue is provided'));
  }
  if (options.match === 'Exact' && options.resourceVersion === 0) {
    throw contradiction(matchForbidden('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  return options;
}

/** Options of a watch request. Throws ApiError if options are invalid or contradict each other. */
export function parseWatchOptions(kind: ServedKind, query: URLSearchParams): ListOptions {
  const options = parseOptions(kind, query);
  if (options.sendInitialEvents === undefined && options.match !== undefined) {
    throw contradiction(
      matchForbidden('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided'),
    );
  }
  if (options.sendInitialEvents !== undefined && options.match !== 'NotOlderThan') {
    throw contradiction(matchForbidden('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'));
  }
  return options;
}

function parseOptions(kind: ServedKind, query: URLSearchParams): ListOptions {
  const labelText = query.get('labelSelector');
  const fieldText = query.get('fieldSelector');
  const fields = fieldText === null || fieldText === '' ? [] : selectedFields(kind, fieldText);
  const match = query.get('resourceVersionMatch');
  if (match !== null && match !== '' && match !== 'Exact' && match !== 'NotOlderThan') {
    throw contradiction(
      fieldError.notSupported('resourceVersionMatch', match.slice(0, 64), ['Exact', 'NotOlderThan', '']),
    );
  }
  const resourceVersion = parseRevision(query.get('resourceVersion'));
  const continueToken = query.get('continue') ?? undefined;
  const initial = query.get('sendInitialEvents');
  return {
    labels: labelText === null || labelText === '' ? everything : parseLabelSelector(labelText),
    fields,
    limit: positive(integer(query, 'limit')),
    continueToken: continueToken === '' ? undefined : continueToken,
    resourceVersion,
    match: match === '' || match === null ? undefined : match,
    timeoutSeconds: positive(integer(query, 'timeoutSeconds')),
    bookmarks: isTrue(query.get('allowWatchBookmarks')),
    sendInitialEvents: initial === null ? undefined : isTrue(initial),
  };
}

/** Translates a field selector to the field names of the storage version. */
function selectedFields(kind: ServedKind, text: string): FieldSelector {
  const labels = kind.alias?.fieldLabels;
  return parseFieldSelector(text).map((term) => {
    const { field } = term;
    if (field === 'metadata.name' || (field === 'metadata.namespace' && kind.definition.namespaced)) return term;
    const known = labels ?? kind.definition.fieldSelectors ?? {};
    if (!Object.hasOwn(known, field)) throw bad(unknownLabel(kind, field));
    return labels === undefined ? term : { ...term, field: labels[field] ?? field };
  });
}

/** Message of an unknown field label. Upstream's wording depends on whether the kind has field labels of its own. */
function unknownLabel({ definition }: ServedKind, field: string): string {
  if (definition.fieldSelectors !== undefined && definition.custom === undefined)
    return definition.unknownFieldLabel?.(field) ?? `field label not supported: ${field}`;
  const own = definition.custom === undefined ? [] : Object.keys(definition.fieldSelectors ?? {});
  if (definition.custom !== undefined && own.length > 0) return `field label not supported: ${field}`;
  return `${JSON.stringify(field)} is not a known field selector: only "metadata.name", "metadata.namespace"`;
}

/** Predicate of the selectors of a list or watch. Undefined if every object matches. */
export function matcherOf(
  kind: ServedKind,
  options: Pick<ListOptions, 'labels' | 'fields' | 'visible'>,
): ((object: CachedObject) => boolean) | undefined {
  const { labels, fields, visible } = options;
  const anyLabels = isEverything(labels);
  if (anyLabels && fields.length === 0) return visible;
  const readers = kind.definition.fieldSelectors ?? {};
  return (object) =>
    (visible === undefined || visible(object)) &&
    (fields.length === 0 || matchesFields(fields, (field) => object.field(field, readers))) &&
    (anyLabels || matchesLabels(labels, object.labels()));
}
