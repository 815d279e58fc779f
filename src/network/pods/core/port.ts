/** Port to the kernel for the pod network between hosts. */

export type Family = 4 | 6;

/** Path to an address of another host, according to the kernel. */
export interface PeerPath {
  readonly link: string;
  /** Address of the next hop; undefined if the address is on the link itself. */
  readonly gateway: string | undefined;
  /** MTU of the whole path in bytes, as far as the kernel knows it. */
  readonly mtu: number;
}

/** A route in the main table, owned by this program. */
export interface PodRoute {
  /** Destination in canonical form, such as `10.128.2.0/23`. */
  readonly destination: string;
  /** Next hop; undefined if the route makes the destination unreachable. */
  readonly via: { readonly link: string; readonly gateway: string; readonly onLink: boolean } | undefined;
  /** MTU of the route; 0 for the MTU of the link. */
  readonly mtu: number;
}

/** A VXLAN device. */
export interface TunnelLink {
  readonly name: string;
  /** Family of the hosts' addresses. */
  readonly underlay: Family;
  readonly mac: string;
  readonly mtu: number;
  /** Source address of the outer packets; undefined for IPv4 devices, which use the source address of the route. */
  readonly local: string | undefined;
  /**
   * Addresses of the device, such as `10.128.2.0/32`: the source of packets that this host sends through the tunnel.
   */
  readonly addresses: readonly string[];
}

export interface TunnelNeighbor {
  readonly link: string;
  readonly address: string;
  readonly mac: string;
}

/** Entry of a VXLAN device's forwarding table: frames for `mac` are sent to the host `destination`. */
export interface TunnelForward {
  readonly link: string;
  readonly mac: string;
  readonly destination: string;
}

/** Kernel objects for the paths to pods of other hosts. */
export interface Overlay {
  readonly links: readonly TunnelLink[];
  readonly neighbors: readonly TunnelNeighbor[];
  readonly forwards: readonly TunnelForward[];
  readonly routes: readonly PodRoute[];
}

export type OverlayChange =
  | { readonly op: 'add-link'; readonly link: TunnelLink }
  | { readonly op: 'update-link'; readonly link: TunnelLink; readonly staleAddresses: readonly string[] }
  | { readonly op: 'delete-link'; readonly name: string }
  | { readonly op: 'replace-neighbor' | 'delete-neighbor'; readonly neighbor: TunnelNeighbor }
  | { readonly op: 'replace-forward' | 'delete-forward'; readonly forward: TunnelForward }
  | { readonly op: 'replace-route' | 'delete-route'; readonly route: PodRoute };

export interface OverlayKernel {
  /**
   * Paths to addresses of hosts; an address without a route is absent. With `probe`, datagrams of the link's MTU are
   * sent first, so that routers report a smaller path MTU (RFC 1191, RFC 8201).
   */
  paths(addresses: readonly string[], options: { readonly probe: boolean }): Promise<ReadonlyMap<string, PeerPath>>;
  /** MTU of the link that has this address; undefined if no link has it. */
  linkMtu(address: string): Promise<number | undefined>;
  /** Reads the kernel objects that belong to this program: routes by protocol number, links by name. */
  observe(): Promise<Overlay>;
  /** Applies every change that is possible, then throws the first error. */
  apply(changes: readonly OverlayChange[]): Promise<void>;
  /**
   * Drops tunnel frames from senders other than `hosts`, which is undefined if there are no tunnels. Repeated calls
   * restore rules that were deleted.
   */
  guard(hosts: readonly string[] | undefined): Promise<void>;
  /**
   * Calls `changed` after changes of the host's own addresses and routes. Returns a function that stops the
   * notifications.
   */
  watch(changed: () => void): () => void;
}
