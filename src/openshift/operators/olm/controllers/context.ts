/** Context shared by the parts of the operator lifecycle manager. */
import type { Deployment } from '../../../../api/generated/apps/v1.ts';
import type { Namespace, Node, ServiceAccount } from '../../../../api/generated/core/v1.ts';
import type { Informer } from '../../../../client/types.ts';
import type { ControllerHandle, RunScope } from '../../../../controllers/framework/framework.ts';
import type {
  CatalogSource,
  ClusterServiceVersion,
  InstallPlan,
  OperatorCondition,
  OperatorGroup,
  Subscription,
} from '../kinds/types.ts';
import type { Actors } from './actor.ts';
import type { CatalogStore } from './catalog-store.ts';

export interface Informers {
  readonly catalogSources: Informer<CatalogSource>;
  readonly subscriptions: Informer<Subscription>;
  readonly installPlans: Informer<InstallPlan>;
  readonly csvs: Informer<ClusterServiceVersion>;
  readonly groups: Informer<OperatorGroup>;
  readonly conditions: Informer<OperatorCondition>;
  readonly namespaces: Informer<Namespace>;
  readonly serviceAccounts: Informer<ServiceAccount>;
  readonly deployments: Informer<Deployment>;
  readonly nodes: Informer<Node>;
}

export interface Olm {
  readonly handle: ControllerHandle;
  readonly informers: Informers;
  readonly catalogs: CatalogStore;
  readonly actors: Actors;
  /** Current time in RFC 3339, in whole seconds. */
  now(): string;
}

/** Functions that queue objects for reconciliation by other parts. */
export interface Wakes {
  namespace(name: string): void;
  allNamespaces(): void;
  csv(key: string, delayMs?: number): void;
}

export type Part = (olm: Olm, scope: RunScope, wakes: Wakes) => void;
