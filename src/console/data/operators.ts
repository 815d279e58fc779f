/** States of catalogs, subscriptions, install plans, installed operators and configuration pools, in words. */
import { countText } from '../../base/text/count-text.ts';
import { type AnyObject, conditionOf, conditionsOf, fieldAt, numberAt, textAt } from './api/resources.ts';

export interface StateText {
  readonly level: 'good' | 'warn' | 'bad' | 'muted';
  readonly text: string;
}

const state = (level: StateText['level'], text: string): StateText => ({ level, text });
const withMessage = (text: string, message: string): string => (message === '' ? text : `${text}: ${message}`);

export function catalogState(catalog: AnyObject): StateText {
  const observed = textAt(catalog, 'status', 'connectionState', 'lastObservedState');
  if (observed === 'READY') return state('good', 'ready');
  const message = textAt(catalog, 'status', 'message');
  if (message === '') return state('warn', observed === '' ? 'not checked yet' : observed);
  return state('bad', withMessage('not usable', message));
}

/** Problems of a subscription, most specific first: a plan that failed, no solution, an unusable catalog. */
const SUBSCRIPTION_PROBLEMS = [
  ['InstallPlanFailed', 'the installation failed'],
  ['BundleUnpackFailed', 'the bundle cannot be unpacked'],
  ['ResolutionFailed', 'no version can be installed'],
  ['CatalogSourcesUnhealthy', 'its catalog cannot be used'],
] as const;

export function subscriptionState(subscription: AnyObject): StateText {
  for (const [type, text] of SUBSCRIPTION_PROBLEMS) {
    const condition = conditionOf(subscription, type);
    if (condition?.status === 'True') return state('bad', withMessage(text, condition.message));
  }
  const installed = textAt(subscription, 'status', 'installedCSV');
  switch (textAt(subscription, 'status', 'state')) {
    case 'AtLatestKnown':
      return state('good', 'newest version installed');
    case 'UpgradePending':
      return isWaiting(subscription)
        ? state('warn', 'waits for the approval of its install plan')
        : state('warn', installed === '' ? 'is being installed' : 'is being updated');
    case 'UpgradeAvailable':
      return state('warn', 'an update is available');
    default:
      return state('muted', 'not resolved yet');
  }
}

const isWaiting = (subscription: AnyObject): boolean => {
  const pending = conditionOf(subscription, 'InstallPlanPending');
  return pending?.status === 'True' && pending.reason === 'RequiresApproval';
};

export function planState(plan: AnyObject): StateText {
  const phase = textAt(plan, 'status', 'phase');
  switch (phase) {
    case 'Complete':
      return state('good', 'complete');
    case 'RequiresApproval':
      return state('warn', 'waits for approval');
    case 'Failed':
      return state('bad', withMessage('failed', textAt(plan, 'status', 'message') || failureOf(plan)));
    default:
      return state('warn', phase === '' ? 'not started yet' : phase.toLowerCase());
  }
}

const failureOf = (plan: AnyObject): string =>
  conditionsOf(plan).find(({ status, message }) => status === 'False' && message !== '')?.message ?? '';

/** State of an installed operator, a ClusterServiceVersion. */
export function installedState(version: AnyObject): StateText {
  const phase = textAt(version, 'status', 'phase');
  const message = textAt(version, 'status', 'message');
  if (phase === 'Succeeded') return state('good', 'installed');
  if (phase === 'Failed') return state('bad', withMessage('failed', message));
  return state('warn', withMessage(phase === '' ? 'not started yet' : phase.toLowerCase(), message));
}

export function poolState(pool: AnyObject): StateText {
  const degraded = ['Degraded', 'RenderDegraded', 'NodeDegraded']
    .map((type) => conditionOf(pool, type))
    .filter((condition) => condition?.status === 'True');
  const problem = degraded.find((condition) => condition?.message !== '') ?? degraded[0];
  const count = numberAt(pool, 0, 'status', 'degradedMachineCount');
  if (problem !== undefined)
    return state(
      'bad',
      withMessage(count > 0 ? `degraded (${countText(count, 'host')})` : 'degraded', problem.message),
    );
  const isUpdated = conditionOf(pool, 'Updated')?.status === 'True';
  if (fieldAt(pool, 'spec', 'paused') === true)
    return state('warn', isUpdated ? 'paused' : 'paused: changes wait until the pool is resumed');
  return isUpdated ? state('good', 'updated') : state('warn', 'updating');
}
