/**
 * Reviews of pods against security context constraints, in both profiles. Source: openshift/openshift-apiserver
 * pkg/security/apiserver/registry.
 */
import type { Pod, PodTemplateSpec } from '../../api/generated/core/v1.ts';
import type { KubeObject } from '../../api/meta/object.ts';
import { errors } from '../../api/meta/status.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import type {
  PodSecurityPolicyReview,
  PodSecurityPolicySelfSubjectReview,
  PodSecurityPolicySubjectReview,
  SubjectReviewStatus,
} from '../../openshift/security-context-constraints/kinds/podsecuritypolicyreviews/index.ts';
import { reviewPod, serviceAccountUser } from '../admission/pods/constraint-review.ts';
import { constraintSources } from '../admission/pods/constraint-sources.ts';
import type { ServerContext } from '../rest/context.ts';
import type { ReviewRequest } from './review-request.ts';

type PodReviewsContext = Pick<ServerContext, 'authorization' | 'cache' | 'clock'>;

const DEFAULT_ACCOUNT = 'default';
const REFUSED = 'CantAssignSecurityContextConstraintProvider';

export async function podSubjectReview(
  context: PodReviewsContext,
  object: KubeObject,
  { namespace }: ReviewRequest,
): Promise<KubeObject> {
  const review = object as PodSecurityPolicySubjectReview;
  const { template = {}, user = '', groups = [] } = review.spec ?? {};
  const users = user === '' && groups.length === 0 ? [] : [{ name: user, groups }];
  const status = await reviewed(context, namespace, template, [...users, ...accountOf(template, namespace)]);
  return { ...review, status } as KubeObject;
}

export async function podSelfSubjectReview(
  context: PodReviewsContext,
  object: KubeObject,
  { namespace, user }: ReviewRequest,
): Promise<KubeObject> {
  const review = object as PodSecurityPolicySelfSubjectReview;
  const template = review.spec?.template ?? {};
  const status = await reviewed(context, namespace, template, [user, ...accountOf(template, namespace)]);
  return { ...review, status } as KubeObject;
}

export async function podReview(
  context: PodReviewsContext,
  object: KubeObject,
  question: ReviewRequest,
): Promise<KubeObject> {
  const review = object as PodSecurityPolicyReview;
  const { namespace } = question;
  const { template = {}, serviceAccountNames = [] } = review.spec ?? {};
  const names =
    serviceAccountNames.length > 0 ? serviceAccountNames : [template.spec?.serviceAccountName || DEFAULT_ACCOUNT];
  const accounts = context.cache.kind('serviceaccounts');
  const missing = names.find((name) => accounts.get(namespace, name) === undefined);
  if (missing !== undefined)
    throw errors.badRequest(
      `unable to retrieve ServiceAccount ${missing}: serviceaccount ${JSON.stringify(missing)} not found`,
    );
  const allowedServiceAccounts: object[] = [];
  for (const name of new Set(names)) {
    const status = await reviewed(context, namespace, template, [serviceAccountUser(namespace, name)]);
    if (status.allowedBy !== undefined) allowedServiceAccounts.push({ name, ...status });
  }
  return { ...review, status: { allowedServiceAccounts } } as KubeObject;
}

function accountOf({ spec }: PodTemplateSpec, namespace: string): UserInfo[] {
  const name = spec?.serviceAccountName ?? '';
  return name === '' ? [] : [serviceAccountUser(namespace, name)];
}

async function reviewed(
  context: PodReviewsContext,
  namespace: string,
  template: PodTemplateSpec,
  subjects: readonly UserInfo[],
): Promise<SubjectReviewStatus> {
  const pod: Pod = {
    metadata: { ...template.metadata },
    ...(template.spec === undefined ? {} : { spec: template.spec }),
  };
  const sources = constraintSources(context.cache, context.authorization, context.clock);
  const decision = await reviewPod(sources, { pod, namespace, subjects, scope: 'pod' });
  if (decision === undefined || !('name' in decision)) return { reason: REFUSED };
  return {
    allowedBy: {
      apiVersion: 'security.openshift.io/v1',
      kind: 'SecurityContextConstraints',
      name: decision.name,
    },
    template: { ...template, ...(decision.pod.spec === undefined ? {} : { spec: decision.pod.spec }) },
  };
}
