/**
 * Plans the MachineConfigs that are generated from KubeletConfigs and ContainerRuntimeConfigs: their names, their pools
 * and the reported result. Source: pkg/controller/{kubelet-config,container-runtime-config} of
 * openshift/machine-config-operator.
 */

import type { LabelSelector } from '../../../../api/generated/meta/v1.ts';
import type { KubeObject } from '../../../../api/meta/object.ts';
import { timestamp } from '../../../../base/time/timestamps.ts';
import { controllerReference } from '../../../../controllers/framework/core/ownership.ts';
import {
  MACHINE_CONFIG_GROUP,
  type MachineConfig,
  type MachineConfigPool,
  NAME_SUFFIX,
  type StatusCondition,
} from '../../kinds/machine-config-types.ts';
import { generatedConfig } from './default-pools.ts';
import { nameOf, selectsNode } from './pools.ts';

/** A KubeletConfig or a ContainerRuntimeConfig. */
export interface PoolSetting extends KubeObject {
  spec?: { machineConfigPoolSelector?: LabelSelector | null };
  status?: { observedGeneration?: number; conditions?: StatusCondition[] };
}

export interface SettingKind {
  readonly kind: 'KubeletConfig' | 'ContainerRuntimeConfig';
  /** End of the names of generated MachineConfigs, as in `99-worker-generated-kubelet`. */
  readonly suffix: 'kubelet' | 'containerruntime';
  /** Name of the kind in messages. */
  readonly text: string;
}

const MAX_SUFFIX = 9;
const MAX_CONDITIONS = 3;

export interface GeneratedFile {
  readonly path: string;
  readonly text: string;
}

export interface GeneratedPlan {
  readonly configs: readonly MachineConfig[];
  /** Value to write to the annotation NAME_SUFFIX; undefined if the object already has the annotation. */
  readonly suffix: string | undefined;
}

export interface GeneratedInput {
  /** All settings of the kind. */
  readonly settings: readonly PoolSetting[];
  readonly pools: readonly MachineConfigPool[];
  /** Files to generate. */
  readonly files: readonly GeneratedFile[];
  /** Version of the controller, for an annotation of the configs. */
  readonly version: string;
}

/** Plans the MachineConfigs of a setting. */
export function planGenerated(
  setting: PoolSetting,
  kind: SettingKind,
  { settings, pools, files, version }: GeneratedInput,
): GeneratedPlan | { readonly error: string } {
  const selector = setting.spec?.machineConfigPoolSelector;
  const own = pools.filter(({ metadata }) => selectsNode(selector, metadata?.labels));
  if (own.length === 0) return { error: `Error: could not find any MachineConfigPool set for ${kind.text}` };
  const suffix = suffixOf(setting, kind, settings, own);
  if (typeof suffix !== 'string') return suffix;
  const ending = suffix === '' ? '' : `-${suffix}`;
  const owner = { group: MACHINE_CONFIG_GROUP, version: 'v1', kind: kind.kind };
  const configs = own.map((pool) => {
    const name = `99-${nameOf(pool)}-generated-${kind.suffix}${ending}`;
    const config = generatedConfig(name, nameOf(pool), version, { storage: { files: files.map(ignitionFile) } });
    return { ...config, metadata: { ...config.metadata, ownerReferences: [controllerReference(setting, owner)] } };
  });
  return { configs, suffix: setting.metadata?.annotations?.[NAME_SUFFIX] === undefined ? suffix : undefined };
}

/**
 * Suffix for the names of a setting's MachineConfigs: empty for the first setting of a pool, and the next free number
 * for each later one. MachineConfigs are merged in name order, so the newest setting takes precedence.
 */
function suffixOf(
  setting: PoolSetting,
  kind: SettingKind,
  settings: readonly PoolSetting[],
  pools: readonly MachineConfigPool[],
): string | { readonly error: string } {
  const known = setting.metadata?.annotations?.[NAME_SUFFIX];
  if (known !== undefined)
    return /^[1-9]?$/.test(known) ? known : { error: `Error: annotation ${NAME_SUFFIX}: ${known}` };
  const others = settings.filter(
    (other) =>
      nameOf(other) !== nameOf(setting) &&
      pools.some(({ metadata }) => selectsNode(other.spec?.machineConfigPoolSelector, metadata?.labels)),
  );
  const used = others.flatMap(({ metadata }) => metadata?.annotations?.[NAME_SUFFIX] ?? []);
  if (used.length === 0) return '';
  const next = Math.max(...used.map(Number)) + 1;
  if (next <= MAX_SUFFIX) return String(next);
  return {
    error: `could not get ${kind.text} key: max number of supported ${kind.text} (10) has been reached. Please delete old ${kind.text}s before retrying`,
  };
}

const ignitionFile = ({ path, text }: GeneratedFile) => ({
  path,
  mode: 0o644,
  overwrite: true,
  contents: { source: `data:text/plain,${encodeURIComponent(text)}`, compression: '' },
});

/**
 * Status with the result of an attempt; undefined if nothing changes. Only the last three different results are kept.
 */
export function withResult(
  { metadata, status }: PoolSetting,
  error: string | undefined,
  nowMs: number,
): NonNullable<PoolSetting['status']> | undefined {
  const result: StatusCondition =
    error === undefined
      ? { type: 'Success', status: 'True', message: 'Success' }
      : { type: 'Failure', status: 'False', message: error };
  const conditions = status?.conditions ?? [];
  const observedGeneration = metadata?.generation ?? 0;
  const last = conditions.at(-1);
  const isSame = last?.message === result.message && last?.type === result.type;
  if (isSame && status?.observedGeneration === observedGeneration) return undefined;
  const kept = isSame ? conditions.slice(0, -1) : conditions;
  return {
    observedGeneration,
    conditions: [...kept, { ...result, lastTransitionTime: timestamp(nowMs) }].slice(-MAX_CONDITIONS),
  };
}

/** Whether a finalizer is the name of a MachineConfig that was generated from this kind of setting. */
export const isFragmentName = (finalizer: string, { suffix }: SettingKind): boolean =>
  new RegExp(`^99-.+-generated-${suffix}(-[1-9])?$`).test(finalizer);
