/** POST: the stages of a create. The commit requires that the key does not exist. */

import type { KubeObject } from '../../../api/meta/object.ts';
import { ApiError, errors } from '../../../api/meta/status.ts';
import { isSet } from '../../../api/meta/validation.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { admissionOfWrite, storeAdmitted } from '../../pipeline/admission.ts';
import { toStored } from '../../pipeline/kinds.ts';
import { metadataOf, placeOf, randomSuffix, strategyContext, type WriteRequest } from '../../pipeline/write-request.ts';
import { encodeInSteps } from '../../storage/encode.ts';
import { NO_EFFECTS } from '../../storage/object-store.ts';
import { CachedObject } from '../../watch-cache/cached-object.ts';
import type { WriteContext } from '../context.ts';
import { keepOwners, storedWithinLimit, trackWrite } from './managed-fields.ts';
import { dropDuplicateOwners } from './owner-duplicates.ts';
import { admit, allocatorOf, CHECKS, runStages, type Stage, ValidatedWrite } from './stages.ts';

/** Attempts for a generated name, as in upstream, and for an address that another server has allocated meanwhile. */
const MAX_TRIES = 8;
/** Maximum number of namespace changes during one create. */
const MAX_NAMESPACE_CHANGES = 32;
const MAX_GENERATED_BASE = 58;
const SUFFIX_LENGTH = 5;
/** Fields that the server sets. Values from clients are ignored. */
const SYSTEM_FIELDS = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'generation',
] as const;

class Create extends ValidatedWrite {
  readonly next: KubeObject;
  readonly old = undefined;
  /** True if managedFields are complete because the object comes from an apply. */
  readonly owned: boolean;
  /** The value of `generateName` if the name is generated. */
  generateName: string | undefined = undefined;
  created: CachedObject | undefined = undefined;

  constructor(context: WriteContext, request: WriteRequest, next: KubeObject, owned: boolean) {
    super(context, request, request.kind.definition.strategy);
    this.next = next;
    this.owned = owned;
  }
}

const STAGES: readonly Stage<Create>[] = [identify, setDefaults, own, admit, prepare, ...CHECKS, store];

/**
 * Creates an object. `object` is decoded and in the served version. `owned`: its managedFields are complete because it
 * comes from an apply.
 */
export async function createObject(
  context: WriteContext,
  request: WriteRequest,
  object: KubeObject,
  owned = false,
): Promise<CachedObject> {
  const refusal = request.kind.refusal?.();
  if (refusal !== undefined) throw refusal;
  const write = new Create(context, request, toStored(request.kind, object), owned);
  await runStages(STAGES, write);
  if (write.created === undefined) throw new Error('create: the last stage stored no object');
  return write.created;
}

function identify(write: Create): void {
  const { context, request, next } = write;
  const metadata = metadataOf(next);
  checkIdentity(request, next);
  const generateName = metadata.name === undefined || metadata.name === '' ? metadata.generateName : undefined;
  dropSystemFields(metadata);
  if (generateName !== undefined && generateName !== '') metadata.name = generatedName(context, generateName);
  write.generateName = generateName;
}

function setDefaults({ next, owned, request }: Create): void {
  request.kind.definition.setDefaults?.(next, owned);
  dropDuplicateOwners(next, request.warnings, { afterAdmission: false });
}

/**
 * Records field ownership. Runs before admission, so that the creator does not own fields that admission and the
 * strategy set.
 */
function own(write: Create): void | Promise<void> {
  const { context, request, next, large } = write;
  const metadata = metadataOf(next);
  write.admission = {
    ...admissionOfWrite(request),
    operation: 'CREATE',
    subresource: '',
    name: write.generateName === undefined ? (metadata.name ?? '') : '',
    object: next,
  };
  const pending = write.owned ? undefined : trackWrite(context, request, next, undefined, large);
  if (pending !== undefined) {
    return pending.then(() => {
      write.owners = metadata.managedFields;
    });
  }
  write.owners = metadata.managedFields;
}

/** Sets system fields after admission, which may have changed any field. */
function prepare({ context, request, next, owners, strategy }: Create): void {
  keepOwners(next, owners, request.warnings);
  dropDuplicateOwners(next, request.warnings, { afterAdmission: true });
  const metadata = metadataOf(next);
  dropSystemFields(metadata);
  checkIdentity(request, next);
  metadata.uid = context.random.uuid();
  metadata.creationTimestamp = timestamp(context.clock.nowMs());
  strategy.prepareForCreate?.(next, strategyContext(context, request));
}

async function store(write: Create): Promise<void> {
  const { admission, request, next, owned, strategy } = write;
  if (admission === undefined) return;
  request.warnings.push(...(strategy.warnings?.(next, undefined) ?? []));
  write.created = await storeAdmitted(
    admission,
    () => storedWithinLimit(next, owned, () => commit(write)),
    () => true,
  );
}

function dropSystemFields(metadata: ReturnType<typeof metadataOf>): void {
  for (const field of SYSTEM_FIELDS) if (metadata[field] !== undefined) delete metadata[field];
}

function checkIdentity(request: WriteRequest, stored: KubeObject): void {
  const metadata = metadataOf(stored);
  if (!request.kind.definition.namespaced) {
    // Removes a namespace from a cluster-scoped object.
    delete metadata.namespace;
    return;
  }
  if (metadata.namespace === undefined || metadata.namespace === '') metadata.namespace = request.namespace;
  else if (metadata.namespace !== request.namespace) {
    throw errors.badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}

function generatedName(context: WriteContext, base: string): string {
  return `${base.slice(0, MAX_GENERATED_BASE)}${randomSuffix(context.random, SUFFIX_LENGTH)}`;
}

async function commit(write: Create): Promise<CachedObject> {
  const { context, request, next, large } = write;
  const metadata = metadataOf(next);
  // As upstream's store, rejects a resourceVersion after admission and validation, but not in a dry run.
  if (isSet(metadata.resourceVersion) && !request.options.dryRun)
    throw new ApiError('Unknown', 'resourceVersion should not be set on objects to be created');
  delete metadata.resourceVersion;
  const generateName = write.generateName === '' ? undefined : write.generateName;
  const allocator = allocatorOf(write);
  // The object before allocation, for a retry with other values.
  const unallocated = allocator === undefined ? undefined : structuredClone(next);
  let inNamespace = write.admission?.namespaceGuard;
  let namespaceChanges = 0;
  for (let attempt = 1; ; attempt++) {
    const place = placeOf(request, metadataOf(next).name ?? '');
    const allocated = allocator?.allocate(next, undefined) ?? NO_EFFECTS;
    if (request.options.dryRun) {
      if ((await existing(context, request, place.name)) !== undefined)
        throw errors.alreadyExists(request.kind, place.name);
      return new CachedObject(place.namespace, place.name, await encodeInSteps(request.kind, next, large), 0, 0);
    }
    const effects =
      inNamespace === undefined ? allocated : { ...allocated, guards: [...allocated.guards, inNamespace.guard] };
    const result = await context.objects.create(place, next, effects, large);
    if (result.written) return result.object;
    if (inNamespace !== undefined && 'lostGuard' in result && result.lostGuard.key === inNamespace.guard.key) {
      namespaceChanges += 1;
      if (namespaceChanges > MAX_NAMESPACE_CHANGES)
        throw errors.conflict(request.kind, place.name, `namespace ${request.namespace} keeps changing; try again`);
      inNamespace = await inNamespace.renew();
      if (unallocated !== undefined) Object.assign(next, structuredClone(unallocated));
      attempt -= 1;
      continue;
    }
    if (allocator !== undefined && unallocated !== undefined && 'lostGuard' in result) {
      const { lostGuard } = result;
      const isFinal = attempt >= MAX_TRIES || allocator.isRequested(unallocated, lostGuard.key);
      if (isFinal) throw allocator.allocationError(next, lostGuard);
      Object.assign(next, structuredClone(unallocated));
      continue;
    }
    if (generateName === undefined || attempt >= MAX_TRIES) throw errors.alreadyExists(request.kind, place.name);
    metadataOf(next).name = generatedName(context, generateName);
  }
}

async function existing(context: WriteContext, request: WriteRequest, name: string): Promise<CachedObject | undefined> {
  await context.cache.freshen();
  return request.kind.cache?.get(placeOf(request, name).namespace, name);
}
