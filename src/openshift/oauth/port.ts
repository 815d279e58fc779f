/** Ports of the OAuth server. Implemented in `src/openshift/oauth/io`, composed in `src/host`. */

/** Checks passwords outside the event loop. */
export interface PasswordPort {
  /**
   * Whether a password matches this hash: bcrypt, apr1 or {SHA}. Rejects with CodedError 'busy' when too many checks
   * wait.
   */
  verify(password: string, hash: string): Promise<boolean>;
  stop(): Promise<void>;
}

export interface LdapQuery {
  /** RFC 2255: `ldap[s]://host[:port]/base?attribute?scope?filter`. */
  readonly url: string;
  readonly bindDn: string;
  readonly bindPassword: string;
  /** True: no TLS. False: `ldaps`, or StartTLS with `ldap`. */
  readonly insecure: boolean;
  /** PEM of the server's certificate authorities. Undefined: public authorities. */
  readonly ca: string | undefined;
  /** Attributes to read, beside the one used for the search. */
  readonly attributes: readonly string[];
}

/** `dn` and the attribute values, by lower-case attribute name. */
export interface LdapEntry {
  readonly dn: string;
  readonly values: ReadonlyMap<string, readonly string[]>;
}

export interface LdapPort {
  /** Entry of the user after a bind with the password. Undefined for an unknown user or a wrong password. */
  authenticate(query: LdapQuery, user: string, password: string): Promise<LdapEntry | undefined>;
}

export interface WebAnswer {
  readonly status: number;
  readonly text: string;
}

export interface WebPort {
  /**
   * Sends a request and returns the response of at most 1 MiB. Does not follow redirects. Rejects after ten seconds.
   */
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
