/** Services that start before the kubelet: access to the cluster, and the network of this host. */

import { createEventRecorder } from '../../../client/index.ts';
import { createStreamingServer } from '../../../kubelet/io/streaming/server.ts';
import { recordHostNetwork } from '../../../network/pods/io/index.ts';
import { nodeFiles } from '../../../pki/index.ts';
import { createHostAlerts } from '../../alerts/alerts.ts';
import { nodeCertificates } from '../../certificates/node-certificates.ts';
import { configureGossipPeers } from '../../certificates/ring-keyring.ts';
import { startLogForwarding } from '../../logging/log-forwarding.ts';
import { followApiServers, startBalancer } from '../../network/balancer.ts';
import { startGossip } from '../../network/gossip.ts';
import { networkRecordOf } from '../../network/host-network.ts';
import { createNetworkRestorer } from '../../network/network-restorer.ts';
import { createNodeAddresses } from '../../network/node-addresses.ts';
import { followPodNetwork } from '../../network/pod-network.ts';
import { openClient } from '../../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../../process/process.ts';
import { openLastKnown } from '../last-known.ts';
import { followVersions } from '../version-skew.ts';
import { readHostNodeConfig } from './host-kubelet.ts';
import { type HostService, hostService } from './values.ts';

/** Delay before events are sent, so that the start of a pod has the CPU. */
const EVENTS_MS = 200;
const EVENTS_FLUSH_MS = 1_500;

export const clusterAccess: readonly HostService[] = [
  hostService({
    name: 'gossip',
    needs: ['settings', 'files', 'trustedTime', 'revisions'],
    start: async ({ settings, trustedTime }, { log, progress }) => {
      const gossip = await startGossip(settings, log.named('gossip'));
      if (gossip.note !== undefined) progress.note(gossip.note);
      trustedTime.comparedBy(gossip.clockOffsetMs);
      return gossip;
    },
    stop: (gossip) => gossip.stop(),
  }),
  hostService({
    name: 'balancer',
    needs: ['settings', 'gossip'],
    start: ({ settings, gossip }, { log }) => startBalancer(settings, gossip, log.named('nodelb')),
    stop: (balancer, { keepPods }) => balancer.stop({ handOver: keepPods }),
  }),
  hostService({
    name: 'nodeConfig',
    needs: ['settings', 'files', 'cgroupDriver'],
    start: ({ settings, cgroupDriver }, { log }) => readHostNodeConfig(settings, cgroupDriver.name, log),
  }),
  hostService({
    name: 'api',
    needs: ['settings', 'files', 'balancer'],
    start: ({ settings }, { log }) =>
      openClient(nodeFiles(settings.root).kubeconfig, 'kubelet/hyperedge', { clock, random, log }),
    stop: (api) => api.close(),
  }),
  hostService({
    name: 'lastKnown',
    needs: ['settings', 'files'],
    start: ({ settings }, { log }) => openLastKnown(settings, log.named('last-known')),
  }),
  hostService({
    name: 'informers',
    needs: ['api', 'lastKnown'],
    start: ({ api, lastKnown }) => api.newInformers(lastKnown),
    stop: (informers) => informers.stop(),
  }),
  hostService({
    name: 'recorder',
    needs: ['api', 'nodeConfig', 'informers'],
    start: ({ api, nodeConfig }, { log }) =>
      createEventRecorder({
        client: api.client,
        component: 'kubelet',
        host: nodeConfig.nodeName,
        settleMs: EVENTS_MS,
        clock,
        random,
        log,
      }),
    // If the pods end, no events are flushed, because this host's API server has ended too.
    stop: (recorder, { keepPods }) => recorder.stop(keepPods ? EVENTS_FLUSH_MS : 0),
    stopMs: EVENTS_FLUSH_MS + 500,
  }),
  hostService({
    name: 'apiServers',
    needs: ['balancer', 'informers'],
    start: ({ balancer, informers }) => followApiServers(balancer, informers),
  }),
  hostService({
    name: 'networkRecord',
    needs: ['settings', 'files'],
    start: ({ settings }) => recordHostNetwork(settings.paths.networkRecord, networkRecordOf(settings)),
  }),
  hostService({
    name: 'podNetwork',
    needs: ['settings', 'runtime', 'informers', 'nodeConfig', 'networkRecord'],
    start: async ({ settings, runtime, informers, nodeConfig }, { log, progress }) => {
      const follower = await followPodNetwork({
        network: runtime.network,
        informers,
        nodeName: nodeConfig.nodeName,
        file: settings.paths.podCidr,
        // A host without an address uses the address of its pod bridge, so the bridge must exist before servers and
        // clients start.
        initial: settings.nodeIpIsBridge ? settings.network.firstPodCidr : undefined,
        onReady: (cidr) => progress.step(`pod network ${cidr} on ${settings.network.bridge}`),
        log: log.named('network'),
      });
      void follower.synced.then(() => progress.step('API server answers'));
      return follower;
    },
    stop: (follower) => follower.stop(),
  }),
  hostService({
    name: 'gossipPeers',
    needs: ['settings', 'gossip', 'balancer', 'informers'],
    start: ({ settings, gossip, balancer, informers }) => configureGossipPeers(gossip, balancer, informers, settings),
  }),
  hostService({
    name: 'policies',
    needs: ['settings', 'runtime', 'informers', 'nodeConfig'],
    start: ({ settings, runtime, informers, nodeConfig }, { log }) =>
      runtime.policies.open(settings, informers, nodeConfig.nodeName, log),
  }),
  hostService({
    name: 'streaming',
    needs: ['recorder', 'podNetwork'],
    start: (_, { log }) => createStreamingServer({ clock, log }),
    stop: (streaming) => streaming.stop(),
  }),
  hostService({
    name: 'nodeAddresses',
    needs: ['settings', 'nodeConfig'],
    start: ({ settings, nodeConfig }, { log }) => createNodeAddresses(settings, nodeConfig, log.named('addresses')),
  }),
  hostService({
    name: 'versions',
    needs: ['api'],
    start: ({ api }, { log }) => followVersions(api.client, log.named('versions')),
    stop: (versions) => versions.stop(),
  }),
  hostService({
    name: 'certificates',
    needs: ['settings', 'nodeConfig', 'api', 'trustedTime'],
    start: ({ settings, nodeConfig, api, trustedTime }, { log }) =>
      nodeCertificates(settings, nodeConfig.nodeName, api.client, trustedTime, log.named('certificates')),
  }),
  hostService({
    name: 'alerts',
    needs: ['nodeConfig', 'recorder'],
    start: ({ nodeConfig, recorder }, { log }) => createHostAlerts(nodeConfig.nodeName, recorder, log.named('alerts')),
  }),
  hostService({
    name: 'logForwarding',
    needs: ['settings', 'nodeConfig'],
    start: ({ settings, nodeConfig }, { log, logTap }) =>
      startLogForwarding(settings, nodeConfig.nodeName, logTap, log.named('logging')),
    // Stops after the kubelet, so that the last lines of the pods are read.
    stop: (forwarding) => forwarding.stop(),
  }),
  hostService({
    name: 'restorer',
    needs: ['runtime'],
    start: ({ runtime }, { log }) => createNetworkRestorer(runtime.network, clock, log.named('network')),
  }),
];
