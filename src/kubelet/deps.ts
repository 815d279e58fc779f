import type { Log } from '../base/log.ts';
import type { Clock, RandomSource } from '../base/time/clock.ts';
import type { LastKnown } from '../client/informers/last-known.ts';
import type { ApiClient, EventRecorder, InformerFactory } from '../client/types.ts';
import type { Trees } from '../runtime/directory-removal/port.ts';
import type { Runtime } from '../runtime/port.ts';
import type { KubeletConfig } from './config/kubelet-config.ts';
import type { CgroupFileSystem, SliceManager } from './core/cgroups/port.ts';
import type { KubeletDevices } from './devices/node-devices.ts';
import type { HistoryDeps } from './history/recorder.ts';
import type { StreamingServer } from './io/streaming/port.ts';
import type { HostCondition } from './node/node-status.ts';
import type { FileWatch, HostFacts, ManifestFeed, Mounter } from './port.ts';
import type { HostAdministration } from './ports/administration-port.ts';
import type { CredentialProviders } from './ports/credentials-port.ts';
import type { KubeletFiles } from './ports/files-port.ts';
import type { HostDoctor } from './ports/host-doctor-port.ts';
import type { HostLogSource } from './ports/host-logs-port.ts';
import type { ProbeNetwork } from './probes/port.ts';
import type { KubeletListen } from './server/port.ts';
import type { LoginManager } from './shutdown/port.ts';
import type { VolumeDeps } from './volumes/compose.ts';

/** Connection to the API server. Calls fail while the server is down; the kubelet continues without it. */
export interface ApiAccess {
  readonly client: ApiClient;
  /** Factory used by the kubelet alone. The kubelet starts and stops its informers. */
  readonly informers: InformerFactory;
  readonly recorder: EventRecorder;
}

export interface ServingCertificate {
  /** PEM, leaf certificate first. */
  readonly cert: string;
  readonly key: string;
}

export interface KubeletDeps {
  readonly config: KubeletConfig;
  readonly runtime: Runtime;
  readonly cgroups: CgroupFileSystem;
  /** Client of systemd when the systemd cgroup driver is used. Undefined for the cgroupfs driver. */
  readonly slices: SliceManager | undefined;
  /** Source of shutdown announcements of the machine. If undefined, shutdowns are not announced to the kubelet. */
  readonly login?: LoginManager | undefined;
  readonly host: HostFacts;
  readonly files: KubeletFiles;
  readonly fileWatch: FileWatch;
  readonly hostLogs: HostLogSource;
  /** If undefined, this host cannot be administered over the network. */
  readonly administration?: HostAdministration;
  /** If undefined, clients cannot request the checks of the host. */
  readonly hostDoctor?: HostDoctor | undefined;
  readonly mounts: Mounter;
  readonly volumes: VolumeDeps;
  readonly trees: Trees;
  /** If undefined, the node offers no devices: neither devices of plug-ins nor its own fixtures. */
  readonly devices?: KubeletDevices;
  readonly listen: KubeletListen;
  readonly streaming: StreamingServer;
  readonly probeNetwork: ProbeNetwork;
  readonly credentials?: CredentialProviders | undefined;
  /** Further sources of static pod manifests, beside the directory and the URL of the configuration. */
  readonly feeds?: readonly ManifestFeed[];
  /**
   * Access to the API server. If undefined, the kubelet runs static pods only. With node bootstrapping, the access
   * becomes available when the credentials have been issued.
   */
  readonly api: ApiAccess | Promise<ApiAccess> | undefined;
  /** Store of pods and their objects that survives a restart of the process. If undefined, pods are not saved. */
  readonly lastKnown?: LastKnown | undefined;
  /** Called at start and before every hourly renewal of the server's TLS context. */
  readonly servingCertificate: () => Promise<ServingCertificate>;
  /** PEM of the certificate authorities that verify client certificates. */
  readonly clientCa: () => Promise<string>;
  /** Reason why the host is not ready, such as a missing pod CIDR. The node is not Ready while it is defined. */
  readonly notReady?: () => string | undefined;
  /** Further metrics of the host for `/metrics`, in Prometheus' text format. */
  readonly moreMetrics?: () => string;
  /** Returns further conditions for the Node. `reported` contains the types of the conditions that the Node has now. */
  readonly conditions?: (reported: ReadonlySet<string>) => Promise<readonly HostCondition[]>;
  /** If undefined, no usage history is kept. */
  readonly history?: HistoryDeps;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}
