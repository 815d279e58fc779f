/** What the controller of routes needs from the holder of the cluster's CA. */
import type { Route } from '../../api/kinds/routes/types.ts';

export interface RouterFacts {
  /** Below which routes get their hosts; the default certificate is for `*.DOMAIN`. */
  readonly domain: string;
  /** Routes with `wildcardPolicy: Subdomain` are admitted. */
  readonly wildcardRoutes: boolean;
  /** DNS domain of services. */
  readonly clusterDomain: string;
  /** Names of the cluster's API. */
  readonly names: readonly string[];
  /** One sentence on what is wrong with a route's certificate; undefined: nothing. */
  judge(tls: NonNullable<NonNullable<Route['spec']>['tls']>): string | undefined;
  /** PEM texts of a server certificate with a new key. */
  issue(dnsNames: readonly string[]): Promise<{ readonly certPem: string; readonly keyPem: string }>;
  /** True where the certificate is for other names, of another authority, or ends soon. */
  needsRenewal(certPem: string, dnsNames: readonly string[]): boolean;
}
