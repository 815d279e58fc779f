/** Tracks field ownership in `metadata.managedFields` on every write. */

import type { JsonObject, JsonValue, KubeObject, ObjectMeta } from '../../../api/meta/object.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { StoreError } from '../../../store/port.ts';
import { faultOfManagedFields, managedFieldsAfter, managedFieldsSteps } from '../../core/patch/index.ts';
import { fromStored, type ServedKind } from '../../pipeline/kinds.ts';
import { metadataOf, type WriteRequest } from '../../pipeline/write-request.ts';
import { runSteps } from '../../server/event-loop.ts';
import type { ServerContext } from '../context.ts';
import { versionsOf } from './owned-versions.ts';

const STATUS = [['status']];

/**
 * Stores `object`. If it is too large for the store, stores it again without managedFields, except for an apply
 * (`owned`), which needs them. Source: k8s.io/apiserver/pkg/endpoints/handlers/update.go.
 */
export async function storedWithinLimit<T>(object: KubeObject, owned: boolean, store: () => Promise<T>): Promise<T> {
  try {
    return await store();
  } catch (error) {
    const { metadata } = object;
    const tooLarge = error instanceof StoreError && error.code === 'too-large';
    if (!tooLarge || owned || metadata?.managedFields === undefined) throw error;
    delete metadata.managedFields;
    return store();
  }
}

export type ManagedFields = ObjectMeta['managedFields'];

export function setOwners(object: KubeObject, owners: ManagedFields): void {
  const metadata = metadataOf(object);
  if (owners === undefined) delete metadata.managedFields;
  else metadata.managedFields = owners;
}

/**
 * Keeps managedFields written by admission only if they are valid; otherwise restores `before` and adds a warning.
 * Source: k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/admission.go.
 */
export function keepOwners(object: KubeObject, before: ManagedFields, warnings: string[]): void {
  const after = object.metadata?.managedFields;
  if (after === before) return;
  const fault = faultOfManagedFields(after);
  if (fault === undefined) return;
  setOwners(object, before);
  warnings.push(
    `.metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests: ${fault}`,
  );
}

/**
 * Records the write of `next` over `old` in the managedFields of `next`. Both are in the storage version; the manager
 * owns fields in the version of the request. With `large`, yields to the event loop.
 */
export function trackWrite(
  context: Pick<ServerContext, 'clock' | 'config' | 'kinds'>,
  request: WriteRequest,
  next: KubeObject,
  old: KubeObject | undefined,
  large: boolean,
): Promise<void> | undefined {
  const { kind } = request;
  const { definition, apiVersion, schema } = kind;
  const metadata = metadataOf(next);
  if (context.config.features?.managedFields === false) {
    delete metadata.managedFields;
    return undefined;
  }
  const note = (fields: readonly JsonValue[]): undefined => {
    if (fields.length === 0) delete metadata.managedFields;
    else metadata.managedFields = fields as NonNullable<ManagedFields>;
  };
  const write = {
    manager: request.options.fieldManager,
    apiVersion,
    schema,
    versions: versionsOf(context, kind, apiVersion),
    nowIso: timestamp(context.clock.nowMs()),
    live: old === undefined ? undefined : asWritten(kind, old),
    updated: asWritten(kind, next),
    skeleton: kind.alias?.skeleton ?? definition.skeleton ?? {},
    // Fields that only the status endpoint may write are not owned by the creator.
    ...(old === undefined && definition.statusStrategy !== undefined ? { resetFields: STATUS } : {}),
    ...(request.subresource === '' ? {} : { subresource: request.subresource }),
  };
  if (!large) return note(managedFieldsAfter(write));
  const fields = runSteps(managedFieldsSteps({ ...write, large }));
  return fields instanceof Promise ? fields.then(note) : note(fields);
}

/** A stored object in the version of the request. */
function asWritten(kind: ServedKind, object: KubeObject): JsonObject {
  const written = kind.alias === undefined ? object : fromStored(kind, structuredClone(object));
  return written;
}
