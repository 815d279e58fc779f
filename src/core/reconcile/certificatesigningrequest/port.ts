/**
 * What the certificate controllers need from the holder of the CA key. Implemented outside (io/pki); the planners only
 * see facts.
 */

/** What a PKCS #10 request asks for, read without trusting it. */
export interface CertificateRequestFacts {
  readonly commonName: string;
  readonly organizations: readonly string[];
  readonly dnsNames: readonly string[];
  /** Textual addresses as in the request, IPv4 dotted or IPv6 compressed lower case. */
  readonly ipAddresses: readonly string[];
  readonly emailAddresses: readonly string[];
  readonly uris: readonly string[];
  /** True when the request carries basicConstraints with CA:TRUE. */
  readonly requestsCa: boolean;
  /** True when the self-signature verifies against the request's own public key. */
  readonly signatureValid: boolean;
  /** 'rsa' with its modulus length, 'ec' with its curve bits, 'ed25519' with 256; other keys are 'other'. */
  readonly keyType: 'rsa' | 'ec' | 'ed25519' | 'other';
  readonly keyBits: number;
}

export interface SigningOrder {
  readonly signerName: string;
  /** The authority of kubelets' serving certificates, or the cluster's. Default: the cluster's. */
  readonly authority?: 'cluster' | 'kubelet';
  /** PEM of the request, exactly one `CERTIFICATE REQUEST` block. */
  readonly requestPem: string;
  /** `spec.usages`, in upstream's words: `digital signature`, `client auth` … */
  readonly usages: readonly string[];
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Signs with the cluster's authorities. Never issues a CA certificate. */
export interface CertificateSigner {
  /** Fails with a `CodedError` 'invalid-request' when the PEM or DER cannot be read. Bounded work on hostile input. */
  inspect(requestPem: string): CertificateRequestFacts;
  /** Resolves with the PEM chain for `status.certificate`. */
  sign(order: SigningOrder): Promise<string>;
}
