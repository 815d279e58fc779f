/** Delete options from the body and query. */

import { type FieldError, fieldError } from '../../../api/meta/field-error.ts';
import type { JsonObject } from '../../../api/meta/object.ts';
import { errors } from '../../../api/meta/status.ts';
import { schemaOf } from '../../../api/schema/index.ts';
import { bodyFormat, decodeUnnamed } from '../../http/decode.ts';
import { isTrue } from '../../http/request-info.ts';
import { decodeObject } from '../../pipeline/decode-object.ts';
import type { DeleteOptions } from '../../pipeline/write-options.ts';
import { invalidOptions, validateDryRun } from './write-options.ts';

interface Body {
  gracePeriodSeconds?: number;
  propagationPolicy?: string;
  orphanDependents?: boolean;
  preconditions?: { uid?: string; resourceVersion?: string };
  dryRun?: string[];
}

/** Parses the options of a delete. `audit` receives the decoded body. */
export function parseDeleteOptions(
  body: Buffer,
  contentType: string | undefined,
  query: URLSearchParams,
  audit?: { sent(document: object): void },
): DeleteOptions {
  const given = body.length === 0 ? bodyOfQuery(query) : bodyOf(body, contentType);
  if (body.length > 0) audit?.sent(given);
  const dryRun = [...(given.dryRun ?? []), ...query.getAll('dryRun')];
  const failures = [...validatePropagation(given), ...validateDryRun(dryRun)];
  if (failures.length > 0) throw invalidOptions('DeleteOptions', failures);
  return {
    gracePeriodSeconds: given.gracePeriodSeconds,
    propagation: propagationOf(given),
    orphans: given.orphanDependents,
    uid: given.preconditions?.uid,
    resourceVersion: given.preconditions?.resourceVersion,
    dryRun: dryRun.length > 0,
  };
}

function bodyOf(body: Buffer, contentType: string | undefined): Body {
  return optionsOf(decodeUnnamed(body, bodyFormat(contentType))) as Body;
}

/** Decodes DeleteOptions, which are accepted in any group. */
function optionsOf(document: JsonObject): object {
  const { kind } = document;
  if (kind !== undefined && kind !== 'DeleteOptions') {
    throw errors.badRequest('the body of a delete must be DeleteOptions');
  }
  delete document['apiVersion'];
  const schema = schemaOf({ group: '', version: 'v1', kind: 'DeleteOptions' });
  return decodeObject({ apiVersion: 'v1', kind: 'DeleteOptions', schema }, document, { validation: 'Ignore' });
}

function bodyOfQuery(query: URLSearchParams): Body {
  if (query.size === 0) return {};
  const grace = query.get('gracePeriodSeconds');
  if (grace !== null && !/^[+-]?\d{1,15}$/.test(grace)) {
    throw errors.badRequest(`strconv.ParseInt: parsing ${JSON.stringify(grace.slice(0, 64))}: invalid syntax`);
  }
  const uid = query.get('uid');
  const policy = query.get('propagationPolicy');
  const orphan = query.get('orphanDependents');
  return {
    ...(grace === null ? {} : { gracePeriodSeconds: Number(grace) }),
    ...(policy === null ? {} : { propagationPolicy: policy }),
    ...(orphan === null ? {} : { orphanDependents: isTrue(orphan) }),
    ...(uid === null ? {} : { preconditions: { uid } }),
  };
}

const POLICIES = ['Foreground', 'Background', 'Orphan'] as const;

function validatePropagation({ propagationPolicy: policy, orphanDependents: orphan }: Body): FieldError[] {
  const at = 'propagationPolicy';
  if (policy !== undefined && orphan !== undefined) {
    return [fieldError.invalid(at, policy, 'orphanDependents and deletionPropagation cannot be both set')];
  }
  if (policy === undefined || policy === '' || POLICIES.some((each) => each === policy)) return [];
  return [fieldError.notSupported(at, policy.slice(0, 64), [...POLICIES, 'nil'])];
}

function propagationOf({ propagationPolicy: policy, orphanDependents: orphan }: Body): DeleteOptions['propagation'] {
  if (orphan !== undefined) return orphan ? 'Orphan' : 'Background';
  return POLICIES.find((each) => each === policy);
}
