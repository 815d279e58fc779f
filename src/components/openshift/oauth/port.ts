/** What the OAuth server needs of the outside; implemented in `src/io/login`, composed in `src/roles`. */

/** Checks passwords outside the event loop. */
export interface PasswordPort {
  /** Whether a password has this hash: bcrypt, apr1 or {SHA}. Rejects with CodedError 'busy' when too many wait. */
  verify(password: string, hash: string): Promise<boolean>;
  stop(): Promise<void>;
}

export interface LdapQuery {
  /** RFC 2255: `ldap[s]://host[:port]/base?attribute?scope?filter`. */
  readonly url: string;
  readonly bindDn: string;
  readonly bindPassword: string;
  /** True: no TLS; false: `ldaps`, or StartTLS with `ldap`. */
  readonly insecure: boolean;
  /** PEM of the authorities of the server; undefined: the public ones. */
  readonly ca: string | undefined;
  /** Attributes that are read, beside the one that is searched by. */
  readonly attributes: readonly string[];
}

/** `dn` and the values of the attributes, by their lower-case names. */
export interface LdapEntry {
  readonly dn: string;
  readonly values: ReadonlyMap<string, readonly string[]>;
}

export interface LdapPort {
  /** The entry of the user, after a bind with the password; undefined: no such user, or another password. */
  authenticate(query: LdapQuery, user: string, password: string): Promise<LdapEntry | undefined>;
}

export interface WebAnswer {
  readonly status: number;
  readonly text: string;
}

export interface WebPort {
  /** Sends a request and returns the answer, of at most 1 MiB; follows no redirects. Rejects after ten seconds. */
  request(
    url: string,
    options: {
      readonly method: 'GET' | 'POST';
      readonly headers: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly ca: string | undefined;
    },
  ): Promise<WebAnswer>;
}

export interface LoginPorts {
  readonly passwords: PasswordPort;
  readonly ldap: LdapPort;
  readonly web: WebPort;
  /** Text of a file of this host, for providers of the bootstrap file. */
  readFile(path: string): Promise<string>;
  /** Whether a certificate (DER) was issued by one of these authorities (PEM), and its common name. */
  issuedBy(certificate: Uint8Array, authorities: string): { readonly issued: boolean; readonly commonName: string };
}
