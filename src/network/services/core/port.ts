/** Ports of the service proxy to the host. */

export type TimedMembers = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** A packet filter that executes nft programs. */
export interface PacketFilter {
  /**
   * Checks whether nft works on this host. Resolves with the reason if it does not (no binary, kernel support or
   * permission), otherwise with undefined.
   */
  probe(): Promise<string | undefined>;
  /** Applies the whole program as one transaction. If it throws, nothing was applied. */
  apply(program: string): Promise<void>;
  /** Members of a set of addresses, protocols and ports, each as `ADDRESS . PROTOCOL . PORT`. */
  elements(family: 4 | 6, table: string, set: string): Promise<string[]>;
  /** Remaining seconds of members with a timeout, by set and address. Empty if the table does not exist. */
  timedMembers(family: 4 | 6, table: string): Promise<TimedMembers>;
  /** Chains and rules of a table without the elements of its sets; undefined if the table does not exist. */
  outline(family: 4 | 6 | 'inet', table: string): Promise<string | undefined>;
  /** Routes service traffic of this host through the filter even without a default route (an air-gapped host). */
  routeServices(serviceCidr: string): Promise<void>;
}

export interface ForwardTarget {
  readonly ip: string;
  readonly port: number;
}

/** Selects a back end for a client; undefined rejects the connection. */
export type PickTarget = (clientIp: string) => ForwardTarget | undefined;

export interface Listener {
  close(): Promise<void>;
}

/** Forwards streams in user space, for hosts whose kernel has no nft (OKD 3.11 "Service Proxy"). */
export interface StreamForwarder {
  /** Adds `ip` to this host's addresses, so that connections to it arrive here. Idempotent. */
  bindAddress(ip: string): Promise<void>;
  unbindAddress(ip: string): Promise<void>;
  /** Listens on a port. If `ip` is undefined, listens on every local address (for node ports). */
  listen(protocol: 'TCP' | 'UDP', ip: string | undefined, port: number, pick: PickTarget): Promise<Listener>;
}

export interface HealthReport {
  readonly namespace: string;
  readonly name: string;
  readonly localEndpoints: number;
}

/** Serves the health checks of load balancers. */
export interface HealthPorts {
  /** `report` is called at each request for the result of the check. */
  listen(port: number, report: () => HealthReport): Promise<Listener>;
}
