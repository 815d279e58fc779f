/** The services of a host by name, and what they share. */
import type { ReservedPort } from '../../../api/kinds/nodes/nodes/host-ports.ts';
import type { Log } from '../../../base/log.ts';
import type { Progress } from '../../../base/progress.ts';
import { type AnyService, type StartStage, type StopMode, serviceDefiner } from '../../../base/services.ts';
import type { EventRecorder, InformerFactory, LastKnown } from '../../../client/index.ts';
import type { CgroupFileSystem } from '../../../kubelet/core/cgroups/port.ts';
import type { createStreamingServer } from '../../../kubelet/io/streaming/server.ts';
import type { ServiceManager } from '../../../kubelet/io/systemd/index.ts';
import type { NodeBalancer } from '../../../network/balancer/index.ts';
import type { MachineConfigDaemon } from '../../../openshift/machine-config/daemon/daemon.ts';
import type { VerifyRelease } from '../../../openshift/updates/releases-port.ts';
import type { ScheduledSnapshots } from '../../../store/administration/schedule.ts';
import type { HostAlerts } from '../../alerts/alerts.ts';
import type { NodeCertificates } from '../../certificates/node-certificates.ts';
import type { NodeConfig } from '../../config/node-config.ts';
import type { Settings } from '../../config/settings.ts';
import type { ControlServer } from '../../control/control.ts';
import type { SubmittedPods } from '../../control/submitted-pods.ts';
import type { LogForwarding } from '../../logging/log-forwarding.ts';
import type { LogTap } from '../../logging/log-tap.ts';
import type { HostGossip } from '../../network/gossip.ts';
import type { NetworkRestorer } from '../../network/network-restorer.ts';
import type { NetworkServices } from '../../network/network-services.ts';
import type { NodeAddresses } from '../../network/node-addresses.ts';
import type { OwnAddress } from '../../network/own-address.ts';
import type { PodNetworkFollower } from '../../network/pod-network.ts';
import type { SharedAddressHolder } from '../../network/shared-address.ts';
import type { CgroupDriver } from '../../node/cgroup-driver.ts';
import type { RestartableKubelet } from '../../node/restartable-kubelet.ts';
import type { HostRuntime } from '../../node/runtime.ts';
import type { startClusterOperators } from '../../openshift/cluster-operators.ts';
import type { ControlPlaneRevisions } from '../../openshift/revisions.ts';
import type { OpenedClient } from '../../process/api-access.ts';
import type { DiskReserve } from '../disk-reserve.ts';
import type { InstanceLock } from '../instance-lock.ts';
import type { TrustedTime } from '../trusted-time.ts';
import type { VersionFollower } from '../version-skew.ts';

export interface HostContext {
  /** Settings before the host has joined a cluster. */
  readonly given: Settings;
  readonly startedAt: string;
  readonly log: Log;
  readonly progress: Progress;
  /** Copies of the lines of this process. */
  readonly logTap: LogTap;
  /** Reads the settings again, after this host has joined a cluster. */
  readonly reload: () => Promise<Settings>;
  /** Aborted if the process is stopped before the host has started. */
  readonly signal: AbortSignal;
  /** The services that have started. */
  readonly stages: readonly StartStage[];
}

export interface HostStop extends StopMode {
  /** The pods keep running, and the next host process adopts them. */
  readonly keepPods: boolean;
}

/** The value of a service that other services need only for its effects. */
type Effect = ReturnType<() => void>;
type StopFunction = () => void | Promise<void>;

/** The value of each service. The files beside this one define the services. */
export interface HostServices {
  diskReserve: DiskReserve;
  instanceLock: InstanceLock;
  /** Settings of a host that belongs to its cluster. */
  settings: Settings;
  trustedTime: TrustedTime;
  machineConfigReplay: Effect;
  privateFiles: Effect;
  cgroups: CgroupFileSystem;
  cgroupDriver: CgroupDriver;
  programs: Programs;
  serviceManager: ServiceManager | undefined;
  reservedPorts: ReservedPorts;
  runtime: HostRuntime;
  portCheck: Effect;
  files: HostFiles;
  submittedPods: SubmittedPods;
  revisions: ControlPlaneRevisions;
  clusterRecord: ClusterRecord;

  gossip: HostGossip;
  balancer: NodeBalancer;
  nodeConfig: NodeConfig;
  api: OpenedClient;
  lastKnown: LastKnown;
  informers: InformerFactory;
  recorder: EventRecorder;
  apiServers: Effect;
  networkRecord: Effect;
  podNetwork: PodNetworkFollower;
  gossipPeers: Effect;
  policies: Effect;
  streaming: ReturnType<typeof createStreamingServer>;
  nodeAddresses: NodeAddresses;
  versions: VersionFollower;
  certificates: NodeCertificates;
  restorer: NetworkRestorer;

  alerts: HostAlerts;
  logForwarding: LogForwarding;

  kubelet: RestartableKubelet;
  gossipLeave: HostGossip;
  certificateRenewal: NodeCertificates;
  ownAddress: OwnAddress;
  addressChanges: Effect;
  keptReserve: StopFunction;
  snapshots: ScheduledSnapshots;
  lastKnownEnd: LastKnown;
  networkServices: NetworkServices;
  networkRepair: NetworkRestorer;
  nodeGroups: StopFunction;
  keyring: StopFunction;
  roleLabels: StopFunction;
  sharedAddress: SharedAddressHolder;

  localVolumes: Effect;
  publishedImages: Effect;
  imageWork: StopFunction;
  machineConfigServer: StopFunction;
  manifests: StopFunction;
  revisionReports: StopFunction;
  machineConfig: MachineConfigDaemon;
  profile: Effect;
  releaseKeys: VerifyRelease;
  clusterOperators: Awaited<ReturnType<typeof startClusterOperators>>;
  updates: StopFunction;
  router: StopFunction;
  alertRounds: HostAlerts;
  control: HostControl;
}

export interface Programs {
  /** Directory of the unpacked assets; undefined when the host runs from source. */
  readonly assets: string | undefined;
  /** Directory of packaged programs; undefined means the host's own. */
  readonly helpers: string | undefined;
}

export interface ReservedPorts {
  /** Ports of this host. Empty until the configuration files are written. */
  current(): readonly ReservedPort[];
  read(): Promise<void>;
}

export interface HostFiles {
  /** Writes certificates, configuration and manifests again for these settings. */
  install(settings: Settings): Promise<void>;
}

export interface ClusterRecord {
  /** Resolves when the cluster of this host's store is recorded. */
  readonly recorded: Promise<void>;
}

export interface HostControl extends ControlServer {
  /** True once a reset or uninstall has requested that the stop ends the pods. */
  endsPods(): boolean;
}

export type HostService = AnyService<HostContext, HostServices, HostStop>;

export const hostService = serviceDefiner<HostContext, HostServices, HostStop>();
