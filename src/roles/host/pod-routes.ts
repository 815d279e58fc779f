import type { Log } from '../../base/log.ts';
import type { InformerFactory } from '../../client/index.ts';
import { createPodRoutes, type PodRoutes } from '../../components/podnetwork/index.ts';
import { type BridgeNetwork, createOverlayKernel } from '../../io/links/index.ts';
import { podLinksOf } from '../config/node-addresses.ts';
import type { Settings } from '../config/settings.ts';
import { systemClock as clock } from '../process.ts';
import type { NodeAddresses } from './node-addresses.ts';

export interface PodRoutesParts {
  readonly settings: Settings;
  readonly informers: InformerFactory;
  readonly nodeName: string;
  readonly network: BridgeNetwork;
  readonly addresses: NodeAddresses;
  readonly log: Log;
}

/** Keeps the routes to pods of other hosts, and the MTU of this host's pods. */
export function startPodRoutes({ settings, informers, nodeName, network, addresses, log }: PodRoutesParts): PodRoutes {
  const { podNetwork } = settings;
  const named = log.named('pod-routes');
  const { tunnelNames } = podNetwork;
  const routes = createPodRoutes({
    informers,
    kernel: createOverlayKernel({ protocol: podNetwork.routeProtocol, tunnelNames, log: named }),
    config: {
      nodeName,
      backend: podNetwork.backend,
      clusterCidrs: settings.network.clusterCidrs,
      tunnelNames,
      podLinks: podLinksOf(settings.network.bridge, tunnelNames),
      mtu: podNetwork.mtu,
    },
    ownAddresses: addresses.refresh,
    onMtu: (mtu) => void network.setMtu(mtu),
    clock,
    log: named,
  });
  routes.start();
  return routes;
}
