/** The kubelet and the services of the node that start after it. */

import { APPROVED_ANNOTATION } from '../../../api/kinds/nodes/nodes/serving-addresses.ts';
import type { NodeName } from '../../../base/brand.ts';
import { ignore } from '../../../base/errors.ts';
import type { Log } from '../../../base/log.ts';
import type { InformerFactory } from '../../../client/index.ts';
import { keepNodeRoleLabels } from '../../../kubelet/index.ts';
import { masterFiles } from '../../../pki/index.ts';
import { type ScheduledSnapshots, scheduleSnapshots } from '../../../store/administration/schedule.ts';
import { readSchedule } from '../../../store/config/snapshot-schedule.ts';
import { ownsStore } from '../../certificates/issue-certificates.ts';
import { publishKeyring } from '../../certificates/ring-keyring.ts';
import type { Settings } from '../../config/settings.ts';
import { holdAddresses } from '../../network/balanced-addresses.ts';
import { isOwnAddress } from '../../network/balancer.ts';
import { startNetworkServices } from '../../network/network-services.ts';
import type { NodeAddresses } from '../../network/node-addresses.ts';
import { followOwnAddress } from '../../network/own-address.ts';
import { followHostGroup } from '../../node/node-groups.ts';
import { restartableKubelet } from '../../node/restartable-kubelet.ts';
import { openClient } from '../../process/api-access.ts';
import { selfCommand } from '../../process/assets.ts';
import { systemClock as clock, systemRandom as random } from '../../process/process.ts';
import { takeInChild } from '../../store/snapshot-child.ts';
import { storeFiles } from '../../store/store-files.ts';
import { hostKubelet, KUBELET_NEEDS } from './host-kubelet.ts';
import { type HostService, hostService } from './values.ts';

const SHARED_ADDRESS_MS = 2_000;
/** Time limit for the child process that saves a snapshot, whose file system may not answer. */
const SNAPSHOT_MS = 2_000;

export const node: readonly HostService[] = [
  hostService({
    name: 'kubelet',
    needs: KUBELET_NEEDS,
    start: async (parts, { log, progress }) => {
      const kubelet = await restartableKubelet((isFirst) => hostKubelet(parts, isFirst, log), log);
      try {
        await kubelet.start();
      } catch (error) {
        await kubelet.stop();
        throw error;
      }
      progress.step(`kubelet serves on ${kubelet.port}; static pods start from ${parts.settings.paths.staticPods}`);
      return kubelet;
    },
    stop: (kubelet, { keepPods, hurry }) => kubelet.stop({ stopPods: !keepPods, hurry }),
  }),
  hostService({
    name: 'gossipLeave',
    needs: ['gossip', 'kubelet'],
    start: ({ gossip }) => gossip,
    // The leave message is sent before the pods end, because gossip needs less time than the pods' grace periods. The
    // service `gossip` waits for this stop.
    stop: (gossip) => void gossip.stop().catch(ignore('the service gossip reports the error')),
  }),
  hostService({
    name: 'certificateRenewal',
    needs: ['certificates', 'kubelet'],
    start: ({ certificates, kubelet }) => {
      certificates.start(kubelet);
      return certificates;
    },
    stop: (certificates) => certificates.stop(),
  }),
  hostService({
    name: 'ownAddress',
    needs: ['settings', 'nodeAddresses', 'gossip', 'trustedTime', 'kubelet', 'files', 'revisions'],
    start: ({ settings, nodeAddresses, gossip, trustedTime, kubelet, files, revisions }, { reload, log }) =>
      followOwnAddress({
        settings,
        reload,
        addresses: nodeAddresses,
        gossip,
        time: trustedTime,
        reinstall: (current) => revisions.around(() => files.install(current)),
        onRenewed: () => void kubelet.reloadCertificate(),
        log,
      }),
    stop: (own) => own.stop(),
  }),
  hostService({
    name: 'addressChanges',
    needs: ['nodeAddresses', 'balancer', 'kubelet', 'ownAddress'],
    start: ({ nodeAddresses, balancer, kubelet }) => {
      nodeAddresses.onChange(() => balancer.addressesChanged(isOwnAddress));
      nodeAddresses.onChange(() => kubelet.addressesChanged());
    },
  }),
  hostService({
    name: 'keptReserve',
    needs: ['diskReserve', 'kubelet'],
    start: ({ diskReserve }) => diskReserve.keep(),
    stop: (stop) => stop(),
  }),
  hostService({
    name: 'snapshots',
    needs: ['settings', 'kubelet'],
    start: ({ settings }, { log }) => scheduledSnapshotsOf(settings, log),
    stop: (snapshots) => snapshots.stop(),
    stopMs: SNAPSHOT_MS,
  }),
  hostService({
    name: 'lastKnownEnd',
    needs: ['lastKnown', 'kubelet'],
    start: ({ lastKnown }) => lastKnown,
    // The stop precedes the end of the pods. The end of a pod removes its objects, but the next start may need them
    // without an API server.
    stop: (lastKnown) => lastKnown.stop(),
  }),
  hostService({
    name: 'networkServices',
    needs: [
      ...(['settings', 'informers', 'nodeConfig', 'runtime', 'nodeAddresses', 'restorer', 'reservedPorts'] as const),
      ...(['recorder', 'gossip', 'files', 'policies', 'kubelet'] as const),
    ],
    // Stops after the kubelet, because pods use the network until they have ended.
    stopsWith: 'streaming',
    start: (parts, { log }) =>
      startNetworkServices({
        settings: parts.settings,
        informers: parts.informers,
        nodeName: parts.nodeConfig.nodeName,
        runtime: parts.runtime,
        addresses: parts.nodeAddresses,
        restorer: parts.restorer,
        reservedPorts: parts.reservedPorts.current(),
        recorder: parts.recorder,
        gossip: parts.gossip,
        log,
      }),
    stop: (services, { keepPods }) => services.stop(keepPods),
  }),
  hostService({
    name: 'networkRepair',
    needs: ['restorer', 'networkServices'],
    start: ({ restorer, networkServices }) => {
      restorer.start(networkServices.verifiers);
      return restorer;
    },
    stop: (restorer) => restorer.stop(),
  }),
  hostService({
    name: 'nodeGroups',
    needs: ['settings', 'nodeConfig', 'informers', 'api', 'cgroupDriver', 'kubelet'],
    start: ({ settings, nodeConfig, informers, api, cgroupDriver, kubelet }, { log }) =>
      followHostGroup({
        settings,
        nodeName: nodeConfig.nodeName,
        informers,
        client: api.client,
        cgroupDriver: cgroupDriver.name,
        clock,
        random,
        restartKubelet: () => kubelet.restart(),
        log: log.named('node-groups'),
      }),
    stop: (stop) => stop(),
  }),
  hostService({
    name: 'keyring',
    needs: ['settings', 'gossip', 'gossipPeers', 'kubelet'],
    start: ({ settings, gossip }, { log }) => publishKeyring(settings, gossip, log.named('gossip')),
    stop: (stop) => stop(),
  }),
  hostService({
    name: 'roleLabels',
    needs: ['settings', 'informers', 'nodeConfig', 'nodeAddresses', 'kubelet'],
    start: ({ settings, informers, nodeConfig, nodeAddresses }, { log }) =>
      keepMasterLabel(settings, informers, nodeConfig.nodeName, nodeAddresses, log.named('node-roles')),
    stop: (stop) => stop(),
  }),
  hostService({
    name: 'sharedAddress',
    needs: ['settings', 'informers', 'nodeConfig', 'kubelet'],
    start: ({ settings, informers, nodeConfig }, { log }) =>
      holdAddresses(settings, informers, nodeConfig.nodeName, log),
    // Stops before the API server of this host, so that another host can take over the address immediately.
    stop: (sharedAddress) => sharedAddress.stop(),
    stopMs: SHARED_ADDRESS_MS,
  }),
];

/** Sets the master label and the addresses on the Node of a master. Returns a function that ends this. */
function keepMasterLabel(
  settings: Settings,
  informers: InformerFactory,
  nodeName: NodeName,
  addresses: Pick<NodeAddresses, 'current'>,
  log: Log,
): () => void {
  if (!settings.roles.has('master')) return () => {};
  const { adminKubeconfig } = masterFiles(settings.root);
  return keepNodeRoleLabels({
    informers,
    nodeName,
    labels: { 'node-role.kubernetes.io/master': 'true' },
    annotations: () => ({ [APPROVED_ANNOTATION]: [nodeName, ...addresses.current()].join(',') }),
    openAdmin: () => openClient(adminKubeconfig, 'hyperedge', { clock, random, log }),
    clock,
    log,
  });
}

function scheduledSnapshotsOf(settings: Settings, log: Log): ScheduledSnapshots {
  if (!ownsStore(settings)) return { reload: async () => {}, stop: async () => {} };
  const { snapshotSchedule, snapshots } = settings.paths;
  return scheduleSnapshots({
    read: () => readSchedule(snapshotSchedule, snapshots),
    files: storeFiles,
    clock,
    log: log.named('snapshots'),
    take: takeInChild(selfCommand(), settings.root),
  });
}
