/** POST: decoded → named → defaulted → admitted → validated → committed under the guard that the key does not exist. */

import type { Service } from 'kubernetes-types/core/v1';
import { failuresOf, invalid } from '../../../api/meta/field-error.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import { validateObjectMeta } from '../../../api/meta/validation.ts';
import { isLarge, yieldEventLoop } from '../event-loop.ts';
import { type AdmissionRequest, storeAdmitted } from '../pipeline/admission.ts';
import { toStored } from '../pipeline/kinds.ts';
import {
  metadataOf,
  placeOf,
  randomSuffix,
  strategyContext,
  timestamp,
  type WriteRequest,
} from '../pipeline/write-request.ts';
import { encoded } from '../storage/encode.ts';
import { NO_EFFECTS } from '../storage/object-store.ts';
import { CachedObject } from '../watchcache/cached-object.ts';
import type { RestContext } from './context.ts';
import { keepOwners, storedWithinLimit, trackWrite } from './managed-fields.ts';
import { dropDuplicateOwners } from './owner-duplicates.ts';
import { judgement } from './validation.ts';

/** Upstream's tries for a generated name, and ours for an address another server took meanwhile. */
const MAX_TRIES = 8;
const MAX_GENERATED_BASE = 58;
const SUFFIX_LENGTH = 5;
/** A new object has none of these but by the server's word. */
const SYSTEM_FIELDS = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'resourceVersion',
  'generation',
] as const;

/** `object` is in the served version and has been decoded. `owned`: its managedFields are complete (it comes from an apply). */
export async function createObject(
  context: RestContext,
  request: WriteRequest,
  object: KubeObject,
  owned = false,
): Promise<CachedObject> {
  const { definition } = request.kind;
  const refusal = request.kind.refusal?.();
  if (refusal !== undefined) throw refusal;
  const stored = toStored(request.kind, object);
  let metadata = metadataOf(stored);
  checkIdentity(request, stored);
  const generated = metadata.name === undefined || metadata.name === '' ? metadata.generateName : undefined;
  dropSystemFields(metadata);
  if (generated !== undefined && generated !== '') metadata.name = generatedName(context, generated);
  const large = isLarge(request.bodyBytes);
  if (large) await yieldEventLoop();
  definition.setDefaults?.(stored, owned);
  dropDuplicateOwners(stored, request.warnings, { afterAdmission: false });
  // What admission and the kind's strategy put in is not its creator's.
  if (!owned) {
    const tracked = trackWrite(context, request, stored, undefined, large);
    if (tracked !== undefined) await tracked;
  }
  if (large) await yieldEventLoop();
  const admission: AdmissionRequest = {
    operation: 'CREATE',
    kind: request.kind,
    subresource: '',
    namespace: request.namespace,
    name: generated === undefined ? (metadata.name ?? '') : '',
    object: stored,
    user: request.user,
    dryRun: request.options.dryRun,
    options: request.options,
    warnings: request.warnings,
    annotate: request.annotate,
    deadlineMs: request.deadlineMs,
    reservations: [],
    derived: request.own === true,
  };
  const owners = metadata.managedFields;
  const mutated = context.admission.mutate(admission);
  if (mutated !== undefined) await mutated;
  keepOwners(stored, owners, request.warnings);
  dropDuplicateOwners(stored, request.warnings, { afterAdmission: true });
  // Admission may come from outside: what the server sets, it sets afterwards.
  metadata = metadataOf(stored);
  dropSystemFields(metadata);
  checkIdentity(request, stored);
  metadata.uid = context.random.uuid();
  metadata.creationTimestamp = timestamp(context.clock.nowMs());
  definition.strategy.prepareForCreate?.(stored, strategyContext(context, request.user));
  const { strategy } = definition;
  const failures = failuresOf(() => validateObjectMeta(stored.metadata, definition));
  if (large) await yieldEventLoop();
  failures.push(
    ...failuresOf(
      () => [
        ...(strategy.validate?.(stored) ?? []),
        ...(strategy.validateCreate?.(stored) ?? []),
        ...(strategy.validateVersion?.(request.kind.apiVersion, stored, undefined) ?? []),
      ],
      definition.custom !== undefined,
    ),
  );
  if (definition.strategy.judge !== undefined)
    failures.push(...(await judgement(definition.strategy, stored, undefined, failures)));
  if (failures.length > 0) throw invalid(definition, metadata.name ?? metadata.generateName ?? '', failures);
  if (large) await yieldEventLoop();
  const validated = context.admission.validate(admission);
  if (validated !== undefined) await validated;
  request.warnings.push(...(definition.strategy.warnings?.(stored, undefined) ?? []));
  return await storeAdmitted(
    admission,
    () =>
      storedWithinLimit(stored, owned, () =>
        commit(context, request, stored, generated === '' ? undefined : generated, large),
      ),
    () => true,
  );
}

function dropSystemFields(metadata: ReturnType<typeof metadataOf>): void {
  for (const field of SYSTEM_FIELDS) if (metadata[field] !== undefined) delete metadata[field];
}

function checkIdentity(request: WriteRequest, stored: KubeObject): void {
  const metadata = metadataOf(stored);
  if (metadata.resourceVersion !== undefined && metadata.resourceVersion !== '') {
    throw errors.badRequest('resourceVersion should not be set on objects to be created');
  }
  if (!request.kind.definition.namespaced) {
    // What belongs to no namespace loses one that was given.
    delete metadata.namespace;
    return;
  }
  if (metadata.namespace === undefined || metadata.namespace === '') metadata.namespace = request.namespace;
  else if (metadata.namespace !== request.namespace) {
    throw errors.badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
}

function generatedName(context: RestContext, base: string): string {
  return `${base.slice(0, MAX_GENERATED_BASE)}${randomSuffix(context.random, SUFFIX_LENGTH)}`;
}

async function commit(
  context: RestContext,
  request: WriteRequest,
  stored: KubeObject,
  generated: string | undefined,
  large: boolean,
): Promise<CachedObject> {
  const { definition } = request.kind;
  const metadata = metadataOf(stored);
  // Kept as the client gave it, for another try with other addresses.
  const unallocated = definition.plural === 'services' ? structuredClone(stored) : undefined;
  for (let attempt = 1; ; attempt++) {
    const place = placeOf(request, metadata.name ?? '');
    const effects = unallocated === undefined ? NO_EFFECTS : context.services.allocate(stored as Service, undefined);
    if (request.options.dryRun) {
      if ((await existing(context, request, place.name)) !== undefined)
        throw errors.alreadyExists(request.kind, place.name);
      return new CachedObject(place.namespace, place.name, await encoded(request.kind, stored, large), 0, 0);
    }
    const result = await context.objects.create(place, stored, effects, large);
    if (result.written) return result.object;
    if ('lostGuard' in result) {
      if (attempt >= MAX_TRIES) throw context.services.taken(stored as Service, result.lostGuard);
      if (unallocated !== undefined) {
        // Addresses the client named cannot be exchanged for others.
        const clone = structuredClone(unallocated);
        if (namesGuard(clone as Service, result.lostGuard.key)) {
          throw context.services.taken(stored as Service, result.lostGuard);
        }
        Object.assign(stored, clone);
      }
      continue;
    }
    if (generated === undefined || attempt >= MAX_TRIES) throw errors.alreadyExists(request.kind, place.name);
    metadata.name = generatedName(context, generated);
  }
}

function namesGuard(service: Service, key: string): boolean {
  const value = key.slice(key.lastIndexOf('/') + 1);
  return (
    service.spec?.clusterIP === value || (service.spec?.ports ?? []).some((port) => String(port.nodePort) === value)
  );
}

async function existing(context: RestContext, request: WriteRequest, name: string): Promise<CachedObject | undefined> {
  await context.cache.freshen();
  return request.kind.cache?.get(placeOf(request, name).namespace, name);
}
