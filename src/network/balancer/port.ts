/** Ports of the balancer: a TCP listener that forwards connections to a selected server, and a probe. */
import type { Finding } from './core/port.ts';

/** Decisions for the listener. All calls are synchronous and must not throw. */
export interface Routing {
  /**
   * Returns the next server to try; undefined when no server is left, in which case the client's connection is reset.
   */
  choose(tried: ReadonlySet<string>): string | undefined;
  /**
   * `opened` is called when a connection to `target` is attempted; `closed` is called when the attempt has failed or
   * the connection has ended.
   */
  opened(target: string): void;
  closed(target: string): void;
  /** Reports a reason to probe `target` now: no handshake, an error, or client data without a response. */
  doubt(target: string): void;
}

export interface ListenRequest {
  readonly address: string;
  /** Port 0 selects a free port. */
  readonly port: number;
  readonly routing: Routing;
}

export interface BalancedListener {
  readonly port: number;
  /**
   * Ends the connections to `target`. `reset` ends them at once; `drain` ends each one when it is idle, at the latest
   * after some seconds.
   */
  end(target: string, how: 'drain' | 'reset'): void;
  /** Cancels a `drain` for connections that have not ended yet. */
  keep(target: string): void;
  /**
   * Resets connections whose source address this host no longer has, because TCP alone takes minutes to detect this.
   */
  resetFrom(isOwn: (address: string) => boolean): void;
  /**
   * Transfers the listening socket to another process, which forwards new connections to `targets`. Ends each
   * connection between two requests, or after some seconds. If a transfer is not possible, the socket is closed.
   */
  handOver(targets: readonly string[]): Promise<void>;
  /** Resets open connections. */
  close(): Promise<void>;
}

export interface TcpBalancing {
  /** Starts a listener. Rejects with CodedError 'address-in-use' or 'listen'. */
  listen(request: ListenRequest): Promise<BalancedListener>;
}

export interface ReadinessProbe {
  /** Probes a server within some seconds. Never rejects. */
  probe(target: string): Promise<{ readonly finding: Finding; readonly detail: string }>;
  close(): void;
}

/** Stores the addresses of API servers for the next start. */
export interface SavedTargets {
  load(): Promise<readonly string[]>;
  save(targets: readonly string[]): Promise<void>;
}
