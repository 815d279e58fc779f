/** What the balancer needs from outside: a TCP listener that carries connections to a chosen server, and a probe. */
import type { Finding } from '../../core/balancing/port.ts';

/** Decides for the listener; all calls are synchronous and must not throw. */
export interface Routing {
  /** The next server to try; undefined: none is left, the client's connection is reset. */
  choose(tried: ReadonlySet<string>): string | undefined;
  /** A connection to `target` is attempted; it failed or ended. */
  opened(target: string): void;
  closed(target: string): void;
  /** Cause to probe `target` now: no handshake, an error, or bytes of a client without an answer. */
  doubt(target: string): void;
}

export interface ListenRequest {
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly routing: Routing;
}

export interface BalancedListener {
  readonly port: number;
  /** Ends the connections to `target`: at once, or each when it is quiet and at the latest after some seconds. */
  end(target: string, how: 'drain' | 'reset'): void;
  /** Stops a `drain` of connections that have not ended yet. */
  keep(target: string): void;
  /** Resets connections whose source address this host no longer has: TCP alone takes minutes to give them up. */
  resetFrom(isOwn: (address: string) => boolean): void;
  /**
   * Leaves the listening socket to another process, which carries new connections to `targets`; ends each connection
   * between two requests, the rest after some seconds. Closes where that is not possible.
   */
  handOver(targets: readonly string[]): Promise<void>;
  /** Resets what is open. */
  close(): Promise<void>;
}

export interface TcpBalancing {
  /** Rejects with CodedError 'address-in-use' or 'listen'. */
  listen(request: ListenRequest): Promise<BalancedListener>;
}

export interface ReadinessProbe {
  /** Never rejects; ends within some seconds. */
  probe(target: string): Promise<{ readonly finding: Finding; readonly detail: string }>;
  close(): void;
}

/** The addresses known at the last start. */
export interface SavedTargets {
  load(): Promise<readonly string[]>;
  save(targets: readonly string[]): Promise<void>;
}
