/**
 * Types of machineconfiguration.openshift.io/v1 with the fields that this cluster uses, and the annotations through
 * which controllers and hosts exchange state. Source: openshift/api machineconfiguration/v1; pkg/daemon/constants and
 * pkg/controller/common of openshift/machine-config-operator.
 */
import type { ObjectReference } from '../../../api/generated/core/v1.ts';
import type { LabelSelector } from '../../../api/generated/meta/v1.ts';
import type { JsonObject, KubeObject } from '../../../api/meta/object.ts';

export const MACHINE_CONFIG_GROUP = 'machineconfiguration.openshift.io';

/** Label of a fragment that names the pool to which the fragment applies. */
export const ROLE_LABEL = `${MACHINE_CONFIG_GROUP}/role`;
/** Label of objects that controllers manage. */
export const OPERATOR_MANAGED_LABEL = 'openshift.io/operator-managed';

/** Node annotation: name of the rendered configuration that the host has. Written by the host. */
export const CURRENT_CONFIG = `${MACHINE_CONFIG_GROUP}/currentConfig`;
/** Node annotation: name of the rendered configuration that the host must have. Written by the node controller. */
export const DESIRED_CONFIG = `${MACHINE_CONFIG_GROUP}/desiredConfig`;
/** Node annotation: a MachineConfigState. Written by the host. */
export const CONFIG_STATE = `${MACHINE_CONFIG_GROUP}/state`;
/** Node annotation: reason for the state. Written by the host. */
export const CONFIG_REASON = `${MACHINE_CONFIG_GROUP}/reason`;
/** Node annotation: request to the drain controller, `drain-<config>` or `uncordon-<config>`. Written by the host. */
export const DESIRED_DRAIN = `${MACHINE_CONFIG_GROUP}/desiredDrain`;
/** Node annotation: last value of desiredDrain that was completed. Written by the drain controller. */
export const LAST_APPLIED_DRAIN = `${MACHINE_CONFIG_GROUP}/lastAppliedDrain`;
/** Node annotation: HighlyAvailable or SingleReplica. Written by the node controller. */
export const TOPOLOGY = `${MACHINE_CONFIG_GROUP}/controlPlaneTopology`;

/** Annotation of rendered and generated configurations: version of the controller that created the configuration. */
export const GENERATED_BY = `${MACHINE_CONFIG_GROUP}/generated-by-controller-version`;
/** Annotation of the ControllerConfig and of rendered configurations: version of the release. */
export const RELEASE_VERSION = `${MACHINE_CONFIG_GROUP}/release-image-version`;
/**
 * Annotation of KubeletConfigs and ContainerRuntimeConfigs: number at the end of the names of generated configurations.
 */
export const NAME_SUFFIX = `${MACHINE_CONFIG_GROUP}/mc-name-suffix`;
/** Annotation of a pool: what hosts do when files have drifted, `report` (default) or `repair`. */
export const ON_DRIFT = 'hyperedge.dev/on-drift';

/** Annotation of KubeletConfigs and pools that were generated from a node group: name of the group. */
export const OF_GROUP = 'hyperedge.dev/node-group';

/** Taint of nodes whose update has not been completed. */
export const UPDATE_TAINT = { key: 'UpdateInProgress', effect: 'PreferNoSchedule' } as const;

export type MachineConfigState = 'Done' | 'Working' | 'Degraded' | 'Unreconcilable';

export const MASTER_POOL = 'master';
export const WORKER_POOL = 'worker';
/** Name of the single ControllerConfig. */
export const CONTROLLER_CONFIG = 'machine-config-controller';

export interface StatusCondition {
  type?: string;
  status?: string;
  lastTransitionTime?: string | null;
  reason?: string;
  message?: string;
}

export interface MachineConfigSpec {
  osImageURL?: string;
  /** Ignition configuration of any version. */
  config?: JsonObject | null;
  kernelArguments?: string[] | null;
  extensions?: string[] | null;
  fips?: boolean;
  kernelType?: string;
}

export interface MachineConfig extends KubeObject {
  spec?: MachineConfigSpec;
}

export interface PoolConfiguration extends ObjectReference {
  source?: ObjectReference[];
}

export interface MachineConfigPoolStatus {
  observedGeneration?: number;
  configuration?: PoolConfiguration;
  machineCount?: number;
  updatedMachineCount?: number;
  readyMachineCount?: number;
  unavailableMachineCount?: number;
  degradedMachineCount?: number;
  conditions?: StatusCondition[];
}

export interface MachineConfigPool extends KubeObject {
  spec?: {
    machineConfigSelector?: LabelSelector | null;
    nodeSelector?: LabelSelector | null;
    paused?: boolean;
    maxUnavailable?: number | string | null;
    configuration?: PoolConfiguration;
  };
  status?: MachineConfigPoolStatus;
}

interface ResultStatus {
  observedGeneration?: number;
  conditions?: StatusCondition[];
}

export interface TlsSecurityProfile {
  type?: string;
  custom?: { ciphers?: string[]; minTLSVersion?: string } | null;
}

export interface KubeletConfig extends KubeObject {
  spec?: {
    autoSizingReserved?: boolean;
    logLevel?: number;
    machineConfigPoolSelector?: LabelSelector | null;
    kubeletConfig?: JsonObject | null;
    tlsSecurityProfile?: TlsSecurityProfile | null;
  };
  status?: ResultStatus;
}

export interface ContainerRuntimeConfig extends KubeObject {
  spec?: {
    machineConfigPoolSelector?: LabelSelector | null;
    containerRuntimeConfig?: {
      pidsLimit?: number;
      logLevel?: string;
      logSizeMax?: string;
      overlaySize?: string;
    } | null;
  };
  status?: ResultStatus;
}

export interface ControllerConfig extends KubeObject {
  spec?: {
    clusterDNSIP?: string;
    cloudProviderConfig?: string;
    kubeAPIServerServingCAData?: string;
    rootCAData?: string;
    images?: Record<string, string>;
    osImageURL?: string;
    releaseImage?: string;
    infra?: JsonObject | null;
    dns?: JsonObject | null;
    proxy?: JsonObject | null;
    ipFamilies?: string;
  };
  status?: ResultStatus;
}
