/** All controllers of the process in start order. Controllers whose objects other controllers need come first. */

import type { ControllerSpec } from '../../controllers/framework/framework.ts';
import { namespaceController } from '../../controllers/garbage-collection/namespace/controller.ts';
import { garbageCollectorController } from '../../controllers/garbage-collection/owner-references/controller.ts';
import { podGcController } from '../../controllers/garbage-collection/pods/controller.ts';
import { storageVersionMigratorController } from '../../controllers/garbage-collection/storage-version-migrator/controller.ts';
import { tokenCleanerController } from '../../controllers/identity/bootstrap-tokens/cleaner-controller.ts';
import { bootstrapSignerController } from '../../controllers/identity/bootstrap-tokens/signer-controller.ts';
import { clusterInfoController } from '../../controllers/identity/cluster-info/controller.ts';
import { clusterRoleAggregationController } from '../../controllers/identity/cluster-role-aggregation/controller.ts';
import { legacyTokenCleanerController } from '../../controllers/identity/legacy-service-account-token-cleaner/controller.ts';
import { rootCaController } from '../../controllers/identity/root-ca-certificate-publisher/controller.ts';
import { serviceAccountController } from '../../controllers/identity/service-account/controller.ts';
import { accountSecretsController } from '../../controllers/identity/service-account-secrets/controller.ts';
import { tokenSecretController } from '../../controllers/identity/service-account-token/controller.ts';
import { serviceCaController } from '../../controllers/identity/service-ca/controller.ts';
import { addressRecordsController } from '../../controllers/identity/signing-requests/address-records-controller.ts';
import { csrApprovingController } from '../../controllers/identity/signing-requests/approving-controller.ts';
import { csrCleanerController } from '../../controllers/identity/signing-requests/cleaner-controller.ts';
import { csrSigningController } from '../../controllers/identity/signing-requests/signing-controller.ts';
import { endpointSliceController } from '../../controllers/network/endpoint-slice/controller.ts';
import { endpointSliceMirroringController } from '../../controllers/network/endpoint-slice-mirroring/controller.ts';
import { endpointsController } from '../../controllers/network/endpoints/controller.ts';
import { serviceCidrsController } from '../../controllers/network/service-cidr/controller.ts';
import { serviceLbController } from '../../controllers/network/service-load-balancer/controller.ts';
import { unidlingController } from '../../controllers/network/unidling/controller.ts';
import { deviceTaintEvictionController } from '../../controllers/nodes/device-taint-eviction/controller.ts';
import { nodeIpamController } from '../../controllers/nodes/node-ipam/controller.ts';
import { nodeLifecycleController } from '../../controllers/nodes/node-lifecycle/controller.ts';
import { resourceClaimController } from '../../controllers/nodes/resource-claim/controller.ts';
import { taintEvictionController } from '../../controllers/nodes/taint-eviction/controller.ts';
import { ttlController } from '../../controllers/nodes/ttl/controller.ts';
import { clusterResourceQuotaController } from '../../controllers/quota/cluster-resource-quota/controller.ts';
import { resourceQuotaController } from '../../controllers/quota/resource-quota/controller.ts';
import { attachDetachController } from '../../controllers/storage/attach-detach/controller.ts';
import { ephemeralVolumeController } from '../../controllers/storage/ephemeral-volume/controller.ts';
import { localVolumeProvisioner } from '../../controllers/storage/local-volume-provisioner/controller.ts';
import { volumeBinderController } from '../../controllers/storage/persistent-volume-binder/controller.ts';
import { claimProtectionController } from '../../controllers/storage/persistent-volume-claim-protection/controller.ts';
import { volumeExpanderController } from '../../controllers/storage/persistent-volume-expander/controller.ts';
import { volumeProtectionController } from '../../controllers/storage/persistent-volume-protection/controller.ts';
import { attributesClassProtectionController } from '../../controllers/storage/volume-attributes-class-protection/controller.ts';
import { cronJobController } from '../../controllers/workloads/cron-job/controller.ts';
import { daemonSetController } from '../../controllers/workloads/daemon-set/controller.ts';
import { deploymentController } from '../../controllers/workloads/deployment/controller.ts';
import { disruptionController } from '../../controllers/workloads/disruption/controller.ts';
import { horizontalPodAutoscalerController } from '../../controllers/workloads/horizontal-pod-autoscaler/controller.ts';
import { jobController } from '../../controllers/workloads/job/controller.ts';
import { replicaSetController } from '../../controllers/workloads/replica-set/controller.ts';
import { replicationControllerController } from '../../controllers/workloads/replication-controller/controller.ts';
import { statefulSetController } from '../../controllers/workloads/stateful-set/controller.ts';
import { ttlAfterFinishedController } from '../../controllers/workloads/ttl-after-finished/controller.ts';
import { ingressRouterController } from '../../network/router/controllers/ingress-router.ts';
import { consoleRouteController } from '../../openshift/console-route/controllers/console-route.ts';
import { imageStreamImportController } from '../../openshift/image-streams/controllers/image-stream-import.ts';
import { imageTriggerController } from '../../openshift/image-streams/controllers/image-trigger.ts';
import { machineConfigDaemonSetController } from '../../openshift/machine-config/controllers/daemon-set.ts';
import { machineConfigDrainController } from '../../openshift/machine-config/controllers/drain.ts';
import {
  containerRuntimeConfigController,
  kubeletConfigController,
} from '../../openshift/machine-config/controllers/generated-configs.ts';
import { mastersSchedulableController } from '../../openshift/machine-config/controllers/masters-schedulable.ts';
import { nodeGroupController } from '../../openshift/machine-config/controllers/node-group.ts';
import { machineConfigNodeController } from '../../openshift/machine-config/controllers/pool-nodes.ts';
import { machineConfigRenderController } from '../../openshift/machine-config/controllers/render.ts';
import { machineConfigTemplateController } from '../../openshift/machine-config/controllers/template.ts';
import { bareMetalHostController } from '../../openshift/machines/controllers/bare-metal-host.ts';
import { machineController } from '../../openshift/machines/controllers/machine.ts';
import { machineHealthCheckController } from '../../openshift/machines/controllers/machine-health-check.ts';
import { machineSetController } from '../../openshift/machines/controllers/machine-set.ts';
import { operatorLifecycleManager } from '../../openshift/operators/olm/controllers/olm.ts';
import { namespaceSecurityController } from '../../openshift/security-context-constraints/controllers/namespace-ranges.ts';
import { templateInstanceController } from '../../openshift/templates/controllers/template-instance.ts';
import { fixtureClassesController } from '../../rigs/controllers/fixture-classes.ts';
import { rigController } from '../../rigs/controllers/rig.ts';

export const controllers: readonly ControllerSpec[] = [
  serviceAccountController,
  rootCaController,
  namespaceSecurityController,
  nodeIpamController,
  nodeLifecycleController,
  clusterRoleAggregationController,
  deploymentController,
  replicaSetController,
  replicationControllerController,
  daemonSetController,
  statefulSetController,
  jobController,
  cronJobController,
  endpointsController,
  endpointSliceController,
  endpointSliceMirroringController,
  disruptionController,
  horizontalPodAutoscalerController,
  csrApprovingController,
  addressRecordsController,
  csrSigningController,
  clusterInfoController,
  bootstrapSignerController,
  namespaceController,
  garbageCollectorController,
  taintEvictionController,
  csrCleanerController,
  tokenSecretController,
  accountSecretsController,
  resourceQuotaController,
  clusterResourceQuotaController,
  volumeBinderController,
  ephemeralVolumeController,
  localVolumeProvisioner,
  claimProtectionController,
  volumeProtectionController,
  attachDetachController,
  volumeExpanderController,
  attributesClassProtectionController,
  serviceCidrsController,
  podGcController,
  ttlController,
  ttlAfterFinishedController,
  tokenCleanerController,
  serviceLbController,
  ingressRouterController,
  consoleRouteController,
  serviceCaController,
  resourceClaimController,
  legacyTokenCleanerController,
  deviceTaintEvictionController,
  storageVersionMigratorController,
  imageStreamImportController,
  imageTriggerController,
  templateInstanceController,
  unidlingController,
  rigController,
  fixtureClassesController,
  machineConfigTemplateController,
  machineConfigRenderController,
  machineConfigNodeController,
  machineConfigDrainController,
  machineConfigDaemonSetController,
  mastersSchedulableController,
  nodeGroupController,
  kubeletConfigController,
  containerRuntimeConfigController,
  bareMetalHostController,
  machineSetController,
  machineController,
  machineHealthCheckController,
  operatorLifecycleManager,
];
