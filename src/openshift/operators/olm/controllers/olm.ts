/**
 * Operator Lifecycle Manager without separate pods: reconciles catalogs, subscriptions, install plans and operator
 * versions. The planners are in `../core`. Source: operator-framework/operator-lifecycle-manager.
 */

import { objectKey } from '../../../../api/meta/object.ts';
import { resources } from '../../../../api/resources.ts';
import { timestamp } from '../../../../base/time/timestamps.ts';
import type { Informer } from '../../../../client/types.ts';
import type { ControllerRun, ControllerSpec, RunScope } from '../../../../controllers/framework/framework.ts';
import { Actors } from './actor.ts';
import { CatalogSourcePart } from './catalog-sources.ts';
import { CatalogStore } from './catalog-store.ts';
import type { Informers, Olm, Wakes } from './context.ts';
import { CsvPart } from './csvs.ts';
import { InstallPlanPart } from './install-plans.ts';
import { GroupPart } from './operator-groups.ts';
import { OperatorPart } from './operators.ts';
import { SubscriptionPart } from './subscriptions.ts';

const OWN = [
  resources.catalogSources,
  resources.subscriptions,
  resources.installPlans,
  resources.clusterServiceVersions,
  resources.operatorGroups,
  resources.operatorConditions,
] as const;

export const operatorLifecycleManager: ControllerSpec = {
  name: 'operator-lifecycle-manager',
  eventSource: 'operator-lifecycle-manager',
  reads: [...OWN, resources.namespaces, resources.serviceAccounts, resources.deployments, resources.nodes],
  writes: [
    ...OWN,
    resources.operators,
    resources.catalogPackages,
    resources.configMaps,
    resources.customResourceDefinitions,
    resources.nodes,
  ],
  uses: ['catalogFiles', 'discovery', 'requestAs', 'router', 'rootCaPem'],
  prepare: (handle): ControllerRun => {
    const informers: Informers = {
      catalogSources: handle.informer(resources.catalogSources),
      subscriptions: handle.informer(resources.subscriptions),
      installPlans: handle.informer(resources.installPlans),
      csvs: handle.informer(resources.clusterServiceVersions),
      groups: handle.informer(resources.operatorGroups),
      conditions: handle.informer(resources.operatorConditions),
      namespaces: handle.informer(resources.namespaces),
      serviceAccounts: handle.informer(resources.serviceAccounts),
      deployments: handle.informer(resources.deployments),
      nodes: handle.informer(resources.nodes),
    };
    const olm: Olm = {
      handle,
      informers,
      catalogs: new CatalogStore(handle.use('catalogFiles')),
      actors: new Actors(handle.use('requestAs'), handle.use('discovery')),
      now: () => timestamp(handle.clock.nowMs()),
    };
    return (scope) => run(olm, scope);
  },
};

function run(olm: Olm, scope: RunScope): void {
  const { informers } = olm;
  const wakes: Wakes = {
    namespace: (name) => subscriptions.add(name),
    allNamespaces: () => {
      for (const each of informers.subscriptions.list()) subscriptions.add(each.metadata?.namespace ?? '');
    },
    csv: (key, delayMs = 0) => (delayMs === 0 ? csvs.add(key) : csvs.addAfter(key, delayMs)),
  };
  const catalogPart = new CatalogSourcePart(olm, wakes);
  const catalogs = scope.queue(async (key) => {
    const again = await catalogPart.reconcile(key);
    if (again !== undefined) catalogs.addAfter(key, again);
  }, 2);
  const subscriptionPart = new SubscriptionPart(olm);
  const subscriptions = scope.queue((namespace) => subscriptionPart.reconcile(namespace), 1);
  const planPart = new InstallPlanPart(olm);
  const plans = scope.queue((key) => planPart.reconcile(key), 2);
  const groupPart = new GroupPart(olm, wakes);
  const groups = scope.queue((namespace) => groupPart.reconcile(namespace), 1);
  const csvPart = new CsvPart(olm);
  const csvs = scope.queue(async (key) => {
    const again = await csvPart.reconcile(key);
    if (again !== undefined) csvs.addAfter(key, again);
  }, 3);
  const operatorPart = new OperatorPart(olm);
  const operators = scope.queue((key) => operatorPart.reconcile(key), 1);

  const follow = <T extends object>(informer: Informer<T>, wake: (object: T) => void): void =>
    scope.onChange(informer, { added: wake, updated: wake, deleted: wake });
  const namespaceOf = (object: { readonly metadata?: { readonly namespace?: string } }): string =>
    object.metadata?.namespace ?? '';
  const csvsOf = (namespace: string): void => {
    for (const each of informers.csvs.list(namespace)) csvs.add(objectKey(each));
  };
  follow(informers.catalogSources, (each) => catalogs.add(objectKey(each)));
  follow(informers.subscriptions, (each) => {
    subscriptions.add(namespaceOf(each));
    operators.add(`${namespaceOf(each)}/${each.spec?.name}`);
  });
  follow(informers.installPlans, (each) => {
    plans.add(objectKey(each));
    subscriptions.add(namespaceOf(each));
  });
  follow(informers.csvs, (each) => {
    // Other operator versions in the namespace may replace this one or conflict with it.
    csvsOf(namespaceOf(each));
    csvs.add(objectKey(each));
    subscriptions.add(namespaceOf(each));
    groups.add(namespaceOf(each));
    for (const sub of informers.subscriptions.list(namespaceOf(each)))
      operators.add(`${namespaceOf(each)}/${sub.spec?.name}`);
  });
  follow(informers.groups, (each) => groups.add(namespaceOf(each)));
  follow(informers.conditions, (each) => csvsOf(namespaceOf(each)));
  follow(informers.serviceAccounts, (each) => {
    if (informers.csvs.list(namespaceOf(each)).length > 0) csvsOf(namespaceOf(each));
  });
  follow(informers.deployments, (each) => {
    for (const owner of each.metadata?.ownerReferences ?? [])
      if (owner.kind === 'ClusterServiceVersion') csvs.add(`${namespaceOf(each)}/${owner.name}`);
  });
  follow(informers.namespaces, () => {
    for (const each of informers.groups.list()) groups.add(namespaceOf(each));
  });
}
