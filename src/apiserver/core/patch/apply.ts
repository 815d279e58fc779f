/**
 * Server-side apply and field ownership. Sources: KEP-555, structured-merge-diff's merge.Updater, and
 * k8s.io/apimachinery/pkg/util/managedfields.
 */
import type { SchemaNode } from '../../../api/schema/node.ts';
import { atOnce, type Steps } from '../../../base/concurrency/steps.ts';
import { parseJson } from '../../../base/json/json.ts';
import { checkApplied } from './check-applied.ts';
import { type Comparison, compare, compareSteps, fieldsOf } from './compare.ts';
import { type Conflict, conflictError } from './conflicts.ts';
import { createdFields, createdFieldsSteps } from './created-fields.ts';
import { cloneJson, field, isObject, type JsonObject, type JsonValue, jsonEqual } from './document.ts';
import { badPatch } from './errors.ts';
import {
  EMPTY_SET,
  type FieldSet,
  fieldDifference,
  fieldElement,
  fieldUnion,
  intersection,
  isEmpty,
  recursiveDifference,
  unionAll,
} from './field-set.ts';
import {
  atTime,
  decodeManagedFields,
  encodeManagedFields,
  encodeOrdered,
  identityOf,
  isReset,
  type ManagedEntry,
  type ManagedFields,
  managedFieldsOf,
  NO_MANAGED_FIELDS,
  withFields,
  withoutUnownedFields,
} from './managed-fields.ts';
import { type ChangesIn, changesByVersion, prunedAcross, type Versions } from './other-versions.ts';
import { mergeTyped, pruneUnowned } from './typed.ts';

interface WriteFacts {
  readonly manager: string;
  /** `group/version` of the written object. */
  readonly apiVersion: string;
  /** Schema of the kind. Undefined: objects are merged field by field, and lists are atomic. */
  readonly schema: SchemaNode | undefined;
  /** Time of the write, RFC 3339 in seconds. */
  readonly nowIso: string;
  /** Subresource that is written, for example `status` or `scale`. Absent for the object itself. */
  readonly subresource?: string;
  /** Fields that this endpoint does not write, for example `[['status']]`. A manager does not become their owner. */
  readonly resetFields?: readonly (readonly string[])[];
  /** Other versions of the kind, in which managers may own fields. Default: all versions have the same fields. */
  readonly versions?: Versions;
  /** True: the work yields several times per pass over the object. Default: once per pass. */
  readonly large?: boolean;
}

export interface ApplyOptions extends WriteFacts {
  /** The stored object. Undefined on create. */
  readonly live: JsonObject | undefined;
  readonly applied: JsonObject;
  /** Takes conflicting fields from their owners instead of failing. */
  readonly force: boolean;
  /**
   * Normalizes the merged object as decoding a request body would: empty maps are removed, and with them their
   * ownership.
   */
  readonly decode?: (object: JsonObject) => JsonObject;
}

export interface UpdateOptions extends WriteFacts {
  /** The stored object. Undefined on create. */
  readonly live: JsonObject | undefined;
  /** The object to be stored, without its final managed fields. */
  readonly updated: JsonObject;
  /** Object with the fields that every new object of the kind has. These fields get no owner. Default: no fields. */
  readonly skeleton?: JsonObject;
}

/** Upstream's manager name for fields that an object had before its first apply. */
const BEFORE_FIRST_APPLY = 'before-first-apply';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/**
 * Merges the applied configuration into the live object, removes fields that the manager applied before and no longer
 * names, and updates the managed fields. Unchanged entries of the managed fields are those of `live`. If nothing
 * changes, the result equals `live`, including time stamps. Throws ApiError: Conflict with every field and owner,
 * BadRequest for a configuration that does not fit the schema.
 */
export function applyServerSide(options: ApplyOptions): JsonObject {
  return atOnce(applySteps(options));
}

/** Like `applyServerSide`, with one step per pass over the document. */
export function* applySteps(options: ApplyOptions): Steps<JsonObject> {
  const { live, applied, schema } = options;
  if (!isObject(applied)) throw badPatch('an applied configuration must be an object');
  if (managedFieldsOf(applied) !== undefined && managedFieldsOf(applied) !== null) {
    throw badPatch('metadata.managedFields must be nil');
  }
  checkConfiguration(applied, options.apiVersion, schema);
  yield;
  const known = managedForApply(options);
  yield;
  let outcome = yield* attempt(options, known, { force: options.force });
  if (outcome.conflicts.length > 0 && options.manager === 'kubectl') {
    yield;
    const disputed = withoutInherited(outcome.conflicts, live, schema);
    if (disputed.length > 0) throw conflictError(disputed);
    yield;
    outcome = yield* attempt(options, known, { force: true });
  }
  if (outcome.conflicts.length > 0) throw conflictError(outcome.conflicts);
  yield;
  return yield* finish(options, known, outcome);
}

/**
 * The updated object with its managed fields: the manager that writes a field owns it. Managed fields in `updated` are
 * used if they are valid (clients may edit them), otherwise those of the live object. Unchanged entries keep their time
 * stamps. The result shares everything but its metadata with `updated`, and unchanged entries with `live`.
 */
export function trackUpdate(options: UpdateOptions): JsonObject {
  return withManagedFields(options.updated, managedFieldsAfter(options));
}

/** The managed fields that `trackUpdate` sets. */
export function managedFieldsAfter(options: UpdateOptions): JsonValue[] {
  return atOnce(managedFieldsSteps(options));
}

/** Like `managedFieldsAfter`, with one step per pass over the document. */
export function* managedFieldsSteps(options: UpdateOptions): Steps<JsonValue[]> {
  const { live, updated, schema, manager } = options;
  const sent = managedFieldsOf(updated);
  // Requests to a subresource cannot edit managed fields.
  if (isReset(sent) && (options.subresource ?? '') === '') return [];
  if (live === undefined && (sent === undefined || sent === null)) {
    return yield* ownersOfNew(options);
  }
  const known = managedForUpdate(options, sent);
  // An existing object without managed fields gets no managed fields, except by an apply.
  if (known.size === 0 && exists(live)) return [];
  yield;
  const ignored = ignoredFields(options);
  const before = live === undefined ? withMetadata(options.skeleton) : unmanaged(live);
  const after = unmanaged(updated);
  const all = options.large === true ? yield* compareSteps(before, after, schema) : compare(before, after, schema);
  const changes = withoutIgnored(all, ignored);
  yield;
  const identity = identityOf({ ...entryFacts(options), operation: 'Update' });
  const changesIn = changesByVersion(options, changes, before, after, (each) => withoutIgnored(each, ignored));
  const others = yield* yieldFields(known, changesIn, undefined, identity);
  yield;
  const gained = withoutUnownedFields(fieldUnion(changes.added, changes.modified));
  const managed = new Map(others);
  if (!isEmpty(gained)) {
    yield;
    const previous = others.get(identity);
    const fields = previous === undefined ? gained : fieldUnion(previous.fields, gained);
    managed.set(
      identity,
      previous?.read?.fields === fields && previous.time !== undefined
        ? atTime(previous, options.nowIso)
        : { ...entryFacts(options), operation: 'Update', time: options.nowIso, fields, manager },
    );
  }
  yield;
  return yield* encodeManagedFields(managed, identity);
}

function exists(live: JsonObject | undefined): boolean {
  const metadata = live === undefined ? undefined : field(live, 'metadata');
  return isObject(metadata) && typeof field(metadata, 'uid') === 'string';
}

/** A new object has a single owner of all fields. Equivalent to a comparison with an empty object, in one pass. */
function* ownersOfNew(options: UpdateOptions): Steps<JsonValue[]> {
  const { updated, schema, skeleton, large } = options;
  const all =
    large === true
      ? yield* createdFieldsSteps(updated, schema, withMetadata(skeleton))
      : createdFields(updated, schema, withMetadata(skeleton));
  const fields = recursiveDifference(all, ignoredFields(options));
  if (isEmpty(fields)) return [];
  return [encodeOrdered({ ...entryFacts(options), operation: 'Update', time: options.nowIso, fields })];
}

function withMetadata(skeleton: JsonObject | undefined): JsonObject {
  return { metadata: {}, ...skeleton };
}

interface Outcome {
  readonly object: JsonObject;
  readonly managed: ManagedFields;
  readonly conflicts: readonly Conflict[];
}

function* attempt(options: ApplyOptions, known: ManagedFields, { force }: { readonly force: boolean }): Steps<Outcome> {
  const { live, applied, schema } = options;
  const identity = identityOf({ ...entryFacts(options), operation: 'Apply' });
  const ignored = ignoredFields(options);
  const fields = recursiveDifference(fieldsOf(applied, schema), ignored);
  yield;
  const before = bare(live);
  const merged = mergeTyped(before, bare(applied), schema);
  yield;
  const last = known.get(identity);
  const managed = new Map(known);
  managed.set(identity, { ...entryFacts(options), operation: 'Apply', time: options.nowIso, fields });
  const kept = asObject(last === undefined ? merged : yield* withoutLost(options, merged, last, managed));
  // A manager that sets an empty value changes the field, although decoding removes the value.
  const given = force || options.decode === undefined ? EMPTY_SET : (yield* compared(options, before, kept)).modified;
  const object = options.decode?.(kept) ?? kept;
  yield;
  const all = yield* compared(options, before, object);
  const emptied = intersection(given, all.removed);
  const changes = withoutIgnored({ ...all, modified: fieldUnion(all.modified, emptied) }, ignored);
  yield;
  const changesIn = changesByVersion(options, changes, before, object, (each) => withoutIgnored(each, ignored));
  const conflicts = force ? [] : conflictsWith(managed, identity, changesIn);
  return { object, managed: yield* yieldFields(managed, changesIn, identity), conflicts };
}

function* compared({ large, schema }: ApplyOptions, before: JsonObject, after: JsonObject): Steps<Comparison> {
  return large === true ? yield* compareSteps(before, after, schema) : compare(before, after, schema);
}

/** Removes the fields in `last` that no manager owns any more. */
function* withoutLost(
  { apiVersion, schema, versions }: ApplyOptions,
  merged: JsonValue,
  last: ManagedEntry,
  managed: ManagedFields,
): Steps<JsonValue> {
  const foreign = [last, ...managed.values()].some((entry) => entry.apiVersion !== apiVersion);
  if (foreign && versions !== undefined) return prunedAcross(versions, asObject(merged), last, managed);
  const owned = ownedByAll(managed);
  yield;
  const pruned = pruneUnowned(merged, last.fields, owned, schema);
  yield;
  return pruned;
}

function ownedByAll(managed: ManagedFields): FieldSet {
  return unionAll([...managed.values()].map(({ fields }) => fields));
}

function conflictsWith(managed: ManagedFields, identity: string, changesIn: ChangesIn): Conflict[] {
  const conflicts: Conflict[] = [];
  const written = writtenIn();
  for (const [id, owner] of managed) {
    const changes = id === identity ? undefined : changesIn(owner.apiVersion);
    if (changes === undefined) continue;
    const fields = intersection(owner.fields, written(changes));
    if (!isEmpty(fields)) conflicts.push({ owner, fields });
  }
  return conflicts;
}

/** Union of the added and modified fields of a comparison, computed once for all owners. */
function writtenIn(): (changes: Comparison) => FieldSet {
  const known = new Map<Comparison, FieldSet>();
  return (changes) => {
    let both = known.get(changes);
    if (both === undefined) {
      both = fieldUnion(changes.modified, changes.added);
      known.set(changes, both);
    }
    return both;
  };
}

/**
 * Removes changed fields from every owner except `writer`, and removed fields from every owner except `writer`. Entries
 * without fields are dropped. `regaining`: entry that the caller adds the changed fields to afterwards. Its changed
 * fields are not removed first, because most writers write fields that they already own.
 */
function* yieldFields(
  managed: ManagedFields,
  changesIn: ChangesIn,
  writer: string | undefined,
  regaining?: string,
): Steps<ManagedFields> {
  const left = new Map<string, ManagedEntry>();
  const written = writtenIn();
  for (const [id, entry] of managed) {
    let { fields } = entry;
    if (id !== writer) {
      yield;
      const changes = changesIn(entry.apiVersion);
      if (changes === undefined) continue;
      if (id !== regaining || entry.read === undefined) fields = fieldDifference(fields, written(changes));
      fields = fieldDifference(fields, changes.removed);
    }
    if (!isEmpty(fields)) left.set(id, withFields(entry, fields));
  }
  return left;
}

/**
 * Encodes the result. If the apply did not change the object, the entry of its manager keeps its time stamp. Source:
 * managedFieldsUpdater.Apply.
 */
function* finish(options: ApplyOptions, known: ManagedFields, outcome: Outcome): Steps<JsonObject> {
  const object = updateLastApplied(options, outcome.object);
  const identity = identityOf({ ...entryFacts(options), operation: 'Apply' });
  const before = known.get(identity);
  const now = outcome.managed.get(identity);
  const managed = new Map(outcome.managed);
  const unchanged = options.live !== undefined && isSame(options, bare(options.live), object);
  yield;
  if (unchanged && now !== undefined) {
    const sameFields =
      before !== undefined && jsonEqual(withoutUnownedFields(now.fields), withoutUnownedFields(before.fields));
    if (sameFields && now.apiVersion === before.apiVersion) managed.set(identity, before);
    else managed.set(identity, { ...now, time: before?.time });
  }
  return withManagedFields(object, yield* encodeManagedFields(managed, identity));
}

/**
 * Reports whether an apply changes nothing. Changes of fields that this endpoint does not write are ignored, because
 * these fields will be restored.
 */
function isSame(options: ApplyOptions, live: JsonObject, object: JsonObject): boolean {
  if (jsonEqual(object, live)) return true;
  if ((options.resetFields ?? []).length === 0) return false;
  const changes = withoutIgnored(compare(live, object, options.schema), ignoredFields(options));
  return isEmpty(changes.added) && isEmpty(changes.modified) && isEmpty(changes.removed);
}

/**
 * Removes conflicts with kubectl's client-side apply: `kubectl apply --server-side` takes over fields whose live values
 * are still those of the last client-side apply.
 */
function withoutInherited(
  conflicts: readonly Conflict[],
  live: JsonObject | undefined,
  schema: SchemaNode | undefined,
): Conflict[] {
  const inherited = inheritedFields(live, schema);
  const disputed: Conflict[] = [];
  for (const { owner, fields } of conflicts) {
    const left = fieldDifference(fields, inherited);
    if (!isEmpty(left)) disputed.push({ owner, fields: left });
  }
  return disputed;
}

function inheritedFields(live: JsonObject | undefined, schema: SchemaNode | undefined): FieldSet {
  const lastApplied = live === undefined ? undefined : lastAppliedOf(live);
  if (live === undefined || lastApplied === undefined) return EMPTY_SET;
  const changes = compare(lastApplied, bare(live), schema);
  const differing = fieldUnion(fieldUnion(changes.modified, changes.added), changes.removed);
  return fieldDifference(fieldsOf(lastApplied, schema), differing);
}

function lastAppliedOf(live: JsonObject): JsonObject | undefined {
  const text = annotationsOf(live)?.[LAST_APPLIED];
  if (typeof text !== 'string') return undefined;
  try {
    const parsed = parseJson(text) as JsonValue;
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Updates the last-applied annotation, so that client-side apply still works on an object that kubectl applies on the
 * server.
 */
function updateLastApplied(options: ApplyOptions, object: JsonObject): JsonObject {
  if (options.manager !== 'kubectl' || options.live === undefined) return object;
  if (lastAppliedOf(options.live) === undefined) return object;
  const annotations = annotationsOf(object);
  if (annotations === undefined || !Object.hasOwn(annotations, LAST_APPLIED)) return object;
  const applied = cloneJson(options.applied);
  const own = annotationsOf(applied);
  if (own !== undefined) delete own[LAST_APPLIED];
  const copy = cloneJson(object);
  const target = annotationsOf(copy);
  if (target !== undefined) target[LAST_APPLIED] = `${JSON.stringify(applied)}\n`;
  return copy;
}

function annotationsOf(object: JsonObject): JsonObject | undefined {
  const metadata = field(object, 'metadata');
  const annotations = isObject(metadata) ? field(metadata, 'annotations') : undefined;
  return isObject(annotations) ? annotations : undefined;
}

function managedForApply(options: ApplyOptions): ManagedFields {
  const { live, schema } = options;
  if (live === undefined) return NO_MANAGED_FIELDS;
  const known = decodeManagedFields(managedFieldsOf(live), { stored: true }) ?? NO_MANAGED_FIELDS;
  if (known.size > 0) return known;
  const fields = withoutUnownedFields(recursiveDifference(fieldsOf(bare(live), schema), ignoredFields(options)));
  if (isEmpty(fields)) return known;
  const entry: ManagedEntry = {
    manager: BEFORE_FIRST_APPLY,
    operation: 'Update',
    apiVersion: options.apiVersion,
    time: options.nowIso,
    subresource: '',
    fields,
  };
  return new Map([[identityOf(entry), entry]]);
}

/**
 * The managed fields to start from: those in the request, if the client has edited them, otherwise the stored ones.
 * Only writes of the object itself, not of a subresource, may edit managed fields.
 */
function managedForUpdate(options: UpdateOptions, sent: JsonValue | undefined): ManagedFields {
  const stored = managedFieldsOf(options.live);
  const edited = (options.subresource ?? '') === '' && sent !== undefined && !jsonEqual(sent, stored);
  const own = edited ? decodeManagedFields(sent, { stored: false }) : undefined;
  if (own !== undefined && own.size > 0) return own;
  return decodeManagedFields(stored, { stored: true }) ?? NO_MANAGED_FIELDS;
}

function entryFacts(options: WriteFacts): Pick<ManagedEntry, 'manager' | 'apiVersion' | 'subresource'> {
  return { manager: options.manager, apiVersion: options.apiVersion, subresource: options.subresource ?? '' };
}

function ignoredFields(options: WriteFacts): FieldSet {
  let ignored: FieldSet = EMPTY_SET;
  for (const path of options.resetFields ?? []) {
    ignored = fieldUnion(
      ignored,
      path.reduceRight<FieldSet>((below, name) => ({ [fieldElement(name)]: below }), EMPTY_SET),
    );
  }
  return ignored;
}

function withoutIgnored(changes: Comparison, ignored: FieldSet): Comparison {
  if (isEmpty(ignored)) return changes;
  return {
    added: recursiveDifference(changes.added, ignored),
    modified: recursiveDifference(changes.modified, ignored),
    removed: recursiveDifference(changes.removed, ignored),
  };
}

/** The object without managed fields: a shallow copy, or the object itself if it has no managed fields. */
function bare(object: JsonObject | undefined): JsonObject {
  if (object === undefined) return {};
  const metadata = field(object, 'metadata');
  if (!isObject(metadata) || !Object.hasOwn(metadata, 'managedFields')) return object;
  const { managedFields: _managedFields, ...rest } = metadata;
  return { ...object, metadata: rest };
}

/**
 * Like `bare`, for comparisons only: the field is set to undefined, which preserves the hidden class and is much
 * cheaper.
 */
function unmanaged(object: JsonObject): JsonObject {
  const metadata = field(object, 'metadata');
  if (!isObject(metadata) || !Object.hasOwn(metadata, 'managedFields')) return object;
  const rest: Readonly<Record<string, JsonValue | undefined>> = { ...metadata, managedFields: undefined };
  return { ...object, metadata: rest as JsonObject };
}

/** `object` with these managed fields and its own copy of metadata. Without entries the field is absent. */
function withManagedFields(object: JsonObject, entries: JsonValue[]): JsonObject {
  const rest = bare(object);
  if (entries.length === 0) return rest;
  const metadata = field(rest, 'metadata');
  return { ...rest, metadata: { ...(isObject(metadata) ? metadata : {}), managedFields: entries } };
}

function asObject(value: JsonValue): JsonObject {
  return isObject(value) ? value : {};
}

/** Throws ApiError Unknown with the path if the configuration does not fit the schema. */
export function checkConfiguration(applied: JsonObject, apiVersion: string, schema: SchemaNode | undefined): void {
  checkApplied(applied, schema, subjectOf(applied, apiVersion));
}

/** Text of the form `default/web; apps/v1, Kind=Deployment`. */
function subjectOf(applied: JsonObject, apiVersion: string): string {
  const metadata = field(applied, 'metadata');
  const text = (name: string): string => {
    const value = isObject(metadata) ? field(metadata, name) : undefined;
    return typeof value === 'string' ? value : '';
  };
  const kind = field(applied, 'kind');
  const version = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  return `${text('namespace')}/${text('name')}; ${version}, Kind=${typeof kind === 'string' ? kind : ''}`;
}
