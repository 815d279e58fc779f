/** Resolves the subscriptions of a namespace together and creates install plans. */

import { isApiError } from '../../../../api/meta/status.ts';
import { resources } from '../../../../api/resources.ts';
import { CodedError, messageOf } from '../../../../base/errors.ts';
import {
  type Choice,
  channelNamed,
  currentOf,
  groupOf,
  isChoice,
  isProblem,
  parseVersion,
  problemOf,
  type ResolverInput,
  resolve,
  stepsOf,
  successors,
  type VisibleCatalog,
} from '../core/index.ts';
import { GLOBAL_CATALOG_NAMESPACE } from '../kinds/packages.ts';
import type { InstallPlan, InstallPlanStep, Subscription } from '../kinds/types.ts';
import { CelRules } from './cel-rules.ts';
import type { Olm } from './context.ts';
import { MAX_PLAN_BYTES, packSteps, sizeOf } from './packed-manifests.ts';
import { type SubscriptionView, subscriptionStatus } from './subscription-status.ts';

/** Number of completed plans that are kept per namespace. Upstream keeps the same number. */
const KEPT_PLANS = 5;

interface Outcome {
  readonly failure?: { readonly reason: string; readonly message: string };
  readonly plan?: InstallPlan;
  readonly choices: readonly Choice[];
}

export class SubscriptionPart {
  readonly #olm: Olm;
  readonly #rules = new CelRules();

  constructor(olm: Olm) {
    this.#olm = olm;
  }

  async reconcile(namespace: string): Promise<void> {
    const { informers } = this.#olm;
    const subscriptions = informers.subscriptions
      .list(namespace)
      .filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
    if (subscriptions.length === 0) return;
    const situation = this.#situation(namespace, subscriptions);
    // Subscriptions are resolved only after every visible catalog has been read or has failed.
    if (situation === undefined) return;
    const plans = informers.installPlans.list(namespace);
    // While a plan is in progress, no further plan is created, because it could contain the same versions.
    const isBusy = plans.some(({ status }) => status?.phase === 'Installing' || status?.phase === 'Planning');
    const outcome: Outcome = isBusy ? { choices: [] } : await this.#resolve(namespace, situation, plans);
    for (const each of subscriptions) await this.#report(each, situation, plans, outcome, isBusy);
    await this.#prune(plans);
  }

  #situation(namespace: string, subscriptions: readonly Subscription[]): ResolverInput | undefined {
    const { informers, catalogs } = this.#olm;
    const installed = informers.csvs
      .list(namespace)
      .filter(({ metadata }) => metadata?.labels?.['olm.copiedFrom'] === undefined);
    const visible: VisibleCatalog[] = [];
    const unreadable = new Map<string, string>();
    for (const at of new Set([namespace, GLOBAL_CATALOG_NAMESPACE])) {
      for (const source of informers.catalogSources.list(at)) {
        const key = `${at}/${source.metadata?.name}`;
        const loaded = catalogs.get(key);
        const failure = catalogs.failure(key);
        if (loaded !== undefined) visible.push({ key, priority: source.spec?.priority ?? 0, catalog: loaded.catalog });
        else if (failure !== undefined) unreadable.set(key, `failed to read catalog ${key}: ${failure}`);
        else return undefined;
      }
    }
    const group = groupOf(informers.groups.list(namespace));
    const failForward = !isProblem(group) && group.spec?.upgradeStrategy === 'TechPreviewUnsafeFailForward';
    const held = subscriptions.filter((each) => {
      const phase = currentOf(each, installed)?.status?.phase;
      return phase !== 'Succeeded' && !(failForward && phase === 'Failed');
    });
    return {
      subscriptions,
      installed,
      held: new Set(held.map(({ metadata }) => metadata?.name ?? '')),
      catalogs: visible,
      unreadable,
      rules: this.#rules,
    };
  }

  async #resolve(namespace: string, situation: ResolverInput, plans: readonly InstallPlan[]): Promise<Outcome> {
    const resolution = resolve(problemOf(situation));
    if ('failure' in resolution)
      return { failure: { reason: resolution.reason, message: resolution.failure }, choices: [] };
    const choices = resolution.chosen.filter(isChoice);
    if (choices.length === 0) return { choices };
    try {
      return { choices, plan: await this.#planFor(namespace, choices, situation, plans) };
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      return { failure: { reason: 'BundleUnpackFailed', message: messageOf(error) }, choices: [] };
    }
  }

  /** Returns the plan that installs these operator versions. Creates it if it does not exist. */
  async #planFor(
    namespace: string,
    choices: readonly Choice[],
    situation: ResolverInput,
    plans: readonly InstallPlan[],
  ): Promise<InstallPlan> {
    const client = this.#olm.handle.writer(resources.installPlans);
    const names = choices.map(({ name }) => name).sort();
    const isSame = ({ spec }: InstallPlan): boolean =>
      JSON.stringify([...(spec?.clusterServiceVersionNames ?? [])].sort()) === JSON.stringify(names);
    const found = plans.find((each) => each.status?.phase !== 'Complete' && isSame(each));
    if (found === undefined) {
      // The informer may not have received a plan that was just created, so list the plans. A second plan would install
      // the same version twice.
      const known = new Set(plans.map(({ metadata }) => metadata?.name));
      const { items } = await client.list({ namespace });
      const late = items.find((each) => !known.has(each.metadata?.name) && isSame(each));
      if (late !== undefined) return late;
    }
    if (found?.status?.plan !== undefined) return found;
    const steps = await this.#steps(namespace, choices, situation);
    const wanting = situation.subscriptions.filter((each) => choices.some((choice) => isFor(choice, each)));
    const manual = wanting.some(({ spec }) => spec?.installPlanApproval === 'Manual');
    const generation = Math.max(0, ...plans.map(({ spec }) => spec?.generation ?? 0)) + 1;
    const made =
      found ??
      (await client.create({
        metadata: {
          generateName: 'install-',
          namespace,
          ownerReferences: wanting.map(({ metadata }) => ({
            apiVersion: 'operators.coreos.com/v1alpha1',
            kind: 'Subscription',
            name: metadata?.name ?? '',
            uid: metadata?.uid ?? '',
            blockOwnerDeletion: false,
            controller: false,
          })),
        },
        spec: {
          clusterServiceVersionNames: names,
          approval: manual ? 'Manual' : 'Automatic',
          approved: !manual,
          generation,
        },
      }));
    const now = this.#olm.now();
    const status = {
      phase: made.spec?.approved === true ? 'Installing' : 'RequiresApproval',
      catalogSources: [...new Set(choices.map(({ catalog }) => catalog.split('/')[1] ?? ''))],
      conditions: [{ type: 'Resolved', status: 'True', lastUpdateTime: now, lastTransitionTime: now }],
      plan: steps,
    };
    return client.update({ ...made, status }, { subresource: 'status' });
  }

  /** Steps that install the chosen versions. Throws a CodedError 'catalog' for a bundle that cannot be installed. */
  async #steps(namespace: string, choices: readonly Choice[], situation: ResolverInput): Promise<InstallPlanStep[]> {
    const steps: InstallPlanStep[] = [];
    for (const choice of choices) {
      const { properties, ...content } = await this.#olm.catalogs.bundle(choice.catalog, choice.bundle);
      steps.push(...stepsOf(content, choice, namespace, properties));
      if (situation.subscriptions.some((each) => isFor(choice, each))) continue;
      steps.push(subscriptionStep(choice, namespace, situation.subscriptions));
    }
    const kept = await packSteps(steps);
    if (sizeOf(kept) > MAX_PLAN_BYTES)
      throw new CodedError(
        'catalog',
        `bundles of ${choices.map(({ name }) => name).join(', ')}: are larger than ${MAX_PLAN_BYTES} bytes, compressed; shorten descriptions and icons`,
      );
    return kept;
  }

  async #report(
    subscription: Subscription,
    situation: ResolverInput,
    plans: readonly InstallPlan[],
    { failure, plan, choices }: Outcome,
    isBusy: boolean,
  ): Promise<void> {
    const { informers, handle } = this.#olm;
    const { spec = {} } = subscription;
    const key = `${spec.sourceNamespace}/${spec.source}`;
    const current = currentOf(subscription, situation.installed);
    const catalog = situation.catalogs.find((each) => each.key === key)?.catalog;
    const owner = catalog?.packages.get(spec.name ?? '');
    const channel = owner === undefined ? undefined : channelNamed(owner, spec.channel ?? '');
    const installed = {
      name: current?.metadata?.name ?? '',
      version: parseVersion(current?.spec?.version ?? ''),
    };
    const newer = owner === undefined || channel === undefined ? [] : successors(owner, channel, installed);
    const choice = choices.find((each) => isFor(each, subscription));
    const ref = subscription.status?.installPlanRef?.name;
    const known = choice === undefined ? plans.find(({ metadata }) => metadata?.name === ref) : plan;
    const view: SubscriptionView = {
      subscription,
      now: this.#olm.now(),
      installed: current?.metadata?.name,
      hasNewer: current !== undefined && newer.length > 0,
      ...(choice === undefined ? {} : { chosen: choice.name }),
      ...(known === undefined ? {} : { plan: known }),
      ...(failure === undefined ? {} : { failure }),
      isBusy,
      source: informers.catalogSources.get(key),
      isHealthy: catalog !== undefined,
    };
    const status = subscriptionStatus(view);
    if (status === undefined) return;
    const isNews = failure !== undefined && !hasFailed(subscription);
    if (isNews) handle.recorder.event(subscription, 'Warning', 'ResolutionFailed', failure.message);
    await handle.writer(resources.subscriptions).update({ ...subscription, status }, { subresource: 'status' });
  }

  async #prune(plans: readonly InstallPlan[]): Promise<void> {
    const complete = plans.filter(({ status }) => status?.phase === 'Complete');
    const byAge = complete.sort((a, b) => (b.spec?.generation ?? 0) - (a.spec?.generation ?? 0));
    for (const { metadata } of byAge.slice(KEPT_PLANS)) {
      try {
        await this.#olm.handle.writer(resources.installPlans).delete(metadata?.name ?? '', metadata?.namespace);
      } catch (error) {
        if (!isApiError(error, 'NotFound')) throw error;
      }
    }
  }
}

const hasFailed = ({ status }: Subscription): boolean =>
  (status?.conditions ?? []).some(({ type, status: value }) => type === 'ResolutionFailed' && value === 'True');

const isFor = (choice: Choice, { spec }: Subscription): boolean => choice.package === spec?.name;

/**
 * Step that creates the subscription for a dependency. Its approval is Manual if another subscription's approval is
 * Manual.
 */
function subscriptionStep(choice: Choice, namespace: string, others: readonly Subscription[]): InstallPlanStep {
  const [sourceNamespace = '', source = ''] = choice.catalog.split('/');
  const name = `${choice.package}-${choice.channel}-${source}-${sourceNamespace}`.toLowerCase().slice(0, 253);
  const manual = others.some(({ spec }) => spec?.installPlanApproval === 'Manual');
  const manifest: Subscription = {
    apiVersion: 'operators.coreos.com/v1alpha1',
    kind: 'Subscription',
    metadata: { name, namespace },
    spec: {
      source,
      sourceNamespace,
      name: choice.package,
      channel: choice.channel,
      startingCSV: choice.name,
      installPlanApproval: manual ? 'Manual' : 'Automatic',
    },
  };
  return {
    resolving: choice.name,
    resource: {
      sourceName: source,
      sourceNamespace,
      group: 'operators.coreos.com',
      version: 'v1alpha1',
      kind: 'Subscription',
      name,
      manifest: JSON.stringify(manifest),
    },
    status: 'Unknown',
  };
}
