import type { Clock, RandomSource } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { LastKnown } from '../../client/last-known.ts';
import type { ApiClient, EventRecorder, InformerFactory } from '../../client/types.ts';
import type { CgroupFileSystem, SliceManager } from '../../core/cgroup/port.ts';
import type { Runtime } from '../../core/podplan/port.ts';
import type { StreamingServer } from '../../io/streaming/port.ts';
import type { Trees } from '../../io/trees/port.ts';
import type { KubeletConfig } from './config.ts';
import type { CredentialProviders } from './credentials-port.ts';
import type { KubeletDevices } from './devices/node-devices.ts';
import type { KubeletFiles } from './files-port.ts';
import type { HostLogSource } from './host-logs-port.ts';
import type { HostCondition } from './node/node-status.ts';
import type { FileWatch, HostFacts, ManifestFeed, Mounter } from './port.ts';
import type { ProbeNetwork } from './probes/port.ts';
import type { KubeletListen } from './server/port.ts';
import type { LoginManager } from './shutdown/port.ts';
import type { VolumeDeps } from './volumes/compose.ts';

/** The way to the API server. Calls may fail for as long as it is not up: the kubelet goes on without. */
export interface ApiAccess {
  readonly client: ApiClient;
  /** Of this component's own: the kubelet starts and stops the informers it takes. */
  readonly informers: InformerFactory;
  readonly recorder: EventRecorder;
}

export interface ServingCertificate {
  /** PEM, leaf first. */
  readonly cert: string;
  readonly key: string;
}

export interface KubeletDeps {
  readonly config: KubeletConfig;
  readonly runtime: Runtime;
  readonly cgroups: CgroupFileSystem;
  /** Present: the systemd cgroup driver is used; undefined: the cgroupfs driver. */
  readonly slices: SliceManager | undefined;
  /** What announces shutdowns of the machine; undefined: nothing does. */
  readonly login?: LoginManager | undefined;
  readonly host: HostFacts;
  readonly files: KubeletFiles;
  readonly fileWatch: FileWatch;
  readonly hostLogs: HostLogSource;
  readonly mounts: Mounter;
  readonly volumes: VolumeDeps;
  readonly trees: Trees;
  /** Undefined: no devices, neither of plug-ins nor of this node. */
  readonly devices?: KubeletDevices;
  readonly listen: KubeletListen;
  readonly streaming: StreamingServer;
  readonly probeNetwork: ProbeNetwork;
  readonly credentials?: CredentialProviders | undefined;
  /** Manifests from elsewhere than the directory and the URL of the configuration. */
  readonly feeds?: readonly ManifestFeed[];
  /** Undefined: no API server, static pods only. A promise: credentials are still to be had (node bootstrapping). */
  readonly api: ApiAccess | Promise<ApiAccess> | undefined;
  /** Where pods and what they use outlive the process; undefined: nowhere. */
  readonly lastKnown?: LastKnown | undefined;
  /** Asked at start and before every hour's renewal of the server's TLS context. */
  readonly servingCertificate: () => Promise<ServingCertificate>;
  /** PEM of the authorities that client certificates must come from. */
  readonly clientCa: () => Promise<string>;
  /** Why the host is not ready, such as a missing pod CIDR; undefined when it is. Node Ready waits for it. */
  readonly notReady?: () => string | undefined;
  /** What else the host has to say as conditions of its Node; `said` are the types that it has now. */
  readonly conditions?: (said: ReadonlySet<string>) => Promise<readonly HostCondition[]>;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly log: Log;
}
