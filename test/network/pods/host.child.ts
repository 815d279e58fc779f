/** One host of lab.ts in a separate network namespace: its pod network and routes, with Nodes from messages. */
import { networkInterfaces } from 'node:os';
import type { Node } from '../../../src/api/generated/core/v1.ts';
import { toUid } from '../../../src/base/brand.ts';
import { messageOf } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { ChangeHandler, InformerFactory } from '../../../src/client/types.ts';
import { chooseNodeIps, podLinksOf } from '../../../src/host/config/node-addresses.ts';
import { createNetworkRestorer } from '../../../src/host/network/network-restorer.ts';
import { systemClock } from '../../../src/host/process/process.ts';
import { createBridgeNetwork, createOverlayKernel, watchFilter } from '../../../src/network/pods/io/index.ts';
import { createPodRoutes } from '../../../src/network/pods/pod-routes.ts';
import type { HostOptions, HostRequest } from './lab.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as HostOptions;
const bridge = 'hyper0';
const tunnelNames = { 4: 'hyper0-vx4', 6: 'hyper0-vx6' };
const podLinks = podLinksOf(bridge, tunnelNames);
const network = createBridgeNetwork({
  stateDirectory: options.stateDirectory,
  bridge,
  clusterCidrs: options.clusterCidrs,
  serviceCidrs: ['172.30.0.0/16'],
  nftTable: 'hyperedge-pods',
  reservedPorts: () => [],
  log: silentLog,
});

let nodes: Node[] = [];
const handlers = new Set<Required<ChangeHandler<Node>>>();
let setSynced: () => void = () => {};
const informer = {
  hasSynced: false,
  synced: new Promise<void>((resolve) => {
    setSynced = resolve;
  }),
  start: () => {},
  list: () => nodes,
  onChange: (handler: Required<ChangeHandler<Node>>) => {
    handlers.add(handler);
    return () => handlers.delete(handler);
  },
};

let addresses: readonly string[] = [];
async function ownAddresses(): Promise<readonly string[]> {
  const byLink = Object.entries(networkInterfaces()).flatMap(([link, found = []]) =>
    found
      .filter(({ internal, address }) => !internal && !address.startsWith('fe80:'))
      .map(({ address }) => ({ link, address })),
  );
  const next = chooseNodeIps(
    { defaultRouteLink: 'eth0', defaultRouteLink6: 'eth0', byLink },
    { ipFamilies: options.ipFamilies, given: undefined, podLinks, serviceCidrs: [], previous: addresses },
  );
  if (next.length > 0 && next.join() !== addresses.join()) {
    addresses = next;
    process.send?.({ addresses });
  }
  return addresses;
}

const restorer = createNetworkRestorer(
  {
    attach: (netnsPath, pod) => network.attach(netnsPath, pod),
    detach: (sandboxId) => network.detach(sandboxId),
    retain: (alive) => network.retain(alive),
    setPodCidrs: (cidrs) => network.setPodCidrs(cidrs),
    destroy: () => network.destroy(),
    reconcile: (options) => network.reconcile(options),
    watchFilter: (changed) => watchFilter({ nft: 'nft', tables: [], changed, log: silentLog }),
    problem: () => network.problem,
    forwarding: () => network.forwarding(),
    holds: (address) => network.holds(address),
  },
  systemClock,
  silentLog,
);
const log = {
  ...silentLog,
  warn: (message: string, fields: object = {}) => process.send?.({ warning: `${message} ${JSON.stringify(fields)}` }),
};
const routes = createPodRoutes({
  informers: { informer: () => informer } as unknown as InformerFactory,
  kernel: createOverlayKernel({
    protocol: 178,
    tunnelNames,
    guardTable: 'hyperedge-overlay',
    lost: (line) => restorer.lost(line),
    log: silentLog,
  }),
  config: { ...options, tunnelNames, podLinks, mtu: undefined },
  ownAddresses,
  onMtu: (mtu) => void network.setMtu(mtu),
  clock: systemClock,
  log,
});

async function answer(request: HostRequest): Promise<unknown> {
  switch (request.verb) {
    case 'start':
      await network.setPodCidrs(options.podCidrs);
      await ownAddresses();
      routes.start();
      restorer.start([]);
      return addresses;
    case 'nodes':
      replaceNodes(request.nodes);
      informer.hasSynced = true;
      setSynced();
      return undefined;
    case 'attach':
      return (
        await network.attach(`/run/netns/${request.netns}`, {
          sandboxId: request.netns,
          uid: toUid(request.netns),
          name: request.netns,
          namespace: 'default',
          portMappings: [],
        })
      ).ips;
    case 'forwarding':
      return network.forwarding();
    case 'stop':
      restorer.stop();
      await routes.stop({ keepRoutes: false });
      await network.destroy();
      return undefined;
  }
}

process.on('message', ({ id, request }: { id: number; request: HostRequest }) => {
  answer(request).then(
    (value) => process.send?.({ id, value }),
    (error: unknown) => process.send?.({ id, error: messageOf(error) }),
  );
});

function replaceNodes(next: Node[]): void {
  const before = new Map(nodes.map((node) => [node.metadata?.name, node]));
  nodes = next;
  for (const handler of handlers) {
    for (const node of nodes) {
      const old = before.get(node.metadata?.name);
      if (old === undefined) handler.added(node);
      else handler.updated(node, old);
    }
    for (const [name, old] of before) {
      if (!nodes.some(({ metadata }) => metadata?.name === name)) handler.deleted(old);
    }
  }
}
