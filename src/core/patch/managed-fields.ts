import type { Steps } from '../../base/steps.ts';
import { field, isObject, type JsonObject, type JsonValue } from './document.ts';
import {
  difference,
  EMPTY_SET,
  type FieldSet,
  isEmpty,
  parseFieldSet,
  recursiveDifference,
  sorted,
  unionAll,
} from './field-set.ts';

/** One entry of `metadata.managedFields`, read. */
export interface ManagedEntry {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly time: string | undefined;
  /** '' for the object itself. */
  readonly subresource: string;
  readonly fields: FieldSet;
  /** The entry as it was read, if it was: stored again as it is while its fields stay the same set. */
  readonly read?: { readonly item: JsonObject; readonly fields: FieldSet };
}

/** All owners of an object's fields, by identity. Treated as a value. */
export type ManagedFields = ReadonlyMap<string, ManagedEntry>;

export const NO_MANAGED_FIELDS: ManagedFields = new Map();

/** Beyond this many update entries the oldest are folded into one. */
const MAX_UPDATE_ENTRIES = 10;
const ANCIENT_MANAGER = 'ancient-changes';

/** Fields that the server fills in or that identify the object have no owner. */
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

/** Whether the top-level field as a whole has no owner. */
export function isUnowned(name: string): boolean {
  return name !== 'metadata' && UNOWNED_NAMES.has(name);
}

export function isUnownedMetadata(name: string): boolean {
  return UNOWNED_METADATA.has(name);
}

/** The entry with other fields; what it was read from no longer says what it is. */
export function withFields(entry: ManagedEntry, fields: FieldSet): ManagedEntry {
  if (fields === entry.fields) return entry;
  const { read: _read, ...rest } = entry;
  return { ...rest, fields };
}

/** An entry that was read, and has a time, with another one. */
export function atTime(entry: ManagedEntry, time: string): ManagedEntry {
  if (entry.time === time || entry.read === undefined) return entry;
  const { item, fields } = entry.read;
  return { ...entry, time, read: { item: { ...item, time }, fields } };
}

/** Who an entry belongs to. An applier is the same whatever version it writes in. */
export function identityOf(entry: Omit<ManagedEntry, 'fields' | 'time'>): string {
  const version = entry.operation === 'Apply' ? '' : entry.apiVersion;
  const { manager, operation, subresource } = entry;
  // With the lengths in front no two of them are the same text.
  return `${manager.length} ${version.length} ${operation} ${manager}${version}${subresource}`;
}

export function managedFieldsOf(object: JsonObject | undefined): JsonValue | undefined {
  const metadata = object === undefined ? undefined : field(object, 'metadata');
  return isObject(metadata) ? field(metadata, 'managedFields') : undefined;
}

/**
 * Reads `metadata.managedFields`; undefined when something in it is not what it should be. `stored`: it comes from the
 * store, where only sets that were checked get to; they are then used as they are.
 */
export function decodeManagedFields(
  value: JsonValue | undefined,
  options: { readonly stored: boolean },
): ManagedFields | undefined {
  if (value === undefined || value === null) return NO_MANAGED_FIELDS;
  if (!Array.isArray(value)) return undefined;
  const managed = new Map<string, ManagedEntry>();
  for (const item of value) {
    const entry = decodeEntry(item, options.stored);
    if (entry === undefined) return undefined;
    // Of several of one owner the last counts: who renames owners does not join what they have.
    managed.set(identityOf(entry), entry);
  }
  return managed;
}

/**
 * What is wrong with `metadata.managedFields` that were changed by others than those who keep them, in upstream's
 * words; undefined: nothing.
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
    if (decodeEntry(item, false) === undefined) return `error decoding versioned set of managed fields entry ${index}`;
  }
  return undefined;
}

/** `managedFields: [{}]`, or an empty list, is how a client asks to forget all owners. */
export function isReset(value: JsonValue | undefined): boolean {
  if (!Array.isArray(value) || value.length > 1) return false;
  return value.length === 0 || (isObject(value[0]) && Object.keys(value[0]).length === 0);
}

function decodeEntry(item: JsonValue, stored: boolean): ManagedEntry | undefined {
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
 * The entries as they are stored: bounded and sorted. Entries without fields are left out; unchanged ones are those
 * that were read. Only the entry of `writer` is stripped: clients seed those of other managers with `metadata.name`.
 * Source: k8s.io/apimachinery/pkg/util/managedfields/internal/stripmeta.go.
 */
export function* encodeManagedFields(managed: ManagedFields, writer?: string): Steps<JsonValue[]> {
  const entries: ManagedEntry[] = [];
  for (const [identity, entry] of managed) {
    const isWritten = identity === writer && entry.read === undefined;
    const kept = isWritten ? withFields(entry, stripped(entry.fields)) : entry;
    if (!isEmpty(kept.fields)) entries.push(kept);
  }
  const encoded: JsonValue[] = [];
  for (const entry of capped(entries.sort(compareEntries))) {
    yield;
    encoded.push(encodeEntry(entry));
  }
  return encoded;
}

export function stripped(fields: FieldSet): FieldSet {
  const left = recursiveDifference(fields, UNOWNED);
  // The metadata structure as such has no owner either.
  return difference(left, METADATA_ITSELF);
}

function encodeEntry(entry: ManagedEntry): JsonObject {
  if (entry.read !== undefined && entry.read.fields === entry.fields) return entry.read.item;
  return encodeOrdered(withFields(entry, sorted(entry.fields)));
}

/** An entry whose fields are in order already. */
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

/** Appliers first, then by age. */
function compareEntries(a: ManagedEntry, b: ManagedEntry): number {
  return (
    compare(a.operation, b.operation) ||
    compare(a.time ?? '', b.time ?? '') ||
    compare(a.manager, b.manager) ||
    compare(a.apiVersion, b.apiVersion) ||
    compare(a.subresource, b.subresource)
  );
}

/** Folds the oldest updates of the object itself together, per version; `entries` are sorted by age. */
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
    // The first entry of a bucket saves nothing, the ones after it save one each.
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
