/**
 * What a client shows to the server and trusts it by. Values that rotate are given as functions: they are asked before
 * every request, must be cheap, and return the same string until the value has changed.
 */
export interface ClientCredentials {
  /** PEM bundle of the authorities that the server's certificate must chain to; undefined: the system's. */
  readonly ca?: string;
  /** PEM certificate chain; needs `key`. */
  readonly cert?: string;
  readonly key?: string;
  /** Bearer token. */
  readonly token?: string;
}

export type CredentialsProvider = () => ClientCredentials;

/** True when connections made with `a` may go on being used for `b`. Tokens travel per request and do not count. */
export function sameTls(a: ClientCredentials, b: ClientCredentials): boolean {
  return a === b || (a.ca === b.ca && a.cert === b.cert && a.key === b.key);
}
