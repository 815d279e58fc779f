/** The kubelet's certificates on disk, as the certificate manager uses them. Implemented in io/pki. */
import type { CertificateDates } from '../../../base/certificate-life.ts';

export interface CertificateNames {
  readonly dns: readonly string[];
  readonly ips: readonly string[];
}

export interface CurrentCertificate extends CertificateNames, CertificateDates {
  /** It was issued by the authority that signs now, not by a predecessor. */
  readonly isOfSigner: boolean;
}

/** `kubelet-client-*` or `kubelet-server-*` files. */
export interface CertificateFiles {
  /** Undefined: there is none, or it cannot be read. */
  current(): Promise<CurrentCertificate | undefined>;
  /**
   * A signing request with the key of the pending request, which is created and kept until `save`: a restart while the
   * request waits for its approval repeats the same request. `digest` identifies key and content.
   */
  request(names: CertificateNames): Promise<{ readonly pem: string; readonly digest: string }>;
  /** Writes certificate and pending key to a dated file and points the link at it. CodedError 'bad-certificate'. */
  save(certificatePem: string, nowMs: number): Promise<void>;
}
