/** Server-side apply. Source: KEP-555. */

import { fieldError } from '../../../api/meta/field-error.ts';
import type { JsonObject, JsonValue, KubeObject } from '../../../api/meta/object.ts';
import { ApiError, errors, isApiError } from '../../../api/meta/status.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import { applyServerSide, applySteps, checkConfiguration } from '../../core/patch/index.ts';
import { type DecodedKind, decodeObject, shownText } from '../../pipeline/decode-object.ts';
import type { ServedKind } from '../../pipeline/kinds.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import { isLarge, runSteps } from '../../server/event-loop.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { WriteContext } from '../context.ts';
import { createObject } from './create.ts';
import { versionsOf } from './owned-versions.ts';
import { checkName } from './patch.ts';
import { updateObject } from './update.ts';
import { invalidOptions } from './write-options.ts';

export interface Applied {
  readonly object: CachedObject;
  readonly created: boolean;
}

/** The applied configuration. An empty body counts as an empty document. Throws 'Invalid' without a fieldManager. */
export function configurationOf(body: JsonValue, query: URLSearchParams): JsonObject {
  if ((query.get('fieldManager') ?? '') === '') {
    throw invalidOptions('PatchOptions', [fieldError.required('fieldManager', 'is required for apply patch')]);
  }
  if (body !== null && (typeof body !== 'object' || Array.isArray(body))) {
    const found = Array.isArray(body) ? 'array' : typeof body === 'boolean' ? 'bool' : typeof body;
    throw errors.badRequest(
      `error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ${found} into Go value of type map[string]interface {}`,
    );
  }
  return body ?? {};
}

/** Rejects a configuration of another type, with managedFields, or with unknown fields. */
export function checkApplied(document: JsonObject, { apiVersion: expected, kind, schema }: DecodedKind): void {
  const { apiVersion = '', kind: kindName = '' } = document;
  if (apiVersion !== expected || kindName !== kind) {
    const text = shownText(apiVersion);
    const version = text === '' || text.includes('/') ? text : `/${text}`;
    throw errors.badRequest(`invalid object type: ${version === '' ? '/' : version}, Kind=${shownText(kindName)}`);
  }
  const { managedFields } = (document as KubeObject).metadata ?? {};
  if (managedFields !== undefined && managedFields !== null) {
    throw errors.badRequest('metadata.managedFields must be nil');
  }
  // Checks the document as sent, because in an apply unknown fields are errors instead of being pruned.
  if (schema !== undefined) checkConfiguration(document, expected, schema);
}

/**
 * Applies a configuration to an object. `mayCreate` is called before a missing object is created, and may reject it.
 */
export async function applyObject(
  context: WriteContext,
  request: WriteRequest,
  document: JsonObject,
  strategy: WriteStrategy<KubeObject>,
  mayCreate: () => void | Promise<void>,
): Promise<Applied> {
  const { kind } = request;
  checkApplied(document, kind);
  const { validation } = request.options;
  const applied = decodeObject(kind, document, { validation, warnings: request.warnings, keepsEmpty: true });
  // A configuration without name and namespace has the name and namespace of the URL.
  if ((applied.metadata?.name ?? '') !== '' || (applied.metadata?.namespace ?? '') !== '')
    checkName(request, { ...applied, metadata: { name: request.name, ...applied.metadata } });
  const merged = (live: JsonObject | undefined, large: boolean): KubeObject | Promise<KubeObject> => {
    checkOwnedVersions(kind, live);
    const configuration = {
      live,
      applied: applied,
      force: request.options.force,
      manager: request.options.fieldManager,
      apiVersion: kind.apiVersion,
      schema: kind.schema,
      nowIso: timestamp(context.clock.nowMs()),
      resetFields: resetFields(request),
      versions: versionsOf(context, kind, kind.apiVersion),
      decode: (object: JsonObject) => decodeObject(kind, object, { validation: 'Ignore' }),
      ...(request.subresource === '' ? {} : { subresource: request.subresource }),
    };
    const object = large ? runSteps(applySteps({ ...configuration, large })) : applyServerSide(configuration);
    return object as KubeObject | Promise<KubeObject>;
  };
  for (let attempt = 1; ; attempt++) {
    try {
      const { object } = await updateObject(context, request, {
        strategy,
        owned: true,
        next: (current, large) => merged(current, large),
      });
      return { object, created: false };
    } catch (error) {
      if (!isApiError(error, 'NotFound') || request.subresource !== '' || !isAbout(error, request)) throw error;
    }
    await mayCreate();
    const uid = applied.metadata?.uid;
    if (uid !== undefined && uid !== '') {
      throw errors.conflict(
        kind,
        request.name,
        `uid mismatch: the provided object specified uid ${uid}, and no existing object was found`,
      );
    }
    const object = await merged(undefined, isLarge(request.bodyBytes));
    checkName(request, object);
    try {
      return { object: await createObject(context, request, object, true), created: true };
    } catch (error) {
      // Another request has created the object in the meantime: apply again as an update.
      if (!isApiError(error, 'AlreadyExists') || attempt >= 3) throw error;
    }
  }
}

/**
 * Rejects an apply to a custom resource with fields owned in a version that its definition does not have: the object
 * cannot be compared in that version. Clients repair such objects by replacing the managed fields.
 */
function checkOwnedVersions({ definition }: ServedKind, live: JsonObject | undefined): void {
  const { custom } = definition;
  if (custom === undefined) return;
  for (const { apiVersion } of (live as KubeObject | undefined)?.metadata?.managedFields ?? [])
    if (apiVersion !== undefined && !custom.apiVersions.has(apiVersion))
      throw new ApiError('Unknown', `request to convert CR to an invalid group/version: ${apiVersion}`);
}

/**
 * Reports whether the error means that the object of the request is missing, not an object that admission looked up.
 */
function isAbout(error: ApiError, request: WriteRequest): boolean {
  return error.details?.name === request.name && error.details.kind === request.kind.plural;
}

function resetFields(request: WriteRequest): readonly (readonly string[])[] {
  const { definition } = request.kind;
  if (request.subresource === 'status') return definition.statusResetFields ?? SPEC;
  return request.subresource === '' && definition.statusStrategy !== undefined ? [['status']] : [];
}

const SPEC = [['spec']];
