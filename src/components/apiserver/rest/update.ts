/**
 * Updates of an existing object: PUT, patch, apply, sub-resources. The next state is computed from the current one and
 * committed with its revision as guard; after a conflict it is computed again.
 */

import type { Service } from 'kubernetes-types/core/v1';
import { semanticEqualBut } from '../../../api/meta/equality.ts';
import { type FieldError, failuresOf, fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { JsonObject, JsonValue, KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import { validateObjectMetaUpdate } from '../../../api/meta/validation.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';
import { jsonEqual } from '../../../api/structural/schema.ts';
import { clone } from '../../../core/patch/document.ts';
import { isLarge, yieldEventLoop } from '../event-loop.ts';
import { type AdmissionRequest, storeAdmitted } from '../pipeline/admission.ts';
import { fromStored, shown, toStored } from '../pipeline/kinds.ts';
import { conflictMessage, metadataOf, placeOf, strategyContext, type WriteRequest } from '../pipeline/write-request.ts';
import { rendered } from '../storage/encode.ts';
import { NO_EFFECTS, type Place } from '../storage/object-store.ts';
import type { CachedObject } from '../watchcache/cached-object.ts';
import type { RestContext } from './context.ts';
import { keepOwners, type ManagedFields, setOwners, storedWithinLimit, trackWrite } from './managed-fields.ts';
import { dropDuplicateOwners } from './owner-duplicates.ts';
import { judgement } from './validation.ts';

/** Attempts before a write fails with a conflict; each conflict means that another write succeeded. Upstream retries until the request's deadline. */
const MAX_TRIES = 1000;

export interface Change {
  /**
   * The object as it shall be, from the one there is: both in the served version. `current` may be changed. A `resourceVersion` left
   * in the result is a precondition. What is `large` takes its time, in turns with others.
   */
  next(current: KubeObject, large: boolean): KubeObject | Promise<KubeObject>;
  readonly strategy: WriteStrategy<KubeObject>;
  /** What webhooks and policies are to see instead of the object, and what they make of it laid back. */
  shownAs?(next: KubeObject, old: KubeObject): Pick<AdmissionRequest, 'bodyKind' | 'body' | 'oldBody'>;
  takeBack?(next: KubeObject, body: unknown): void;
  /** The result's managedFields are complete: it comes from an apply. */
  readonly owned?: boolean;
  /** PUT refuses to go without a version where the kind demands one. */
  readonly versionRequired?: boolean;
}

export interface Updated {
  readonly object: CachedObject;
  /** The write removed the last finalizer of an object that was waiting for it. */
  readonly removed: boolean;
}

/** Throws 'NotFound' when there is no such object. */
export async function updateObject(context: RestContext, request: WriteRequest, change: Change): Promise<Updated> {
  const place = placeOf(request, request.name);
  // The cache's word is good enough to begin with: the guard finds out when it is not.
  let current = request.kind.cache?.get(place.namespace, place.name);
  let certain = false;
  for (let attempt = 1; ; attempt++) {
    try {
      if (current === undefined) throw errors.notFound(request.kind, request.name);
      const outcome = await attemptUpdate(context, request, change, place, current);
      if (outcome.done) return outcome.updated;
      if (attempt >= MAX_TRIES) throw errors.conflict(request.kind, request.name, conflictMessage);
      current = outcome.current;
      certain = true;
    } catch (error) {
      if (certain) throw error;
      // A refusal on the strength of an old copy would be wrong: look again, at the store.
      const stored = await context.objects.readStored(place);
      certain = true;
      if (stored?.revision === current?.revision) throw error;
      current = stored;
    }
  }
}

type Outcome =
  | { readonly done: true; readonly updated: Updated }
  | { readonly done: false; readonly current: CachedObject | undefined };

async function attemptUpdate(
  context: RestContext,
  request: WriteRequest,
  change: Change,
  place: Place,
  current: CachedObject,
): Promise<Outcome> {
  const { kind } = request;
  const { definition } = kind;
  const now = shown(kind, current);
  const seen = now instanceof Promise ? await now : now;
  const large = isLarge(seen.bytes.length) || isLarge(request.bodyBytes);
  const old = seen.parse();
  if (large) await yieldEventLoop();
  const copy = fromStored(kind, toChange(old));
  if (large) await yieldEventLoop();
  const next = toStored(kind, await change.next(copy, large));
  if (large) await yieldEventLoop();
  checkPreconditions(request, change, current, old, next);
  keepSystemFields(old, next);
  definition.setDefaults?.(next, change.owned);
  if (change.versionRequired === true) dropDuplicateOwners(next, request.warnings, { afterAdmission: false });
  const body = change.shownAs?.(next, old);
  const owners = new OwnersOfUpdate(context, request, change, next, old, large);
  const admission: AdmissionRequest = {
    operation: 'UPDATE',
    kind,
    subresource: request.subresource,
    namespace: request.namespace,
    name: request.name,
    object: next,
    old,
    user: request.user,
    dryRun: request.options.dryRun,
    options: request.options,
    warnings: request.warnings,
    annotate: request.annotate,
    deadlineMs: request.deadlineMs,
    reservations: [],
    // What a sub-resource shows in the object's place is laid back only afterwards.
    ...(body === undefined ? { noteOwners: () => owners.note() } : {}),
    derived: request.own === true || request.subresource === 'binding' || request.subresource === 'eviction',
    ...body,
  };
  const mutated = context.admission.mutate(admission);
  if (mutated !== undefined) await mutated;
  owners.check();
  dropDuplicateOwners(next, request.warnings, { afterAdmission: true });
  if (admission.bodyKind !== undefined) change.takeBack?.(next, admission.body);
  // Admission may come from outside.
  keepSystemFields(old, next);
  change.strategy.prepareForUpdate?.(next, old, strategyContext(context, request.user));
  if (large) await yieldEventLoop();
  const failures = failuresOf(() => validateObjectMetaUpdate(next, old, definition));
  if (large) await yieldEventLoop();
  failures.push(
    ...failuresOf(
      () => [
        ...(change.strategy.validate?.(next, old) ?? []),
        ...(change.strategy.validateUpdate?.(next, old) ?? []),
        ...(change.strategy.validateVersion?.(kind.apiVersion, next, old) ?? []),
      ],
      definition.custom !== undefined,
    ),
  );
  if (change.strategy.judge !== undefined) failures.push(...(await judgement(change.strategy, next, old, failures)));
  if (failures.length > 0) throw invalid(definition, request.name, failures);
  if (large) await yieldEventLoop();
  const validated = context.admission.validate(admission);
  if (validated !== undefined) await validated;
  const warnings = change.strategy.warnings?.(next, old) ?? [];
  const tracked = owners.noteLast();
  if (tracked !== undefined) await tracked;
  if (large) await yieldEventLoop();
  const outcome = await storeAdmitted(
    admission,
    () => storedWithinLimit(next, change.owned === true, () => write(context, request, place, seen, old, next, large)),
    ({ done }) => done,
  );
  if (outcome.done) request.warnings.push(...warnings);
  return outcome;
}

/** Field ownership of an update. Fields that mutating admission sets get no manager. */
class OwnersOfUpdate {
  readonly #context: RestContext;
  readonly #request: WriteRequest;
  readonly #change: Change;
  readonly #next: KubeObject;
  readonly #old: KubeObject;
  readonly #large: boolean;
  #noted: boolean;
  #before: ManagedFields;

  constructor(
    context: RestContext,
    request: WriteRequest,
    change: Change,
    next: KubeObject,
    old: KubeObject,
    large: boolean,
  ) {
    this.#context = context;
    this.#request = request;
    this.#change = change;
    this.#next = next;
    this.#old = old;
    this.#large = large;
    this.#noted = change.owned === true;
    this.#before = next.metadata?.managedFields;
  }

  /** As far as the object is now; what comes later does not count. */
  async note(): Promise<void> {
    if (this.#noted) return;
    this.#noted = true;
    const written = toChange(this.#next);
    // What the kind's strategy takes back is not the updater's.
    this.#change.strategy.prepareForUpdate?.(written, this.#old, strategyContext(this.#context, this.#request.user));
    await trackWrite(this.#context, this.#request, written, this.#old, this.#large);
    setOwners(this.#next, written.metadata?.managedFields);
    this.#before = this.#next.metadata?.managedFields;
  }

  /** After admission. */
  check(): void {
    keepOwners(this.#next, this.#before, this.#request.warnings);
  }

  /** Tracks ownership on the object as it will be stored, when no webhook or policy changed it. */
  noteLast(): Promise<void> | undefined {
    return this.#noted ? undefined : trackWrite(this.#context, this.#request, this.#next, this.#old, this.#large);
  }
}

/** A copy that may be changed. Who owns what is read out of it and put back as a whole: the entries are shared. */
function toChange(old: KubeObject): KubeObject {
  const { managedFields } = old.metadata ?? {};
  const bare = managedFields === undefined ? old : { ...old, metadata: { ...old.metadata, managedFields: [] } };
  const copy = clone(bare as object as JsonObject) as KubeObject;
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
    // Who sends a whole object means that one; a patch would change the field.
    if (change.versionRequired !== true) throw invalid(definition, request.name, [uidChanged(uid)]);
    throw errors.conflict(
      request.kind,
      request.name,
      `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata?.uid ?? ''}`,
    );
  }
}

/** Some kinds are not written over without a word on which state of theirs is meant. */
export function checkVersion({ kind, name }: WriteRequest, { metadata }: KubeObject): void {
  const version = metadata?.resourceVersion;
  if (kind.definition.allowUnconditionalUpdate !== false || (version !== undefined && !['', '0'].includes(version)))
    return;
  // Upstream names the resource here, not the kind, and shows the version that it read.
  throw invalid({ group: kind.group, kind: kind.plural }, name, [VERSION_REQUIRED]);
}

const uidChanged = (uid: string): FieldError => fieldError.invalid('metadata.uid', uid, 'field is immutable');

const VERSION_REQUIRED: FieldError = {
  type: 'FieldValueInvalid',
  field: 'metadata.resourceVersion',
  message: 'Invalid value: 0: must be specified for an update',
};

const SYSTEM_FIELDS = ['uid', 'creationTimestamp', 'generation'] as const;

/** Restores the metadata that clients cannot change. A changed deletionTimestamp is rejected instead of ignored. */
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
  // What is in no namespace loses one that it is sent with.
  if (before['namespace'] === undefined) {
    if (metadata['namespace'] !== undefined) delete metadata['namespace'];
  } else if (metadata['namespace'] === undefined || metadata['namespace'] === '') {
    metadata['namespace'] = before['namespace'];
  }
  metadata['name'] ??= before['name'];
}

async function write(
  context: RestContext,
  request: WriteRequest,
  place: Place,
  current: CachedObject,
  old: KubeObject,
  next: KubeObject,
  large: boolean,
): Promise<Outcome> {
  const isService = place.definition.plural === 'services';
  if (removesItself(next, old)) {
    // The answer shows the object as it goes: without the finalizer that holds it.
    if (request.options.dryRun)
      return { done: true, updated: { object: await rendered(place, current, next, large), removed: true } };
    const effects = isService ? context.services.release(old as Service) : NO_EFFECTS;
    const result = await context.objects.remove(place, current, effects);
    if (result.written)
      return { done: true, updated: { object: await rendered(place, current, next, large), removed: true } };
    return { done: false, current: 'current' in result ? result.current : current };
  }
  const effects = isService ? context.services.allocate(next as Service, old as Service) : NO_EFFECTS;
  const unchanged = isUnchanged(old, next, place.view !== undefined);
  if (large) await yieldEventLoop();
  if (unchanged && !context.objects.isStale(place)) return { done: true, updated: { object: current, removed: false } };
  if (request.options.dryRun) {
    return { done: true, updated: { object: await rendered(place, current, next, large), removed: false } };
  }
  const result = await context.objects.update(place, current, next, effects, large);
  if (result.written) return { done: true, updated: { object: result.object, removed: false } };
  if ('lostGuard' in result) throw context.services.taken(next as Service, result.lostGuard);
  return { done: false, current: result.current };
}

/** An object that waits for its deletion goes with its last finalizer; a pod only after its grace, a namespace when it is empty. */
function removesItself(next: KubeObject, old: KubeObject): boolean {
  const metadata = next.metadata;
  if (metadata?.deletionTimestamp === undefined || (metadata.finalizers ?? []).length > 0) return false;
  if ((metadata.deletionGracePeriodSeconds ?? 0) > 0) return false;
  if (next.kind === 'Namespace') {
    const { spec } = next as { spec?: { finalizers?: readonly string[] } };
    if ((spec?.finalizers ?? []).length > 0) return false;
    return true;
  }
  return (old.metadata?.finalizers ?? []).length > 0;
}

/** The times in managedFields alone do not make a change; who owns what does, and there an empty map is not the same as none. */
function isUnchanged(old: KubeObject, next: KubeObject, exact: boolean): boolean {
  const isSame = exact ? sameButMetadata(old, next) : semanticEqualBut(old, next, METADATA);
  return (
    isSame &&
    semanticEqualBut(old.metadata ?? NO_METADATA, next.metadata ?? NO_METADATA, BOOKS) &&
    jsonEqual(ownersOf(old), ownersOf(next))
  );
}

const METADATA = ['metadata'] as const;
const NO_METADATA = {};
/** Fields of metadata that say how often and by whom an object was written. */
const BOOKS = ['resourceVersion', 'managedFields'] as const;

/** In custom resources an empty list is not the same as none: beside metadata documents compare as they are. */
function sameButMetadata(old: KubeObject, next: KubeObject): boolean {
  const { metadata: _before, ...oldRest } = old;
  const { metadata: _after, ...nextRest } = next;
  return jsonEqual(oldRest as JsonObject, nextRest as JsonObject);
}

function ownersOf({ metadata }: KubeObject): JsonValue {
  return (metadata?.managedFields ?? []).map(({ time: _time, ...entry }) => entry as JsonObject);
}
