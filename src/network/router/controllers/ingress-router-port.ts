/** Port of the route controller to the holder of the cluster CA. */
import type { Route } from '../kinds/routes/types.ts';

export interface RouterFacts {
  /** Domain of generated route hosts. The default certificate is for `*.DOMAIN`. */
  readonly domain: string;
  /** Whether routes with `wildcardPolicy: Subdomain` are admitted. */
  readonly wildcardRoutes: boolean;
  readonly clusterDomain: string;
  /** Whether the console of the API servers gets a route. */
  readonly hasConsole: boolean;
  /** Names of the cluster's API. */
  readonly names: readonly string[];
  /** Returns a sentence that describes the fault of a route's certificate, or undefined when it is valid. */
  verify(tls: NonNullable<NonNullable<Route['spec']>['tls']>): string | undefined;
  /** PEM texts of a server certificate with a new key. */
  issue(dnsNames: readonly string[]): Promise<{ readonly certPem: string; readonly keyPem: string }>;
  /** Whether the certificate must be renewed, because it has other names or another issuer, or expires soon. */
  needsRenewal(certPem: string, dnsNames: readonly string[]): boolean;
}
