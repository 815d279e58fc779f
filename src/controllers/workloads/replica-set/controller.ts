/** Replica sets. The decisions are in controllers/workloads/replica-set. */
import type { ReplicaSet } from '../../../api/generated/apps/v1.ts';
import { resources } from '../../../api/resources.ts';
import { storedSelectorOf } from '../../../base/selector.ts';
import { controllerOf } from '../../framework/core/ownership.ts';
import { controlledBy } from '../../framework/owner-indices.ts';
import { siblingUids } from './plan.ts';
import { type ReplicaKind, replicaController } from './replica-controller.ts';

const replicaSets: ReplicaKind<ReplicaSet> = {
  type: resources.replicaSets,
  selector: (set) => storedSelectorOf(set.spec?.selector),
  replicas: (set) => set.spec?.replicas ?? 1,
  minReadySeconds: (set) => set.spec?.minReadySeconds ?? 0,
  template: (set) => set.spec?.template,
  relatedUids: (set, informer) => {
    const controller = controllerOf(set);
    return controller === undefined ? [] : siblingUids(set, controlledBy(informer, controller.uid));
  },
};

export const replicaSetController = replicaController('replicaset', 'replicaset-controller', replicaSets);
