/** Kinds of the operator lifecycle manager. Source: operator-framework/api crds and validation. */
import type { KindDefinition } from '../../../../api/registry/definition.ts';
import { catalogSources, installPlans, subscriptions } from './catalogs.ts';
import { clusterServiceVersions } from './cluster-service-versions.ts';
import { operatorConditions, operatorGroups, operators } from './groups.ts';
import { catalogPackages, packageManifests } from './packages.ts';

export {
  catalogPackages,
  catalogSources,
  clusterServiceVersions,
  installPlans,
  operatorConditions,
  operatorGroups,
  operators,
  packageManifests,
  subscriptions,
};

export const olmKinds: readonly KindDefinition[] = [
  catalogSources,
  subscriptions,
  installPlans,
  clusterServiceVersions,
  operatorGroups,
  operators,
  operatorConditions,
  packageManifests,
  catalogPackages,
] as readonly KindDefinition[];
