/** Options of a delete, from body and query. */

import type { JsonObject } from '../../../api/meta/object.ts';
import { ApiError, errors } from '../../../api/meta/status.ts';
import { schemaOf } from '../../../api/schema/index.ts';
import { bodyFormat, decodeBody } from '../http/decode.ts';
import { isTrue } from '../http/request-info.ts';
import { decodeObject } from './write-request.ts';

export interface DeleteOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagation: 'Foreground' | 'Background' | 'Orphan' | undefined;
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  readonly dryRun: boolean;
}

interface Body {
  gracePeriodSeconds?: number;
  propagationPolicy?: string;
  orphanDependents?: boolean;
  preconditions?: { uid?: string; resourceVersion?: string };
  dryRun?: string[];
}

export function parseDeleteOptions(
  body: Buffer,
  contentType: string | undefined,
  query: URLSearchParams,
): DeleteOptions {
  const given = body.length === 0 ? bodyOfQuery(query) : bodyOf(body, contentType);
  const dryRun = [...(given.dryRun ?? []), ...query.getAll('dryRun')];
  for (const each of dryRun) {
    if (each !== 'All') throw errors.badRequest('dryRun: Unsupported value: supported values: "All"');
  }
  return {
    gracePeriodSeconds: given.gracePeriodSeconds,
    propagation: propagationOf(given),
    uid: given.preconditions?.uid,
    resourceVersion: given.preconditions?.resourceVersion,
    dryRun: dryRun.length > 0,
  };
}

function bodyOf(body: Buffer, contentType: string | undefined): Body {
  return optionsOf(decodeBody(body, bodyFormat(contentType))) as Body;
}

/** A delete may name itself DeleteOptions of any group; it is one kind. */
function optionsOf(document: JsonObject): object {
  const { kind } = document;
  if (kind !== undefined && kind !== 'DeleteOptions') {
    throw errors.badRequest('the body of a delete must be DeleteOptions');
  }
  delete document['apiVersion'];
  const schema = schemaOf({ group: '', version: 'v1', kind: 'DeleteOptions' });
  return decodeObject({ apiVersion: 'v1', kind: 'DeleteOptions', schema }, document, [], 'Ignore', []);
}

function bodyOfQuery(query: URLSearchParams): Body {
  if (query.size === 0) return {};
  const grace = query.get('gracePeriodSeconds');
  if (grace !== null && !/^-?\d{1,10}$/.test(grace)) throw errors.badRequest('gracePeriodSeconds: must be an integer');
  const policy = query.get('propagationPolicy');
  const orphan = query.get('orphanDependents');
  return {
    ...(grace === null ? {} : { gracePeriodSeconds: Number(grace) }),
    ...(policy === null ? {} : { propagationPolicy: policy }),
    ...(orphan === null ? {} : { orphanDependents: isTrue(orphan) }),
  };
}

function propagationOf(given: Body): DeleteOptions['propagation'] {
  const { propagationPolicy: policy, orphanDependents: orphan } = given;
  if (policy !== undefined && orphan !== undefined) {
    throw errors.badRequest('orphanDependents and deletionPropagation cannot be both set');
  }
  if (orphan !== undefined) return orphan ? 'Orphan' : 'Background';
  if (policy === undefined || policy === '') return undefined;
  if (policy === 'Foreground' || policy === 'Background' || policy === 'Orphan') return policy;
  throw new ApiError(
    'Invalid',
    `DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: ${JSON.stringify(policy.slice(0, 64))}: supported values: "Foreground", "Background", "Orphan", "nil"`,
  );
}
