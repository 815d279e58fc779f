/**
 * Kinds of machineconfiguration.openshift.io. As in upstream, only little is validated here. Fragments that cannot be
 * rendered are reported in conditions of pools and KubeletConfigs. Source: the definitions of
 * openshift/machine-config-operator 4.10 (install/*.crd.yaml).
 */

import { semanticEqual } from '../../../../api/meta/equality.ts';
import { type FieldError, fieldError } from '../../../../api/meta/field-error.ts';
import { type KubeObject, nextGeneration } from '../../../../api/meta/object.ts';
import { column, nameColumn } from '../../../../api/printing/columns.ts';
import { since } from '../../../../api/printing/duration.ts';
import type { Column, KindDefinition } from '../../../../api/registry/definition.ts';
import { ALL_VERBS, keepGeneration, metadataOf, specStatusStrategies } from '../../../../api/registry/strategies.ts';
import { validateOneOf, validateRange } from '../../../../api/validation/scalars.ts';
import { validateLabelSelector } from '../../../../api/validation/selectors.ts';
import {
  type ContainerRuntimeConfig,
  type ControllerConfig,
  type KubeletConfig,
  MACHINE_CONFIG_GROUP,
  type MachineConfig,
  type MachineConfigPool,
} from '../machine-config-types.ts';
import { refusedParts } from './rejected-fields.ts';

const TLS_PROFILES = ['Old', 'Intermediate', 'Modern', 'Custom'];
const MAX_LOG_LEVEL = 10;

/** Whether the field is set. Go clients send null for unset fields. */
const isSet = <T>(value: T | null | undefined): value is T => value !== undefined && value !== null;

/** Age column as in the CustomResourceDefinitions of these kinds. */
const age: Column<KubeObject> = {
  name: 'Age',
  type: 'date',
  description: 'Time since the object was created.',
  cell: ({ metadata }, nowMs) => since(metadata?.creationTimestamp, nowMs),
};

function definition<T extends KubeObject>(
  kind: string,
  parts: Pick<KindDefinition<T>, 'strategy' | 'columns'> & Partial<Pick<KindDefinition<T>, 'statusStrategy'>>,
  shortNames?: readonly string[],
): KindDefinition<T> {
  const singular = kind.toLowerCase();
  return {
    group: MACHINE_CONFIG_GROUP,
    version: 'v1',
    kind,
    plural: `${singular}s`,
    singular,
    listKind: `${kind}List`,
    namespaced: false,
    ...(shortNames === undefined ? {} : { shortNames }),
    verbs: ALL_VERBS,
    schemaName: `com.github.openshift.api.machineconfiguration.v1.${kind}`,
    returnsDeleted: 'undocumented',
    anyFinalizers: true,
    storagePrefix: `${MACHINE_CONFIG_GROUP}/${singular}s`,
    ...parts,
  };
}

function validateSelector(selector: Parameters<typeof validateLabelSelector>[0] | null, path: string): FieldError[] {
  return isSet(selector) ? validateLabelSelector(selector, path) : [];
}

function validateMachineConfig({ spec }: MachineConfig): FieldError[] {
  const config = spec?.config;
  if (!isSet(config)) return [];
  if (typeof config !== 'object' || Array.isArray(config))
    return [fieldError.invalid('spec.config', config, 'must be an Ignition configuration')];
  // The configuration may be empty, for example in a MachineConfig that only sets kernel arguments.
  if (Object.keys(config).length === 0 || Object.hasOwn(config, 'ignition')) return [];
  return [fieldError.required('spec.config.ignition', 'must hold the version of the configuration')];
}

export const machineConfigs = definition<MachineConfig>(
  'MachineConfig',
  {
    // The kind has no status subresource, so every change outside of metadata increases the generation.
    strategy: {
      prepareForCreate(object) {
        metadataOf(object).generation = 1;
      },
      prepareForUpdate(object, old) {
        if (semanticEqual(object.spec, old.spec)) keepGeneration(object, old);
        else metadataOf(object).generation = nextGeneration(old);
      },
      validate: validateMachineConfig,
      warnings: ({ spec }) =>
        isSet(spec?.config) ? refusedParts(spec.config).map((path) => `spec.config.${path}: not applied by hosts`) : [],
    },
    columns: [
      nameColumn,
      column<MachineConfig>(
        'GeneratedByController',
        'Version of the controller that generated the machineconfig; empty where it is not managed by a controller.',
        ({ metadata }) =>
          metadata?.annotations?.['machineconfiguration.openshift.io/generated-by-controller-version'] ?? '',
      ),
      column<MachineConfig>('IgnitionVersion', 'Version of the Ignition configuration.', ignitionVersion),
      age,
    ],
  },
  ['mc'],
);

function ignitionVersion({ spec }: MachineConfig): string {
  const ignition = isSet(spec?.config) ? spec.config['ignition'] : undefined;
  const version = typeof ignition === 'object' && !Array.isArray(ignition) ? ignition?.['version'] : undefined;
  return typeof version === 'string' ? version : '';
}

function validatePool({ spec }: MachineConfigPool): FieldError[] {
  return [
    ...validateSelector(spec?.machineConfigSelector, 'spec.machineConfigSelector'),
    ...validateSelector(spec?.nodeSelector, 'spec.nodeSelector'),
  ];
}

const conditionColumn = (type: string, description: string): Column<MachineConfigPool> =>
  column(type, description, ({ status }) => status?.conditions?.find((each) => each.type === type)?.status ?? '');

const countColumn = (
  name: string,
  description: string,
  field: 'machineCount' | 'readyMachineCount' | 'updatedMachineCount' | 'degradedMachineCount',
): Column<MachineConfigPool> => column(name, description, ({ status }) => status?.[field] ?? 0, { type: 'number' });

export const machineConfigPools = definition<MachineConfigPool>(
  'MachineConfigPool',
  {
    ...specStatusStrategies<MachineConfigPool>({ validate: validatePool }),
    columns: [
      nameColumn,
      column<MachineConfigPool>(
        'Config',
        'Last rendered configuration that was applied to all nodes.',
        ({ status }) => status?.configuration?.name ?? '',
      ),
      conditionColumn('Updated', 'Whether all nodes have the configuration of the pool.'),
      conditionColumn('Updating', 'Whether nodes are being updated.'),
      conditionColumn('Degraded', 'Whether an update is blocked.'),
      countColumn('MachineCount', 'Nodes of the pool.', 'machineCount'),
      countColumn('ReadyMachineCount', 'Updated nodes that are ready.', 'readyMachineCount'),
      countColumn('UpdatedMachineCount', 'Nodes with the configuration of the pool.', 'updatedMachineCount'),
      countColumn('DegradedMachineCount', 'Nodes that are degraded or unreconcilable.', 'degradedMachineCount'),
      age,
    ],
  },
  ['mcp'],
);

function validateKubeletConfig({ spec }: KubeletConfig): FieldError[] {
  const errors = validateSelector(spec?.machineConfigPoolSelector, 'spec.machineConfigPoolSelector');
  if (isSet(spec?.logLevel)) errors.push(...validateRange(spec.logLevel, 1, MAX_LOG_LEVEL, 'spec.logLevel'));
  const { kubeletConfig, tlsSecurityProfile: profile } = spec ?? {};
  if (isSet(kubeletConfig) && (typeof kubeletConfig !== 'object' || Array.isArray(kubeletConfig)))
    errors.push(fieldError.invalid('spec.kubeletConfig', kubeletConfig, 'must hold fields of a KubeletConfiguration'));
  if (isSet(profile?.type) && profile.type !== '')
    errors.push(...validateOneOf(profile.type, TLS_PROFILES, 'spec.tlsSecurityProfile.type'));
  return errors;
}

export const kubeletConfigs = definition<KubeletConfig>('KubeletConfig', {
  ...specStatusStrategies<KubeletConfig>({ validate: validateKubeletConfig }),
  columns: [nameColumn, age],
});

function validateRuntimeConfig({ spec }: ContainerRuntimeConfig): FieldError[] {
  const errors = validateSelector(spec?.machineConfigPoolSelector, 'spec.machineConfigPoolSelector');
  if (!isSet(spec?.containerRuntimeConfig)) errors.push(fieldError.required('spec.containerRuntimeConfig', ''));
  return errors;
}

export const containerRuntimeConfigs = definition<ContainerRuntimeConfig>(
  'ContainerRuntimeConfig',
  { ...specStatusStrategies<ContainerRuntimeConfig>({ validate: validateRuntimeConfig }), columns: [nameColumn, age] },
  ['ctrcfg'],
);

export const controllerConfigs = definition<ControllerConfig>('ControllerConfig', {
  ...specStatusStrategies<ControllerConfig>({}),
  columns: [nameColumn, age],
});

export const machineConfigKinds: readonly KindDefinition[] = [
  containerRuntimeConfigs,
  controllerConfigs,
  kubeletConfigs,
  machineConfigs,
  machineConfigPools,
];
