/**
 * Evaluates pods against the security context constraints of the cluster, with the permissions of their subjects. Used
 * by admission and by the reviews of security.openshift.io.
 */
import type { Pod } from '../../../api/generated/core/v1.ts';
import { UID_RANGE } from '../../../api/kinds/cluster/namespaces/security.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { Clock } from '../../../base/time/clock.ts';
import {
  type AdmissionDecision,
  admitPod,
  type Scope,
} from '../../../openshift/security-context-constraints/core/admit.ts';
import {
  type NamespaceValues,
  needsNamespace,
} from '../../../openshift/security-context-constraints/core/namespace-values.ts';
import { inOrder } from '../../../openshift/security-context-constraints/core/order.ts';
import type { SecurityContextConstraints } from '../../../openshift/security-context-constraints/kinds/securitycontextconstraints/types.ts';
import type { Action, Decision } from '../../core/authorization/types.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';

const GROUP = 'security.openshift.io';
const RESOURCE = 'securitycontextconstraints';
/** How long, and at which interval, a pod waits for the UID range of its new namespace. */
const WAIT_MS = 10_000;
const INTERVAL_MS = 50;

export interface ConstraintSources {
  constraints(): readonly CachedObject[];
  /** Namespace from the watch cache. */
  namespace(name: string): CachedObject | undefined;
  readonly access: { authorize(user: UserInfo, action: Action): Decision | Promise<Decision> };
  readonly clock: Pick<Clock, 'monotonicMs' | 'setTimer'>;
}

export interface PodReview {
  readonly pod: Pod;
  readonly namespace: string;
  /** The requester and the pod's service account. A constraint applies if at least one subject may use it. */
  readonly subjects: readonly UserInfo[];
  readonly scope: Scope;
  /** Name of the constraint that is tried first. */
  readonly hint?: string;
  readonly deadlineMs?: number | undefined;
}

/** Evaluates the pod. Undefined if the cluster has no constraints. */
export async function reviewPod(sources: ConstraintSources, review: PodReview): Promise<AdmissionDecision | undefined> {
  const all = inOrder(sources.constraints().map((each) => each.shared<SecurityContextConstraints>()));
  if (all.length === 0) return undefined;
  const trial = admitPod(review.pod, all, review.scope, review.hint);
  let step = trial.next();
  while (step.done !== true) {
    const scc = step.value;
    const isUsable = await mayUse(sources, scc, review);
    step = trial.next(isUsable ? await namespaceValues(sources, review, needsNamespace(scc)) : undefined);
  }
  return step.value;
}

export function serviceAccountUser(namespace: string, name: string): UserInfo {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  };
}

async function mayUse(
  { access }: ConstraintSources,
  scc: SecurityContextConstraints,
  { subjects, namespace }: PodReview,
): Promise<boolean> {
  const name = scc.metadata?.name ?? '';
  const { users = [], groups = [] } = scc;
  if (subjects.some((user) => users.includes(user.name) || user.groups.some((each) => groups.includes(each))))
    return true;
  const action: Action = { verb: 'use', group: GROUP, resource: RESOURCE, subresource: '', namespace, name };
  for (const user of subjects) if ((await access.authorize(user, action)).allowed) return true;
  return false;
}

/**
 * Values for the constraints from the annotations of the namespace. With `waits`, waits for the UID range, which a
 * controller assigns shortly after the namespace was created.
 */
async function namespaceValues(
  { namespace, clock }: ConstraintSources,
  review: PodReview,
  waits: boolean,
): Promise<NamespaceValues> {
  const endMs = Math.min(clock.monotonicMs() + WAIT_MS, review.deadlineMs ?? Number.POSITIVE_INFINITY);
  for (;;) {
    const annotations = namespace(review.namespace)?.shared().metadata?.annotations ?? {};
    if (!waits || annotations[UID_RANGE] !== undefined || clock.monotonicMs() >= endMs)
      return { name: review.namespace, annotations };
    await new Promise<void>((resolve) => {
      clock.setTimer(INTERVAL_MS, resolve);
    });
  }
}
