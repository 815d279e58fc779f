/**
 * Pod network between hosts: follows the Nodes and maintains this host's routes and VXLAN entries to the pods of the
 * other hosts. Sources: decision 0004; RFC 7348.
 */
import type { Node } from '../../api/generated/core/v1.ts';
import { ownAddressesOf } from '../../api/kinds/nodes/nodes/own-addresses.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Clock, Timer } from '../../base/time/clock.ts';
import type { InformerFactory } from '../../client/types.ts';
import { type Backend, lastKnownNode, overlayChanges, type Peer, planOverlay } from './core/index.ts';
import type { Family, OverlayKernel, PeerPath } from './core/port.ts';

export interface PodRoutesConfig {
  readonly nodeName: string;
  readonly backend: Backend;
  readonly clusterCidrs: readonly string[];
  readonly tunnelNames: Readonly<Record<Family, string>>;
  readonly podLinks: ReadonlySet<string>;
  /** MTU of the tunnel; discovered if undefined. */
  readonly mtu: number | undefined;
}

export interface PodRoutesDeps {
  readonly informers: InformerFactory;
  readonly kernel: OverlayKernel;
  readonly config: PodRoutesConfig;
  /**
   * Current addresses of this host, the primary one first. The host's own Node object may still contain older
   * addresses.
   */
  readonly ownAddresses: () => Promise<readonly string[]>;
  /** Called with the MTU of pods' links when it is first known and when it changes. */
  readonly onMtu: (mtu: number) => void;
  readonly clock: Clock;
  readonly log: Log;
}

export interface PodRoutes {
  start(): void;
  /** Schedules a comparison of all routes and tunnel entries with the kernel's. */
  verify(): void;
  /** With `keepRoutes` the routes remain, so that traffic of pods continues during a restart of the host process. */
  stop(options: { readonly keepRoutes: boolean }): Promise<void>;
}

/** Delay that combines concurrent Node changes into one plan. */
const COALESCE_MS = 50;
const RETRY_MIN_MS = 500;
const RETRY_MAX_MS = 30_000;
/** Interval of full comparisons, which find changes that the monitor missed. */
const RESYNC_MS = 180_000;
/** Interval of comparisons of the tunnel entries and their guard, whose changes are not monitored. */
const TUNNEL_RESYNC_MS = 10_000;
/** Interval between MTU measurements: half of the time for which the kernel keeps a learned path MTU. */
const PROBE_EVERY_MS = 300_000;

export function createPodRoutes(deps: PodRoutesDeps): PodRoutes {
  return new NodePodRoutes(deps);
}

class NodePodRoutes implements PodRoutes {
  readonly #deps: PodRoutesDeps;
  readonly #nodes: ReturnType<typeof nodesOf>;
  readonly #closers: (() => void)[] = [];
  #timer: Timer | undefined;
  #dueMs = Number.POSITIVE_INFINITY;
  #working: Promise<void> | undefined;
  #again = false;
  #stopped = false;
  #retryMs = RETRY_MIN_MS;
  #mtu = 0;
  #problems = '';
  #probedAtMs = Number.NEGATIVE_INFINITY;
  #probedPaths = '';
  /**
   * Measured MTU by address, link and gateway. It remains known here if the kernel forgets it before the next
   * measurement.
   */
  #measured = new Map<string, number>();

  constructor(deps: PodRoutesDeps) {
    this.#deps = deps;
    this.#nodes = nodesOf(deps.informers);
  }

  start(): void {
    const wake = (): void => this.#schedule(COALESCE_MS);
    this.#closers.push(
      this.#nodes.onChange({
        added: wake,
        // Nodes update their conditions frequently.
        updated: (node, old) => {
          if (JSON.stringify(peerOf(node)) !== JSON.stringify(peerOf(old))) wake();
        },
        deleted: wake,
      }),
      this.#deps.kernel.watch(wake),
    );
    this.#nodes.start();
    void this.#nodes.synced.then(wake, () => {});
  }

  verify(): void {
    this.#schedule(COALESCE_MS);
  }

  async stop({ keepRoutes }: { readonly keepRoutes: boolean }): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    for (const close of this.#closers) close();
    await this.#working;
    if (keepRoutes) return;
    const { kernel, log } = this.#deps;
    try {
      const none = { links: [], neighbors: [], forwards: [], routes: [] };
      await kernel.apply(overlayChanges(none, await kernel.observe()));
      await kernel.guard(undefined);
    } catch (error) {
      log.warn('routes to pods of other hosts not removed', { error: messageOf(error) });
    }
  }

  #schedule(delayMs: number): void {
    if (this.#stopped || !this.#nodes.hasSynced) return;
    if (this.#working !== undefined) {
      if (delayMs === COALESCE_MS) this.#again = true;
      return;
    }
    const dueMs = this.#deps.clock.monotonicMs() + delayMs;
    if (dueMs >= this.#dueMs) return;
    this.#timer?.cancel();
    this.#dueMs = dueMs;
    this.#timer = this.#deps.clock.setTimer(delayMs, () => {
      this.#dueMs = Number.POSITIVE_INFINITY;
      this.#run();
    });
  }

  #run(): void {
    this.#again = false;
    this.#working = this.#synchronize()
      .then(
        ({ hasTunnels }) => {
          this.#retryMs = RETRY_MIN_MS;
          return hasTunnels ? TUNNEL_RESYNC_MS : RESYNC_MS;
        },
        (error: unknown) => {
          this.#deps.log.warn('routes to pods of other hosts incomplete', {
            error: messageOf(error),
            retryMs: this.#retryMs,
          });
          const delayMs = this.#retryMs;
          this.#retryMs = Math.min(delayMs * 2, RETRY_MAX_MS);
          return delayMs;
        },
      )
      .then((delayMs) => {
        this.#working = undefined;
        this.#schedule(this.#again ? COALESCE_MS : delayMs);
      });
  }

  async #synchronize(): Promise<{ readonly hasTunnels: boolean }> {
    const { kernel, config, ownAddresses, log } = this.#deps;
    const all = this.#nodes.list().map(peerOf);
    const listed = all.find(({ node }) => node === config.nodeName);
    if (listed === undefined || listed.podCidrs.length === 0) return { hasTunnels: false };
    const own = { ...listed, addresses: await ownAddresses() };
    // Nodes without addresses or pod ranges are omitted, because their hosts have just been registered.
    const peers = all.filter(
      ({ node, podCidrs, isReported }) => node !== config.nodeName && podCidrs.length > 0 && isReported,
    );
    const addresses = [...new Set(peers.flatMap((peer) => peer.addresses))].sort();
    const [paths, linkMtu, present] = await Promise.all([
      this.#paths([...new Set([...addresses, ...peers.flatMap(({ unproven = [] }) => unproven)])].sort()),
      own.addresses[0] === undefined ? undefined : kernel.linkMtu(own.addresses[0]),
      kernel.observe(),
    ]);
    const plan = planOverlay({ ...config, own, peers, paths, linkMtu: linkMtu ?? 1500 });
    const problems = plan.problems.map(({ node, why }) => `${node}: ${why}`).join('; ');
    if (problems !== this.#problems && problems !== '')
      log.warn('pods of other hosts not reachable', { nodes: problems });
    this.#problems = problems;
    const changes = overlayChanges(plan.overlay, present);
    // The MTU is set before the routes, so that pods need not discover it by losing a packet.
    if (plan.podMtu !== this.#mtu) {
      log.info('pod network MTU changed', { mtu: plan.podMtu, before: this.#mtu });
      this.#mtu = plan.podMtu;
      this.#deps.onMtu(plan.podMtu);
    }
    const hasTunnels = plan.overlay.links.length > 0;
    await kernel.guard(hasTunnels ? addresses : undefined);
    if (changes.length === 0) return { hasTunnels };
    await kernel.apply(changes);
    log.info('routes to pods of other hosts changed', {
      routes: plan.overlay.routes.filter(({ via }) => via !== undefined).length,
      tunnels: plan.overlay.forwards.length,
      changes: changes.length,
    });
    return { hasTunnels };
  }

  /** Paths with the last measured MTU. The MTU is measured again when a path changes, and every few minutes. */
  async #paths(addresses: readonly string[]): Promise<ReadonlyMap<string, PeerPath>> {
    const { kernel, clock, config } = this.#deps;
    const key = (address: string, { link, gateway }: PeerPath): string => `${address} ${link} ${gateway}`;
    const found = await kernel.paths(addresses, { probe: false });
    const ways = [...found].map(([address, path]) => key(address, path)).join();
    const nowMs = clock.monotonicMs();
    if (config.mtu === undefined && (ways !== this.#probedPaths || nowMs - this.#probedAtMs >= PROBE_EVERY_MS)) {
      const probed = await kernel.paths(addresses, { probe: true });
      this.#measured = new Map([...probed].map(([address, path]) => [key(address, path), path.mtu]));
      this.#probedPaths = ways;
      this.#probedAtMs = clock.monotonicMs();
      return probed;
    }
    return new Map(
      [...found].map(([address, path]) => [
        address,
        { ...path, mtu: Math.min(path.mtu, this.#measured.get(key(address, path)) ?? path.mtu) },
      ]),
    );
  }
}

/** Informer of Nodes, which the service proxy uses too. */
const nodesOf = (informers: InformerFactory) =>
  informers.informer(resources.nodes, { lastKnown: { set: 'nodes', kept: lastKnownNode } });

function peerOf(node: Node): Peer & { readonly isReported: boolean } {
  const { metadata, spec, status } = node;
  const reported = (status?.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address);
  const { internal } = ownAddressesOf(node);
  const podCidrs = spec?.podCIDRs ?? (spec?.podCIDR === undefined || spec.podCIDR === '' ? [] : [spec.podCIDR]);
  return {
    node: metadata?.name ?? '',
    addresses: internal,
    // A host's connection proves only the address that it uses, so addresses of a second family are usually unproven.
    unproven: internal.length === 0 ? [] : reported.filter((each) => !internal.some((own) => isSameFamily(own, each))),
    isReported: reported.length > 0,
    podCidrs,
  };
}

const isSameFamily = (left: string, right: string): boolean => left.includes(':') === right.includes(':');
