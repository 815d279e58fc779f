import type { Node, Pod, Service } from '../../api/generated/core/v1.ts';
import type { Log } from '../../base/log.ts';
import type { Quantity } from '../../base/quantity.ts';
import type { Clock } from '../../base/time/clock.ts';
import type { Trees } from '../../runtime/directory-removal/port.ts';
import type { Runtime, RuntimeFeatures, SandboxStatus } from '../../runtime/port.ts';
import type { KubeletConfig } from '../config/kubelet-config.ts';
import type { NodeDevices } from '../devices/node-devices.ts';
import type { HostFacts, HostInfo } from '../port.ts';
import type { CredentialProviders } from '../ports/credentials-port.ts';
import type { KubeletFiles } from '../ports/files-port.ts';
import type { ProbeNetwork } from '../probes/port.ts';
import type { Prober } from '../probes/prober.ts';
import type { PodCgroups } from '../resources/cgroups.ts';
import type { ContainerManager } from '../resources/container-manager.ts';
import type { ConfigObjects } from '../volumes/config-objects.ts';
import type { PodAddresses, VolumeManager } from '../volumes/manager.ts';
import type { TokenSource } from '../volumes/tokens.ts';
import type { Rejection } from './admission.ts';
import type { ImagePuller } from './containers/image-puller.ts';
import type { UserNamespaces } from './containers/user-namespaces.ts';
import type { PodDirectories } from './directories.ts';
import type { KubeletEvents } from './events.ts';
import type { RuntimeClasses } from './runtime-classes.ts';
import type { RuntimeView } from './runtime-view.ts';
import type { StatusManager } from './status-manager.ts';

/**
 * Services that the parts of the kubelet share. Each part declares with Pick those that it uses; only the composition
 * has all of them.
 */
export interface PodServices {
  readonly config: ConfigObjects;
  readonly settings: KubeletConfig;
  readonly runtime: Runtime;
  readonly view: RuntimeView;
  readonly cgroups: PodCgroups;
  /** Assigns CPUs and NUMA nodes to containers. */
  readonly containers: ContainerManager;
  readonly volumes: VolumeManager;
  readonly tokens: TokenSource;
  readonly userNamespaces: UserNamespaces;
  readonly puller: ImagePuller;
  readonly runtimeClasses: RuntimeClasses;
  readonly prober: Prober;
  readonly probeNetwork: ProbeNetwork;
  readonly credentials: CredentialProviders | undefined;
  readonly statuses: StatusManager;
  readonly events: KubeletEvents;
  readonly directories: PodDirectories;
  readonly trees: Trees;
  readonly devices: NodeDevices | undefined;
  readonly files: KubeletFiles;
  readonly host: HostFacts;
  readonly hostInfo: HostInfo;
  readonly clock: Clock;
  readonly log: Log;
  /** `runtimeName` is the scheme of container IDs. */
  runtimeFacts(): RuntimeFeatures & { readonly runtimeName: string };
  allocatable(): Readonly<Record<string, Quantity>>;
  services(): readonly Service[];
  /** This Node from the API. Undefined until it has been read. */
  node(): Node | undefined;
  addresses(pod: Pod, sandbox: SandboxStatus): PodAddresses;
  /** Other pods that hold resources of the node. */
  otherPods(pod: Pod): readonly Pod[];
  /** Rejection of a pod because of node pressure. Undefined when pressure does not affect it. */
  underPressure(pod: Pod): Rejection | undefined;
}
