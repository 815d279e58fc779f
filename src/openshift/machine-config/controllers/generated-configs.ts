/**
 * Generates MachineConfigs for pools from the KubeletConfigs and ContainerRuntimeConfigs that select the pools. The
 * plan is made in `core/pools/generated.ts`. Source: pkg/controller/{kubelet-config,container-runtime-config} of
 * openshift/machine-config-operator.
 */

import { semanticEqual } from '../../../api/meta/equality.ts';
import type { ResourceType } from '../../../api/meta/object.ts';
import { resources } from '../../../api/resources.ts';
import type { Informer, ResourceClient } from '../../../client/types.ts';
import { ControllerTerm } from '../../../controllers/framework/controller-term.ts';
import { controllerOf } from '../../../controllers/framework/core/ownership.ts';
import type { ControllerHandle, ControllerSpec, RunScope } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import {
  isFragmentName,
  type PoolSetting,
  planGenerated,
  type SettingKind,
  withResult,
} from '../core/pools/generated.ts';
import { type Files, KUBELET_KIND, kubeletFiles, RUNTIME_KIND, runtimeFiles } from '../core/pools/node-settings.ts';
import { nameOf } from '../core/pools/pools.ts';
import { type MachineConfig, type MachineConfigPool, NAME_SUFFIX } from '../kinds/machine-config-types.ts';

function generatingController<T extends PoolSetting>(
  name: string,
  eventSource: string,
  type: ResourceType<T>,
  kind: SettingKind,
  filesOf: (setting: T) => Files,
): ControllerSpec {
  return {
    name,
    eventSource,
    reads: [type, resources.machineConfigPools, resources.machineConfigs],
    writes: [type, resources.machineConfigs],
    uses: ['machineConfig'],
    prepare: (handle) => {
      const settings = handle.informer(type);
      const pools = handle.informer(resources.machineConfigPools);
      const configs = handle.informer(resources.machineConfigs);
      const client = handle.writer(type);
      return (scope) =>
        new GeneratingController(handle, scope, {
          kind,
          filesOf,
          client,
          copies: { settings, pools, configs },
        }).start();
    },
  };
}

export const kubeletConfigController = generatingController(
  'kubelet-config',
  'machineconfigcontroller-kubeletconfigcontroller',
  resources.kubeletConfigs,
  KUBELET_KIND,
  kubeletFiles,
);

export const containerRuntimeConfigController = generatingController(
  'container-runtime-config',
  'machineconfigcontroller-containerruntimeconfigcontroller',
  resources.containerRuntimeConfigs,
  RUNTIME_KIND,
  runtimeFiles,
);

interface Copies<T extends PoolSetting> {
  readonly settings: Informer<T>;
  readonly pools: Informer<MachineConfigPool>;
  readonly configs: Informer<MachineConfig>;
}

interface Generation<T extends PoolSetting> {
  readonly kind: SettingKind;
  readonly filesOf: (setting: T) => Files;
  readonly client: ResourceClient<T>;
  readonly copies: Copies<T>;
}

class GeneratingController<T extends PoolSetting> extends ControllerTerm {
  readonly #kind: SettingKind;
  readonly #filesOf: (setting: T) => Files;
  readonly #client: ResourceClient<T>;
  readonly #configClient: ResourceClient<MachineConfig>;
  readonly #copies: Copies<T>;

  constructor(handle: ControllerHandle, scope: RunScope, { kind, filesOf, client, copies }: Generation<T>) {
    // Use one worker only, because the name suffix of an object depends on the suffixes of the other objects.
    super(handle, scope, 1);
    this.#kind = kind;
    this.#filesOf = filesOf;
    this.#client = client;
    this.#configClient = handle.writer(resources.machineConfigs);
    this.#copies = copies;
  }

  override start(): void {
    const { scope } = this;
    const { settings, pools, configs } = this.#copies;
    const wake = (setting: T): void => this.queue.add(nameOf(setting));
    const wakeAll = (): void => settings.list().forEach(wake);
    scope.onChange(settings, { added: wake, updated: wake });
    scope.onChange(pools, {
      added: wakeAll,
      updated: (pool, old) => {
        if (!semanticEqual(pool.metadata?.labels, old.metadata?.labels)) wakeAll();
      },
      deleted: wakeAll,
    });
    const wakeOwner = (config: MachineConfig): void => {
      const owner = controllerOf(config);
      if (owner?.kind === this.#kind.kind) this.queue.add(owner.name);
    };
    scope.onChange(configs, { updated: wakeOwner, deleted: wakeOwner });
  }

  protected override async sync(name: string): Promise<void> {
    if (this.#copies.settings.get(name) === undefined) return;
    await ignoreNotFound(async () => {
      // List the objects from the server, because the informer may lack a suffix that another object has just received.
      const { items } = await this.#client.list();
      const setting = items.find((each) => nameOf(each) === name);
      if (setting === undefined) return;
      if (setting.metadata?.deletionTimestamp !== undefined) await this.#release(setting, []);
      else await this.#generate(setting, items);
    });
  }

  async #generate(setting: T, all: readonly T[]): Promise<void> {
    const made = this.#filesOf(setting);
    const pools = this.#copies.pools.list();
    const { version } = this.handle.use('machineConfig');
    const plan =
      'error' in made ? made : planGenerated(setting, this.#kind, { settings: all, pools, files: made.files, version });
    if ('error' in plan) {
      // MachineConfigs that were generated earlier stay unchanged, as in upstream.
      await this.#report(setting, plan.error);
      return;
    }
    const named = await this.#holdNames(setting, plan.configs.map(nameOf), plan.suffix);
    for (const config of plan.configs) await this.#write(config);
    await this.#release(named, plan.configs.map(nameOf));
    await this.#report(named, undefined);
  }

  /**
   * Writes the names of the MachineConfigs as finalizers, and the name suffix, before the MachineConfigs are created.
   * After a crash, the MachineConfigs can therefore be found and deleted.
   */
  async #holdNames(setting: T, names: readonly string[], suffix: string | undefined): Promise<T> {
    const finalizers = setting.metadata?.finalizers ?? [];
    const missing = names.filter((each) => !finalizers.includes(each));
    if (missing.length === 0 && suffix === undefined) return setting;
    const annotations = {
      ...setting.metadata?.annotations,
      ...(suffix === undefined ? {} : { [NAME_SUFFIX]: suffix }),
    };
    const metadata = { ...setting.metadata, annotations, finalizers: [...finalizers, ...missing] };
    return this.#client.update({ ...setting, metadata });
  }

  async #write(config: MachineConfig): Promise<void> {
    const stored = this.#copies.configs.get(nameOf(config));
    if (stored === undefined) {
      await this.#configClient.create(config);
      this.handle.log.info('generated MachineConfig written', { config: nameOf(config) });
    } else if (
      !semanticEqual([stored.spec, stored.metadata?.annotations], [config.spec, config.metadata?.annotations])
    ) {
      await this.#configClient.update({ ...config, metadata: { ...stored.metadata, ...config.metadata } });
      this.handle.log.info('generated MachineConfig written', { config: nameOf(config) });
    }
  }

  /** Deletes generated MachineConfigs that are not in `wanted`, and then the finalizers with their names. */
  async #release(setting: T, wanted: readonly string[]): Promise<void> {
    const finalizers = setting.metadata?.finalizers ?? [];
    const old = finalizers.filter((each) => isFragmentName(each, this.#kind) && !wanted.includes(each));
    if (old.length === 0) return;
    for (const name of old) {
      await ignoreNotFound(() => this.#configClient.delete(name));
      this.handle.log.info('fragment deleted', { config: name });
    }
    const kept = finalizers.filter((each) => !old.includes(each));
    await this.#client.patch(nameOf(setting), undefined, 'merge', { metadata: { finalizers: kept } });
  }

  async #report(setting: T, error: string | undefined): Promise<void> {
    const status = withResult(setting, error, this.handle.clock.nowMs());
    if (status === undefined) return;
    if (error !== undefined) this.handle.recorder.event(setting, 'Warning', 'Failure', error);
    await this.#client.patch(nameOf(setting), undefined, 'merge', { status }, { subresource: 'status' });
  }
}
