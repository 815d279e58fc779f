/** Kinds of OpenShift's API groups. They are served in both profiles. */

import { routes } from '../../network/router/kinds/routes/index.ts';
import { images } from '../../openshift/image-streams/kinds/images/index.ts';
import {
  imageSignatures,
  imageStreamImages,
  imageStreamImports,
  imageStreamMappings,
  imageStreams,
  imageStreamTags,
  imageTags,
} from '../../openshift/image-streams/kinds/imagestreams/index.ts';
import { machineConfigKinds } from '../../openshift/machine-config/kinds/machineconfigs/index.ts';
import { bareMetalHosts } from '../../openshift/machines/kinds/baremetalhosts/index.ts';
import { hostOffers } from '../../openshift/machines/kinds/hostoffers/index.ts';
import { machineHealthChecks } from '../../openshift/machines/kinds/machinehealthchecks/index.ts';
import { machines } from '../../openshift/machines/kinds/machines/index.ts';
import { machineSets } from '../../openshift/machines/kinds/machinesets/index.ts';
import { oauthKinds } from '../../openshift/oauth/kinds/oauth/index.ts';
import { userKinds } from '../../openshift/oauth/kinds/users/index.ts';
import { configKinds } from '../../openshift/operators/kinds/config/index.ts';
import { operatorKinds } from '../../openshift/operators/kinds/operator/index.ts';
import { olmKinds } from '../../openshift/operators/olm/kinds/index.ts';
import { projectRequests } from '../../openshift/projects/kinds/projectrequests/index.ts';
import { roleBindingRestrictions } from '../../openshift/projects/kinds/rolebindingrestrictions/index.ts';
import {
  podSecurityPolicyReviews,
  podSecurityPolicySelfSubjectReviews,
  podSecurityPolicySubjectReviews,
} from '../../openshift/security-context-constraints/kinds/podsecuritypolicyreviews/index.ts';
import { rangeAllocations } from '../../openshift/security-context-constraints/kinds/rangeallocations/index.ts';
import { securityContextConstraints } from '../../openshift/security-context-constraints/kinds/securitycontextconstraints/index.ts';
import { brokerTemplateInstances, templateInstances } from '../../openshift/templates/kinds/templateinstances/index.ts';
import { processedTemplates, templates } from '../../openshift/templates/kinds/templates/index.ts';
import { appliedClusterResourceQuotas, clusterResourceQuotas } from '../kinds/cluster/clusterresourcequotas/index.ts';
import { openshiftReviews } from '../kinds/identity/authorization/reviews.ts';
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
  // processedTemplates and templates have the same kind. Clients use the last one, which must be the stored one.
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
