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
import { createHealthChecks } from './health-checks.ts';
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

export function createProxy(deps: ProxyDeps): Proxy {
  const services: Informer<Service> = deps.informers.informer(resources.services, {
    lastKnown: { set: 'services' },
  });
  const slices: Informer<EndpointSlice> = deps.informers.informer(resources.endpointSlices, {
    lastKnown: { set: 'endpoint-slices' },
  });
  /** Nodes are read only for the addresses of other hosts. Forwarding does not wait for them. */
  const nodes: Informer<Node> = deps.informers.informer(resources.nodes, {
    lastKnown: { set: 'nodes', kept: lastKnownNode },
  });
  const planner = new ServicePlanner(deps.config);
  const health = createHealthChecks(deps.healthPorts, deps.log);
  const unsubscribe: (() => void)[] = [];
  let mode: ProxyMode | undefined;
  let idling: Idling | undefined;
  let stopped = false;
  let loop: ApplyLoop | undefined;
  let listening: Timer | undefined;
  const readListening = async (): Promise<void> => {
    if (deps.config.listening === undefined || stopped) return;
    planner.setListening(await deps.config.listening.read());
    if (planner.isChanged) loop?.touch();
    if (!stopped) listening = deps.clock.setTimer(LISTENING_MS, () => void readListening());
  };
  const follow = <T extends KubeObject>(
    informer: Informer<T>,
    set: (object: T) => void,
    remove: (key: string) => void,
  ): void => {
    const changed = (object: T): void => {
      set(object);
      loop?.touch();
    };
    const deleted = (object: T): void => {
      remove(objectKey(object));
      loop?.touch();
    };
    unsubscribe.push(informer.onChange({ added: changed, updated: changed, deleted }));
    informer.start();
  };

  const syncOnce = async (chosen: ProxyMode): Promise<void> => {
    planner.setHostAddresses(deps.config.hostAddresses());
    for (;;) {
      const { changed, refused } = await inTurns(planner.changeSteps(PLANNED_AT_ONCE), deps.clock);
      for (const { service, address, why } of refused)
        deps.log.warn('service address not forwarded', { service, address, why });
      await inTurns(chosen.change(changed), deps.clock);
      if (changed.size > 0) idling?.planned();
      if (!planner.isChanged) break;
      await new Promise<void>((resolve) => void deps.clock.setTimer(0, resolve));
    }
    await Promise.all([chosen.sync(() => planner.ports()), health.sync(planner.healthChecks())]);
  };

  return {
    async start() {
      mode = await chooseMode(deps);
      deps.log.info('service proxy starting', { mode: mode.name });
      await mode.prepare().catch((error: unknown) => {
        deps.log.warn('service rules of an earlier process not restricted', { error: messageOf(error) });
      });
      follow(
        services,
        (service) => planner.setService(service),
        (key) => planner.deleteService(key),
      );
      follow(
        slices,
        (slice) => planner.setSlice(slice),
        (key) => planner.deleteSlice(key),
      );
      follow(
        nodes,
        (node) => planner.setNode(node),
        (name) => planner.deleteNode(name),
      );
      await Promise.all([services.synced, slices.synced, readListening()]);
      if (stopped) return;
      if (mode.name === 'nftables') idling = startIdling(idlingDeps(deps, services, slices, planner));
      const chosen = mode;
      loop = startApplyLoop({
        apply: () => syncOnce(chosen),
        failure: 'service rules not applied; retrying',
        clock: deps.clock,
        log: deps.log,
      });
      await syncOnce(chosen).catch((error: unknown) => {
        deps.log.warn('service rules not applied; retrying', { error: messageOf(error) });
        loop?.touch();
      });
    },
    setFailedNodes(names) {
      planner.setFailedNodes(names);
      loop?.touch();
    },
    async verify(damaged) {
      if (loop === undefined) return;
      mode?.verify?.(damaged);
      idling?.verify(damaged);
      loop.touch();
      await loop.settled();
    },
    async stop(options) {
      stopped = true;
      listening?.cancel();
      for (const each of unsubscribe) each();
      await loop?.stop();
      await health.stop();
      await idling?.stop({ keepRules: options?.keepRules === true });
      if (options?.keepRules !== true) await mode?.stop();
    },
  };
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
