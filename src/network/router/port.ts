/** Port for the proxy that forwards connections according to the routing table. */
import type { Balancing, Certificate, RoutingView } from './core/port.ts';

export interface ProxySettings {
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Loopback port of `/metrics`; undefined if metrics are not served. */
  readonly statsPort: number | undefined;
  /** Whether every connection must start with a PROXY header, version 1 or 2. */
  readonly proxyProtocol: boolean;
  readonly accessLog: boolean;
  /** PEM bundle that verifies the servers of re-encrypting routes. */
  readonly clusterCa: () => Promise<string>;
  /**
   * Interval in milliseconds between reads of the bundle, which changes when authorities are replaced. Default 30,000.
   */
  readonly clusterCaPeriodMs?: number;
  /** Maximum number of client connections, and of requests in progress. Default 20,000. */
  readonly maxConnections?: number;
}

export interface RoutingProxy {
  /** Starts listening and retries ports that are in use. Never rejects. */
  start(): Promise<void>;
  /**
   * Uses `view` for new requests and connections. Requests and connections in progress continue with the former view.
   */
  swap(view: RoutingView): void;
  /**
   * Sets the certificate for routes without their own. An invalid pair is logged, and the former pair remains in use.
   */
  useDefaultCertificate(pair: Certificate): void;
  /** Metrics in the Prometheus text format. */
  metrics(): string;
  stop(): Promise<void>;
}

export interface ProxyFactory {
  /** `needPods` is called with `NAMESPACE/NAME` of idled services that receive requests. */
  create(settings: ProxySettings, balancing: Balancing, needPods: (service: string) => void): RoutingProxy;
}

/**
 * Returns a sentence that describes the fault of a route's certificate, or undefined when it is valid. Results are
 * cached by text.
 */
export type CertificateVerifier = (tls: {
  readonly certificate?: string;
  readonly key?: string;
  readonly caCertificate?: string;
  readonly destinationCACertificate?: string;
}) => string | undefined;
