/** Ports of the OAuth server. They are implemented in `src/openshift/oauth/io` and connected in `src/host`. */

/** Checks passwords outside the event loop. */
export interface PasswordPort {
  /**
   * Whether the password matches the hash, which is of type bcrypt, apr1 or {SHA}. Rejects with CodedError 'busy' if
   * too many checks are waiting.
   */
  verify(password: string, hash: string): Promise<boolean>;
  stop(): Promise<void>;
}

export interface LdapQuery {
  /** LDAP URL (RFC 2255): `ldap[s]://host[:port]/base?attribute?scope?filter`. */
  readonly url: string;
  readonly bindDn: string;
  readonly bindPassword: string;
  /** If true, TLS is not used. If false, TLS is required: an `ldaps` URL, or StartTLS with an `ldap` URL. */
  readonly insecure: boolean;
  /** CA certificates (PEM) for the server. If undefined, public authorities are used. */
  readonly ca: string | undefined;
  /** Attributes to read, in addition to the attribute used for the search. */
  readonly attributes: readonly string[];
}

/**
 * Entry of a user: `dn`, and the values of its attributes by lower-case attribute name. Values that are not UTF-8 are
 * in base64url.
 */
export interface LdapEntry {
  readonly dn: string;
  readonly values: ReadonlyMap<string, readonly string[]>;
}

export interface LdapPort {
  /** Returns the entry of the user if the password is correct. Undefined for an unknown user or a wrong password. */
  authenticate(query: LdapQuery, user: string, password: string): Promise<LdapEntry | undefined>;
}

export interface WebAnswer {
  readonly status: number;
  readonly text: string;
}

export interface WebPort {
  /**
   * Sends a request without following redirects. Rejects if the response exceeds 1 MiB or takes more than ten seconds.
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
  /** Reads a text file of this host. Only providers in the bootstrap file may refer to files. */
  readFile(path: string): Promise<string>;
  /**
   * Returns whether one of the authorities (PEM) has issued the certificate (DER), and the common name of the
   * certificate.
   */
  issuedBy(certificate: Uint8Array, authorities: string): { readonly issued: boolean; readonly commonName: string };
}
