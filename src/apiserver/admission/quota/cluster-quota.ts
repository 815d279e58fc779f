/**
 * ClusterResourceQuota: rejects writes that exceed the total of several projects. Usage is computed from the cache for
 * each request. Requests under such quotas run one after the other, so that each request sees the usage of the previous
 * request. Several API servers together may exceed a quota by the objects that they store at the same time. Source:
 * openshift/apiserver-library-go pkg/admission/quota/clusterresourcequota.
 */
import type { Namespace } from '../../../api/generated/core/v1.ts';
import type { ClusterResourceQuota } from '../../../api/kinds/cluster/clusterresourcequotas/index.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { ApiError } from '../../../api/meta/status.ts';
import { amountsOf } from '../../../api/quota/amounts.ts';
import { checkRequest, type QuotaState } from '../../../api/quota/check.ts';
import { asResourceQuota, clusterTotals, holdsFor } from '../../../api/quota/cluster.ts';
import { evaluatorOf, type GroupResource } from '../../../api/quota/evaluators.ts';
import type { Clock } from '../../../base/time/clock.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { CachedObject } from '../../watch-cache/cached-object.ts';
import type { KindCache } from '../../watch-cache/kind-cache.ts';
import type { WatchCache } from '../../watch-cache/watch-cache.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, forbidWithoutName } from '../subject.ts';

/** Maximum time that a request waits for the previous requests. */
const TIMEOUT_MS = 10_000;

export interface ClusterQuotaDeps {
  readonly cache: WatchCache;
  readonly clock: Clock;
  /** The cached objects of a kind; undefined if the kind is not served. */
  objectsOf(kind: GroupResource): KindCache | undefined;
}

export const QUOTA_PREFIX = 'openshift.io/clusterresourcequotas';

/** Cluster quotas that select a namespace. */
export function clusterQuotasOf(cache: WatchCache, namespace: string): readonly ClusterResourceQuota[] {
  const quotas = cache.kind(QUOTA_PREFIX);
  const stored = quotas.size === 0 ? undefined : cache.kind('namespaces').get('', namespace)?.shared<Namespace>();
  if (stored === undefined) return [];
  return [...quotas]
    .map((each: CachedObject) => each.shared<ClusterResourceQuota>() as ClusterResourceQuota)
    .filter((each) => holdsFor(each, stored as Namespace));
}

export function clusterResourceQuota(deps: ClusterQuotaDeps): AdmissionPlugin {
  const { cache, clock } = deps;
  /** Settles when the previous request has been stored or abandoned. */
  let last: Promise<void> = Promise.resolve();

  /**
   * Waits for the previous requests. Resolves with the function that ends the turn of this request. Throws an ApiError
   * if the turn does not begin within TIMEOUT_MS. A turn has no time limit, because the next request must see the usage
   * of an object whose write is slow.
   */
  async function turn(): Promise<() => void> {
    const before = last;
    const { promise: mine, resolve: release } = Promise.withResolvers<void>();
    last = before.then(() => mine);
    const isLate = await new Promise<boolean>((resolve) => {
      const timer = clock.setTimer(TIMEOUT_MS, () => resolve(true));
      void before.then(() => {
        timer.cancel();
        resolve(false);
      });
    });
    if (!isLate) return release;
    release();
    throw new ApiError('InternalError', 'Internal error occurred: resource quota evaluation timed out');
  }

  function stateOf(quota: ClusterResourceQuota, kind: GroupResource): QuotaState {
    const namespaces = [...cache.kind('namespaces')]
      .filter((each) => holdsFor(quota, each.shared<Namespace>() as Namespace))
      .map(({ name }) => name);
    const counted = deps.objectsOf(kind);
    const objects = (requested: GroupResource, namespace: string): readonly KubeObject[] | undefined =>
      requested.group === kind.group && requested.plural === kind.plural
        ? counted?.list(namespace).map((each) => each.shared<KubeObject>() as KubeObject)
        : undefined;
    const { total } = clusterTotals(quota, namespaces, objects, clock.nowMs());
    return { name: quota.metadata?.name ?? '', quota: asResourceQuota(quota), used: amountsOf(total?.used) };
  }

  async function settle(request: AdmissionRequest, object: KubeObject): Promise<void> {
    const { definition, plural } = request.kind;
    const kind = { group: definition.group, plural };
    const evaluator = evaluatorOf(kind);
    if (evaluator === undefined) return;
    const release = await turn();
    try {
      await cache.freshen();
      const states = clusterQuotasOf(cache, request.namespace).map((each) => stateOf(each, kind));
      const question = { evaluator, object, old: request.old, limited: [], nowMs: clock.nowMs() };
      const decision = checkRequest(states, question);
      if (decision.kind === 'refused')
        throw decision.plain === true
          ? forbidWithoutName(request, decision.message)
          : forbid(request, decision.message);
      const mustHold = decision.charges.size > 0 && !request.dryRun && request.reservations !== undefined;
      if (!mustHold) return release();
      request.reservations?.push({
        used: () => release(),
        refund: () => Promise.resolve(release()),
      });
    } catch (error) {
      release();
      if (error instanceof ApiError) throw error;
      throw new ApiError('InternalError', 'Internal error occurred: cluster resource quota evaluation failed');
    }
  }

  return {
    name: 'ClusterResourceQuota',
    validate(request) {
      const { object, old, operation, subresource, namespace } = request;
      const { definition, plural } = request.kind;
      if (object === undefined || namespace === '' || !definition.namespaced || definition.isComputed === true) return;
      if (clusterQuotasOf(cache, namespace).length === 0) return;
      const evaluator = evaluatorOf({ group: definition.group, plural });
      if (evaluator?.handles({ operation, subresource, object, old }) !== true) return;
      return settle(request, object);
    },
  };
}
