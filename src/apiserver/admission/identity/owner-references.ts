/**
 * Requires permission for the effects of owner references. An owner reference lets the garbage collector delete the
 * dependent, so it requires `delete` on the dependent. A reference with blockOwnerDeletion delays the deletion of the
 * owner, so it requires `update` on the finalizers of the owner. Source: plugin/pkg/admission/gc.
 */

import type { ObjectMeta } from '../../../api/generated/meta/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import type { Authorization } from '../../authorization/index.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { Kinds, ServedKind } from '../../pipeline/kinds.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid } from '../subject.ts';

type OwnerReference = NonNullable<ObjectMeta['ownerReferences']>[number];

export function ownerReferences(authorization: Authorization, kinds: () => Kinds): AdmissionPlugin {
  return {
    name: 'OwnerReferencesPermissionEnforcement',
    validate(request) {
      if (request.object === undefined || request.subresource === 'status') return;
      const now = request.object.metadata?.ownerReferences ?? [];
      const before = request.old?.metadata?.ownerReferences ?? [];
      if (now.length === 0 && before.length === 0) return;
      if (semanticEqual(now, before)) return;
      const { kind } = request;
      const namespace = kind.definition.namespaced ? request.namespace : '';
      const removal = {
        verb: 'delete',
        group: kind.definition.group,
        resource: kind.plural,
        subresource: '',
        namespace,
        name: request.name,
      };
      // A create needs no delete permission: the creator could also have omitted the object.
      if (request.operation !== 'CREATE' && !authorization.allows(request.user, removal)) {
        throw forbid(request, "cannot set an ownerRef on a resource you can't delete");
      }
      const all = kinds().all;
      for (const owner of newlyBlocking(now, before)) checkBlocking(request, owner, namespace, all);
    },
  };

  function checkBlocking(
    request: AdmissionRequest,
    owner: OwnerReference,
    namespace: string,
    all: readonly ServedKind[],
  ): void {
    const served = all.find((kind) => kind.kind === owner.kind && kind.apiVersion === owner.apiVersion);
    if (served === undefined) {
      throw forbid(
        request,
        `cannot set blockOwnerDeletion in this case because cannot find RESTMapping for APIVersion ${owner.apiVersion} Kind ${owner.kind}`,
      );
    }
    const action = {
      verb: 'update',
      group: served.group,
      resource: served.plural,
      subresource: 'finalizers',
      namespace: served.definition.namespaced ? namespace : '',
      name: owner.name,
    };
    if (!authorization.allows(request.user, action)) {
      throw forbid(
        request,
        "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on",
      );
    }
  }
}

function newlyBlocking(now: readonly OwnerReference[], before: readonly OwnerReference[]): OwnerReference[] {
  const blocked = new Set(before.filter((each) => each.blockOwnerDeletion === true).map((each) => each.uid));
  return now.filter((each) => each.blockOwnerDeletion === true && !blocked.has(each.uid));
}
