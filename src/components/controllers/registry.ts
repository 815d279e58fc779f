/** Every controller of the process, in the order in which they start. */

import { deploymentController } from './deployment.ts';
import type { ControllerSpec } from './framework.ts';
import { replicaSetController, replicationControllerController } from './replicas.ts';

export const controllers: readonly ControllerSpec[] = [
  deploymentController,
  replicaSetController,
  replicationControllerController,
];
