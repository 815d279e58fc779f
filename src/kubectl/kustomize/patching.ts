/** Patches of objects without a server. Strategic merge uses the merge keys of the built-in kinds. */
import type { JsonObject } from '../../api/meta/object.ts';
import { schemaOf } from '../../api/schema/index.ts';
import { jsonPatch, mergePatch, reasonOf, strategicMergePatch } from '../../apiserver/core/patch/index.ts';
import { ClientError } from '../core/errors.ts';
import type { AnyObject } from '../core/objects.ts';

/** Applies a patch of the type `strategic`, `merge` or `json`. Throws ClientError for a patch that does not fit. */
export function patchText(object: AnyObject, patch: object, type: string): AnyObject {
  const [document, change] = [object as JsonObject, patch as JsonObject];
  try {
    if (type === 'json') return jsonPatch(document, change);
    if (type === 'merge') return mergePatch(document, change);
    const [group, version] = (object.apiVersion ?? '').includes('/')
      ? (object.apiVersion ?? '').split('/')
      : ['', object.apiVersion];
    const schema = schemaOf({ group: group ?? '', version: version ?? '', kind: object.kind ?? '' });
    // A kind without a schema gets a merge patch (RFC 7386).
    return schema === undefined ? mergePatch(document, change) : strategicMergePatch(document, change, schema);
  } catch (error) {
    throw new ClientError(reasonOf(error));
  }
}
