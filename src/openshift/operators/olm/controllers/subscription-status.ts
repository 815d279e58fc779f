/** Status of a subscription. Source: operator-lifecycle-manager pkg/controller/operators/catalog. */
import { transitionTime } from '../../../../api/meta/conditions.ts';
import type {
  CatalogSource,
  InstallPlan,
  Subscription,
  SubscriptionCondition,
  SubscriptionStatus,
} from '../kinds/types.ts';

export interface SubscriptionView {
  readonly subscription: Subscription;
  readonly now: string;
  /** Name of the operator version that is installed; undefined if there is none. */
  readonly installed: string | undefined;
  readonly hasNewer: boolean;
  /** Name of the operator version that will be installed. */
  readonly chosen?: string;
  readonly plan?: InstallPlan;
  readonly failure?: { readonly reason: string; readonly message: string };
  /** Whether an install plan is in progress, so that the subscriptions of the namespace were not resolved. */
  readonly isBusy: boolean;
  readonly source: CatalogSource | undefined;
  readonly isHealthy: boolean;
}

/** Computes the status; undefined if it has not changed. */
export function subscriptionStatus(view: SubscriptionView): SubscriptionStatus | undefined {
  const { subscription, now, installed, chosen, plan } = view;
  const old = subscription.status ?? {};
  const status: SubscriptionStatus = {
    ...old,
    ...(chosen === undefined && installed !== undefined ? { currentCSV: installed } : {}),
    ...(chosen === undefined ? {} : { currentCSV: chosen }),
    ...(installed === undefined ? {} : { installedCSV: installed }),
    state: stateOf(view),
    ...(chosen === undefined || plan === undefined ? {} : referenceTo(plan)),
    ...healthOf(view),
    conditions: conditionsOf(view),
  };
  if (installed === undefined) delete status.installedCSV;
  if (installed === undefined && chosen === undefined && !view.isBusy) delete status.currentCSV;
  if (JSON.stringify({ ...status, lastUpdated: '' }) === JSON.stringify({ ...old, lastUpdated: '' })) return undefined;
  return { ...status, lastUpdated: now };
}

function stateOf({ subscription, installed, chosen, hasNewer, isBusy }: SubscriptionView): string {
  if (chosen !== undefined) return 'UpgradePending';
  if (isBusy) return subscription.status?.state ?? '';
  if (installed === undefined) return '';
  return hasNewer ? 'UpgradeAvailable' : 'AtLatestKnown';
}

function referenceTo({ metadata, spec }: InstallPlan): Partial<SubscriptionStatus> {
  const [name, uid] = [metadata?.name ?? '', metadata?.uid ?? ''];
  const [apiVersion, kind] = ['operators.coreos.com/v1alpha1', 'InstallPlan'];
  return {
    installplan: { apiVersion, kind, name, uuid: uid },
    installPlanRef: { apiVersion, kind, name, namespace: metadata?.namespace ?? '', uid },
    installPlanGeneration: spec?.generation ?? 0,
  };
}

function healthOf({ subscription, source, isHealthy, now }: SubscriptionView): Partial<SubscriptionStatus> {
  if (source === undefined) return {};
  const before = subscription.status?.catalogHealth?.[0];
  const { name = '', namespace = '', uid = '' } = source.metadata ?? {};
  if (before?.catalogSourceRef.uid === uid && before.healthy === isHealthy) return {};
  const catalogSourceRef = { apiVersion: 'operators.coreos.com/v1alpha1', kind: 'CatalogSource', name, namespace, uid };
  return { catalogHealth: [{ catalogSourceRef, healthy: isHealthy, lastUpdated: now }] };
}

function conditionsOf(view: SubscriptionView): SubscriptionCondition[] {
  const { subscription, plan, failure, source, isHealthy, isBusy } = view;
  const phase = plan?.status?.phase;
  const wanted: SubscriptionCondition[] = [
    isHealthy
      ? {
          type: 'CatalogSourcesUnhealthy',
          status: 'False',
          reason: 'AllCatalogSourcesHealthy',
          message: 'all available catalogsources are healthy',
        }
      : {
          type: 'CatalogSourcesUnhealthy',
          status: 'True',
          reason: source === undefined ? 'NoCatalogSourcesFound' : 'UnhealthyCatalogSourceFound',
          message:
            source === undefined ? 'dependency resolution requires at least one catalogsource' : unhealthy(source),
        },
  ];
  if (failure !== undefined)
    wanted.push({ type: 'ResolutionFailed', status: 'True', reason: failure.reason, message: failure.message });
  if (phase === 'RequiresApproval')
    wanted.push({ type: 'InstallPlanPending', status: 'True', reason: 'RequiresApproval' });
  else if (phase === 'Installing' || phase === 'Planning')
    wanted.push({ type: 'InstallPlanPending', status: 'True', reason: phase });
  else if (phase === 'Failed')
    wanted.push({
      type: 'InstallPlanFailed',
      status: 'True',
      reason: 'InstallComponentFailed',
      message:
        plan?.status?.message ?? plan?.status?.conditions?.find((each) => each.type === 'Installed')?.message ?? '',
    });
  else if (plan === undefined && subscription.status?.installPlanRef !== undefined && !isBusy)
    wanted.push({ type: 'InstallPlanMissing', status: 'True', reason: 'ReferencedInstallPlanNotFound' });
  return wanted.map((each) => {
    const before = subscription.status?.conditions?.find(({ type }) => type === each.type);
    const lastTransitionTime = transitionTime(before, each.status, view.now);
    return { ...each, lastTransitionTime };
  });
}

const unhealthy = ({ metadata, status }: CatalogSource): string =>
  `targeted catalogsource ${metadata?.namespace}/${metadata?.name} unhealthy: ${status?.message ?? 'not read yet'}`;
