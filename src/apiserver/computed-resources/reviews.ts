/** Kubernetes' computed kinds, which are never stored: a create returns the object with its status. */

import type { TokenReview } from '../../api/generated/authentication/v1.ts';
import type {
  LocalSubjectAccessReview,
  SelfSubjectAccessReview,
  SelfSubjectRulesReview,
  SubjectAccessReview,
  SubjectAccessReviewSpec,
} from '../../api/generated/authorization/v1.ts';
import type { SelectingAttributes } from '../../api/kinds/identity/reviews/selectors.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { errors } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { timestamp } from '../../base/time/timestamps.ts';
import type { Action } from '../core/authorization/types.ts';
import type { ServedKind } from '../pipeline/kinds.ts';
import type { ServerContext } from '../rest/context.ts';
import { openshiftHandlers } from './openshift.ts';
import type { Handler, ReviewRequest } from './review-request.ts';
import { selectorTerms } from './review-selectors.ts';

type ReviewsContext = Pick<ServerContext, 'authenticator' | 'authorization' | 'cache' | 'clock'>;

const toUserInfo = (user: UserInfo) => ({
  username: user.name,
  ...(user.uid === undefined ? {} : { uid: user.uid }),
  groups: [...user.groups],
  ...(user.extra === undefined || Object.keys(user.extra).length === 0
    ? {}
    : { extra: Object.fromEntries(Object.entries(user.extra).map(([key, values]) => [key, [...values]])) }),
});

async function tokenReview(context: ReviewsContext, object: KubeObject): Promise<KubeObject> {
  const review = object as TokenReview;
  const token = review.spec?.token ?? '';
  if (token === '') throw errors.badRequest('token is required for TokenReview in authentication');
  await context.cache.freshen();
  const audiences = (review.spec.audiences ?? []).length === 0 ? undefined : review.spec.audiences;
  const identity = await context.authenticator.authenticateToken(token, audiences);
  return {
    ...review,
    status:
      identity === undefined
        ? { user: {}, error: '[invalid bearer token, service account token is not valid]' }
        : {
            authenticated: true,
            user: toUserInfo(identity.user),
            audiences: [...identity.audiences],
          },
  } as KubeObject;
}

type Attributes = Pick<SubjectAccessReviewSpec, 'resourceAttributes' | 'nonResourceAttributes'>;

interface RequestedAttributes {
  readonly action: Action;
  /** Parts of the review that cannot be evaluated. */
  readonly problems: readonly string[];
}

/** User and action of a validated review. */
function requestedAttributes({ spec = {} }: { spec?: Attributes }): RequestedAttributes {
  const { nonResourceAttributes: path } = spec;
  const resource = spec.resourceAttributes as SelectingAttributes | undefined;
  if (path !== undefined) return { action: { verb: path.verb ?? '', path: path.path ?? '' }, problems: [] };
  const { problems, ...selectors } = selectorTerms(resource ?? {});
  const version = resource?.version ?? '';
  const action = {
    verb: resource?.verb ?? '',
    group: resource?.group ?? '',
    ...(version === '' ? {} : { version }),
    resource: resource?.resource ?? '',
    subresource: resource?.subresource ?? '',
    namespace: resource?.namespace ?? '',
    name: resource?.name ?? '',
    ...selectors,
  };
  return { action, problems };
}

async function decided(
  context: ReviewsContext,
  user: UserInfo,
  { action, problems }: RequestedAttributes,
): Promise<object> {
  const { allowed, denied, reason, error } = await context.authorization.authorize(user, action);
  const evaluationError = [...(error === undefined ? [] : [error]), ...problems].join('; ');
  return {
    allowed,
    ...(denied === true ? { denied } : {}),
    ...(reason === '' ? {} : { reason }),
    ...(evaluationError === '' ? {} : { evaluationError }),
  };
}

function subjectOf(spec: SubjectAccessReviewSpec): UserInfo {
  const { groups = [] } = spec;
  return {
    name: spec.user ?? '',
    groups,
    ...(spec.uid === undefined ? {} : { uid: spec.uid }),
    ...(spec.extra === undefined ? {} : { extra: spec.extra }),
  };
}

async function subjectAccessReview(context: ReviewsContext, object: KubeObject): Promise<KubeObject> {
  const review = object as SubjectAccessReview;
  const user = subjectOf(review.spec);
  const attributes = requestedAttributes(review);
  await context.cache.freshen();
  return { ...review, status: await decided(context, user, attributes) } as KubeObject;
}

async function localSubjectAccessReview(context: ReviewsContext, object: KubeObject): Promise<KubeObject> {
  const review = object as LocalSubjectAccessReview;
  const user = subjectOf(review.spec);
  const attributes = requestedAttributes(review);
  await context.cache.freshen();
  return { ...review, status: await decided(context, user, attributes) } as KubeObject;
}

async function selfSubjectAccessReview(
  context: ReviewsContext,
  object: KubeObject,
  question: ReviewRequest,
): Promise<KubeObject> {
  const review = object as SelfSubjectAccessReview;
  const attributes = requestedAttributes(review);
  await context.cache.freshen();
  return { ...review, status: await decided(context, question.user, attributes) } as KubeObject;
}

async function selfSubjectRulesReview(
  context: ReviewsContext,
  object: KubeObject,
  question: ReviewRequest,
): Promise<KubeObject> {
  const review = object as SelfSubjectRulesReview;
  const namespace = review.spec?.namespace ?? '';
  if (namespace === '') throw errors.badRequest('no namespace on request');
  await context.cache.freshen();
  const {
    resourceRules,
    nonResourceRules,
    errors: problems,
  } = context.authorization.rbac.rulesFor(question.user, namespace);
  const all = question.user.groups.includes('system:masters');
  return {
    ...review,
    status: {
      resourceRules: all ? [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }, ...resourceRules] : resourceRules,
      nonResourceRules: all ? [{ verbs: ['*'], nonResourceURLs: ['*'] }, ...nonResourceRules] : nonResourceRules,
      // The rules of an authorization webhook cannot be listed.
      incomplete: problems.length > 0 || context.authorization.hasWebhook,
      ...(problems.length > 0 ? { evaluationError: problems.join(', ') } : {}),
    },
  } as KubeObject;
}

function selfSubjectReview(context: ReviewsContext, object: KubeObject, question: ReviewRequest): KubeObject {
  return {
    ...object,
    metadata: { ...object.metadata, creationTimestamp: timestamp(context.clock.nowMs()) },
    status: { userInfo: toUserInfo(question.user) },
  } as KubeObject;
}

const HANDLERS: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['TokenReview', tokenReview],
  ['SubjectAccessReview', subjectAccessReview],
  ['LocalSubjectAccessReview', localSubjectAccessReview],
  ['SelfSubjectAccessReview', selfSubjectAccessReview],
  ['SelfSubjectRulesReview', selfSubjectRulesReview],
  ['SelfSubjectReview', selfSubjectReview],
]);

/**
 * Handler of a computed kind. OpenShift's kinds are found first, because some have the same name as Kubernetes' kinds.
 */
export function computedHandler({ group, kind }: Pick<ServedKind, 'group' | 'kind'>): Handler | undefined {
  return openshiftHandlers.get(`${kind}.${group}`) ?? HANDLERS.get(kind);
}
