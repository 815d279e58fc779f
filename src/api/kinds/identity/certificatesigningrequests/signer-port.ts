/** Port to the holder of the CA key, implemented in pki. The planners only receive facts about requests. */

/** Contents of a PKCS #10 request, parsed without being trusted. */
export interface CertificateRequestFacts {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  /** Textual addresses as in the request: IPv4 dotted, IPv6 compressed in lower case. */
  readonly ipAddresses: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
  /** True when the request carries basicConstraints with CA:TRUE. */
  readonly requestsCa: boolean;
  /** True when the self-signature verifies against the request's own public key. */
  readonly signatureValid: boolean;
  /**
   * Type of the key. `keyBits` is the modulus length for 'rsa', the size of the curve for 'ec', and 256 for 'ed25519'.
   */
  readonly keyType: 'rsa' | 'ec' | 'ed25519' | 'other';
  readonly keyBits: number;
}

export interface SigningOrder {
  readonly signerName: string;
  /** Authority that signs: 'kubelet' for serving certificates of kubelets, or the cluster's. Default: 'cluster'. */
  readonly authority?: 'cluster' | 'kubelet';
  /** PEM of the request, exactly one `CERTIFICATE REQUEST` block. */
  readonly requestPem: string;
  /** `spec.usages` in upstream's spelling: `digital signature`, `client auth` … */
  readonly usages: readonly string[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Signs with the cluster's authorities. Never issues a CA certificate. */
export interface CertificateSigner {
  /**
   * Parses a request. Throws a `CodedError` 'invalid-request' if the PEM or DER is malformed. Work on hostile input is
   * bounded.
   */
  inspect(requestPem: string): CertificateRequestFacts;
  /** Resolves with the PEM chain for `status.certificate`. */
  sign(order: SigningOrder): Promise<string>;
}
