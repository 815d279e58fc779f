/**
 * OpenShift's access reviews: whether a subject may perform an action, which subjects may, and which rules apply to a
 * subject. Source: openshift/openshift-apiserver pkg/authorization/apiserver/registry.
 */
import type { ReviewAction, RulesReview, SubjectReview } from '../../api/kinds/identity/authorization/reviews.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { errors } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { SCOPES } from '../authorization/scopes.ts';
import { type Action, PRIVILEGED_GROUP } from '../core/authorization/types.ts';
import type { ServerContext } from '../rest/context.ts';
import type { ReviewRequest } from './review-request.ts';

type OpenshiftReviewsContext = Pick<ServerContext, 'authorization' | 'cache'>;

const API_VERSION = 'authorization.openshift.io/v1';

function actionOf(review: ReviewAction, namespace: string): Action {
  if (review.isNonResourceURL === true) return { verb: review.verb ?? '', path: review.path ?? '' };
  const [resource = '', subresource = ''] = (review.resource ?? '').split('/');
  return {
    verb: review.verb ?? '',
    group: review.resourceAPIGroup ?? '',
    resource,
    subresource,
    namespace,
    name: review.resourceName ?? '',
  };
}

/** The subject of a review: the requesting user, if the review names no user and no groups. */
function subjectOf(
  { user = '', groups = [] }: { user?: string; groups?: readonly string[] },
  caller: UserInfo,
): UserInfo {
  return user === '' && groups.length === 0 ? caller : { name: user, groups };
}

/** The namespace of the request. Rejects a body that names another namespace. */
function namespaceOf({ namespace = '' }: ReviewAction, requested: string): string {
  if (namespace !== '' && namespace !== requested)
    throw errors.badRequest(`namespace: ${namespace} is not the namespace of the request; use ${requested} or omit it`);
  return requested;
}

/**
 * The subject with the scopes of the review. If the review has no scopes, a named subject has no scopes, and the
 * requesting user has the scopes of the request. An empty list removes all scopes.
 */
function withScopes(subject: UserInfo, { scopes }: SubjectReview): UserInfo {
  if (scopes === undefined || scopes === null) return subject;
  const { [SCOPES]: _own, ...extra } = subject.extra ?? {};
  return { ...subject, extra: scopes.length === 0 ? extra : { ...extra, [SCOPES]: scopes } };
}

async function isAllowed(context: OpenshiftReviewsContext, object: SubjectReview, user: UserInfo, namespace: string) {
  await context.cache.freshen();
  const subject = withScopes(subjectOf(object, user), object);
  const { allowed, reason, error } = await context.authorization.authorize(subject, actionOf(object, namespace));
  return {
    apiVersion: API_VERSION,
    kind: 'SubjectAccessReviewResponse',
    namespace,
    allowed,
    ...(reason === '' ? {} : { reason }),
    ...(error === undefined ? {} : { evaluationError: error }),
  } as KubeObject;
}

/** Every user may review their own access, as `oc login` does. Source: upstream's "personal" access reviews. */
export async function subjectAccessReview(
  context: OpenshiftReviewsContext,
  object: SubjectReview,
  { user }: ReviewRequest,
) {
  const { namespace = '' } = object;
  if (subjectOf(object, user) !== user) requireReviewer(context, user, namespace);
  return isAllowed(context, object, user, namespace);
}

/** Throws 'Forbidden' if the user may review other subjects neither in the cluster nor in this namespace. */
function requireReviewer({ authorization }: OpenshiftReviewsContext, user: UserInfo, namespace: string): void {
  const review = { verb: 'create', subresource: '', name: '' };
  const local = { ...review, group: 'authorization.openshift.io', resource: 'localsubjectaccessreviews', namespace };
  if (namespace !== '' && authorization.allows(user, local)) return;
  const everywhere = { ...review, group: 'authorization.k8s.io', resource: 'subjectaccessreviews', namespace: '' };
  authorization.require(user, everywhere);
}

export const localSubjectAccessReview = (
  context: OpenshiftReviewsContext,
  object: SubjectReview,
  { user, namespace }: ReviewRequest,
) => isAllowed(context, object, user, namespaceOf(object, namespace));

async function whoCan(context: OpenshiftReviewsContext, object: ReviewAction, namespace: string): Promise<KubeObject> {
  await context.cache.freshen();
  const { rbac, hasWebhook } = context.authorization;
  const { users, groups, errors: problems } = rbac.subjectsAllowed(actionOf(object, namespace));
  const unknown = hasWebhook ? [...problems, 'an authorization webhook may allow more'] : problems;
  return {
    apiVersion: API_VERSION,
    kind: 'ResourceAccessReviewResponse',
    namespace,
    users: [...users].sort(),
    groups: [...new Set([...groups, PRIVILEGED_GROUP])].sort(),
    // OpenShift's API has this spelling.
    evalutionError: unknown.join('; '),
  } as KubeObject;
}

export const resourceAccessReview = (context: OpenshiftReviewsContext, object: ReviewAction): Promise<KubeObject> =>
  whoCan(context, object, object.namespace ?? '');

export const localResourceAccessReview = (
  context: OpenshiftReviewsContext,
  object: ReviewAction,
  { namespace }: ReviewRequest,
) => whoCan(context, object, namespaceOf(object, namespace));

async function rulesOf(
  context: OpenshiftReviewsContext,
  review: RulesReview,
  user: UserInfo,
  namespace: string,
): Promise<KubeObject> {
  await context.cache.freshen();
  const { resourceRules, nonResourceRules, errors: problems } = context.authorization.rbac.rulesFor(user, namespace);
  const all = user.groups.includes(PRIVILEGED_GROUP)
    ? [
        { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
        { verbs: ['*'], nonResourceURLs: ['*'] },
      ]
    : [];
  const rules = [...all, ...resourceRules, ...nonResourceRules].map((rule) => ({
    ...rule,
    apiGroups: 'apiGroups' in rule ? rule.apiGroups : [],
    resources: 'resources' in rule ? rule.resources : [],
  }));
  const status = { rules, ...(problems.length === 0 ? {} : { evaluationError: problems.join(', ') }) };
  return { ...review, status } as KubeObject;
}

export const selfSubjectRulesReview = (
  context: OpenshiftReviewsContext,
  object: RulesReview,
  { user, namespace }: ReviewRequest,
) => rulesOf(context, object, user, namespace);

export const subjectRulesReview = (
  context: OpenshiftReviewsContext,
  object: RulesReview,
  { namespace }: ReviewRequest,
) => rulesOf(context, object, { name: object.spec?.user ?? '', groups: object.spec?.groups ?? [] }, namespace);
