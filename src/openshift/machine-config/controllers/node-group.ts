/**
 * Creates KubeletConfigs from node groups, so that pools apply the kubelet arguments of the groups. Hosts apply the
 * labels and the arguments that a KubeletConfig does not support. The plan is made in
 * openshift/machine-config/core/pools/node-group.
 */
import type { ConfigMap, Node } from '../../../api/generated/core/v1.ts';
import { GROUP_BY_POOLS, NODE_GROUPS } from '../../../api/kinds/nodes/nodes/own-labels.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { resources } from '../../../api/resources.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Informer } from '../../../client/types.ts';
import { ControllerTerm } from '../../../controllers/framework/controller-term.ts';
import { createUnlessPresent } from '../../../controllers/framework/create-unless-present.ts';
import type { ControllerHandle, ControllerSpec, RunScope } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { kubeletFields } from '../core/pools/kubelet-fields.ts';
import { type GroupPlan, planNodeGroup } from '../core/pools/node-group.ts';
import { nameOf } from '../core/pools/pools.ts';
import type { KubeletConfig, MachineConfigPool } from '../kinds/machine-config-types.ts';

export const nodeGroupController: ControllerSpec = {
  name: 'node-group',
  eventSource: 'machineconfigcontroller-nodegroupcontroller',
  reads: [resources.configMaps, resources.nodes, resources.machineConfigPools, resources.kubeletConfigs],
  writes: [resources.configMaps, resources.machineConfigPools, resources.kubeletConfigs],
  uses: ['machineConfig'],
  prepare: (handle) => {
    const copies: Copies = {
      groups: handle.informer(resources.configMaps, { namespace: NODE_GROUPS.namespace }),
      nodes: handle.informer(resources.nodes),
      pools: handle.informer(resources.machineConfigPools),
      kubeletConfigs: handle.informer(resources.kubeletConfigs),
    };
    return (scope) => new NodeGroupController(handle, scope, copies).start();
  },
};

interface Copies {
  readonly groups: Informer<ConfigMap>;
  readonly nodes: Informer<Node>;
  readonly pools: Informer<MachineConfigPool>;
  readonly kubeletConfigs: Informer<KubeletConfig>;
}

class NodeGroupController extends ControllerTerm {
  readonly #copies: Copies;
  /** Problem of each group that was last reported, by name of the group. */
  readonly #reported = new Map<string, string>();

  constructor(handle: ControllerHandle, scope: RunScope, copies: Copies) {
    super(handle, scope, 1);
    this.#copies = copies;
  }

  override start(): void {
    const { scope } = this;
    const { groups, nodes, pools, kubeletConfigs } = this.#copies;
    const wake = (group: ConfigMap): void => this.queue.add(nameOf(group));
    const wakeAll = (): void => groups.list().forEach(wake);
    scope.onChange(groups, { added: wake, updated: wake });
    scope.onChange(nodes, {
      added: wakeAll,
      updated: (node, old) => {
        if (!semanticEqual(node.metadata?.labels, old.metadata?.labels)) wakeAll();
      },
    });
    scope.onChange(pools, { added: wakeAll, updated: wakeAll, deleted: wakeAll });
    scope.onChange(kubeletConfigs, { added: wakeAll, updated: wakeAll, deleted: wakeAll });
  }

  protected override async sync(name: string): Promise<void> {
    const { groups, nodes, pools, kubeletConfigs } = this.#copies;
    const group = groups.get(`${NODE_GROUPS.namespace}/${name}`);
    const text = group?.data?.[NODE_GROUPS.key];
    if (group === undefined || text === undefined || group.metadata?.deletionTimestamp !== undefined) return;
    let plan: GroupPlan;
    try {
      const { config } = kubeletFields(this.handle.use('machineConfig').nodeArguments(text));
      const byPools = group.metadata?.annotations?.[GROUP_BY_POOLS] !== undefined;
      const facts = { nodes: nodes.list(), pools: pools.list(), kubeletConfigs: kubeletConfigs.list() };
      plan = planNodeGroup({ name, config, byPools }, facts);
    } catch (error) {
      // The NodeConfig is invalid, so the last valid one stays in effect.
      this.#report(group, messageOf(error));
      return;
    }
    this.#report(group, plan.problem);
    await this.#carryOut(group, plan);
  }

  async #carryOut(group: ConfigMap, plan: GroupPlan): Promise<void> {
    const { pool, kubeletConfig, labelled, label } = plan;
    const pools = this.handle.writer(resources.machineConfigPools);
    const settings = this.handle.writer(resources.kubeletConfigs);
    for (const name of labelled) await pools.patch(name, undefined, 'merge', { metadata: { labels: { [label]: '' } } });
    if (pool !== undefined) {
      await createUnlessPresent(() => pools.create(pool));
      this.handle.log.info('pool of a node group created', { group: nameOf(group), pool: nameOf(pool) });
    }
    if (kubeletConfig !== undefined) {
      const stored = this.#copies.kubeletConfigs.get(nameOf(kubeletConfig));
      if (stored === undefined) await createUnlessPresent(() => settings.create(kubeletConfig));
      else await settings.update({ ...stored, spec: kubeletConfig.spec ?? {} });
      this.handle.log.info('node group written as a KubeletConfig', { group: nameOf(group) });
    }
    if (plan.deletes === true) await ignoreNotFound(() => settings.delete(nameOf(group)));
    await this.#mark(group, plan.byPools);
  }

  async #mark(group: ConfigMap, byPools: boolean): Promise<void> {
    if ((group.metadata?.annotations?.[GROUP_BY_POOLS] !== undefined) === byPools) return;
    const annotations = { [GROUP_BY_POOLS]: byPools ? 'true' : null };
    await this.handle
      .writer(resources.configMaps)
      .patch(nameOf(group), NODE_GROUPS.namespace, 'merge', { metadata: { annotations } });
  }

  #report(group: ConfigMap, problem: string | undefined): void {
    const name = nameOf(group);
    if (problem === undefined) this.#reported.delete(name);
    if (problem === undefined || this.#reported.get(name) === problem) return;
    this.#reported.set(name, problem);
    this.handle.recorder.event(
      { ...group, apiVersion: 'v1', kind: 'ConfigMap' },
      'Warning',
      'NodeGroupNotByPools',
      problem,
    );
  }
}
