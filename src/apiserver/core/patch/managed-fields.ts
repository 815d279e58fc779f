import type { Steps } from '../../../base/concurrency/steps.ts';
import { field, isObject, type JsonObject, type JsonValue } from './document.ts';
import {
  EMPTY_SET,
  type FieldSet,
  fieldDifference,
  isEmpty,
  parseFieldSet,
  recursiveDifference,
  sorted,
  unionAll,
} from './field-set.ts';

/** A parsed entry of `metadata.managedFields`. */
export interface ManagedEntry {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly time: string | undefined;
  /** Subresource of the write. '' for the object itself. */
  readonly subresource: string;
  readonly fields: FieldSet;
  /** The stored entry, which is written unchanged as long as its fields do not change. */
  readonly read?: { readonly item: JsonObject; readonly fields: FieldSet };
}

/** All owners of an object's fields, by identity. Immutable. */
export type ManagedFields = ReadonlyMap<string, ManagedEntry>;

export const NO_MANAGED_FIELDS: ManagedFields = new Map();

/** Maximum number of update entries. Above it, the oldest entries are merged. */
const MAX_UPDATE_ENTRIES = 10;
const ANCIENT_MANAGER = 'ancient-changes';

/** Fields without an owner: those that the server sets or that identify the object. */
const UNOWNED: FieldSet = {
  'f:apiVersion': EMPTY_SET,
  'f:kind': EMPTY_SET,
  'f:metadata': {
    'f:creationTimestamp': EMPTY_SET,
    'f:deletionGracePeriodSeconds': EMPTY_SET,
    'f:deletionTimestamp': EMPTY_SET,
    'f:generation': EMPTY_SET,
    'f:managedFields': EMPTY_SET,
    'f:name': EMPTY_SET,
    'f:namespace': EMPTY_SET,
    'f:resourceVersion': EMPTY_SET,
    'f:selfLink': EMPTY_SET,
    'f:uid': EMPTY_SET,
  },
};

const METADATA_ITSELF: FieldSet = { 'f:metadata': EMPTY_SET };

const UNOWNED_NAMES: ReadonlySet<string> = namesIn(UNOWNED);
const UNOWNED_METADATA: ReadonlySet<string> = namesIn(UNOWNED['f:metadata'] ?? EMPTY_SET);

function namesIn(set: FieldSet): Set<string> {
  return new Set(Object.keys(set).map((element) => element.slice(2)));
}

/** Reports whether a top-level field as a whole has no owner. */
export function isUnowned(name: string): boolean {
  return name !== 'metadata' && UNOWNED_NAMES.has(name);
}

export function isUnownedMetadata(name: string): boolean {
  return UNOWNED_METADATA.has(name);
}

/** Replaces the fields of an entry. The stored form is dropped if the fields differ. */
export function withFields(entry: ManagedEntry, fields: FieldSet): ManagedEntry {
  if (fields === entry.fields) return entry;
  const { read: _read, ...rest } = entry;
  return { ...rest, fields };
}

/** Replaces the time of a stored entry. */
export function atTime(entry: ManagedEntry, time: string): ManagedEntry {
  if (entry.time === time || entry.read === undefined) return entry;
  const { item, fields } = entry.read;
  return { ...entry, time, read: { item: { ...item, time }, fields } };
}

/** Identity of an entry. The identity of an Apply entry does not include the version. */
export function identityOf(entry: Omit<ManagedEntry, 'fields' | 'time'>): string {
  const version = entry.operation === 'Apply' ? '' : entry.apiVersion;
  const { manager, operation, subresource } = entry;
  // The lengths make the text unambiguous.
  return `${manager.length} ${version.length} ${operation} ${manager}${version}${subresource}`;
}

export function managedFieldsOf(object: JsonObject | undefined): JsonValue | undefined {
  const metadata = object === undefined ? undefined : field(object, 'metadata');
  return isObject(metadata) ? field(metadata, 'managedFields') : undefined;
}

/**
 * Parses `metadata.managedFields`. Undefined if a part is invalid. `stored`: the value comes from the store and was
 * validated on write, so its sets are used as they are.
 */
export function decodeManagedFields(
  value: JsonValue | undefined,
  options: { readonly stored: boolean },
): ManagedFields | undefined {
  if (value === undefined || value === null) return NO_MANAGED_FIELDS;
  if (!Array.isArray(value)) return undefined;
  const managed = new Map<string, ManagedEntry>();
  for (const item of value) {
    const entry = decodeEntry(item, { stored: options.stored });
    if (entry === undefined) return undefined;
    // The last of several entries with the same identity counts; their fields are not joined.
    managed.set(identityOf(entry), entry);
  }
  return managed;
}

/**
 * Error in `metadata.managedFields` after admission plug-ins changed them, in upstream's wording. Undefined if valid.
 */
export function faultOfManagedFields(value: JsonValue | undefined): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) return 'must be a list';
  for (const [index, item] of value.entries()) {
    const entry = isObject(item) ? item : {};
    const operation = field(entry, 'operation');
    if (operation !== 'Apply' && operation !== 'Update') return 'operation must be `Apply` or `Update`';
    if ((field(entry, 'apiVersion') ?? '') === '') return 'apiVersion must not be empty';
    const type = field(entry, 'fieldsType') ?? '';
    if (type === '') return `missing fieldsType in managed fields entry ${index}`;
    if (type !== 'FieldsV1') return `invalid fieldsType ${JSON.stringify(type)} in managed fields entry ${index}`;
    if (decodeEntry(item, { stored: false }) === undefined)
      return `error decoding versioned set of managed fields entry ${index}`;
  }
  return undefined;
}

/** Reports whether the client removes all owners, with `managedFields: [{}]` or an empty list. */
export function isReset(value: JsonValue | undefined): boolean {
  if (!Array.isArray(value) || value.length > 1) return false;
  return value.length === 0 || (isObject(value[0]) && Object.keys(value[0]).length === 0);
}

function decodeEntry(item: JsonValue, { stored }: { readonly stored: boolean }): ManagedEntry | undefined {
  if (!isObject(item)) return undefined;
  const text = (name: string): string => {
    const value = field(item, name);
    return typeof value === 'string' ? value : '';
  };
  const operation = text('operation');
  const sent = field(item, 'fieldsV1') ?? {};
  const fields = stored && isObject(sent) ? (sent as FieldSet) : parseFieldSet(sent);
  const fieldsType = text('fieldsType');
  if (fields === undefined || (operation !== 'Apply' && operation !== 'Update')) return undefined;
  if ((fieldsType !== '' && fieldsType !== 'FieldsV1') || text('apiVersion') === '') return undefined;
  const time = text('time');
  return {
    manager: text('manager'),
    operation,
    apiVersion: text('apiVersion'),
    time: time === '' ? undefined : time,
    subresource: text('subresource'),
    fields,
    ...(stored ? { read: { item, fields } } : {}),
  };
}

/**
 * Encodes the entries in stored form, sorted and limited in number. Entries without fields are omitted. Unchanged
 * entries are returned as they were read. Fields without an owner are removed only from the entry of `writer`, because
 * clients set `metadata.name` in entries of other managers. Source:
 * k8s.io/apimachinery/pkg/util/managedfields/internal/stripmeta.go.
 */
export function* encodeManagedFields(managed: ManagedFields, writer?: string): Steps<JsonValue[]> {
  const entries: ManagedEntry[] = [];
  for (const [identity, entry] of managed) {
    const isWritten = identity === writer && entry.read === undefined;
    const kept = isWritten ? withFields(entry, withoutUnownedFields(entry.fields)) : entry;
    if (!isEmpty(kept.fields)) entries.push(kept);
  }
  const encoded: JsonValue[] = [];
  for (const entry of capped(entries.sort(compareEntries))) {
    yield;
    encoded.push(encodeEntry(entry));
  }
  return encoded;
}

export function withoutUnownedFields(fields: FieldSet): FieldSet {
  const left = recursiveDifference(fields, UNOWNED);
  // The metadata structure has no owner either.
  return fieldDifference(left, METADATA_ITSELF);
}

function encodeEntry(entry: ManagedEntry): JsonObject {
  if (entry.read !== undefined && entry.read.fields === entry.fields) return entry.read.item;
  return encodeOrdered(withFields(entry, sorted(entry.fields)));
}

/** Encodes an entry whose fields are already sorted. */
export function encodeOrdered(entry: ManagedEntry): JsonObject {
  return {
    ...(entry.manager === '' ? {} : { manager: entry.manager }),
    operation: entry.operation,
    apiVersion: entry.apiVersion,
    ...(entry.time === undefined ? {} : { time: entry.time }),
    fieldsType: 'FieldsV1',
    fieldsV1: entry.fields,
    ...(entry.subresource === '' ? {} : { subresource: entry.subresource }),
  };
}

/** Orders Apply entries before Update entries, then by time. */
function compareEntries(a: ManagedEntry, b: ManagedEntry): number {
  return (
    compare(a.operation, b.operation) ||
    compare(a.time ?? '', b.time ?? '') ||
    compare(a.manager, b.manager) ||
    compare(a.apiVersion, b.apiVersion) ||
    compare(a.subresource, b.subresource)
  );
}

/** Merges the oldest update entries per version and subresource. `entries` are sorted by time. */
function capped(entries: readonly ManagedEntry[]): ManagedEntry[] {
  const updates = entries.filter(({ operation }) => operation === 'Update');
  let excess = updates.length - MAX_UPDATE_ENTRIES;
  if (excess <= 0) return [...entries];
  const kept: ManagedEntry[] = [];
  const ancient = new Map<string, { readonly last: ManagedEntry; readonly sets: FieldSet[] }>();
  for (const entry of entries) {
    const isAncient = entry.operation === 'Update' && entry.manager === ANCIENT_MANAGER;
    const foldable = entry.operation === 'Update' && (isAncient || excess > 0);
    if (!foldable) {
      kept.push(entry);
      continue;
    }
    const key = JSON.stringify([entry.apiVersion, entry.subresource]);
    const bucket = ancient.get(key);
    // The first entry of a bucket remains. Each further entry that is merged into the bucket reduces the excess by one.
    if (bucket !== undefined) excess--;
    const sets = bucket?.sets ?? [];
    sets.push(entry.fields);
    ancient.set(key, { last: entry, sets });
  }
  for (const { last, sets } of ancient.values()) {
    const { read: _read, ...own } = last;
    kept.push({ ...own, manager: ANCIENT_MANAGER, fields: unionAll(sets) });
  }
  return kept.sort(compareEntries);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
