/** PATCH in all four formats: the patch is applied to the current object, and the result is written as an update. */

import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import type { JsonObject, JsonValue, KubeObject } from '../../../api/meta/object.ts';
import { ApiError, errors } from '../../../api/meta/status.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';
import { goText } from '../../../base/text/go-text.ts';
import { jsonPatch } from '../../core/patch/json-patch.ts';
import { mergeInto } from '../../core/patch/merge-patch.ts';
import { strategicMergeInto } from '../../core/patch/strategic.ts';
import { decodeValue } from '../../http/decode.ts';
import { decodeObject, StrictError, shownText, WrongType } from '../../pipeline/decode-object.ts';
import type { WriteRequest } from '../../pipeline/write-request.ts';
import { yieldEventLoop } from '../../server/event-loop.ts';
import type { WriteContext } from '../context.ts';
import { checkVersion, type Updated, updateObject } from './update.ts';

export type PatchForm = 'json' | 'merge' | 'strategic' | 'apply';

const FORMS: Readonly<Record<string, PatchForm>> = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
};

/** Format of a patch. `custom`: a custom resource, which has no strategic merge keys. Throws 'UnsupportedMediaType'. */
export function patchForm(
  contentType: string | undefined,
  { custom = false }: { readonly custom?: boolean } = {},
): PatchForm {
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const form = Object.hasOwn(FORMS, type) ? FORMS[type] : undefined;
  if (form === undefined || (custom && form === 'strategic')) {
    // For built-in kinds, the error is that of upstream's router, which rejects the media type. Source:
    // emicklei/go-restful, jsr311.go.
    throw custom
      ? unsupportedPatch(CUSTOM_FORMS)
      : new ApiError('UnsupportedMediaType', '415: Unsupported Media Type', {});
  }
  return form;
}

const CUSTOM_FORMS = Object.keys(FORMS).filter((type) => FORMS[type] !== 'strategic');

function unsupportedPatch(accepted: readonly string[]): ApiError {
  return new ApiError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );
}

export function decodePatch(body: Buffer, form: PatchForm): JsonValue {
  try {
    return decodeValue(body, form === 'apply' ? 'yaml' : 'json');
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== 'BadRequest' || form === 'strategic') throw error;
    throw errors.badRequest(`error decoding ${form === 'apply' ? 'YAML' : 'patch'}: ${error.message}`);
  }
}

export interface ObjectPatch {
  readonly form: Exclude<PatchForm, 'apply'>;
  readonly patch: JsonValue;
  readonly strategy: WriteStrategy<KubeObject>;
  /** Fields that the patch contains more than once. */
  readonly duplicates: readonly string[];
}

/** Applies a patch to the current object. The result is decoded like any request body. */
export function patchObject(
  context: WriteContext,
  request: WriteRequest,
  { form, patch, strategy, duplicates }: ObjectPatch,
): Promise<Updated> {
  const { kind } = request;
  let warned = false;
  return updateObject(context, request, {
    strategy,
    next: (current, large) => {
      const patched = laid(form, current, patch, request);
      const decoded = (): KubeObject => {
        const warnings: string[] = [];
        if (kind.definition.custom !== undefined) checkNamesItself(request, patched);
        const next = decodePatched(form, patch, () =>
          decodeObject(kind, patched, { validation: request.options.validation, warnings, duplicates }),
        );
        // A retry after a conflict must not add the same warnings again.
        if (!warned) request.warnings.push(...warnings);
        warned = true;
        checkName(request, next);
        checkVersion(request, next);
        return next;
      };
      return large ? yieldEventLoop().then(decoded) : decoded();
    },
  });
}

/**
 * Rejects a patch that removes or changes the kind of a custom resource. Source:
 * k8s.io/apimachinery/pkg/runtime/serializer/json and apiextensions-apiserver's decoder.
 */
function checkNamesItself({ kind }: WriteRequest, patched: JsonObject): void {
  const { apiVersion, kind: named } = patched;
  if (named === undefined || named === '') {
    const shown = shownText(patched);
    throw invalid({ group: '', kind: '' }, '', [
      fieldError.invalid('patch', shown, `Object 'Kind' is missing in '${shown}'`),
    ]);
  }
  if (typeof apiVersion !== 'string' || apiVersion === kind.apiVersion) return;
  const slash = apiVersion.indexOf('/');
  const group = shownText(apiVersion.slice(0, Math.max(0, slash)));
  const { name = '' } = (patched as KubeObject).metadata ?? {};
  throw invalid({ group, kind: shownText(named) }, shownText(name), [
    fieldError.invalid('apiVersion', shownText(apiVersion), `must be ${kind.apiVersion}`),
  ]);
}

/**
 * Decodes the patched object. A result that does not fit the kind is an error of the patch, with code 422. Source:
 * k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
 */
export function decodePatched<T>(form: PatchForm, patch: JsonValue, decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof WrongType || error instanceof StrictError)) throw error;
    const problem = !(error instanceof WrongType)
      ? error.message
      : form === 'strategic'
        ? error.conversion
        : error.decoding;
    // As upstream, the error shows the whole object here, unless the patch is a strategic merge patch.
    const shown = form === 'strategic' ? goText(patch) : JSON.stringify(patch);
    throw invalid({ group: '', kind: '' }, '', [fieldError.invalid('patch', shownText(shown), problem)]);
  }
}

/** Applies a patch. May change `current`. */
function laid(
  form: Exclude<PatchForm, 'apply'>,
  current: JsonObject,
  patch: JsonValue,
  request: WriteRequest,
): JsonObject {
  switch (form) {
    case 'json':
      return jsonPatch(current, patch);
    case 'merge':
      return mergeInto(current, patch);
    case 'strategic':
      return ofSameKind(current, (before) => strategicMergeInto(before, patch, request.kind.schema));
  }
}

/** Restores apiVersion and kind after a strategic merge patch: upstream ignores both fields of the patch. */
export function ofSameKind(current: JsonObject, change: (current: JsonObject) => JsonObject): JsonObject {
  const { apiVersion, kind } = current;
  const changed = change(current);
  if (apiVersion !== undefined && typeof changed['apiVersion'] === 'string') changed['apiVersion'] = apiVersion;
  if (kind !== undefined && typeof changed['kind'] === 'string') changed['kind'] = kind;
  return changed;
}

/**
 * Rejects an object whose name or namespace differs from the URL. Source: k8s.io/apiserver/pkg/endpoints/handlers
 * checkName.
 */
export function checkName(request: WriteRequest, object: KubeObject): void {
  const { name, namespace } = object.metadata ?? {};
  if (
    request.kind.definition.namespaced &&
    namespace !== undefined &&
    namespace !== '' &&
    namespace !== request.namespace
  ) {
    throw errors.badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  if (name === undefined || name === '') {
    throw errors.badRequest(
      `the name of the object (${request.name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (name !== request.name) {
    throw errors.badRequest(
      `the name of the object (${shownText(name)}) does not match the name on the URL (${request.name})`,
    );
  }
}
