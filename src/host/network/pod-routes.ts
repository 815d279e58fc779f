import type { NodeName } from '../../base/brand.ts';
import type { Log } from '../../base/log.ts';
import type { InformerFactory } from '../../client/index.ts';
import { createOverlayKernel } from '../../network/pods/io/index.ts';
import { createPodRoutes, type PodRoutes } from '../../network/pods/pod-routes.ts';
import { podLinksOf } from '../config/node-addresses.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process/process.ts';
import type { HostNetwork } from './host-network.ts';
import type { NodeAddresses } from './node-addresses.ts';

export interface PodRoutesParts {
  readonly settings: Settings;
  readonly informers: InformerFactory;
  readonly nodeName: NodeName;
  readonly network: HostNetwork;
  readonly addresses: NodeAddresses;
  /** Called with a line of `ip monitor` about a deleted address, route or link. */
  readonly lost: (line: string) => void;
  readonly log: Log;
}

/**
 * Maintains the routes to pods of other hosts and the MTU of this host's pods. With CNI plug-ins, which have their own
 * routes, only changes of this host's addresses are followed.
 */
export function startPodRoutes(parts: PodRoutesParts): PodRoutes {
  const { settings, informers, nodeName, network, addresses, lost, log } = parts;
  const { podNetwork } = settings;
  const named = log.named('pod-routes');
  const { tunnelNames } = podNetwork;
  const kernel = createOverlayKernel({
    protocol: podNetwork.routeProtocol,
    tunnelNames,
    lost,
    log: named,
    guardTable: `${settings.network.nftTable}-overlay`,
  });
  const { setMtu } = network;
  if (setMtu === undefined) {
    const stop = kernel.watch(() => void addresses.refresh());
    return { start: () => {}, verify: () => {}, stop: async () => stop() };
  }
  const routes = createPodRoutes({
    informers,
    kernel,
    config: {
      nodeName,
      backend: podNetwork.backend,
      clusterCidrs: settings.network.clusterCidrs,
      tunnelNames,
      podLinks: podLinksOf(settings.network.bridge, tunnelNames),
      mtu: podNetwork.mtu,
    },
    ownAddresses: addresses.refresh,
    onMtu: (mtu) => void setMtu(mtu),
    clock,
    log: named,
  });
  routes.start();
  return routes;
}
