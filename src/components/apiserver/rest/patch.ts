/** PATCH in all four forms: what the client sends, laid over the object as it is, then the path of every update. */
import type { JsonObject, JsonValue, KubeObject } from '../../../api/meta/object.ts';
import { ApiError, errors } from '../../../api/meta/status.ts';
import type { WriteStrategy } from '../../../api/registry/definition.ts';
import { jsonPatch } from '../../../core/patch/json-patch.ts';
import { mergePatch } from '../../../core/patch/merge-patch.ts';
import { strategicMergePatch } from '../../../core/patch/strategic.ts';
import { decodeValue } from '../http/decode.ts';
import type { RestContext } from './context.ts';
import { type Updated, updateObject } from './update.ts';
import { decodeObject, shownText, type WriteRequest } from './write-request.ts';

export type PatchForm = 'json' | 'merge' | 'strategic' | 'apply';

const FORMS: Readonly<Record<string, PatchForm>> = {
  'application/json-patch+json': 'json',
  'application/merge-patch+json': 'merge',
  'application/strategic-merge-patch+json': 'strategic',
  'application/apply-patch+yaml': 'apply',
};

/** Throws 'UnsupportedMediaType'. */
export function patchForm(contentType: string | undefined): PatchForm {
  const type = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const form = Object.hasOwn(FORMS, type) ? FORMS[type] : undefined;
  if (form === undefined) throw unsupportedPatch(Object.keys(FORMS));
  return form;
}

/** Merge keys are known of built-in types only. */
const CUSTOM_FORMS = Object.keys(FORMS).filter((type) => FORMS[type] !== 'strategic');

function unsupportedPatch(accepted: readonly string[]): ApiError {
  return new ApiError(
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`,
  );
}

export function decodePatch(body: Buffer, form: PatchForm): JsonValue {
  return decodeValue(body, form === 'apply' ? 'yaml' : 'json');
}

/** Lays `patch` over the current object; the result is decoded as any body is. */
export function patchObject(
  context: RestContext,
  request: WriteRequest,
  form: Exclude<PatchForm, 'apply'>,
  patch: JsonValue,
  strategy: WriteStrategy<KubeObject>,
): Promise<Updated> {
  const { kind } = request;
  let warned = false;
  return updateObject(context, request, {
    strategy,
    next: (current) => {
      const patched = laid(form, current as unknown as JsonObject, patch, request);
      const warnings: string[] = [];
      const next = decodeObject(kind, patched, [], request.options.validation, warnings);
      // Tried again after a conflict, the same warnings come up again.
      if (!warned) request.warnings.push(...warnings);
      warned = true;
      checkName(request, next);
      return next;
    },
  });
}

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
      return mergePatch(current, patch);
    case 'strategic':
      if (request.kind.definition.custom !== undefined) throw unsupportedPatch(CUSTOM_FORMS);
      return strategicMergePatch(current, patch, request.kind.schema);
  }
}

/** A patch names its object by the URL; it may repeat the name, not change it. */
export function checkName(request: WriteRequest, object: KubeObject): void {
  const { name, namespace } = object.metadata ?? {};
  if (name !== undefined && name !== '' && name !== request.name) {
    throw errors.badRequest(
      `the name of the object (${shownText(name)}) does not match the name on the URL (${request.name})`,
    );
  }
  if (
    request.kind.definition.namespaced &&
    namespace !== undefined &&
    namespace !== '' &&
    namespace !== request.namespace
  ) {
    throw errors.badRequest(
      `the namespace of the object (${shownText(namespace)}) does not match the namespace on the request (${request.namespace})`,
    );
  }
}
