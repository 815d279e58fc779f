/** Port for the kubelet's certificates on disk. Implemented in pki. */
import type { CertificateDates } from '../../base/time/certificate-life.ts';

export interface CertificateNames {
  readonly dns: readonly string[];
  readonly ips: readonly string[];
}

export interface CurrentCertificate extends CertificateNames, CertificateDates {
  /** Whether the current signing authority issued the certificate, rather than a predecessor. */
  readonly isOfSigner: boolean;
}

/** The `kubelet-client-*` or `kubelet-server-*` files. */
export interface CertificateFiles {
  /** Returns undefined when there is no certificate or it cannot be read. */
  current(): Promise<CurrentCertificate | undefined>;
  /**
   * Returns a signing request for the pending key. The key is created if necessary and kept until `save`, so a restart
   * during the approval repeats the same request. `digest` identifies key and content.
   */
  request(names: CertificateNames): Promise<{ readonly pem: string; readonly digest: string }>;
  /**
   * Writes the certificate and the pending key to a dated file and switches the link to it. Throws CodedError
   * 'bad-certificate'.
   */
  save(certificatePem: string, nowMs: number): Promise<void>;
}
