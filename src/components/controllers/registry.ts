/** Every controller of the process, in the order in which they start: first what others wait for. */
import { clusterRoleAggregationController } from './cluster-role-aggregation.ts';
import { deploymentController } from './deployment.ts';
import { endpointSliceController, endpointsController } from './endpoints.ts';
import type { ControllerSpec } from './framework.ts';
import { namespaceController } from './namespace.ts';
import { rootCaController, serviceAccountController } from './namespace-content.ts';
import { nodeIpamController, ttlController } from './node-upkeep.ts';
import { podGcController } from './pod-gc.ts';
import { replicaSetController, replicationControllerController } from './replicas.ts';

export const controllers: readonly ControllerSpec[] = [
  serviceAccountController,
  rootCaController,
  nodeIpamController,
  clusterRoleAggregationController,
  deploymentController,
  replicaSetController,
  replicationControllerController,
  endpointsController,
  endpointSliceController,
  namespaceController,
  podGcController,
  ttlController,
];
