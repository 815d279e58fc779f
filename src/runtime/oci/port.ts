/**
 * Ports of the embedded runtime to other folders: a pod network (`network/pods/io` or a CNI adapter) and an image store
 * (`runtime/images`).
 */
import type { Uid } from '../../base/brand.ts';
import type { ImageService, PortMapping } from '../port.ts';

/** Identity of a pod sandbox on the pod network. `sandboxId` is the key for `detach`. */
export interface PodEndpoint {
  readonly sandboxId: string;
  readonly uid: Uid;
  readonly name: string;
  readonly namespace: string;
  readonly portMappings: readonly PortMapping[];
}

export interface PodNetwork {
  /**
   * Reserves the addresses that `attach` will assign, before the namespace exists. Missing if the addresses are known
   * only after `attach`. Throws like `attach`, except for kernel errors.
   */
  reserve?(netnsPath: string, pod: PodEndpoint): Promise<{ readonly ips: readonly string[] }>;
  /**
   * Adds an interface `eth0` with an address and a default route to the network namespace bound at `netnsPath`, brings
   * up loopback and opens the host ports. Idempotent per sandbox. On failure it removes everything and throws
   * RuntimeError 'network': no pod CIDR yet, range exhausted, host port in use, kernel error.
   */
  attach(netnsPath: string, pod: PodEndpoint): Promise<{ readonly ips: readonly string[] }>;
  /** Releases addresses, links and host ports of a sandbox. Succeeds if there are none. */
  detach(sandboxId: string): Promise<void>;
  /**
   * Releases resources of sandboxes that are not in `alive`. The runtime calls it once at start, so that a crash
   * between an attach and its record loses no address.
   */
  retain(alive: ReadonlySet<string>): Promise<void>;
  /**
   * Sets the node's pod ranges (`10.128.2.0/23`), one per family, the primary one first. The bridge gets the first host
   * address of each. Running pods keep their addresses.
   */
  setPodCidrs(cidrs: readonly string[]): Promise<void>;
}

export type PodAttachments = Pick<PodNetwork, 'reserve' | 'attach' | 'detach' | 'retain'>;

/**
 * Creates systemd scopes for monitors outside of the host process's own unit (`kubelet/io/systemd`). Within that unit,
 * systemd would report the monitors as leftover processes when the unit stops, and an OOM kill of a monitor would count
 * against the unit.
 */
export interface MonitorScopes {
  /** Moves a process into a new scope, which ends with the process. */
  scope(
    name: string,
    options: { readonly slice: string; readonly description: string; readonly pid: number },
  ): Promise<void>;
}

/** The part of an OCI image configuration that container creation uses. */
export interface ImageConfig {
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
  readonly env: readonly string[];
  readonly workingDir: string;
  /** `user`, `uid`, `user:group`, `uid:gid` or ''. */
  readonly user: string;
  /** `SIGTERM`, `TERM`, `15` or ''. */
  readonly stopSignal: string;
}

/** An image in use by a container. Its layers stay on disk until `release`. */
export interface HeldImage {
  readonly id: string;
  readonly config: ImageConfig;
  /** Directory that the layer paths are relative to, which keeps the overlay mount's option string short. */
  readonly layerRoot: string;
  /** Unpacked layers in overlayfs format, topmost first, relative to `layerRoot`. */
  readonly layers: readonly string[];
}

export interface ImageStorePort extends ImageService {
  /**
   * Pins an image's layers for `holder` (a container id) until `release` or a reboot. Throws RuntimeError
   * 'image-not-found'.
   */
  hold(imageId: string, holder: string): Promise<HeldImage>;
  /** Unpins the image of `holder`. Succeeds if there is none. */
  release(holder: string): Promise<void>;
}
