/** Replaces the object of a request with the object that a webhook or policy returned. */

import type { JsonObject, JsonValue } from '../../api/meta/object.ts';
import { schemaOf } from '../../api/schema/index.ts';
import { setFieldOf } from '../../api/structural/schema.ts';
import type { AdmissionRequest } from '../pipeline/admission.ts';
import { decodeObject } from '../pipeline/decode-object.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import type { WriteOptions } from '../pipeline/write-options.ts';
import { fromReview } from './review.ts';

/** The object or body that plug-ins may change. Undefined for requests that have neither, such as deletes. */
export function targetOf(request: AdmissionRequest): object | undefined {
  return (request.bodyKind === undefined ? request.object : request.body) as object | undefined;
}

/**
 * Decodes `changed`, a document of version `as`, sets defaults for new fields, and puts it in place of the request's
 * target. Throws an ApiError when it cannot be decoded, and under Strict field validation when it has unknown fields.
 * The request must have a target.
 */
export async function exchangeObject(
  request: AdmissionRequest,
  as: ServedKind,
  changed: JsonObject,
  validation: WriteOptions['validation'],
): Promise<void> {
  const target = targetOf(request);
  if (target === undefined) throw new Error('there is no object to exchange');
  if (request.bodyKind !== undefined) {
    const { group, version, kind } = request.bodyKind;
    const decoded = { apiVersion: group === '' ? version : `${group}/${version}`, kind };
    replace(target, decodeObject({ ...decoded, schema: schemaOf(request.bodyKind) }, changed, { validation }));
    return;
  }
  const next = await fromReview(decodeObject(as, changed, { validation }), request.kind, as);
  request.kind.definition.setDefaults?.(next);
  replace(target, next);
}

/** Changes the object in place, because the pipeline holds a reference to it. */
function replace(target: object, source: object): void {
  for (const key of Object.keys(target)) delete (target as Record<string, unknown>)[key];
  for (const [key, value] of Object.entries(source)) setFieldOf(target as JsonObject, key, value as JsonValue);
}
