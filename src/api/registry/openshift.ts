/** Kinds of OpenShift's groups, served under both profiles. */
import { openshiftReviews } from '../kinds/authorization/reviews.ts';
import { appliedClusterResourceQuotas, clusterResourceQuotas } from '../kinds/clusterresourcequotas/index.ts';
import { configKinds } from '../kinds/config/index.ts';
import { projectRequests } from '../kinds/projectrequests/index.ts';
import { roleBindingRestrictions } from '../kinds/rolebindingrestrictions/index.ts';
import { routes } from '../kinds/routes/index.ts';
import type { KindDefinition } from './definition.ts';

export const openshiftKinds: readonly KindDefinition[] = [
  projectRequests,
  ...openshiftReviews,
  roleBindingRestrictions,
  routes,
  clusterResourceQuotas,
  appliedClusterResourceQuotas,
  ...configKinds,
];
