import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { together } from '../../../base/concurrency/all-or-first-error.ts';
import { Turns } from '../../../base/concurrency/keyed-turns.ts';
import { ignore, messageOf } from '../../../base/errors.ts';
import { RuntimeError, type SandboxConfig, type SandboxStatus } from '../../port.ts';
import type { PodEndpoint } from '../port.ts';
import { isRunning } from '../processes.ts';
import { createForwards, type Forwards } from '../streams/port-connect.ts';
import type { Containers } from './containers.ts';
import type { RuntimeContext } from './context.ts';
import { newId, type SandboxRecord, saveEnd, saveFirstRecord } from './records.ts';
import { arePinned, namespaceFiles, setUp, startPidHolder, tearDown, unmountBelow } from './sandbox.ts';
import { StateDirectories } from './state-directories.ts';

type Addresses = Pick<SandboxRecord, 'ips'>;

/** A pod in the host's network has no addresses of its own. */
const NO_ADDRESSES: Addresses = { ips: [] };

/** Life cycle of pod sandboxes: namespaces, network and pid namespace holder, with their records. */
export class Sandboxes {
  readonly #context: RuntimeContext;
  readonly #containers: Containers;
  readonly #records = new Map<string, SandboxRecord>();
  readonly #directories: StateDirectories;
  readonly #turns = new Turns();
  /** Sandboxes whose network is being attached. */
  readonly #joining = new Map<string, Promise<void>>();
  /** Errors of sandboxes that could not be completed, kept until `get` throws or `failure` returns them. */
  readonly #lost = new Map<string, RuntimeError>();
  /** Connections into the sandboxes, closed with them. */
  readonly forwards: Forwards = createForwards();

  constructor(context: RuntimeContext, containers: Containers) {
    this.#context = context;
    this.#containers = containers;
    const { sandboxes: disk, memorySandboxes: memory } = context.paths;
    this.#directories = new StateDirectories({ disk, memory });
  }

  /**
   * Reads the records of sandboxes and containers, and records the end of those that ended while this process was not
   * running.
   */
  async adopt(): Promise<void> {
    const { bootId, deps, log, paths, runc } = this.#context;
    const { records, broken } = await this.#directories.load<SandboxRecord>();
    if (records.some((record) => record.bootId !== bootId)) await this.#clearOtherBoot();
    for (const record of records) {
      this.#records.set(record.id, record);
      if (record.stopped) continue;
      const sameBoot = record.bootId === bootId;
      // A host that is itself a container shares the boot id with the machine, but its /run is empty after a restart.
      if (sameBoot && (await arePinned(namespaceFiles(paths, record)))) continue;
      if (sameBoot) {
        log.warn('pod namespaces missing; recreating the sandbox', {
          pod: `${record.namespace}/${record.name}`,
        });
        await tearDown(paths, runc, record);
      }
      await this.#saveStopped(record);
    }
    for (const id of broken) {
      await tearDown(paths, runc, { id, pidHolder: { pid: 0, start: '' } });
      await rm(this.directory(id), { recursive: true, force: true });
      this.#directories.forget(id);
    }
    await empty(paths.execs);
    await this.#containers.load();
    const alive = new Set([...this.#records.values()].filter((record) => !record.stopped).map((record) => record.id));
    await deps.network.retain(alive);
    log.v(2, 'runtime adopted', { sandboxes: this.#records.size, alive: alive.size });
  }

  /** Throws RuntimeError 'not-found', or the error that prevented the completion of the sandbox. */
  get(id: string): SandboxRecord {
    const record = this.#records.get(id);
    if (record !== undefined) return record;
    const why = this.#lost.get(id);
    this.#lost.delete(id);
    throw why ?? new RuntimeError('not-found', `pod sandbox ${id} does not exist`);
  }

  directory(id: string): string {
    return this.#directories.of(id);
  }

  list(): Promise<readonly SandboxStatus[]> {
    return Promise.all([...this.#records.values()].map(describe));
  }

  /**
   * Returns the new sandbox's id. On failure it removes everything and throws RuntimeError 'create-failed'. If the
   * addresses are known in advance, the network is attached while the first container is created: see `joined`.
   */
  async run(config: SandboxConfig): Promise<string> {
    const { deps, paths } = this.#context;
    const id = newId();
    this.#context.handlers.get(config.runtimeHandler);
    if (config.userNamespace !== undefined && config.shareProcessNamespace)
      throw new RuntimeError('create-failed', 'shareProcessNamespace: not supported with hostUsers: false');
    const { net } = namespaceFiles(paths, { ...config, id });
    let addresses: Addresses | undefined;
    const release = await this.#context.starts.take(config.namespace);
    if (config.firstImageId !== undefined && config.userNamespace === undefined)
      this.#containers.prepareRoot(id, config.firstImageId);
    try {
      [addresses] = await together([
        net === undefined ? NO_ADDRESSES : deps.network.reserve?.(net, endpointOf(id, config)),
        this.#directories
          .choose(id, config.mayUseMemory === true)
          .then((directory) => setUp(paths, { id, directory }, config)),
      ]);
    } catch (error) {
      release();
      await this.#clear(id);
      throw asCreateFailed(error);
    }
    const joining = this.#join(id, config, net).finally(release);
    if (addresses === undefined || holdsPids(config)) {
      await joining;
      return id;
    }
    this.#records.set(id, this.#recordOf(id, config, addresses, undefined));
    this.#joining.set(id, joining);
    void joining
      .catch((error: unknown) =>
        this.#context.log.warn('sandbox not completed', { sandbox: id, error: messageOf(error) }),
      )
      .finally(() => this.#joining.delete(id));
    return id;
  }

  /**
   * Resolves when the sandbox is complete and recorded. Rejects with the cause if the sandbox could not be completed;
   * the sandbox has then been removed.
   */
  async joined(id: string): Promise<void> {
    await this.#joining.get(id);
    this.get(id);
  }

  /**
   * Returns the error that prevented the completion of the sandbox, after the sandbox has been removed; undefined if
   * there is none. Containers of such a sandbox fail too, because their namespaces are removed during their creation.
   */
  async failure(id: string): Promise<RuntimeError | undefined> {
    const cause = this.#lost.get(id);
    if (cause === undefined) return undefined;
    await this.#joining.get(id)?.catch(ignore('the same error is returned'));
    this.#lost.delete(id);
    return cause;
  }

  /** Resolves when no sandbox is being completed. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#joining.values());
  }

  async #join(id: string, config: SandboxConfig, net: string | undefined): Promise<void> {
    const { deps } = this.#context;
    try {
      const [addresses, pidHolder] = await together([
        net === undefined ? NO_ADDRESSES : deps.network.attach(net, endpointOf(id, config)),
        holdsPids(config) ? startPidHolder(this.#context, id, config) : undefined,
      ]);
      await this.#save(this.#recordOf(id, config, addresses, pidHolder));
    } catch (error) {
      const cause = asCreateFailed(error);
      // The caller of `run` gets the error unless the sandbox has already been returned.
      if (this.#records.delete(id)) this.#lost.set(id, cause);
      await this.#clear(id);
      this.#context.changed(id);
      throw cause;
    }
  }

  #recordOf(
    id: string,
    config: SandboxConfig,
    { ips }: Addresses,
    pidHolder: SandboxRecord['pidHolder'],
  ): SandboxRecord {
    const { bootId, deps } = this.#context;
    const { dns: _, privileged: __, shareProcessNamespace: ___, firstImageId: ____, ...kept } = config;
    return {
      ...kept,
      id,
      bootId,
      createdAtMs: this.#records.get(id)?.createdAtMs ?? deps.clock.nowMs(),
      ips,
      pidHolder,
      stopped: false,
    };
  }

  /** Removes the remains of a sandbox that could not be created. */
  async #clear(id: string): Promise<void> {
    const { deps, log, paths, runc } = this.#context;
    await this.#containers.discardRoot(id);
    await deps.network
      .detach(id)
      .catch((error: unknown) => log.warn('pod network not detached', { sandbox: id, error: messageOf(error) }));
    await tearDown(paths, runc, { id, pidHolder: { pid: 0, start: '' } });
    await rm(this.directory(id), { recursive: true, force: true });
    this.#directories.forget(id);
  }

  stop(id: string): Promise<void> {
    return this.#turns.inTurn(id, () => this.#stopLocked(id));
  }

  remove(id: string): Promise<void> {
    return this.#turns.inTurn(id, async () => {
      if (!this.#records.has(id)) return;
      await this.#stopLocked(id);
      await Promise.all(this.#containers.inSandbox(id).map((container) => this.#containers.remove(container.id)));
      await rm(this.directory(id), { recursive: true, force: true });
      this.#directories.forget(id);
      this.#records.delete(id);
      this.#context.changed(id);
    });
  }

  async #stopLocked(id: string): Promise<void> {
    await this.#joining.get(id)?.catch(ignore('the start that joins gets its error'));
    const record = this.#records.get(id);
    if (record === undefined) return;
    await Promise.all(this.#containers.inSandbox(id).map((container) => this.#containers.stop(container.id, 0)));
    await this.#containers.discardRoot(id);
    if (record.stopped) return;
    this.forwards.end(id);
    await this.#context.deps.network.detach(id);
    await tearDown(this.#context.paths, this.#context.runc, record);
    await this.#saveStopped({ ...record, ips: [] });
    this.#context.changed(id);
  }

  /**
   * Removes state of another boot. runc's state then describes processes that do not exist, and their pids may have
   * been reused.
   */
  async #clearOtherBoot(): Promise<void> {
    const { runSandboxes, mappedRoots, runcRoot, handlers } = this.#context.paths;
    await unmountBelow(runSandboxes);
    await unmountBelow(mappedRoots);
    for (const directory of [runSandboxes, mappedRoots, runcRoot, handlers]) await empty(directory);
  }

  async #save(record: SandboxRecord): Promise<void> {
    await saveFirstRecord(this.directory(record.id), record);
    this.#records.set(record.id, record);
  }

  async #saveStopped(record: SandboxRecord): Promise<void> {
    const stopped = { ...record, stopped: true };
    if (!(await saveEnd(this.directory(record.id), stopped))) {
      this.#context.log.v(2, 'disk full; stopped sandbox recorded only in memory', {
        sandbox: record.id,
      });
    }
    this.#records.set(record.id, stopped);
  }
}

const endpointOf = (id: string, { uid, name, namespace, portMappings }: SandboxConfig): PodEndpoint => ({
  sandboxId: id,
  uid,
  name,
  namespace,
  portMappings,
});

/** Whether the containers of the pod share a pid namespace, which then needs a holder. */
const holdsPids = (config: SandboxConfig): boolean => config.shareProcessNamespace && !config.hostPid;

const asCreateFailed = (error: unknown): RuntimeError =>
  error instanceof RuntimeError ? error : new RuntimeError('create-failed', messageOf(error), { cause: error });

async function empty(directory: string): Promise<void> {
  for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true, force: true });
}

async function describe(record: SandboxRecord): Promise<SandboxStatus> {
  const holderLost = record.pidHolder !== undefined && !(await isRunning(record.pidHolder.pid, record.pidHolder.start));
  return {
    id: record.id,
    name: record.name,
    namespace: record.namespace,
    uid: record.uid,
    attempt: record.attempt,
    state: record.stopped || holderLost ? 'notready' : 'ready',
    createdAtMs: record.createdAtMs,
    ips: record.ips,
    hostNetwork: record.hostNetwork,
    labels: record.labels,
    annotations: record.annotations,
  };
}
