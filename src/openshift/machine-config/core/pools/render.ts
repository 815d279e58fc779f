/**
 * Renders the MachineConfig of a pool. The fragments are merged by openshift/machine-config/core/ignition. Source:
 * pkg/controller/render of openshift/machine-config-operator.
 */
import type { ObjectReference } from '../../../../api/generated/core/v1.ts';
import { jsonIgnoringEmptyLists } from '../../../../controllers/framework/core/equality.ts';
import { controllerReference } from '../../../../controllers/framework/core/ownership.ts';
import {
  GENERATED_BY,
  MACHINE_CONFIG_GROUP,
  type MachineConfig,
  type MachineConfigPool,
  type MachineConfigSpec,
  type PoolConfiguration,
  RELEASE_VERSION,
  ROLE_LABEL,
} from '../../kinds/machine-config-types.ts';
import { nameOf, selectsNode } from './pools.ts';

const POOL = { group: MACHINE_CONFIG_GROUP, version: 'v1', kind: 'MachineConfigPool' };
const API_VERSION = `${MACHINE_CONFIG_GROUP}/v1`;

export interface PoolFragment {
  readonly name: string;
  readonly role: string;
  readonly spec: MachineConfigSpec;
}

export interface RenderTools {
  /** Merges fragments, which may be in any order. */
  readonly merge: (fragments: readonly PoolFragment[]) => { readonly spec: object } | { readonly error: string };
  readonly md5: (text: string) => string;
  /** Version of this release. */
  readonly version: string;
}

export type Rendered =
  | { readonly config: MachineConfig; readonly configuration: PoolConfiguration }
  | { readonly error: string };

/** Fragments that the pool selects. Rendered configurations are excluded, even if their labels match. */
export function fragmentsOf(pool: MachineConfigPool, configs: readonly MachineConfig[]): MachineConfig[] {
  return configs
    .filter(
      (config) =>
        selectsNode(pool.spec?.machineConfigSelector, config.metadata?.labels) &&
        config.metadata?.deletionTimestamp === undefined,
    )
    .toSorted((left, right) => (nameOf(left) < nameOf(right) ? -1 : 1));
}

/**
 * Renders the configuration of the pool.
 *
 * @param configs All MachineConfigs of the cluster.
 */
export function renderPool(pool: MachineConfigPool, configs: readonly MachineConfig[], tools: RenderTools): Rendered {
  const fragments = fragmentsOf(pool, configs);
  if (fragments.length === 0)
    return {
      error: `no MachineConfigs found matching selector ${jsonIgnoringEmptyLists(pool.spec?.machineConfigSelector ?? null)}`,
    };
  const merged = tools.merge(
    fragments.map((config) => ({
      name: nameOf(config),
      role: config.metadata?.labels?.[ROLE_LABEL] ?? '',
      spec: config.spec ?? {},
    })),
  );
  if ('error' in merged) return merged;
  const name = `rendered-${nameOf(pool)}-${tools.md5(jsonIgnoringEmptyLists(merged.spec))}`;
  const source = fragments.map(
    (config): ObjectReference => ({ apiVersion: API_VERSION, kind: 'MachineConfig', name: nameOf(config) }),
  );
  return {
    config: {
      apiVersion: API_VERSION,
      kind: 'MachineConfig',
      metadata: {
        name,
        annotations: { [GENERATED_BY]: tools.version, [RELEASE_VERSION]: tools.version },
        ownerReferences: [controllerReference(pool, POOL)],
      },
      spec: merged.spec,
    },
    configuration: { name, source },
  };
}

/**
 * Rendered configurations of the pool that can be deleted, oldest first. Configurations in `used` are kept, and in
 * addition the newest `kept` unused ones.
 */
export function unusedRendered(
  pool: MachineConfigPool,
  configs: readonly MachineConfig[],
  used: ReadonlySet<string>,
  kept: number,
): MachineConfig[] {
  const own = configs
    .filter(
      (config) =>
        nameOf(config).startsWith(`rendered-${nameOf(pool)}-`) &&
        (config.metadata?.ownerReferences ?? []).some(({ uid }) => uid === pool.metadata?.uid),
    )
    .toSorted((left, right) =>
      (left.metadata?.creationTimestamp ?? '') < (right.metadata?.creationTimestamp ?? '') ? -1 : 1,
    );
  const unused = own.filter((config) => !used.has(nameOf(config)));
  return unused.slice(0, Math.max(0, unused.length - kept));
}
