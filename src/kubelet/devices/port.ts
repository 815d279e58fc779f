/**
 * Ports for the sockets of device plug-ins and of the pod-resources API. Implemented by `src/kubelet/io/plugins`.
 * Source: k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1, dra/v1 and podresources/v1.
 */
import type { Uid } from '../../base/brand.ts';
import type { DynamicResource } from '../core/pod-plan/devices.ts';

/**
 * Driver of the fixtures of this node, and domain of their extended resources. No plug-in may register with it: it
 * would replace the fixtures, and its end would delete their slices.
 */
export const RIG_DRIVER = 'rig.hyperedge.dev';

export interface PluginOptions {
  readonly preStartRequired: boolean;
  readonly preferredAllocation: boolean;
}

export interface Registration {
  readonly version: string;
  /** Name of the plug-in's socket in the directory of the registration socket. */
  readonly endpoint: string;
  readonly resourceName: string;
  readonly options: PluginOptions;
}

/** Device as listed by its plug-in, not yet validated. */
export interface ListedDevice {
  readonly id: string;
  readonly health: string;
  readonly numaNodes: readonly number[];
}

export interface DeviceNode {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly permissions: string;
}

export interface DeviceMount {
  readonly hostPath: string;
  readonly containerPath: string;
  readonly readOnly: boolean;
}

/** Response of the plug-in for one container. */
export interface AllocateAnswer {
  readonly env: ReadonlyMap<string, string>;
  readonly mounts: readonly DeviceMount[];
  readonly devices: readonly DeviceNode[];
  readonly annotations: ReadonlyMap<string, string>;
  /** Qualified names: `vendor.com/class=name`. */
  readonly cdiDevices: readonly string[];
}

/** Calls reject with the plug-in's status, or when it does not respond in time. */
export interface DevicePluginConnection {
  options(): Promise<PluginOptions>;
  /** `ended` is called once when the stream ends, except after `close`. */
  watch(events: { listed(devices: readonly ListedDevice[]): void; ended(error: Error): void }): void;
  preferred(available: readonly string[], size: number): Promise<readonly string[]>;
  /** The plug-in returns one response per requested container. This call requests one container. */
  allocate(ids: readonly string[]): Promise<readonly AllocateAnswer[]>;
  preStart(ids: readonly string[]): Promise<void>;
  close(): void;
}

export interface ClaimReference {
  readonly namespace: string;
  readonly name: string;
  readonly uid: Uid;
}

export interface PreparedDevice {
  /** Empty means every request of the claim. */
  readonly requests: readonly string[];
  readonly pool: string;
  readonly device: string;
  readonly cdiDevices: readonly string[];
  /** Set for a device that several claims share. */
  readonly shareId?: string;
}

/** Services that drivers may offer. They use the same messages, except that v1beta1 has no share IDs. */
export const DRA_SERVICES = ['v1.DRAPlugin', 'v1beta1.DRAPlugin'] as const;
export type DraService = (typeof DRA_SERVICES)[number];

export interface DraPluginConnection {
  prepare(claim: ClaimReference): Promise<readonly PreparedDevice[]>;
  unprepare(claim: ClaimReference): Promise<void>;
  close(): void;
}

export interface PodResources {
  readonly name: string;
  readonly namespace: string;
  readonly containers: readonly {
    readonly name: string;
    readonly devices: readonly ResourceDevices[];
    readonly dynamic: readonly DynamicResource[];
  }[];
}

export interface ResourceDevices {
  readonly resource: string;
  readonly ids: readonly string[];
  readonly numaNodes: readonly number[];
}

export interface PodResourcesSource {
  list(): readonly PodResources[];
  allocatable(): readonly ResourceDevices[];
}

export interface Served {
  close(): Promise<void>;
}

export interface PluginSockets {
  /** Serves `v1beta1.Registration`. An Error from `register` becomes the status of the response. */
  serveRegistration(path: string, register: (registration: Registration) => void): Promise<Served>;
  servePodResources(path: string, source: PodResourcesSource): Promise<Served>;
  devicePlugin(socket: string): DevicePluginConnection;
  draPlugin(socket: string, service: DraService): DraPluginConnection;
}

/** Files of the Container Device Interface. Source: CDI specification 1.0. */
export interface CdiFiles {
  /** Parsed contents of `*.json` and `*.yaml` files below `/etc/cdi` and `/var/run/cdi`. Invalid files are skipped. */
  read(): Promise<readonly { readonly path: string; readonly content: unknown }[]>;
}
