/** Kinds of OpenShift's API groups. They are served in both profiles. */
import { openshiftReviews } from '../kinds/authorization/reviews.ts';
import { bareMetalHosts } from '../kinds/baremetalhosts/index.ts';
import { appliedClusterResourceQuotas, clusterResourceQuotas } from '../kinds/clusterresourcequotas/index.ts';
import { configKinds } from '../kinds/config/index.ts';
import { hostOffers } from '../kinds/hostoffers/index.ts';
import { images } from '../kinds/images/index.ts';
import {
  imageSignatures,
  imageStreamImages,
  imageStreamImports,
  imageStreamMappings,
  imageStreams,
  imageStreamTags,
  imageTags,
} from '../kinds/imagestreams/index.ts';
import { machineConfigKinds } from '../kinds/machineconfigs/index.ts';
import { machineHealthChecks } from '../kinds/machinehealthchecks/index.ts';
import { machines } from '../kinds/machines/index.ts';
import { machineSets } from '../kinds/machinesets/index.ts';
import { oauthKinds } from '../kinds/oauth/index.ts';
import { olmKinds } from '../kinds/olm/index.ts';
import { operatorKinds } from '../kinds/operator/index.ts';
import {
  podSecurityPolicyReviews,
  podSecurityPolicySelfSubjectReviews,
  podSecurityPolicySubjectReviews,
} from '../kinds/podsecuritypolicyreviews/index.ts';
import { projectRequests } from '../kinds/projectrequests/index.ts';
import { rangeAllocations } from '../kinds/rangeallocations/index.ts';
import { roleBindingRestrictions } from '../kinds/rolebindingrestrictions/index.ts';
import { routes } from '../kinds/routes/index.ts';
import { securityContextConstraints } from '../kinds/securitycontextconstraints/index.ts';
import { brokerTemplateInstances, templateInstances } from '../kinds/templateinstances/index.ts';
import { processedTemplates, templates } from '../kinds/templates/index.ts';
import { userKinds } from '../kinds/users/index.ts';
import type { KindDefinition } from './definition.ts';

export const openshiftKinds: readonly KindDefinition[] = [
  projectRequests,
  ...openshiftReviews,
  roleBindingRestrictions,
  routes,
  clusterResourceQuotas,
  appliedClusterResourceQuotas,
  ...configKinds,
  ...operatorKinds,
  securityContextConstraints,
  rangeAllocations,
  podSecurityPolicyReviews,
  podSecurityPolicySelfSubjectReviews,
  podSecurityPolicySubjectReviews,
  ...userKinds,
  ...oauthKinds,
  ...machineConfigKinds,
  // Two resources have the same kind. Clients use the last one, which must be the stored one.
  processedTemplates,
  templates,
  templateInstances,
  brokerTemplateInstances,
  images,
  imageStreams,
  imageStreamTags,
  imageTags,
  imageStreamImages,
  imageStreamImports,
  imageStreamMappings,
  imageSignatures,
  machines,
  machineSets,
  machineHealthChecks,
  bareMetalHosts,
  hostOffers,
  ...olmKinds,
];

/** In the profile okd the short name `ip` means InstallPlan, so IPAddress loses it. */
export function shortNamesOf(kind: KindDefinition, profile: 'kubernetes' | 'okd' | undefined): KindDefinition {
  return profile === 'okd' && kind.kind === 'IPAddress' ? { ...kind, shortNames: [] } : kind;
}
