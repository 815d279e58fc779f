/** What the router needs from outside: the proxy that carries connections by the routing table. */
import type { Balancing, Certificate, RoutingView } from '../../../core/routing/port.ts';

export interface ProxySettings {
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Of `/metrics`, on loopback; undefined: none. */
  readonly statsPort: number | undefined;
  /** Every connection begins with a PROXY header, version 1 or 2. */
  readonly proxyProtocol: boolean;
  readonly accessLog: boolean;
  /** PEM bundle that servers of re-encrypting routes are verified by. */
  readonly clusterCa: () => Promise<string>;
  /** How often it is read, in milliseconds: authorities are exchanged. Default 30,000. */
  readonly clusterCaPeriodMs?: number;
}

export interface RoutingProxy {
  /** Listens, and retries ports that are in use; never rejects. */
  start(): Promise<void>;
  /** The next request or connection goes by `view`; those under way end by the former. */
  swap(view: RoutingView): void;
  /** For hosts whose route has no certificate. A pair that cannot be used is logged and the former stays. */
  useDefaultCertificate(pair: Certificate): void;
  /** Prometheus text. */
  metrics(): string;
  stop(): Promise<void>;
}

export interface ProxyFactory {
  /** `needPods` is called for idled services, as `NAMESPACE/NAME`, that have requests. */
  create(settings: ProxySettings, balancing: Balancing, needPods: (service: string) => void): RoutingProxy;
}

/** One sentence on what is wrong with a route's certificate; undefined: nothing. Results are remembered by text. */
export type CertificateJudge = (tls: {
  readonly certificate?: string;
  readonly key?: string;
  readonly caCertificate?: string;
  readonly destinationCACertificate?: string;
}) => string | undefined;
