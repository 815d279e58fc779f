/**
 * Assigns the pool's configuration to its nodes, a few at a time, and reports the progress in the status of the pool.
 * The plans are made in openshift/machine-config/core/pools. Source: pkg/controller/node of
 * openshift/machine-config-operator.
 */
import type { Node, Taint } from '../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import type { KubeObject } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import { KUBERNETES_VERSION } from '../../../base/versions/version.ts';
import { kubeletSkewState } from '../../../base/versions/version-skew.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../../controllers/framework/controller-term.ts';
import type { ControllerHandle, ControllerSpec, RunScope } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { firstConfiguration, nextNodes } from '../core/pools/candidates.ts';
import { annotationOf, unreadiness } from '../core/pools/node-state.ts';
import { isEmptySelector, nameOf, nodesByPool, poolOfNode } from '../core/pools/pools.ts';
import { poolStatus } from '../core/pools/status.ts';
import {
  CONFIG_REASON,
  CONFIG_STATE,
  CURRENT_CONFIG,
  DESIRED_CONFIG,
  MASTER_POOL,
  type MachineConfigPool,
  TOPOLOGY,
  UPDATE_TAINT,
} from '../kinds/machine-config-types.ts';

export const machineConfigNodeController: ControllerSpec = {
  name: 'machine-config-node',
  eventSource: 'machineconfigcontroller-nodecontroller',
  reads: [resources.machineConfigPools, resources.nodes],
  writes: [resources.machineConfigPools, resources.nodes],
  uses: ['machineConfig'],
  prepare: (handle) => {
    const pools = handle.informer(resources.machineConfigPools);
    const nodes = handle.informer(resources.nodes);
    return (scope) => new NodeController(handle, scope, pools, nodes).start();
  },
};

/** Single key of the work queue. All pools are planned together, because a node may move between pools. */
const ALL = 'all';
const HARMLESS = new Set(['DeferringEtcdLeaderUpdate', 'KubeletSkewPresent']);

class NodeController extends ControllerTerm {
  readonly #pools: Informer<MachineConfigPool>;
  readonly #nodes: Informer<Node>;
  readonly #poolClient: ResourceClient<MachineConfigPool>;
  readonly #nodeClient: ResourceClient<Node>;
  /**
   * Nodes as last written, by name. They may be newer than the informer's copies, and a node that got a new
   * configuration must count as unavailable immediately.
   */
  readonly #written = new Map<string, Node>();
  readonly #reported = new Map<string, string>();

  constructor(handle: ControllerHandle, scope: RunScope, pools: Informer<MachineConfigPool>, nodes: Informer<Node>) {
    super(handle, scope, 1);
    this.#pools = pools;
    this.#nodes = nodes;
    this.#poolClient = handle.writer(resources.machineConfigPools);
    this.#nodeClient = handle.writer(resources.nodes);
  }

  override start(): void {
    const { scope } = this;
    const wake = (): void => this.queue.add(ALL);
    scope.onChange(this.#pools, { added: wake, updated: wake, deleted: wake });
    scope.onChange(this.#nodes, {
      added: wake,
      updated: (node, old) => {
        if (!semanticEqual(facts(node), facts(old))) wake();
      },
      deleted: wake,
    });
  }

  protected override async sync(): Promise<void> {
    const pools = this.#pools.list();
    const nodes = this.#nodes.list().map((node) => this.#newest(node));
    for (const name of this.#written.keys()) if (this.#nodes.get(name) === undefined) this.#written.delete(name);
    this.#reportDisputed(nodes, pools);
    this.#reportSkew(nodes);
    const members = nodesByPool(nodes, pools);
    const masters = members.get(MASTER_POOL)?.length ?? 0;
    for (const pool of pools) {
      const own = members.get(nameOf(pool)) ?? [];
      if ((pool.spec?.configuration?.name ?? '') === '') continue;
      if (isEmptySelector(pool.spec?.nodeSelector)) {
        const message = 'This machineconfigpool is selecting all nodes. A non-empty selector is required.';
        this.#reportOnce(pool, 'SelectingAll', message);
        continue;
      }
      const topology = masters > 1 ? 'HighlyAvailable' : 'SingleReplica';
      for (const node of own) await this.#prepareNode(pool, node, topology);
      await this.#advance(pool, own);
      await this.#writeStatus(pool, own);
    }
  }

  /** Sets a node's first configuration, the topology annotation, and the taint of nodes that wait for an update. */
  async #prepareNode(pool: MachineConfigPool, node: Node, topology: string): Promise<void> {
    const first = firstConfiguration(pool, node);
    const annotations = {
      ...(first === undefined ? {} : { [DESIRED_CONFIG]: first }),
      ...(annotationOf(node, TOPOLOGY) === topology ? {} : { [TOPOLOGY]: topology }),
    };
    const desired = first ?? annotationOf(node, DESIRED_CONFIG);
    const waits = desired !== pool.spec?.configuration?.name && pool.spec?.paused !== true;
    const taints = wantedTaints(node.spec?.taints ?? [], { waits });
    if (Object.keys(annotations).length === 0 && taints === undefined) return;
    await this.#patchNode(node, { metadata: { annotations }, ...(taints === undefined ? {} : { spec: { taints } }) });
  }

  async #advance(pool: MachineConfigPool, nodes: readonly Node[]): Promise<void> {
    const target = pool.spec?.configuration?.name ?? '';
    const { next, deferredLeader } = nextNodes(
      pool,
      nodes.map((node) => this.#newest(node)),
      this.handle.use('machineConfig').storeLeader(),
    );
    if (deferredLeader !== undefined) {
      const message = `Deferring update of etcd leader ${nameOf(deferredLeader)}`;
      this.#reportOnce(pool, 'DeferringEtcdLeaderUpdate', message);
    }
    for (const node of next) {
      const taints = wantedTaints(node.spec?.taints ?? [], { waits: false });
      const metadata = { annotations: { [DESIRED_CONFIG]: target } };
      await this.#patchNode(node, { metadata, ...(taints === undefined ? {} : { spec: { taints } }) });
      this.handle.log.info('configuration assigned to node', {
        pool: nameOf(pool),
        node: nameOf(node),
        config: target,
      });
    }
    if (next.length === 0) return;
    const [only] = next;
    const message =
      next.length === 1 && only !== undefined
        ? `Targeted node ${nameOf(only)} to config ${target}`
        : `Set target for ${next.length} nodes to config ${target}`;
    this.handle.recorder.event(pool, 'Normal', 'SetDesiredConfig', message);
  }

  async #writeStatus(pool: MachineConfigPool, nodes: readonly Node[]): Promise<void> {
    const current = nodes.map((node) => this.#newest(node));
    const status = poolStatus(pool, current, this.handle.clock.nowMs());
    if (semanticEqual(pool.status ?? {}, status)) return;
    await ignoreNotFound(() => this.#poolClient.update({ ...pool, status }, { subresource: 'status' }));
    const name = status.configuration?.name ?? '';
    if (name === '' || name === pool.status?.configuration?.name) return;
    const message = `Pool ${nameOf(pool)} has completed update to ${name}`;
    this.handle.recorder.event(pool, 'Normal', 'Completed', message);
  }

  async #patchNode(node: Node, patch: object): Promise<void> {
    await ignoreNotFound(async () => {
      const { resourceVersion } = node.metadata ?? {};
      const guarded = 'spec' in patch ? { metadata: { resourceVersion } } : {};
      const metadata = { ...guarded.metadata, ...('metadata' in patch ? (patch.metadata as object) : {}) };
      const written = await this.#nodeClient.patch(nameOf(node), undefined, 'merge', { ...patch, metadata });
      this.#written.set(nameOf(node), written);
    });
  }

  #newest(node: Node): Node {
    const own = this.#written.get(nameOf(node));
    const listed = this.#nodes.get(nameOf(node)) ?? node;
    if (own === undefined) return listed;
    if (own.metadata?.uid === listed.metadata?.uid && version(own) > version(listed)) return own;
    this.#written.delete(nameOf(node));
    return listed;
  }

  #reportDisputed(nodes: readonly Node[], pools: readonly MachineConfigPool[]): void {
    for (const node of nodes) {
      const { error } = poolOfNode(node, pools);
      if (error !== undefined) this.#reportOnce(node, 'MultiplePools', error);
      else this.#reported.delete(`${nameOf(node)} MultiplePools`);
    }
  }

  /**
   * Records an Event if a kubelet is older than the API server. Such kubelets are supported, but may block upgrades.
   */
  #reportSkew(nodes: readonly Node[]): void {
    const { gitVersion } = KUBERNETES_VERSION;
    for (const node of nodes) {
      const own = node.status?.nodeInfo?.kubeletVersion ?? '';
      const state = kubeletSkewState(own, gitVersion);
      if (state === 'KubeletSkewPresent' || state === 'KubeletSkewUnsupported')
        this.#reportOnce(node, state, `kubelet ${own} and API server ${gitVersion} differ; upgrade the host`);
      else
        for (const reason of ['KubeletSkewPresent', 'KubeletSkewUnsupported'])
          this.#reported.delete(`${nameOf(node)} ${reason}`);
    }
  }

  #reportOnce(object: KubeObject, reason: string, message: string): void {
    const key = `${nameOf(object)} ${reason}`;
    if (this.#reported.get(key) === message) return;
    this.#reported.set(key, message);
    this.handle.recorder.event(object, HARMLESS.has(reason) ? 'Normal' : 'Warning', reason, message);
    this.handle.log.info('machine config event', { object: nameOf(object), reason, message });
  }
}

const version = ({ metadata }: KubeObject): bigint => BigInt(metadata?.resourceVersion ?? '0');

/** Fields of a Node that the plans read. Changes of other fields, such as heartbeats, trigger no plan. */
const facts = (node: Node): unknown => [
  node.metadata?.labels,
  [CURRENT_CONFIG, DESIRED_CONFIG, CONFIG_STATE, CONFIG_REASON, TOPOLOGY].map((name) => annotationOf(node, name)),
  node.spec?.taints,
  unreadiness(node),
  node.status?.nodeInfo?.kubeletVersion,
  node.metadata?.deletionTimestamp,
];

/** Taints that the node must have; undefined if its taints are already correct. */
function wantedTaints(taints: readonly Taint[], { waits }: { readonly waits: boolean }): readonly Taint[] | undefined {
  const has = taints.some(isUpdateTaint);
  if (has === waits) return undefined;
  return waits ? [...taints, { ...UPDATE_TAINT }] : taints.filter((taint) => !isUpdateTaint(taint));
}

const isUpdateTaint = ({ key, effect }: Taint): boolean => key === UPDATE_TAINT.key && effect === UPDATE_TAINT.effect;
