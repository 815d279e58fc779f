/**
 * Credentials of a client and the authorities that it trusts. A function returns rotating credentials before every
 * request. It must be fast and return the same strings until a value changes.
 */
export interface ClientCredentials {
  /** PEM bundle of the authorities that verify the server's certificate; undefined if those of the system are used. */
  readonly ca?: string;
  /** PEM certificate chain; requires `key`. */
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

export type CredentialsProvider = () => ClientCredentials;

/**
 * Whether connections that were opened with `a` may be used with `b`. Tokens are not compared, because they are sent
 * with each request.
 */
export function sameTls(a: ClientCredentials, b: ClientCredentials): boolean {
  return a === b || (a.ca === b.ca && a.cert === b.cert && a.key === b.key);
}
