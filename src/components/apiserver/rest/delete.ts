/**
 * DELETE: at once, or by marking the object and leaving the rest to finalizers and, for pods, to their kubelet.
 * Source: k8s.io/apiserver/pkg/registry/rest/delete.go and registry/generic/registry/store.go.
 */

import type { Service } from 'kubernetes-types/core/v1';
import type { KubeObject } from '../../../api/meta/object.ts';
import { nextGeneration } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import type { KindDefinition } from '../../../api/registry/definition.ts';
import { isLarge } from '../event-loop.ts';
import type { AdmissionRequest } from '../pipeline/admission.ts';
import type { DeleteOptions } from '../pipeline/options.ts';
import { conflictMessage, metadataOf, placeOf, timestamp, type WriteRequest } from '../pipeline/write-request.ts';
import { rendered } from '../storage/encode.ts';
import { NO_EFFECTS, type Place } from '../storage/object-store.ts';
import type { CachedObject } from '../watchcache/cached-object.ts';
import type { RestContext } from './context.ts';

const MAX_TRIES = 1000;
const ORPHAN = 'orphan';
const FOREGROUND = 'foregroundDeletion';

export interface Deleted {
  readonly object: CachedObject;
  /** False: the object is marked and still there. */
  readonly removed: boolean;
  /** At which it was removed. */
  readonly revision?: number;
}

export async function deleteObject(
  context: RestContext,
  request: WriteRequest,
  options: DeleteOptions,
): Promise<Deleted> {
  const place = placeOf(request, request.name);
  let current = request.kind.cache?.get(place.namespace, place.name);
  let certain = false;
  for (let attempt = 1; ; attempt++) {
    try {
      if (current === undefined) throw errors.notFound(request.kind, request.name);
      const outcome = await attemptDelete(context, request, options, place, current);
      if (outcome.done) return outcome.deleted;
      if (attempt >= MAX_TRIES) throw errors.conflict(request.kind, request.name, conflictMessage);
      current = outcome.current;
      certain = true;
    } catch (error) {
      if (certain) throw error;
      const stored = await context.objects.readStored(place);
      certain = true;
      if (stored?.revision === current?.revision) throw error;
      current = stored;
    }
  }
}

type Outcome =
  | { readonly done: true; readonly deleted: Deleted }
  | { readonly done: false; readonly current: CachedObject | undefined };

async function attemptDelete(
  context: RestContext,
  request: WriteRequest,
  options: DeleteOptions,
  place: Place,
  current: CachedObject,
): Promise<Outcome> {
  // Upstream reads the object in the requested version first: a failing conversion fails the delete.
  if (request.own !== true) await request.kind.view?.of(current);
  const old = current.parse();
  checkPreconditions(request, options, current, old);
  const admission: AdmissionRequest = {
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
  await context.admission.mutate(admission);
  await context.admission.validate(admission);
  const next = current.parse();
  const decision = decide(request, options, next, context.clock.nowMs());
  if (decision === 'pending') return { done: true, deleted: { object: current, removed: false } };
  if (options.dryRun) {
    const removed = decision === 'remove';
    return {
      done: true,
      deleted: {
        object: removed ? current : await rendered(place, current, next, isLarge(current.bytes.length)),
        removed,
      },
    };
  }
  if (decision === 'remove') {
    const effects = place.definition.plural === 'services' ? context.services.release(old as Service) : NO_EFFECTS;
    const result = await context.objects.remove(place, current, effects);
    if (result.written) {
      const { object, revision = object.revision } = result;
      return { done: true, deleted: { object, removed: true, revision } };
    }
    return { done: false, current: 'current' in result ? result.current : current };
  }
  const result = await context.objects.update(place, current, next);
  if (result.written) return { done: true, deleted: { object: result.object, removed: false } };
  return { done: false, current: 'current' in result ? result.current : current };
}

function checkPreconditions(
  request: WriteRequest,
  options: DeleteOptions,
  current: CachedObject,
  object: KubeObject,
): void {
  const { uid, resourceVersion } = options;
  const actual = object.metadata?.uid ?? '';
  // Upstream names the kind here where it names the resource elsewhere.
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

/** No text of a time says more. */
const LAST_MS = Date.parse('9999-12-31T23:59:59Z');

/** Marks `object` as it must be marked and tells what is to be done with it. */
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
  const waits = grace > 0 || finalizers.length > 0 || holdsNamespace(object);
  if (metadata.deletionTimestamp !== undefined) {
    const left = metadata.deletionGracePeriodSeconds ?? 0;
    if (!waits) return 'remove';
    if (grace >= left) return changed ? 'update' : 'pending';
    // A shorter grace counts from when the deletion began.
    const began = Date.parse(metadata.deletionTimestamp) - Number(left) * 1000;
    metadata.deletionTimestamp = timestamp(Math.min(Math.max(began + graceMs, began), LAST_MS));
    metadata.deletionGracePeriodSeconds = grace;
    return 'update';
  }
  if (!waits) return 'remove';
  metadata.deletionTimestamp = timestamp(Math.min(nowMs + graceMs, LAST_MS));
  metadata.deletionGracePeriodSeconds = grace;
  if (metadata.generation !== undefined && metadata.generation > 0) metadata.generation = nextGeneration(object);
  if (object.kind === 'Namespace') {
    const namespace = object as { status?: { phase?: string } };
    namespace.status = { ...namespace.status, phase: 'Terminating' };
    delete metadata.deletionGracePeriodSeconds;
  }
  return 'update';
}

/** Of what is given time to end: only less time can still be asked for, and nothing else of the deletion changes. */
function isPending(definition: KindDefinition, options: DeleteOptions, object: KubeObject): boolean {
  const { deletionTimestamp, deletionGracePeriodSeconds } = object.metadata ?? {};
  if (definition.defaultGraceSeconds === undefined) return false;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return false;
  const asked = options.gracePeriodSeconds;
  return asked === undefined || Math.max(asked, asked < 0 ? 1 : 0) >= deletionGracePeriodSeconds;
}

function graceOf(request: WriteRequest, options: DeleteOptions, object: KubeObject): number {
  const usual = request.kind.definition.defaultGraceSeconds?.(object);
  if (usual === undefined || usual === 0) return 0;
  const asked = options.gracePeriodSeconds;
  if (asked === undefined) return object.metadata?.deletionGracePeriodSeconds ?? usual;
  // Upstream reads a negative period as the shortest one.
  return asked < 0 ? 1 : asked;
}

/** Namespaces wait for what `spec.finalizers` stands for: everything in them. */
function holdsNamespace(object: KubeObject): boolean {
  if (object.kind !== 'Namespace') return false;
  const { spec } = object as { spec?: { finalizers?: readonly string[] } };
  return (spec?.finalizers ?? []).length > 0;
}

function finalizersFor(
  present: readonly string[],
  asked: DeleteOptions['propagation'],
  usual: 'Background' | 'Orphan' | undefined,
): string[] {
  const others = present.filter((each) => each !== ORPHAN && each !== FOREGROUND);
  const policy =
    asked ??
    (present.includes(ORPHAN) ? 'Orphan' : present.includes(FOREGROUND) ? 'Foreground' : (usual ?? 'Background'));
  if (policy === 'Orphan') return [...others, ORPHAN];
  if (policy === 'Foreground') return [...others, FOREGROUND];
  return others;
}
