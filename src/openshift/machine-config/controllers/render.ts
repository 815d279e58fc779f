/**
 * Renders the configuration of each pool from its fragments. The plan is made in
 * openshift/machine-config/core/pools/render. Source: pkg/controller/render of openshift/machine-config-operator.
 */
import type { Node } from '../../../api/generated/core/v1.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { resources } from '../../../api/resources.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../../controllers/framework/controller-term.ts';
import { createUnlessPresent } from '../../../controllers/framework/create-unless-present.ts';
import type { ControllerHandle, ControllerSpec, RunScope } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { isEmptySelector, nameOf } from '../core/pools/pools.ts';
import { renderPool, unusedRendered } from '../core/pools/render.ts';
import { withCondition } from '../core/pools/status.ts';
import {
  CURRENT_CONFIG,
  DESIRED_CONFIG,
  type MachineConfig,
  type MachineConfigPool,
} from '../kinds/machine-config-types.ts';
import type { MachineConfigFacts } from './machine-config-port.ts';

/** Delay before rendering, so that fragments that are written together are rendered once. */
const SETTLE_MS = 100;
/** Number of unused rendered configurations that are kept per pool for comparison. */
const KEPT = 10;

export const machineConfigRenderController: ControllerSpec = {
  name: 'machine-config-render',
  eventSource: 'machineconfigcontroller-rendercontroller',
  reads: [resources.machineConfigs, resources.machineConfigPools, resources.nodes],
  writes: [resources.machineConfigs, resources.machineConfigPools],
  uses: ['machineConfig'],
  prepare: (handle) => {
    const configs = handle.informer(resources.machineConfigs);
    const pools = handle.informer(resources.machineConfigPools);
    const nodes = handle.informer(resources.nodes);
    return (scope) => new RenderController(handle, scope, configs, pools, nodes).start();
  },
};

class RenderController extends ControllerTerm {
  readonly #facts: MachineConfigFacts;
  readonly #configs: Informer<MachineConfig>;
  readonly #pools: Informer<MachineConfigPool>;
  readonly #nodes: Informer<Node>;
  readonly #configClient: ResourceClient<MachineConfig>;
  readonly #poolClient: ResourceClient<MachineConfigPool>;

  constructor(
    handle: ControllerHandle,
    scope: RunScope,
    configs: Informer<MachineConfig>,
    pools: Informer<MachineConfigPool>,
    nodes: Informer<Node>,
  ) {
    super(handle, scope, 1);
    this.#facts = handle.use('machineConfig');
    this.#configs = configs;
    this.#pools = pools;
    this.#nodes = nodes;
    this.#configClient = handle.writer(resources.machineConfigs);
    this.#poolClient = handle.writer(resources.machineConfigPools);
  }

  override start(): void {
    const { scope } = this;
    const wake = (pool: MachineConfigPool): void => this.queue.addAfter(nameOf(pool), SETTLE_MS);
    scope.onChange(this.#pools, {
      added: wake,
      updated: (pool, old) => {
        if (!semanticEqual(pool.spec, old.spec)) wake(pool);
      },
    });
    // A change of labels may remove a fragment from the selector of any pool, so every pool is checked.
    const wakeAll = (): void => this.#pools.list().forEach(wake);
    scope.onChange(this.#configs, {
      added: wakeAll,
      updated: (config, old) => {
        if (!semanticEqual([config.spec, config.metadata?.labels], [old.spec, old.metadata?.labels])) wakeAll();
      },
      deleted: wakeAll,
    });
  }

  protected override async sync(name: string): Promise<void> {
    const pool = this.#pools.get(name);
    if (pool === undefined || pool.metadata?.deletionTimestamp !== undefined) return;
    if (isEmptySelector(pool.spec?.machineConfigSelector)) {
      const message = 'This machineconfigpool is selecting all machineconfigs. A non-empty selector is required.';
      this.handle.recorder.event(pool, 'Warning', 'SelectingAll', message);
      return;
    }
    const rendered = renderPool(pool, this.#configs.list(), this.#facts);
    if ('error' in rendered) {
      await this.#setDegraded(name, `Failed to render configuration for pool ${name}: ${rendered.error}`);
      return;
    }
    const { config, configuration } = rendered;
    if (this.#configs.get(nameOf(config)) === undefined) await this.#create(pool, config);
    if (!semanticEqual(pool.spec?.configuration, configuration)) {
      await this.#poolClient.patch(name, undefined, 'merge', { spec: { configuration } });
      this.handle.log.info('pool has a new configuration', { pool: name, config: nameOf(config) });
    }
    await this.#setDegraded(name, undefined);
    await this.#removeUnused(pool, nameOf(config));
  }

  async #create(pool: MachineConfigPool, config: MachineConfig): Promise<void> {
    await createUnlessPresent(() => this.#configClient.create(config));
    const { version } = this.#facts;
    const message = `${nameOf(config)} successfully generated (release version: ${version}, controller version: ${version})`;
    this.handle.recorder.event(pool, 'Normal', 'RenderedConfigGenerated', message);
  }

  /**
   * Sets the condition RenderDegraded of a pool. The pool is read from the server, because other controllers also write
   * its status.
   */
  async #setDegraded(name: string, message: string | undefined): Promise<void> {
    const known = this.#pools.get(name)?.status?.conditions ?? [];
    const wanted = {
      type: 'RenderDegraded',
      status: message === undefined ? 'False' : 'True',
      reason: '',
      message: message ?? '',
    };
    const nowMs = this.handle.clock.nowMs();
    if (withCondition(known, wanted, nowMs) === known) return;
    await ignoreNotFound(async () => {
      const pool = await this.#poolClient.get(name);
      const current = pool.status?.conditions ?? [];
      const conditions = [...withCondition(current, wanted, nowMs)];
      if (message !== undefined) this.handle.log.warn('pool not rendered', { pool: name, error: message });
      await this.#poolClient.update({ ...pool, status: { ...pool.status, conditions } }, { subresource: 'status' });
    });
  }

  async #removeUnused(pool: MachineConfigPool, current: string): Promise<void> {
    const used = new Set([current]);
    for (const { metadata } of this.#nodes.list())
      for (const key of [CURRENT_CONFIG, DESIRED_CONFIG]) used.add(metadata?.annotations?.[key] ?? '');
    for (const { spec, status } of this.#pools.list())
      for (const each of [spec, status]) used.add(each?.configuration?.name ?? '');
    for (const config of unusedRendered(pool, this.#configs.list(), used, KEPT)) {
      const { uid } = config.metadata ?? {};
      await ignoreNotFound(() =>
        this.#configClient.delete(nameOf(config), undefined, uid === undefined ? {} : { preconditions: { uid } }),
      );
      this.handle.log.info('unused configuration deleted', { pool: nameOf(pool), config: nameOf(config) });
    }
  }
}
