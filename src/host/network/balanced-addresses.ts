/**
 * Addresses of LoadBalancer Services from `serviceLoadBalancer.addresses`. The master that holds a Lease assigns the
 * addresses to a link. All Services with external traffic policy Cluster share one Lease. Each Service with policy
 * Local has its own Lease, for which only hosts with endpoints of the Service compete.
 */

import type { Service } from '../../api/generated/core/v1.ts';
import type { EndpointSlice } from '../../api/generated/discovery/v1.ts';
import { objectKey } from '../../api/meta/object.ts';
import { resources } from '../../api/resources.ts';
import { type AddressRange, isInPool, parseAddressPool } from '../../base/addresses/address-pool.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { createLeaderElector, type InformerFactory } from '../../client/index.ts';
import {
  currentAddresses,
  isBalanced,
  nodesWithEndpoints,
} from '../../controllers/network/service-load-balancer/plan.ts';
import { createSharedAddress } from '../../network/pods/io/index.ts';
import { masterFiles } from '../../pki/index.ts';
import { sha256Hex } from '../../wire/digest.ts';
import type { Settings } from '../config/settings.ts';
import { type OpenedClient, openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import {
  EXTEND_MS,
  holdSharedAddress,
  LEASE,
  LIFETIME_SECONDS,
  linkOf,
  pauseUnlessAborted,
  RETRY_MS,
  type SharedAddressHolder,
} from './shared-address.ts';

const SHARED_LEASE = 'hyperedge-service-lb';
const SERVICE_NAME = 'kubernetes.io/service-name';

type SharedAddress = ReturnType<typeof createSharedAddress>;
type HeldSettings = Pick<Settings, 'nodeIp' | 'nodeName' | 'roles' | 'root' | 'serviceLoadBalancer' | 'vip'>;

/** Holds the masters' virtual address and the addresses of LoadBalancer Services, depending on the Leases. */
export function holdAddresses(
  settings: HeldSettings,
  informers: InformerFactory,
  nodeName: NodeName,
  log: Log,
): SharedAddressHolder {
  const vip = holdSharedAddress(settings, log.named('vip'));
  const { enabled, addresses } = settings.serviceLoadBalancer;
  if (!enabled || addresses.length === 0 || !settings.roles.has('master')) return vip;
  const balanced = new BalancedAddresses(settings, informers, nodeName, log.named('service-lb'));
  balanced.start();
  return { stop: async () => void (await Promise.all([vip.stop(), balanced.stop()])) };
}

/**
 * Leases for which this host competes, each with its addresses. `slicesOf`: returns the endpoint slices of a Service
 * with policy Local.
 */
export function leasesFor(
  services: readonly Service[],
  pool: readonly AddressRange[],
  nodeName: NodeName,
  slicesOf: (service: Service) => readonly EndpointSlice[],
): Map<string, string[]> {
  const leases = new Map<string, string[]>();
  for (const service of services.filter(isBalanced)) {
    const addresses = currentAddresses(service).filter((address) => isInPool(pool, address));
    if (addresses.length === 0) continue;
    const isLocal = service.spec?.externalTrafficPolicy === 'Local';
    if (isLocal && !nodesWithEndpoints(slicesOf(service)).has(nodeName)) continue;
    const name = isLocal ? `${SHARED_LEASE}-${digestOf(objectKey(service))}` : SHARED_LEASE;
    leases.set(name, [...(leases.get(name) ?? []), ...addresses]);
  }
  return leases;
}

const digestOf = (key: string): string => sha256Hex(key).slice(0, 10);

class BalancedAddresses {
  readonly #settings: HeldSettings;
  readonly #nodeName: NodeName;
  readonly #log: Log;
  readonly #pool: readonly AddressRange[];
  readonly #services;
  readonly #slices;
  readonly #campaigns = new Map<string, Campaign>();
  readonly #ended = new Set<Promise<void>>();
  readonly #unsubscribe: (() => void)[] = [];
  #stopped = false;

  constructor(settings: HeldSettings, informers: InformerFactory, nodeName: NodeName, log: Log) {
    this.#settings = settings;
    this.#nodeName = nodeName;
    this.#log = log;
    this.#pool = parseAddressPool(settings.serviceLoadBalancer.addresses);
    this.#services = informers.informer(resources.services, { lastKnown: { set: 'services' } });
    this.#slices = informers.informer(resources.endpointSlices, { lastKnown: { set: 'endpoint-slices' } });
  }

  start(): void {
    const look = (): void => this.#look();
    this.#unsubscribe.push(this.#services.onChange({ added: look, updated: look, deleted: look }));
    this.#unsubscribe.push(this.#slices.onChange({ added: look, updated: look, deleted: look }));
    this.#services.start();
    this.#slices.start();
    void Promise.all([this.#services.synced, this.#slices.synced]).then(look);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const each of this.#unsubscribe) each();
    for (const campaign of this.#campaigns.values()) this.#end(campaign);
    this.#campaigns.clear();
    await Promise.all(this.#ended);
  }

  #look(): void {
    if (this.#stopped || !this.#services.hasSynced || !this.#slices.hasSynced) return;
    const leases = leasesFor(this.#services.list(), this.#pool, this.#nodeName, ({ metadata }) =>
      this.#slices.list(metadata?.namespace).filter((each) => each.metadata?.labels?.[SERVICE_NAME] === metadata?.name),
    );
    for (const [name, campaign] of this.#campaigns) {
      if (leases.has(name)) continue;
      this.#campaigns.delete(name);
      this.#end(campaign);
    }
    for (const [name, addresses] of leases) {
      const known = this.#campaigns.get(name);
      if (known !== undefined) known.addresses = addresses;
      else this.#campaigns.set(name, new Campaign(this.#settings, name, addresses, this.#log));
    }
  }

  #end(campaign: Campaign): void {
    const ended: Promise<void> = campaign.stop().finally(() => this.#ended.delete(ended));
    this.#ended.add(ended);
  }
}

/** Competes for one Lease until it is stopped. While it holds the Lease, it assigns the addresses to a link. */
class Campaign {
  /** Addresses of the Services that share the Lease. The list is replaced when the Services change. */
  addresses: readonly string[];
  readonly #settings: HeldSettings;
  readonly #lease: string;
  readonly #log: Log;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;

  constructor(settings: HeldSettings, lease: string, addresses: readonly string[], log: Log) {
    this.#settings = settings;
    this.#lease = lease;
    this.addresses = addresses;
    this.#log = log;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        const opened = await openClient(masterFiles(this.#settings.root).adminKubeconfig, 'hyperedge-service-lb', {
          clock,
          random,
          log: this.#log,
        });
        await this.#compete(opened).finally(() => opened.close());
      } catch (error) {
        this.#log.warn('load balancer addresses not held; retrying', {
          lease: this.#lease,
          error: messageOf(error),
        });
        await pauseUnlessAborted(RETRY_MS, signal);
      }
    }
  }

  async #compete({ client }: OpenedClient): Promise<void> {
    const { signal } = this.#stopping;
    const elector = createLeaderElector({
      client,
      namespace: 'kube-system',
      name: this.#lease,
      identity: this.#settings.nodeName,
      clock,
      random,
      log: this.#log,
      ...LEASE,
    });
    const onStop = (): void => void elector.stop();
    signal.addEventListener('abort', onStop, { once: true });
    try {
      if (!signal.aborted) await elector.run((lost) => this.#hold(() => elector.fence.check(), lost));
    } finally {
      signal.removeEventListener('abort', onStop);
    }
  }

  async #hold(check: () => void, lost: AbortSignal): Promise<void> {
    const held = new Map<string, SharedAddress>();
    const release = async (address: string): Promise<void> => {
      await held.get(address)?.remove();
      held.delete(address);
      this.#log.info('load balancer address released', { address });
    };
    try {
      while (!lost.aborted) {
        for (const address of held.keys()) if (!this.addresses.includes(address)) await release(address);
        for (const address of this.addresses) {
          // Throws if the Lease has expired. A process that was suspended must not assign the address again.
          check();
          const known = held.get(address);
          if (known !== undefined) await known.extend();
          else held.set(address, await this.#acquire(address));
        }
        await pauseUnlessAborted(EXTEND_MS, lost);
      }
    } finally {
      await Promise.all([...held.keys()].map(release));
    }
  }

  async #acquire(address: string): Promise<SharedAddress> {
    const { nodeIp, serviceLoadBalancer } = this.#settings;
    const link = serviceLoadBalancer.link ?? linkOf(nodeIp);
    if (link === undefined)
      throw new Error(`no link has ${nodeIp}; set serviceLoadBalancer.interface in bootstrap.yaml`);
    const shared = createSharedAddress({ address, link, lifetimeSeconds: LIFETIME_SECONDS });
    await shared.add();
    this.#log.info('load balancer address acquired', { address, link });
    return shared;
  }
}
