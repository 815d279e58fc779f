/** Prevents RBAC privilege escalation on all write paths of roles and bindings. */

import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../../../api/generated/rbac/v1.ts';
import type { Authorization } from '../../authorization/index.ts';
import { bindingEscalation, roleEscalation } from '../../core/authorization/index.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid } from '../subject.ts';

const GROUP = 'rbac.authorization.k8s.io';

export function escalation(authorization: Authorization): AdmissionPlugin {
  const reason = (request: AdmissionRequest): string | undefined => {
    const context = {
      rbac: authorization.rbac,
      user: request.user,
      allows: (action: Parameters<Authorization['allows']>[1]) => authorization.allows(request.user, action),
    };
    switch (request.kind.plural) {
      case 'roles':
      case 'clusterroles':
        return roleEscalation(
          context,
          request.object as Role | ClusterRole,
          request.old as Role | ClusterRole | undefined,
        );
      case 'rolebindings':
      case 'clusterrolebindings':
        return bindingEscalation(
          context,
          request.object as RoleBinding | ClusterRoleBinding,
          request.old as RoleBinding | ClusterRoleBinding | undefined,
        );
      default:
        return undefined;
    }
  };
  return {
    name: 'RBACEscalation',
    validate(request) {
      if (request.kind.definition.group !== GROUP || request.object === undefined) return;
      const why = reason(request);
      if (why !== undefined) throw forbid(request, why);
    },
  };
}
