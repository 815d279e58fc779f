/**
 * What the embedded runtime needs from other rooms: a pod network (`io/links`, or a CNI adapter) and an image store
 * (`io/images`).
 */
import type { ImageService, PortMapping } from '../../core/podplan/port.ts';

/** The identity of a pod sandbox on the pod network. `sandboxId` is the key of `detach`. */
export interface PodEndpoint {
  readonly sandboxId: string;
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly portMappings: readonly PortMapping[];
}

export interface PodNetwork {
  /**
   * Takes the addresses that `attach` will give, before the namespace exists; absent: only `attach` knows them. Throws
   * as `attach`, for what needs no kernel.
   */
  reserve?(netnsPath: string, pod: PodEndpoint): Promise<{ readonly ips: readonly string[] }>;
  /**
   * Gives the network namespace bound at `netnsPath` an interface `eth0` with an address and a default route, brings up
   * loopback and opens the host ports. Idempotent per sandbox. Throws RuntimeError 'network' (no pod CIDR yet, range
   * exhausted, host port taken, kernel refusal) and leaves nothing behind.
   */
  attach(netnsPath: string, pod: PodEndpoint): Promise<{ readonly ips: readonly string[] }>;
  /** Releases addresses, links and host ports of a sandbox; succeeds when there are none. */
  detach(sandboxId: string): Promise<void>;
  /**
   * Releases what sandboxes outside of `alive` still hold. The runtime calls it once at start, so that a crash between
   * an attach and its record loses no address.
   */
  retain(alive: ReadonlySet<string>): Promise<void>;
  /**
   * The node's pod ranges (`10.128.2.0/23`), one per family, the primary one first; the first host address of each
   * becomes the bridge's. Running pods keep their addresses.
   */
  setPodCidrs(cidrs: readonly string[]): Promise<void>;
}

/** The part of the pod network that the runtime uses. */
export type PodAttachments = Pick<PodNetwork, 'reserve' | 'attach' | 'detach' | 'retain'>;

/**
 * Places for monitors outside of the host process's own unit (`io/systemd`): what is left in a unit when it stops is a
 * leftover to systemd, and what runs out of memory in it counts against it.
 */
export interface MonitorScopes {
  /** Moves a process into a new scope, which ends with it. */
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

/** An image that is held for a container: its layers stay on disk until `release`. */
export interface HeldImage {
  readonly id: string;
  readonly config: ImageConfig;
  /** Directory that the layer paths are relative to (keeps the overlay mount's option string short). */
  readonly layerRoot: string;
  /** Unpacked layers in overlayfs format, topmost first, relative to `layerRoot`. */
  readonly layers: readonly string[];
}

export interface ImageStorePort extends ImageService {
  /**
   * Pins an image's layers for `holder` (a container id) until `release` or a power cut. Throws RuntimeError
   * 'image-not-found'.
   */
  hold(imageId: string, holder: string): Promise<HeldImage>;
  /** Unpins; succeeds when nothing is held. */
  release(holder: string): Promise<void>;
}
