/** Handlers of OpenShift's computed kinds, by kind and group. */
import { createLoginObjects } from '../server/login-objects.ts';
import { offerHost } from './host-offers.ts';
import { mapIdentity } from './identity-mappings.ts';
import {
  localResourceAccessReview,
  localSubjectAccessReview,
  resourceAccessReview,
  selfSubjectRulesReview,
  subjectAccessReview,
  subjectRulesReview,
} from './openshift-reviews.ts';
import { podReview, podSelfSubjectReview, podSubjectReview } from './pod-reviews.ts';
import { requestProject } from './project-requests.ts';
import type { Handler } from './review-request.ts';

export const openshiftHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['LocalResourceAccessReview.authorization.openshift.io', localResourceAccessReview],
  ['LocalSubjectAccessReview.authorization.openshift.io', localSubjectAccessReview],
  ['PodSecurityPolicyReview.security.openshift.io', podReview],
  ['PodSecurityPolicySelfSubjectReview.security.openshift.io', podSelfSubjectReview],
  ['PodSecurityPolicySubjectReview.security.openshift.io', podSubjectReview],
  ['ProjectRequest.project.openshift.io', requestProject],
  ['ResourceAccessReview.authorization.openshift.io', resourceAccessReview],
  ['SelfSubjectRulesReview.authorization.openshift.io', selfSubjectRulesReview],
  ['SubjectAccessReview.authorization.openshift.io', subjectAccessReview],
  ['SubjectRulesReview.authorization.openshift.io', subjectRulesReview],
  ['HostOffer.machine.hyperedge.dev', offerHost],
  ['UserIdentityMapping.user.openshift.io', (context, object) => mapIdentity(createLoginObjects(context), object)],
]);
