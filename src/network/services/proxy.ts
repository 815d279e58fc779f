/**
 * Service proxy of one node: watches services and endpoint slices and configures
 * forwarding, with the packet filter if the kernel supports nft, otherwise in user space.
 */
import type { Node, Service } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import { type KubeObject, objectKey } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { type ApplyLoop, startApplyLoop } from '../../base/concurrency/apply-loop.ts';
import { inTurns } from '../../base/concurrency/in-turns.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, RandomSource, Timer } from '../../base/time/clock.ts';
import type { NeedPods } from '../../client/informers/need-pods.ts';
import type { Informer, InformerFactory } from '../../client/types.ts';
import { lastKnownNode } from '../pods/core/index.ts';
import { ServicePlanner } from './core/index.ts';
import type { HealthPorts, PacketFilter, StreamForwarder } from './core/port.ts';
import { createFilterMode } from './filter-mode.ts';
import { createHealthChecks, type HealthChecks } from './health-checks.ts';
import { type Idling, type IdlingDeps, startIdling } from './idling.ts';
import type { ProxyConfig, ProxyMode } from './mode.ts';
import { createUserspaceMode } from './userspace-mode.ts';

export interface ProxyDeps {
  readonly informers: InformerFactory;
  readonly packetFilter: PacketFilter;
  readonly forwarder: StreamForwarder;
  readonly healthPorts: HealthPorts;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly needPods: NeedPods;
  readonly config: ProxyConfig;
}

export interface Proxy {
  /** Resolves when the first complete configuration has been applied. */
  start(): Promise<void>;
  /** Excludes endpoints on these nodes, whose hosts the gossip ring has declared dead. */
  setFailedNodes(names: ReadonlySet<string>): void;
  /**
   * Compares rules and routes with the kernel's and restores removed ones. Tables in `damaged` (`FAMILY NAME`) are
   * replaced in any case. Resolves when the rules are applied.
   */
  verify(damaged: ReadonlySet<string>): Promise<void>;
  /** With `keepRules` the rules remain, so that traffic continues during a restart of the host process. */
  stop(options?: { readonly keepRules?: boolean }): Promise<void>;
}

/** Interval for reading the host's sockets, in milliseconds. */
const LISTENING_MS = 15_000;
/** Number of services that are planned before the mode gets their ports. */
const PLANNED_AT_ONCE = 200;

export const createProxy = (deps: ProxyDeps): Proxy => new ServiceProxy(deps);

class ServiceProxy implements Proxy {
  readonly #deps: ProxyDeps;
  readonly #services: Informer<Service>;
  readonly #slices: Informer<EndpointSlice>;
  /** Nodes are read only for the addresses of other hosts. Forwarding does not wait for them. */
  readonly #nodes: Informer<Node>;
  readonly #planner: ServicePlanner;
  readonly #health: HealthChecks;
  readonly #unsubscribe: (() => void)[] = [];
  #mode: ProxyMode | undefined;
  #idling: Idling | undefined;
  #isStopped = false;
  #loop: ApplyLoop | undefined;
  #listening: Timer | undefined;

  constructor(deps: ProxyDeps) {
    const { informers } = deps;
    this.#deps = deps;
    this.#services = informers.informer(resources.services, { lastKnown: { set: 'services' } });
    this.#slices = informers.informer(resources.endpointSlices, { lastKnown: { set: 'endpoint-slices' } });
    this.#nodes = informers.informer(resources.nodes, { lastKnown: { set: 'nodes', kept: lastKnownNode } });
    this.#planner = new ServicePlanner(deps.config);
    this.#health = createHealthChecks(deps.healthPorts, deps.log);
  }

  async start(): Promise<void> {
    const { clock, log } = this.#deps;
    const mode = await chooseMode(this.#deps);
    this.#mode = mode;
    log.info('service proxy starting', { mode: mode.name });
    await mode.prepare().catch((error: unknown) => {
      log.warn('service rules of an earlier process not restricted', { error: messageOf(error) });
    });
    this.#followObjects();
    await Promise.all([this.#services.synced, this.#slices.synced, this.#readListening()]);
    if (this.#isStopped) return;
    if (mode.name === 'nftables')
      this.#idling = startIdling(idlingDeps(this.#deps, this.#services, this.#slices, this.#planner));
    const apply = (): Promise<void> => this.#syncOnce(mode);
    const loop = startApplyLoop({ apply, failure: 'service rules not applied; retrying', clock, log });
    this.#loop = loop;
    await apply().catch((error: unknown) => {
      log.warn('service rules not applied; retrying', { error: messageOf(error) });
      loop.touch();
    });
  }

  setFailedNodes(names: ReadonlySet<string>): void {
    this.#planner.setFailedNodes(names);
    this.#loop?.touch();
  }

  async verify(damaged: ReadonlySet<string>): Promise<void> {
    if (this.#loop === undefined) return;
    this.#mode?.verify?.(damaged);
    this.#idling?.verify(damaged);
    this.#loop.touch();
    await this.#loop.settled();
  }

  async stop(options?: { readonly keepRules?: boolean }): Promise<void> {
    const keepRules = options?.keepRules === true;
    this.#isStopped = true;
    this.#listening?.cancel();
    for (const each of this.#unsubscribe) each();
    await this.#loop?.stop();
    await this.#health.stop();
    await this.#idling?.stop({ keepRules });
    if (!keepRules) await this.#mode?.stop();
  }

  #followObjects(): void {
    const planner = this.#planner;
    this.#follow(
      this.#services,
      (service) => planner.setService(service),
      (key) => planner.deleteService(key),
    );
    this.#follow(
      this.#slices,
      (slice) => planner.setSlice(slice),
      (key) => planner.deleteSlice(key),
    );
    this.#follow(
      this.#nodes,
      (node) => planner.setNode(node),
      (name) => planner.deleteNode(name),
    );
  }

  #follow<T extends KubeObject>(informer: Informer<T>, set: (object: T) => void, remove: (key: string) => void): void {
    const changed = (object: T): void => {
      set(object);
      this.#loop?.touch();
    };
    const deleted = (object: T): void => {
      remove(objectKey(object));
      this.#loop?.touch();
    };
    this.#unsubscribe.push(informer.onChange({ added: changed, updated: changed, deleted }));
    informer.start();
  }

  /** Reads the listening sockets of the host periodically, if that is configured. */
  async #readListening(): Promise<void> {
    const { config, clock } = this.#deps;
    if (config.listening === undefined || this.#isStopped) return;
    this.#planner.setListening(await config.listening.read());
    if (this.#planner.isChanged) this.#loop?.touch();
    if (!this.#isStopped) this.#listening = clock.setTimer(LISTENING_MS, () => void this.#readListening());
  }

  /** Plans and applies changes until no further change has arrived in the meantime. */
  async #syncOnce(mode: ProxyMode): Promise<void> {
    const { config, clock, log } = this.#deps;
    this.#planner.setHostAddresses(config.hostAddresses());
    for (;;) {
      const { changed, refused } = await inTurns(this.#planner.changeSteps(PLANNED_AT_ONCE), clock);
      for (const { service, address, why } of refused)
        log.warn('service address not forwarded', { service, address, why });
      await inTurns(mode.change(changed), clock);
      if (changed.size > 0) this.#idling?.planned();
      if (!this.#planner.isChanged) break;
      await new Promise<void>((resolve) => void clock.setTimer(0, resolve));
    }
    await Promise.all([mode.sync(() => this.#planner.ports()), this.#health.sync(this.#planner.healthChecks())]);
  }
}

const idlingDeps = (
  { packetFilter, needPods, clock, log, config }: ProxyDeps,
  services: Informer<Service>,
  slices: Informer<EndpointSlice>,
  planner: ServicePlanner,
): IdlingDeps => ({
  services,
  slices,
  packetFilter,
  needPods,
  clock,
  log,
  table: config.table,
  families: [...new Set(config.serviceCidrs.map((cidr) => (cidr.includes(':') ? 6 : 4)))],
  portsOf: (key) => planner.portsOf(key),
});

async function chooseMode(deps: ProxyDeps): Promise<ProxyMode> {
  if (deps.config.mode !== 'userspace') {
    const problem = await deps.packetFilter.probe();
    if (problem === undefined) return createFilterMode(deps);
    if (deps.config.mode === 'nftables') throw new Error(`proxy mode nftables is not possible here: ${problem}`);
    deps.log.warn('no usable nft on this host; forwarding service traffic in this process', { why: problem });
  }
  return createUserspaceMode(deps);
}
