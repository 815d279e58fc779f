/**
 * Credentials of a client and the authorities that it trusts. Rotating values are returned by functions, which are
 * called before every request; they must be cheap and return the same string until the value changes.
 */
export interface ClientCredentials {
  /** PEM bundle of the authorities for the server's certificate; undefined for the system's. */
  readonly ca?: string;
  /** PEM certificate chain; requires `key`. */
  readonly cert?: string;
  readonly key?: string;
  readonly token?: string;
}

export type CredentialsProvider = () => ClientCredentials;

/**
 * Whether connections that were made with `a` may be reused for `b`. Tokens are sent per request and are not compared.
 */
export function sameTls(a: ClientCredentials, b: ClientCredentials): boolean {
  return a === b || (a.ca === b.ca && a.cert === b.cert && a.key === b.key);
}
