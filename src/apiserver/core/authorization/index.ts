/** RBAC, the node authorizer, escalation checks and the default policy. This folder performs no I/O. */
export { aggregatedRules } from './aggregation.ts';
export { SELF_PROVISIONERS } from './bootstrap/openshift.ts';
export {
  AUTOUPDATE_ANNOTATION,
  type BootstrapPolicy,
  bindingToCreate,
  bootstrapPolicy,
  reconcileBinding,
  reconcileRole,
  upstreamPolicy,
} from './bootstrap/policy.ts';
export { bindingEscalation, type EscalationContext, roleEscalation } from './escalation.ts';
export { createNodeAuthorizer, type NodeAuthorizer, nodeNameOf } from './node.ts';
export { createRbacAuthorizer, type EffectiveRules, type RbacAuthorizer } from './rbac.ts';
export { type Coverage, coversRules } from './rules.ts';
export {
  type Action,
  type Decision,
  describeDenial,
  type PathAction,
  type ResourceAction,
} from './types.ts';
