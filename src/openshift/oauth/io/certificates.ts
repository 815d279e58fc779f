import { X509Certificate } from 'node:crypto';

const PEM = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/**
 * Returns whether one of the authorities (PEM) has signed the certificate (DER), and the common name of the
 * certificate.
 */
export function issuedBy(
  certificate: Uint8Array,
  authorities: string,
): { readonly issued: boolean; readonly commonName: string } {
  const leaf = new X509Certificate(certificate);
  const [, commonName = ''] = /^CN=(.+)$/m.exec(leaf.subject) ?? [];
  const issued = (authorities.match(PEM) ?? []).some((pem) => {
    const authority = new X509Certificate(pem);
    return leaf.checkIssued(authority) && leaf.verify(authority.publicKey);
  });
  return { issued, commonName };
}
