/** Routes to pods of other hosts, service proxy, policies and cluster DNS of this host. */
import type { ReservedPort } from '../../api/kinds/nodes/nodes/host-ports.ts';
import { isInPool, parseAddressPool } from '../../base/addresses/address-pool.ts';
import type { NodeName } from '../../base/brand.ts';
import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { EventRecorder, InformerFactory } from '../../client/index.ts';
import { createNeedPods } from '../../client/informers/need-pods.ts';
import { createProxy } from '../../network/services/index.ts';
import { createHealthPorts } from '../../network/services/io/health-ports/health-ports.ts';
import { createNftFilter } from '../../network/services/io/netfilter/index.ts';
import { createStreamForwarder } from '../../network/services/io/stream-forwarder.ts';
import type { Settings } from '../config/settings.ts';
import type { HostRuntime } from '../node/runtime.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import { hostDns } from './cluster-dns.ts';
import type { HostGossip } from './gossip.ts';
import { listeningPorts } from './listening-ports.ts';
import type { NetworkRestorer, Verify } from './network-restorer.ts';
import type { NodeAddresses } from './node-addresses.ts';
import { ownAddresses } from './own-ports.ts';
import { startPodRoutes } from './pod-routes.ts';

export interface NetworkServicesParts {
  readonly settings: Settings;
  readonly informers: InformerFactory;
  readonly nodeName: NodeName;
  readonly runtime: Pick<HostRuntime, 'network' | 'policies'>;
  readonly addresses: NodeAddresses;
  readonly restorer: Pick<NetworkRestorer, 'lost'>;
  readonly reservedPorts: readonly ReservedPort[];
  readonly recorder: EventRecorder;
  readonly gossip: Pick<HostGossip, 'followFailed'>;
  readonly log: Log;
}

export interface NetworkServices {
  /** Functions that compare rules, routes and links with the expected ones and repair them. */
  readonly verifiers: readonly Verify[];
  stop(keepPods: boolean): Promise<void>;
}

/** Starts the services without waiting until they are ready. */
export function startNetworkServices(parts: NetworkServicesParts): NetworkServices {
  const { settings, informers, nodeName, runtime, addresses, restorer, gossip, log } = parts;
  const podRoutes = startPodRoutes({
    settings,
    informers,
    nodeName,
    network: runtime.network,
    addresses,
    log,
    lost: (line) => restorer.lost(line),
  });
  const proxy = hostProxy(parts);
  gossip.followFailed((names) => proxy.setFailedNodes(names));
  // The start is not awaited, because the proxy waits for the API server and the pod bridge.
  const proxyStarted = proxy.start().catch((error: unknown) => {
    log.error('service proxy not started', { error: messageOf(error) });
  });
  const dns = hostDns({ settings, informers, clock, random, log: log.named('dns') });
  const dnsStarted = dns.start();
  return {
    verifiers: [
      (damaged) => proxy.verify(damaged),
      (damaged) => runtime.policies.verify(damaged),
      () => podRoutes.verify(),
      () => dns.verify(),
    ],
    async stop(keepPods) {
      const rules = { keepRules: keepPods };
      const routed = podRoutes.stop({ keepRoutes: keepPods });
      await Promise.all([proxy.stop(rules), runtime.policies.stop(rules), proxyStarted, routed]);
      await dnsStarted.then(() => dns.stop({ keepAddress: keepPods }));
    },
  };
}

export type HostProxyParts = Pick<
  NetworkServicesParts,
  'settings' | 'informers' | 'nodeName' | 'reservedPorts' | 'recorder' | 'log'
>;

/** The service proxy of this host, with nftables as packet filter. */
export function hostProxy(parts: HostProxyParts): ReturnType<typeof createProxy> {
  const { settings, informers, nodeName, reservedPorts, recorder, log } = parts;
  const { network } = settings;
  const serviceLink = `${network.bridge.slice(0, 11)}-svc`;
  // Addresses of load balancers are excluded, so that ports of this host are not reserved on them.
  const moving = parseAddressPool(settings.serviceLoadBalancer.addresses);
  // The bridge address is added explicitly: a bridge without members has no carrier, and the system lists no addresses
  // of links without carrier.
  const atBridge = settings.nodeIpIsBridge ? settings.nodeIps : [];
  const linkAddresses = (): string[] =>
    ownAddresses(serviceLink, network.bridge).filter((each) => !isInPool(moving, each));
  return createProxy({
    informers,
    packetFilter: createNftFilter({ serviceRouteLink: network.bridge, log: log.named('nft') }),
    forwarder: createStreamForwarder({ dummyLink: serviceLink, fallbackLink: network.bridge, log: log.named('proxy') }),
    healthPorts: createHealthPorts(),
    needPods: createNeedPods(recorder, clock),
    log: log.named('proxy'),
    clock,
    random,
    config: {
      nodeName,
      serviceCidrs: network.serviceCidrs,
      clusterCidrs: network.clusterCidrs,
      mode: network.proxyMode,
      table: network.nftTable,
      reservedPorts,
      hostServices: [network.dnsIp],
      poolRanges: settings.serviceLoadBalancer.addresses,
      listening: listeningPorts(log.named('proxy')),
      hostAddresses: () => [...atBridge, ...linkAddresses().filter((each) => !atBridge.includes(each))],
    },
  });
}
