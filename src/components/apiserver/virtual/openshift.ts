/** Handlers of the virtual kinds of OpenShift's groups, by kind and group. */
import {
  localResourceAccessReview,
  localSubjectAccessReview,
  resourceAccessReview,
  selfSubjectRulesReview,
  subjectAccessReview,
  subjectRulesReview,
} from './openshift-reviews.ts';
import { requestProject } from './project-requests.ts';
import type { Handler } from './reviews.ts';

export const openshiftHandlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['LocalResourceAccessReview.authorization.openshift.io', localResourceAccessReview],
  ['LocalSubjectAccessReview.authorization.openshift.io', localSubjectAccessReview],
  ['ProjectRequest.project.openshift.io', requestProject],
  ['ResourceAccessReview.authorization.openshift.io', resourceAccessReview],
  ['SelfSubjectRulesReview.authorization.openshift.io', selfSubjectRulesReview],
  ['SubjectAccessReview.authorization.openshift.io', subjectAccessReview],
  ['SubjectRulesReview.authorization.openshift.io', subjectRulesReview],
]);
