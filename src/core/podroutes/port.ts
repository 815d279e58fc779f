/** What the pod network between hosts needs of a kernel. */

export type Family = 4 | 6;

/** The kernel's way to an address of another host. */
export interface PeerPath {
  readonly link: string;
  /** Undefined: the address is on the link itself. */
  readonly gateway: string | undefined;
  /** Of the whole path, as far as the kernel has learnt it; bytes. */
  readonly mtu: number;
}

/** A route of this program in the main table. */
export interface PodRoute {
  /** In canonical form: `10.128.2.0/23`. */
  readonly destination: string;
  /** Undefined: the destination is unreachable. */
  readonly via: { readonly link: string; readonly gateway: string; readonly onLink: boolean } | undefined;
  /** 0: that of the link. */
  readonly mtu: number;
}

/** A VXLAN device. */
export interface TunnelLink {
  readonly name: string;
  /** Family of the hosts' addresses. */
  readonly underlay: Family;
  readonly mac: string;
  readonly mtu: number;
  /** Source address; IPv4 devices take the route's. */
  readonly local: string | undefined;
  /** Own addresses, `10.128.2.0/32`: the source of what this host sends through the tunnel. */
  readonly addresses: readonly string[];
}

export interface TunnelNeighbor {
  readonly link: string;
  readonly address: string;
  readonly mac: string;
}

/** Entry of a VXLAN device's forwarding table: frames to `mac` travel to the host `destination`. */
export interface TunnelForward {
  readonly link: string;
  readonly mac: string;
  readonly destination: string;
}

/** The kernel objects that lead to pods of other hosts. */
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
   * The ways to addresses of hosts; an address without a route is absent. `probe`: datagrams as large as the link takes
   * are sent first, so that routers on the way report a smaller MTU (RFC 1191, RFC 8201).
   */
  paths(addresses: readonly string[], options: { readonly probe: boolean }): Promise<ReadonlyMap<string, PeerPath>>;
  /** MTU of the link with this address; undefined without such a link. */
  linkMtu(address: string): Promise<number | undefined>;
  /** Objects of this program only: routes by their protocol number, links by their names. */
  observe(): Promise<Overlay>;
  /** Applies every change that it can. Throws the first complaint. */
  apply(changes: readonly OverlayChange[]): Promise<void>;
  /**
   * Keeps tunnel frames from other senders than these hosts out; undefined: there are no tunnels. Idempotent: restores
   * what was deleted.
   */
  guard(hosts: readonly string[] | undefined): Promise<void>;
  /** Reports changes of the host's own addresses and routes. Returns the function that stops it. */
  watch(changed: () => void): () => void;
}
