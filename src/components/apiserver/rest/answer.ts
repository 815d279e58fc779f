/** Answers that are not the object itself. */

import type { KubeObject } from '../../../api/meta/object.ts';
import type { Status } from '../../../api/meta/status.ts';
import type { ServedKind } from './kinds.ts';

export function success(details?: Status['details']): Status {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    ...(details === undefined ? {} : { details }),
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
