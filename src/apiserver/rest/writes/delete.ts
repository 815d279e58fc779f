/**
 * DELETE: the stages of a delete. Removes the object, or sets its deletionTimestamp until its finalizers are removed
 * and its grace period has elapsed. Source: k8s.io/apiserver/pkg/registry/rest/delete.go and
 * registry/generic/registry/store.go.
 */

import { type KubeObject, nextGeneration } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { DeleteOptions } from '../../pipeline/write-options.ts';
import { metadataOf, placeOf, type WriteRequest } from '../../pipeline/write-request.ts';
import { isLarge } from '../../server/event-loop.ts';
import { rendered } from '../../storage/encode.ts';
import { NO_EFFECTS, type Place } from '../../storage/object-store.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { WriteContext } from '../context.ts';
import { type Attempt, retryOnConflict } from './optimistic.ts';
import { admit, allocatorOf, runStages, type Stage, validateAdmission, type Write } from './stages.ts';

const ORPHAN = 'orphan';
const FOREGROUND = 'foregroundDeletion';

export interface Deleted {
  readonly object: CachedObject;
  /** False if the object was only marked for deletion. */
  readonly removed: boolean;
  /** Revision of the removal. */
  readonly revision?: number;
}

/** One attempt at a delete. */
class Delete implements Write {
  readonly context: WriteContext;
  readonly request: WriteRequest;
  readonly options: DeleteOptions;
  readonly place: Place;
  readonly current: CachedObject;
  readonly old: KubeObject;
  readonly large: boolean;
  admission: AdmissionRequest | undefined = undefined;
  outcome: Attempt<Deleted> | undefined = undefined;

  constructor(
    context: WriteContext,
    request: WriteRequest,
    options: DeleteOptions,
    place: Place,
    current: CachedObject,
  ) {
    this.context = context;
    this.request = request;
    this.options = options;
    this.place = place;
    this.current = current;
    this.old = current.parse();
    this.large = isLarge(current.bytes.length);
  }
}

const STAGES: readonly Stage<Delete>[] = [convert, check, admit, validateAdmission, store];

export function deleteObject(context: WriteContext, request: WriteRequest, options: DeleteOptions): Promise<Deleted> {
  const place = placeOf(request, request.name);
  return retryOnConflict(context, request, place, async (current) => {
    const write = new Delete(context, request, options, place, current);
    await runStages(STAGES, write);
    if (write.outcome === undefined) throw new Error('delete: the last stage stored no result');
    return write.outcome;
  });
}

/** As upstream, a delete fails if the object cannot be converted to the requested version. */
async function convert({ request, current }: Delete): Promise<void> {
  if (request.own !== true) await request.kind.view?.of(current);
}

function check(write: Delete): void {
  const { request, options, current, old } = write;
  checkPreconditions(request, options, current, old);
  write.admission = {
    operation: 'DELETE',
    kind: request.kind,
    subresource: '',
    namespace: request.namespace,
    name: request.name,
    collective: request.collective === true,
    old,
    user: request.user,
    dryRun: options.dryRun,
    options,
    warnings: request.warnings,
    annotate: request.annotate,
    deadlineMs: request.deadlineMs,
    derived: request.own === true || request.subresource === 'eviction',
  };
}

async function store(write: Delete): Promise<void> {
  write.outcome = await commit(write);
}

async function commit(write: Delete): Promise<Attempt<Deleted>> {
  const { context, request, options, place, current, old, large } = write;
  const next = current.parse();
  const decision = decide(request, options, next, context.clock.nowMs());
  if (decision === 'pending') return { done: true, value: { object: current, removed: false } };
  const removed = decision === 'remove';
  if (options.dryRun) {
    const object = removed ? current : await rendered(place, current, next, large);
    return { done: true, value: { object, removed } };
  }
  const result = removed
    ? await context.objects.remove(place, current, allocatorOf(write)?.release(old) ?? NO_EFFECTS)
    : await context.objects.update(place, current, next, {
        large,
        // Only the first change of a deletion may use the disk reserve; otherwise repeated changes could exhaust it.
        reserve: old.metadata?.deletionTimestamp === undefined,
      });
  if (!result.written) return { done: false, current: 'current' in result ? result.current : current };
  const { object, revision = object.revision } = result;
  return { done: true, value: removed ? { object, removed, revision } : { object, removed } };
}

function checkPreconditions(
  request: WriteRequest,
  options: DeleteOptions,
  current: CachedObject,
  object: KubeObject,
): void {
  const { uid, resourceVersion } = options;
  const actual = object.metadata?.uid ?? '';
  // As upstream, the error names the kind instead of the resource.
  const subject = { group: request.kind.group, plural: request.kind.definition.kind };
  if (uid !== undefined && uid !== actual) {
    throw errors.conflict(
      subject,
      request.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${actual}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== String(current.revision)) {
    throw errors.conflict(
      subject,
      request.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${current.revision}). The object might have been modified`,
    );
  }
}

/** Sets the deletion metadata of `object` and decides whether it is removed or updated. */
function decide(
  request: WriteRequest,
  options: DeleteOptions,
  object: KubeObject,
  nowMs: number,
): 'remove' | 'update' | 'pending' {
  const { definition } = request.kind;
  const metadata = metadataOf(object);
  if (isPending(definition, options, object)) return 'pending';
  const before = JSON.stringify(metadata.finalizers ?? []);
  if (metadata.deletionTimestamp === undefined) definition.prepareForDelete?.(object, nowMs);
  const finalizers = finalizersFor(metadata.finalizers ?? [], options.propagation, definition.defaultPropagation);
  if (finalizers.length > 0) metadata.finalizers = finalizers;
  else delete metadata.finalizers;
  const changed = JSON.stringify(finalizers) !== before;
  const grace = graceOf(request, options, object);
  const graceMs = Number(grace) * 1000;
  const waits = grace > 0 || finalizers.length > 0 || definition.finalization?.isHeld(object) === true;
  if (metadata.deletionTimestamp !== undefined) {
    const left = metadata.deletionGracePeriodSeconds ?? 0;
    if (!waits) return 'remove';
    if (grace >= left) return changed ? 'update' : 'pending';
    // A shorter grace period counts from the start of the deletion.
    const began = Date.parse(metadata.deletionTimestamp) - Number(left) * 1000;
    metadata.deletionTimestamp = timestamp(Math.max(began + graceMs, began));
    metadata.deletionGracePeriodSeconds = grace;
    return 'update';
  }
  if (!waits) return 'remove';
  metadata.deletionTimestamp = timestamp(nowMs + graceMs);
  metadata.deletionGracePeriodSeconds = grace;
  if (metadata.generation !== undefined && metadata.generation > 0) metadata.generation = nextGeneration(object);
  definition.finalization?.mark(object);
  return 'update';
}

/** Reports whether a graceful deletion is in progress that this request does not shorten. */
function isPending(definition: KindDefinition, options: DeleteOptions, object: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata ?? {};
  if (definition.defaultGraceSeconds === undefined) return false;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return false;
  const requested = options.gracePeriodSeconds;
  return requested === undefined || Math.max(requested, requested < 0 ? 1 : 0) >= deletionGracePeriodSeconds;
}

function graceOf(request: WriteRequest, options: DeleteOptions, object: KubeObject): number {
  const usual = request.kind.definition.defaultGraceSeconds?.(object);
  if (usual === undefined) return 0;
  const requested = options.gracePeriodSeconds;
  if (requested === undefined) return object.metadata?.deletionGracePeriodSeconds ?? usual;
  // As upstream, a negative period means the shortest period, one second.
  return requested < 0 ? 1 : requested;
}

function finalizersFor(
  present: readonly string[],
  requested: DeleteOptions['propagation'],
  usual: 'Background' | 'Orphan' | undefined,
): string[] {
  const others = present.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  const policy =
    requested ??
    (present.includes(ORPHAN) ? 'Orphan' : present.includes(FOREGROUND) ? 'Foreground' : (usual ?? 'Background'));
  if (policy === 'Orphan') return [...others, ORPHAN];
  if (policy === 'Foreground') return [...others, FOREGROUND];
  return others;
}
