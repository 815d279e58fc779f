/** Replication controllers. The decisions are in controllers/workloads/replica-set. */
import type { ReplicationController } from '../../../api/generated/core/v1.ts';
import type { ResourceType } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { storedSelectorOfLabels } from '../../../base/selector.ts';
import type { ReplicaOwner } from '../replica-set/plan.ts';
import { type ReplicaKind, replicaController } from '../replica-set/replica-controller.ts';

const replicationControllers: ReplicaKind<ReplicationController & ReplicaOwner> = {
  type: resources.replicationControllers as ResourceType<ReplicationController & ReplicaOwner>,
  selector: (controller) => storedSelectorOfLabels(controller.spec?.selector),
  replicas: (controller) => controller.spec?.replicas ?? 1,
  minReadySeconds: (controller) => controller.spec?.minReadySeconds ?? 0,
  template: (controller) => controller.spec?.template,
  relatedUids: () => [],
};

export const replicationControllerController = replicaController(
  'replicationcontroller',
  'replication-controller',
  replicationControllers,
);
