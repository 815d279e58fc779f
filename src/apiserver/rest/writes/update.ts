/**
 * Updates of an existing object: PUT, patch, apply, subresources. The next state is computed from the current state and
 * committed with the current revision as guard. After a conflict, the next state is computed again.
 */
import { jsonEqual, semanticEqualBut } from '../../../api/meta/equality.ts';
import { type FieldError, fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { JsonObject, JsonValue, KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import type { KindDefinition, WriteStrategy } from '../../../api/registry/definition.ts';
import { cloneJson } from '../../core/patch/document.ts';
import { type AdmissionRequest, admissionOfWrite, storeAdmitted } from '../../pipeline/admission.ts';
import { fromStored, inServedVersion, toStored } from '../../pipeline/kinds.ts';
import {
  conflictMessage,
  metadataOf,
  placeOf,
  strategyContext,
  type WriteRequest,
} from '../../pipeline/write-request.ts';
import { isLarge, yieldEventLoop } from '../../server/event-loop.ts';
import { rendered } from '../../storage/encode.ts';
import { NO_EFFECTS, type Place } from '../../storage/object-store.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { WriteContext } from '../context.ts';
import { keepOwners, setOwners, storedWithinLimit, trackWrite } from './managed-fields.ts';
import { type Attempt, retryOnConflict } from './optimistic.ts';
import { dropDuplicateOwners } from './owner-duplicates.ts';
import { mayUseReserve } from './reserve.ts';
import { admit, allocatorOf, CHECKS, runStages, type Stage, ValidatedWrite } from './stages.ts';

export interface Change {
  /**
   * Computes the new object from the current one, both in the served version. May change `current`. A `resourceVersion`
   * in the result is a precondition. With `large`, it yields to the event loop.
   */
  next(current: KubeObject, large: boolean): KubeObject | Promise<KubeObject>;
  readonly strategy: WriteStrategy<KubeObject>;
  /**
   * The body that webhooks and policies receive instead of the object. `takeBack` merges their changes into the object.
   */
  shownAs?(next: KubeObject, old: KubeObject): Pick<AdmissionRequest, 'bodyKind' | 'body' | 'oldBody'>;
  takeBack?(next: KubeObject, body: unknown): void;
  /** True if the managedFields of the result are complete because it comes from an apply. */
  readonly owned?: boolean;
  /** True for PUT: kinds without unconditional updates require a resourceVersion. */
  readonly versionRequired?: boolean;
}

export interface Updated {
  readonly object: CachedObject;
  /** True if the write removed the last finalizer of an object under deletion. */
  readonly removed: boolean;
}

/** One attempt at an update. */
class Update extends ValidatedWrite {
  readonly change: Change;
  readonly place: Place;
  /** The stored object. */
  readonly current: CachedObject;
  /** The stored object in the requested version. */
  seen: CachedObject;
  old: KubeObject = UNREAD;
  next: KubeObject = UNREAD;
  /** True if field ownership has been recorded. */
  tracked: boolean;
  outcome: Attempt<Updated> | undefined = undefined;

  constructor(context: WriteContext, request: WriteRequest, change: Change, place: Place, current: CachedObject) {
    super(context, request, change.strategy);
    this.change = change;
    this.place = place;
    this.current = current;
    this.seen = current;
    this.tracked = change.owned === true;
  }
}

/** Placeholder before the stages that read and change the object. */
const UNREAD: KubeObject = {};

const STAGES: readonly Stage<Update>[] = [
  read,
  parse,
  copy,
  convert,
  setDefaults,
  admit,
  prepare,
  ...CHECKS,
  own,
  store,
];

/** Updates an object. Throws 'NotFound' if the object does not exist. */
export function updateObject(context: WriteContext, request: WriteRequest, change: Change): Promise<Updated> {
  const place = placeOf(request, request.name);
  return retryOnConflict(context, request, place, async (current) => {
    const write = new Update(context, request, change, place, current);
    await runStages(STAGES, write);
    if (write.outcome === undefined) throw new Error('update: the last stage stored no object');
    return write.outcome;
  });
}

function read(write: Update): void | Promise<void> {
  const seen = inServedVersion(write.request.kind, write.current);
  if (!(seen instanceof Promise)) return found(write, seen);
  return seen.then((object) => found(write, object));
}

function found(write: Update, seen: CachedObject): void {
  write.seen = seen;
  write.large ||= isLarge(seen.bytes.length);
}

function parse(write: Update): void {
  write.old = write.seen.parse();
}

function copy(write: Update): void {
  write.next = fromStored(write.request.kind, toChange(write.old));
}

function convert(write: Update): void | Promise<void> {
  const { kind } = write.request;
  const changed = write.change.next(write.next, write.large);
  if (!(changed instanceof Promise)) {
    write.next = toStored(kind, changed);
    return;
  }
  return changed.then((next) => {
    write.next = toStored(kind, next);
  });
}

function setDefaults(write: Update): void {
  const { request, change, current, old, next } = write;
  checkPreconditions(request, change, current, old, next);
  keepSystemFields(old, next);
  request.kind.definition.setDefaults?.(next, change.owned);
  if (change.versionRequired === true) dropDuplicateOwners(next, request.warnings, { afterAdmission: false });
  write.owners = next.metadata?.managedFields;
  const body = change.shownAs?.(next, old);
  const shared = admissionOfWrite(request);
  write.admission = {
    ...shared,
    operation: 'UPDATE',
    object: next,
    old,
    // The body of a subresource is merged into the object only after admission.
    ...(body === undefined ? { noteOwners: () => trackBeforeAdmission(write) } : {}),
    derived: shared.derived || request.subresource === 'binding' || request.subresource === 'eviction',
    ...body,
  };
}

/** Records ownership before webhooks run, so that the updater does not own fields that admission changes. */
async function trackBeforeAdmission(write: Update): Promise<void> {
  if (write.tracked) return;
  write.tracked = true;
  const { context, request, old, next, large } = write;
  const written = toChange(next);
  // The updater does not own fields that the strategy resets.
  write.strategy.prepareForUpdate?.(written, old, strategyContext(context, request));
  await trackWrite(context, request, written, old, large);
  setOwners(next, written.metadata?.managedFields);
  write.owners = next.metadata?.managedFields;
}

/** Restores fields that the endpoint must not change. Runs after admission, which may have changed any field. */
function prepare({ context, request, change, strategy, admission, old, next, owners }: Update): void {
  keepOwners(next, owners, request.warnings);
  dropDuplicateOwners(next, request.warnings, { afterAdmission: true });
  if (admission?.bodyKind !== undefined) change.takeBack?.(next, admission.body);
  keepSystemFields(old, next);
  strategy.prepareForUpdate?.(next, old, strategyContext(context, request));
}

/** Without webhooks, ownership is recorded on the object as it will be stored. */
function own({ context, request, tracked, old, next, large }: Update): void | Promise<void> {
  return tracked ? undefined : trackWrite(context, request, next, old, large);
}

async function store(write: Update): Promise<void> {
  const { admission, change, request, strategy, old, next } = write;
  if (admission === undefined) return;
  const warnings = strategy.warnings?.(next, old) ?? [];
  const outcome = await storeAdmitted(
    admission,
    () => storedWithinLimit(next, change.owned === true, () => commit(write)),
    ({ done }) => done,
  );
  if (outcome.done) request.warnings.push(...warnings);
  write.outcome = outcome;
}

/** A copy that may be changed. The entries of managedFields are shared, because they are only replaced as a whole. */
function toChange(old: KubeObject): KubeObject {
  const { managedFields } = old.metadata ?? {};
  const bare = managedFields === undefined ? old : { ...old, metadata: { ...old.metadata, managedFields: [] } };
  const copy = cloneJson(bare) as KubeObject;
  if (managedFields !== undefined) metadataOf(copy).managedFields = [...managedFields];
  return copy;
}

function checkPreconditions(
  request: WriteRequest,
  change: Change,
  current: CachedObject,
  old: KubeObject,
  next: KubeObject,
): void {
  const metadata = metadataOf(next);
  const { definition } = request.kind;
  const version = metadata.resourceVersion;
  if (version !== undefined && version !== '' && version !== '0') {
    if (version !== String(current.revision)) throw errors.conflict(request.kind, request.name, conflictMessage);
  } else if (change.versionRequired === true) checkVersion(request, next);
  const uid = metadata.uid;
  if (uid !== undefined && uid !== '' && uid !== old.metadata?.uid) {
    // A PUT with another uid means another object (conflict); a patch with another uid would change the field
    // (invalid).
    if (change.versionRequired !== true) throw invalid(definition, request.name, [uidChanged(uid)]);
    throw errors.conflict(
      request.kind,
      request.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata?.uid ?? ''}`,
    );
  }
}

/** Rejects an update without a resourceVersion for kinds that do not allow unconditional updates. */
export function checkVersion({ kind, name }: WriteRequest, { metadata }: KubeObject): void {
  const version = metadata?.resourceVersion;
  if (kind.definition.allowUnconditionalUpdate !== false || (version !== undefined && !['', '0'].includes(version)))
    return;
  // As upstream, the error names the resource instead of the kind, and shows the version that upstream has read.
  throw invalid({ group: kind.group, kind: kind.plural }, name, [VERSION_REQUIRED]);
}

const uidChanged = (uid: string): FieldError => fieldError.invalid('metadata.uid', uid, 'field is immutable');

const VERSION_REQUIRED: FieldError = {
  type: 'FieldValueInvalid',
  field: 'metadata.resourceVersion',
  message: 'Invalid value: 0: must be specified for an update',
};

const SYSTEM_FIELDS = ['uid', 'creationTimestamp', 'generation'] as const;

/** Restores metadata that clients cannot change. A changed deletionTimestamp is rejected instead of ignored. */
function keepSystemFields(old: KubeObject, next: KubeObject): void {
  const metadata = metadataOf(next) as Record<string, unknown>;
  const before = (old.metadata ?? {}) as Record<string, unknown>;
  for (const field of SYSTEM_FIELDS) {
    if (metadata[field] === before[field]) continue;
    if (before[field] === undefined) delete metadata[field];
    else metadata[field] = before[field];
  }
  if (before['deletionTimestamp'] !== undefined) metadata['deletionTimestamp'] = before['deletionTimestamp'];
  metadata['deletionGracePeriodSeconds'] ??= before['deletionGracePeriodSeconds'];
  if (metadata['deletionGracePeriodSeconds'] === undefined) delete metadata['deletionGracePeriodSeconds'];
  if (metadata['selfLink'] !== undefined) delete metadata['selfLink'];
  // Removes a namespace from a cluster-scoped object.
  if (before['namespace'] === undefined) {
    if (metadata['namespace'] !== undefined) delete metadata['namespace'];
  } else if (metadata['namespace'] === undefined || metadata['namespace'] === '') {
    metadata['namespace'] = before['namespace'];
  }
  metadata['name'] ??= before['name'];
}

const updated = (object: CachedObject, { removed = false }: { readonly removed?: boolean } = {}): Attempt<Updated> => ({
  done: true,
  value: { object, removed },
});

async function commit(write: Update): Promise<Attempt<Updated>> {
  const { context, request, place, seen, old, next, large } = write;
  const allocator = allocatorOf(write);
  if (removesItself(request.kind.definition, next, old)) {
    // The response shows the object without its last finalizer.
    if (request.options.dryRun) return updated(await rendered(place, seen, next, large), { removed: true });
    const result = await context.objects.remove(place, seen, allocator?.release(old) ?? NO_EFFECTS);
    if (result.written) return updated(await rendered(place, seen, next, large), { removed: true });
    return { done: false, current: 'current' in result ? result.current : seen };
  }
  const effects = allocator?.allocate(next, old) ?? NO_EFFECTS;
  const unchanged = isUnchanged(old, next, place.view !== undefined);
  if (large) await yieldEventLoop();
  const stale = context.objects.isStale(place) || place.view?.isStale(seen) === true;
  if (unchanged && !stale) return updated(seen);
  if (request.options.dryRun) return updated(await rendered(place, seen, next, large));
  const reserve = mayUseReserve(request, next);
  const result = await context.objects.update(place, seen, next, { effects, large, reserve });
  if (result.written) return updated(result.object);
  if ('lostGuard' in result) {
    if (allocator === undefined) throw errors.conflict(request.kind, request.name, conflictMessage);
    throw allocator.allocationError(next, result.lostGuard);
  }
  return { done: false, current: result.current };
}

/**
 * Reports whether an object under deletion can be removed because its last finalizer was removed: for example a pod
 * after its grace period, or an empty namespace.
 */
function removesItself({ finalization }: KindDefinition, next: KubeObject, old: KubeObject): boolean {
  const metadata = next.metadata;
  if (metadata?.deletionTimestamp === undefined || (metadata.finalizers ?? []).length > 0) return false;
  if ((metadata.deletionGracePeriodSeconds ?? 0) > 0) return false;
  return finalization === undefined ? (old.metadata?.finalizers ?? []).length > 0 : !finalization.isHeld(next);
}

/**
 * Reports whether two states are equal. Times in managedFields are ignored. Owners in managedFields are compared
 * exactly: an empty map differs from a missing map. `exact`: the other fields except metadata are compared exactly,
 * too.
 */
function isUnchanged(old: KubeObject, next: KubeObject, exact: boolean): boolean {
  const isSame = exact ? sameButMetadata(old, next) : semanticEqualBut(old, next, METADATA);
  return (
    isSame &&
    semanticEqualBut(old.metadata ?? NO_METADATA, next.metadata ?? NO_METADATA, CHANGED_BY_EVERY_WRITE) &&
    jsonEqual(ownersOf(old), ownersOf(next))
  );
}

const METADATA = ['metadata'] as const;
const NO_METADATA = {};
/** Metadata fields that every write changes. */
const CHANGED_BY_EVERY_WRITE = ['resourceVersion', 'managedFields'] as const;

/** Compares custom resources exactly, except for metadata, because an empty list differs from a missing list. */
function sameButMetadata(old: KubeObject, next: KubeObject): boolean {
  const { metadata: _before, ...oldRest } = old;
  const { metadata: _after, ...nextRest } = next;
  return jsonEqual(oldRest as JsonObject, nextRest as JsonObject);
}

function ownersOf({ metadata }: KubeObject): JsonValue {
  return (metadata?.managedFields ?? []).map(({ time: _time, ...entry }) => entry as JsonObject);
}
