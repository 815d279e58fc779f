/** What the service proxy needs of the host. */

export type TimedMembers = ReadonlyMap<string, ReadonlyMap<string, number>>;

/** A packet filter that takes programs in nft's language. */
export interface PacketFilter {
  /** Undefined when it works here, else why it does not (no binary, no kernel support, no rights). */
  probe(): Promise<string | undefined>;
  /** Applies the whole program as one transaction: all of it or, when it throws, nothing. */
  apply(program: string): Promise<void>;
  /** Members of a set of addresses, protocols and ports, each as `ADDRESS . PROTOCOL . PORT`. */
  elements(family: 4 | 6, table: string, set: string): Promise<string[]>;
  /** Members with a lifetime, by set and address: the seconds left. Empty without a table. */
  timedMembers(family: 4 | 6, table: string): Promise<TimedMembers>;
  /** Chains and rules of a table without the elements of its sets; undefined: there is no such table. */
  outline(family: 4 | 6 | 'inet', table: string): Promise<string | undefined>;
  /** Sends service traffic of this host into the filter even where there is no default route (an air-gapped host). */
  routeServices(serviceCidr: string): Promise<void>;
}

export interface ForwardTarget {
  readonly ip: string;
  readonly port: number;
}

/** Chooses a back end for a client; undefined refuses the connection. */
export type PickTarget = (clientIp: string) => ForwardTarget | undefined;

export interface Listener {
  close(): Promise<void>;
}

/** Forwards streams itself, for hosts whose kernel has no nft (OKD 3.11 "Service Proxy"). */
export interface StreamForwarder {
  /** Makes `ip` an address of this host, so that connections to it arrive here. Idempotent. */
  bindAddress(ip: string): Promise<void>;
  unbindAddress(ip: string): Promise<void>;
  /** `ip` undefined: every local address (node ports). */
  listen(protocol: 'TCP' | 'UDP', ip: string | undefined, port: number, pick: PickTarget): Promise<Listener>;
}

export interface HealthReport {
  readonly namespace: string;
  readonly name: string;
  readonly localEndpoints: number;
}

/** Answers the health checks of load balancers. */
export interface HealthPorts {
  /** `report` is read at each request. */
  listen(port: number, report: () => HealthReport): Promise<Listener>;
}
