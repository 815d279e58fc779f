/**
 * Default objects of every cluster: the pools `master` and `worker`, an empty fragment for each, and the
 * ControllerConfig. The pool `worker` selects every node that is not a master, because nodes of OKD 3.11 have the roles
 * compute and infra. Source: manifests of openshift/machine-config-operator.
 */

import type { LabelSelectorRequirement } from '../../../../api/generated/meta/v1.ts';
import { timestamp } from '../../../../base/time/timestamps.ts';
import {
  CONTROLLER_CONFIG,
  type ControllerConfig,
  GENERATED_BY,
  MACHINE_CONFIG_GROUP,
  MASTER_POOL,
  type MachineConfig,
  type MachineConfigPool,
  OPERATOR_MANAGED_LABEL,
  RELEASE_VERSION,
  ROLE_LABEL,
  WORKER_POOL,
} from '../../kinds/machine-config-types.ts';

const API_VERSION = `${MACHINE_CONFIG_GROUP}/v1`;
const MASTER_LABEL = 'node-role.kubernetes.io/master';
const MANAGED = { [OPERATOR_MANAGED_LABEL]: '' };
export const IGNITION_VERSION = '3.2.0';

export const defaultPools: readonly MachineConfigPool[] = [
  pool(MASTER_POOL, { key: MASTER_LABEL, operator: 'Exists' }),
  pool(WORKER_POOL, { key: MASTER_LABEL, operator: 'DoesNotExist' }),
];

function pool(name: string, nodes: LabelSelectorRequirement): MachineConfigPool {
  return {
    apiVersion: API_VERSION,
    kind: 'MachineConfigPool',
    metadata: {
      name,
      labels: {
        ...MANAGED,
        'machineconfiguration.openshift.io/mco-built-in': '',
        [`pools.operator.machineconfiguration.openshift.io/${name}`]: '',
      },
    },
    spec: {
      machineConfigSelector: { matchLabels: { [ROLE_LABEL]: name } },
      nodeSelector: { matchExpressions: [nodes] },
    },
  };
}

/** Fragments `00-master` and `00-worker`, so that each pool can be rendered even if no other fragment exists. */
export const baseConfigs = (version: string): readonly MachineConfig[] =>
  [MASTER_POOL, WORKER_POOL].map((role) => generatedConfig(`00-${role}`, role, version, {}));

/** Fragment for the pool `role` that a controller generates. */
export function generatedConfig(
  name: string,
  role: string,
  version: string,
  config: Readonly<Record<string, unknown>>,
): MachineConfig {
  return {
    apiVersion: API_VERSION,
    kind: 'MachineConfig',
    metadata: { name, labels: { [ROLE_LABEL]: role }, annotations: { [GENERATED_BY]: version } },
    spec: { config: { ...config, ignition: { version: IGNITION_VERSION } } },
  };
}

export interface ClusterValues {
  readonly version: string;
  readonly rootCaPem: string;
  readonly clusterDnsIp: string;
  readonly infrastructure: object | undefined;
  readonly dns: object | undefined;
  readonly ipFamilies: 'IPv4' | 'IPv6' | 'DualStack';
  /** Encodes a text in base64. */
  readonly encode: (text: string) => string;
}

export function controllerConfig(values: ClusterValues): ControllerConfig {
  const authority = values.encode(values.rootCaPem);
  return {
    apiVersion: API_VERSION,
    kind: 'ControllerConfig',
    metadata: {
      name: CONTROLLER_CONFIG,
      labels: MANAGED,
      annotations: {
        'machineconfiguration.openshift.io/generated-by-version': values.version,
        [RELEASE_VERSION]: values.version,
      },
    },
    spec: {
      clusterDNSIP: values.clusterDnsIp,
      cloudProviderConfig: '',
      kubeAPIServerServingCAData: authority,
      rootCAData: authority,
      images: {},
      // Empty because hosts are not based on an image.
      osImageURL: '',
      releaseImage: values.version,
      ...(values.infrastructure === undefined ? {} : { infra: { ...values.infrastructure } }),
      ...(values.dns === undefined ? {} : { dns: { ...values.dns } }),
      ipFamilies: values.ipFamilies,
    },
  };
}

/** Status conditions of the ControllerConfig after the base fragments have been written. */
export function completedConditions(nowMs: number, generation: number): NonNullable<ControllerConfig['status']> {
  const condition = (type: string, status: 'True' | 'False', message: string) => ({
    type,
    status,
    lastTransitionTime: timestamp(nowMs),
    message,
  });
  return {
    observedGeneration: generation,
    conditions: [
      condition('TemplateControllerRunning', 'False', ''),
      condition('TemplateControllerCompleted', 'True', `sync completed towards (${generation}) generation`),
      condition('TemplateControllerFailing', 'False', ''),
    ],
  };
}
