/** Kinds of OpenShift's groups, served under both profiles. */
import {
  podSecurityPolicyReviews,
  podSecurityPolicySelfSubjectReviews,
  podSecurityPolicySubjectReviews,
} from '../kinds/podsecuritypolicyreviews/index.ts';
import { rangeAllocations } from '../kinds/rangeallocations/index.ts';
import { routes } from '../kinds/routes/index.ts';
import { securityContextConstraints } from '../kinds/securitycontextconstraints/index.ts';
import type { KindDefinition } from './definition.ts';

export const openshiftKinds: readonly KindDefinition[] = [
  routes,
  securityContextConstraints,
  rangeAllocations,
  podSecurityPolicyReviews,
  podSecurityPolicySelfSubjectReviews,
  podSecurityPolicySubjectReviews,
];
