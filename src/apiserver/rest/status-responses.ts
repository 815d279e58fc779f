/** Responses that are a Status instead of an object. */

import type { KubeObject } from '../../api/meta/object.ts';
import type { Status } from '../../api/meta/status.ts';
import type { ServedKind } from '../pipeline/kinds.ts';

/** Status of a successful request. `code` is set where upstream reports a code, as for created subresources. */
export function success(details?: Status['details'], code?: number): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    ...(details === undefined ? {} : { details }),
    ...(code === undefined ? {} : { code }),
  };
}

export function deletedStatus(kind: ServedKind, object: KubeObject): Status {
  const { name, uid } = object.metadata ?? {};
  return success({
    ...(name === undefined ? {} : { name }),
    ...(kind.group === '' ? {} : { group: kind.group }),
    kind: kind.plural,
    ...(uid === undefined ? {} : { uid }),
  });
}
