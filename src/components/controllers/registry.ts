/** Every controller of the process, in the order in which they start: first what others wait for. */
import { csrApprovingController, csrCleanerController, csrSigningController } from './certificates.ts';
import { clusterRoleAggregationController } from './cluster-role-aggregation.ts';
import { daemonSetController } from './daemonset.ts';
import { deploymentController } from './deployment.ts';
import { disruptionController } from './disruption.ts';
import { endpointSliceController, endpointsController } from './endpoints.ts';
import type { ControllerSpec } from './framework.ts';
import { garbageCollectorController } from './garbage-collector.ts';
import { namespaceController } from './namespace.ts';
import { rootCaController, serviceAccountController } from './namespace-content.ts';
import { nodeLifecycleController } from './node-lifecycle.ts';
import { nodeIpamController, ttlController } from './node-upkeep.ts';
import { podGcController } from './pod-gc.ts';
import { replicaSetController, replicationControllerController } from './replicas.ts';
import { resourceQuotaController } from './resource-quota.ts';
import { serviceCidrsController } from './service-cidrs.ts';
import { taintEvictionController } from './taint-eviction.ts';
import { tokenSecretController } from './token-secrets.ts';
import { claimProtectionController, volumeProtectionController } from './volume-protection.ts';

export const controllers: readonly ControllerSpec[] = [
  serviceAccountController,
  rootCaController,
  nodeIpamController,
  nodeLifecycleController,
  clusterRoleAggregationController,
  deploymentController,
  replicaSetController,
  replicationControllerController,
  daemonSetController,
  endpointsController,
  endpointSliceController,
  disruptionController,
  csrApprovingController,
  csrSigningController,
  namespaceController,
  garbageCollectorController,
  taintEvictionController,
  csrCleanerController,
  tokenSecretController,
  resourceQuotaController,
  claimProtectionController,
  volumeProtectionController,
  serviceCidrsController,
  podGcController,
  ttlController,
];
