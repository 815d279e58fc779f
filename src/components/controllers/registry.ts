/** All controllers of the process in start order: first those whose objects other controllers wait for. */
import { attachDetachController } from './attachdetach/index.ts';
import { bareMetalHostController } from './bare-metal-host.ts';
import { bootstrapSignerController } from './bootstrap-signer.ts';
import { csrApprovingController } from './certificatesigningrequest-approving.ts';
import { csrCleanerController } from './certificatesigningrequest-cleaner.ts';
import { csrSigningController } from './certificatesigningrequest-signing.ts';
import { clusterInfoController } from './cluster-info.ts';
import { clusterResourceQuotaController } from './cluster-resource-quota.ts';
import { clusterRoleAggregationController } from './clusterrole-aggregation.ts';
import { cronJobController } from './cronjob.ts';
import { daemonSetController } from './daemonset.ts';
import { deploymentController } from './deployment.ts';
import { deviceTaintEvictionController } from './device-taint-eviction.ts';
import { disruptionController } from './disruption.ts';
import { endpointsController } from './endpoints.ts';
import { endpointSliceController } from './endpointslice.ts';
import { endpointSliceMirroringController } from './endpointslice-mirroring.ts';
import { ephemeralVolumeController } from './ephemeral-volume.ts';
import { fixtureClassesController } from './fixture-classes.ts';
import type { ControllerSpec } from './framework.ts';
import { garbageCollectorController } from './garbage-collector.ts';
import { horizontalPodAutoscalerController } from './horizontalpodautoscaler.ts';
import { imageTriggerController } from './image-trigger.ts';
import { imageStreamImportController } from './imagestream-import.ts';
import { ingressRouterController } from './ingress-router.ts';
import { jobController } from './job.ts';
import { legacyTokenCleanerController } from './legacy-serviceaccount-token-cleaner.ts';
import { localVolumeProvisioner } from './local-volume-provisioner.ts';
import { machineController } from './machine.ts';
import { machineConfigDaemonSetController } from './machine-config-daemon-set.ts';
import { machineConfigDrainController } from './machine-config-drain.ts';
import { containerRuntimeConfigController, kubeletConfigController } from './machine-config-generated.ts';
import { machineConfigNodeController } from './machine-config-node.ts';
import { machineConfigRenderController } from './machine-config-render.ts';
import { machineConfigTemplateController } from './machine-config-template.ts';
import { machineHealthCheckController } from './machine-health-check.ts';
import { machineSetController } from './machine-set.ts';
import { mastersSchedulableController } from './masters-schedulable.ts';
import { namespaceController } from './namespace.ts';
import { namespaceSecurityController } from './namespace-security-allocation.ts';
import { nodeGroupController } from './node-group.ts';
import { nodeIpamController } from './node-ipam.ts';
import { nodeLifecycleController } from './node-lifecycle.ts';
import { operatorLifecycleManager } from './olm/index.ts';
import { volumeBinderController } from './persistentvolume-binder.ts';
import { volumeExpanderController } from './persistentvolume-expander.ts';
import { volumeProtectionController } from './persistentvolume-protection.ts';
import { claimProtectionController } from './persistentvolumeclaim-protection.ts';
import { podGcController } from './pod-garbage-collector.ts';
import { replicaSetController } from './replicaset.ts';
import { replicationControllerController } from './replicationcontroller.ts';
import { resourceQuotaController } from './resource-quota.ts';
import { resourceClaimController } from './resourceclaim.ts';
import { rigController } from './rig.ts';
import { rootCaController } from './root-ca-certificate-publisher.ts';
import { serviceCaController } from './service-ca.ts';
import { serviceCidrsController } from './service-cidr.ts';
import { serviceLbController } from './service-lb.ts';
import { serviceAccountController } from './serviceaccount.ts';
import { accountSecretsController } from './serviceaccount-secrets.ts';
import { tokenSecretController } from './serviceaccount-token.ts';
import { statefulSetController } from './statefulset.ts';
import { storageVersionMigratorController } from './storage-version-migrator.ts';
import { taintEvictionController } from './taint-eviction.ts';
import { templateInstanceController } from './template-instance.ts';
import { tokenCleanerController } from './token-cleaner.ts';
import { ttlController } from './ttl.ts';
import { ttlAfterFinishedController } from './ttl-after-finished.ts';
import { unidlingController } from './unidling.ts';
import { attributesClassProtectionController } from './volumeattributesclass-protection.ts';

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
