/** Names, values and shared context of the services of a host. */
import type { ReservedPort } from '../../../api/kinds/nodes/nodes/host-ports.ts';
import type { Progress } from '../../../base/command-line/progress.ts';
import type { Log } from '../../../base/log.ts';
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
  /** Settings as they were before this host joined a cluster. */
  readonly given: Settings;
  readonly startedAt: string;
  readonly log: Log;
  readonly progress: Progress;
  /** Stores copies of the log lines of this process for log forwarding. */
  readonly logTap: LogTap;
  /** Reads the settings again. Called after this host has joined a cluster. */
  readonly reload: () => Promise<Settings>;
  /** Aborted if the process is stopped before the host has started. */
  readonly signal: AbortSignal;
  /** Services that have started, with their times. */
  readonly stages: readonly StartStage[];
}

export interface HostStop extends StopMode {
  /** Whether the pods keep running. The next host process then adopts them. */
  readonly keepPods: boolean;
}

/** Value of a service that returns none. Other services depend on its effects. */
type Effect = ReturnType<() => void>;
type StopFunction = () => void | Promise<void>;

/** The value of each service. The files beside this one define the services. */
export interface HostServices {
  diskReserve: DiskReserve;
  instanceLock: InstanceLock;
  /** Settings after this host has joined its cluster. */
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
  /** Directory of the unpacked assets; undefined when Node runs the sources. */
  readonly assets: string | undefined;
  /** Directory of the unpacked helper programs; undefined if the host's own programs are used. */
  readonly helpers: string | undefined;
}

export interface ReservedPorts {
  /** Ports that this host uses. Empty until `read` was called. */
  current(): readonly ReservedPort[];
  read(): Promise<void>;
}

export interface HostFiles {
  /** Writes certificates, configuration files and manifests for the given settings. */
  install(settings: Settings): Promise<void>;
}

export interface ClusterRecord {
  /** Resolves when the cluster of this host's store is recorded. */
  readonly recorded: Promise<void>;
}

export interface HostControl extends ControlServer {
  /** Whether a reset or uninstall has requested that the stop ends the pods. */
  endsPods(): boolean;
}

export type HostService = AnyService<HostContext, HostServices, HostStop>;

export const hostService = serviceDefiner<HostContext, HostServices, HostStop>();
