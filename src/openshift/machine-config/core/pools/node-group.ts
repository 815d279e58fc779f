/**
 * Converts node groups to KubeletConfigs. The arguments in the NodeConfig of a group become a KubeletConfig for the
 * pools that have the label of the group. Masters stay in their pool. The workers of a group get a pool of their own.
 */
import type { Node } from '../../../../api/generated/core/v1.ts';
import { GROUP_LABEL } from '../../../../api/kinds/nodes/nodes/own-labels.ts';
import { semanticEqual } from '../../../../api/meta/equality.ts';
import type { JsonObject } from '../../../../api/meta/object.ts';
import {
  type KubeletConfig,
  MACHINE_CONFIG_GROUP,
  MASTER_POOL,
  type MachineConfigPool,
  OF_GROUP,
  ROLE_LABEL,
  WORKER_POOL,
} from '../../kinds/machine-config-types.ts';
import { nameOf, poolOfNode } from './pools.ts';

const POOL_LABEL = 'node-group.hyperedge.dev/';
const PREFIX = 'node-config-';
const MAX_LABEL_NAME = 63;
const API_VERSION = `${MACHINE_CONFIG_GROUP}/v1`;

export interface NodeGroup {
  /** Name of the group's ConfigMap. */
  readonly name: string;
  /** Fields of a KubeletConfiguration; empty if the NodeConfig has no arguments that correspond to fields. */
  readonly config: JsonObject;
  /** Whether pools already apply these arguments, so that the hosts of the group do not. */
  readonly byPools: boolean;
}

export interface GroupPlan {
  readonly labelled: readonly string[];
  readonly label: string;
  readonly pool?: MachineConfigPool;
  readonly kubeletConfig?: KubeletConfig;
  readonly deletes?: boolean;
  readonly byPools: boolean;
  /** Reason why the hosts of the group must still apply the arguments themselves. */
  readonly problem?: string;
}

export interface PoolFacts {
  readonly nodes: readonly Node[];
  readonly pools: readonly MachineConfigPool[];
  readonly kubeletConfigs: readonly KubeletConfig[];
}

/** Plans the next step only. Writing this step triggers the controller again. */
export function planNodeGroup(group: NodeGroup, facts: PoolFacts): GroupPlan {
  const label = `${POOL_LABEL}${group.name}`;
  const nothing = { labelled: [], label, byPools: group.byPools };
  const left = (problem: string): GroupPlan => ({ labelled: [], label, byPools: false, problem });
  if (group.name.length > MAX_LABEL_NAME) return left(`the name has more than ${MAX_LABEL_NAME} characters`);
  const isOfGroup = (pool: MachineConfigPool): boolean => Object.hasOwn(pool.metadata?.labels ?? {}, label);
  const members = facts.nodes
    .filter(({ metadata }) => metadata?.labels?.[GROUP_LABEL] === group.name)
    .flatMap((node) => poolOfNode(node, facts.pools).pool ?? []);
  const others = [...new Set(members.filter((pool) => !isOfGroup(pool)))];
  const custom = others.find((pool) => ![MASTER_POOL, WORKER_POOL].includes(nameOf(pool)));
  if (custom !== undefined) {
    const name = nameOf(custom);
    return left(
      `nodes of the group are in pool ${name}; to apply the group to the pool, run: oc label mcp ${name} ${label}=`,
    );
  }
  const stored = facts.kubeletConfigs.find((each) => nameOf(each) === group.name);
  const isOwn = stored?.metadata?.annotations?.[OF_GROUP] === group.name;
  if (Object.keys(group.config).length === 0)
    return { labelled: [], label, byPools: true, ...(isOwn ? { deletes: true } : {}) };
  if (stored !== undefined && !isOwn) return left(`there is a KubeletConfig ${group.name} already; rename it`);
  if (members.length === 0 && !facts.pools.some(isOfGroup)) return nothing;
  const isWorkers = others.some((pool) => nameOf(pool) === WORKER_POOL);
  const pool = isWorkers ? poolOf(group.name, label) : undefined;
  if (pool !== undefined && facts.pools.some((each) => nameOf(each) === nameOf(pool))) {
    const name = nameOf(pool);
    return left(
      `pool ${name} does not contain the nodes of the group; select them by ${GROUP_LABEL} or rename the group`,
    );
  }
  const labelled = others.map(nameOf).filter((name) => name === MASTER_POOL);
  const wanted = kubeletConfigOf(group, label);
  const isWritten = semanticEqual(stored?.spec, wanted.spec);
  const byPools =
    group.byPools || (isWritten && others.length === 0 && isRolled(stored, facts.pools.filter(isOfGroup)));
  return {
    labelled,
    label,
    byPools,
    ...(pool === undefined ? {} : { pool }),
    ...(isWritten ? {} : { kubeletConfig: wanted }),
  };
}

function poolOf(group: string, label: string): MachineConfigPool {
  const name = group.startsWith(PREFIX) && group.length > PREFIX.length ? group.slice(PREFIX.length) : group;
  return {
    apiVersion: API_VERSION,
    kind: 'MachineConfigPool',
    metadata: {
      name,
      annotations: { [OF_GROUP]: group },
      labels: { [label]: '', [`pools.operator.${MACHINE_CONFIG_GROUP}/${name}`]: '' },
    },
    spec: {
      machineConfigSelector: { matchExpressions: [{ key: ROLE_LABEL, operator: 'In', values: [WORKER_POOL, name] }] },
      nodeSelector: { matchLabels: { [GROUP_LABEL]: group } },
    },
  };
}

const kubeletConfigOf = ({ name, config }: NodeGroup, label: string): KubeletConfig => ({
  apiVersion: API_VERSION,
  kind: 'KubeletConfig',
  metadata: { name, annotations: { [OF_GROUP]: name } },
  spec: { machineConfigPoolSelector: { matchLabels: { [label]: '' } }, kubeletConfig: config },
});

/** Whether all hosts of the pools run a configuration that includes the settings of the group. */
function isRolled(stored: KubeletConfig | undefined, pools: readonly MachineConfigPool[]): boolean {
  const fragments = stored?.metadata?.finalizers ?? [];
  return pools.every(({ spec, status }) => {
    const has = status?.configuration?.source?.some(({ name }) => fragments.includes(name ?? '')) === true;
    const updated = status?.conditions?.some(({ type, status: is }) => type === 'Updated' && is === 'True') === true;
    return has && updated && status?.configuration?.name === spec?.configuration?.name;
  });
}
