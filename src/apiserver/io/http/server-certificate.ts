/**
 * Verifies server certificates by the rules of Go. OpenSSL treats a certificate with equal subject and issuer names as
 * self-signed without checking the signature. Certificates that operators generate, and the certificates of their
 * authorities, often have no name at all, so OpenSSL rejects them; Go checks the signature. Source: RFC 5280 section 6,
 * Go's crypto/x509.
 */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { messageOf } from '../../../base/errors.ts';

const SERVER_AUTHENTICATION = ['1.3.6.1.5.5.7.3.1', '2.5.29.37.0'];
const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;

/** Reports whether OpenSSL rejected a certificate that it considers self-signed. */
export const looksSelfSigned = (error: unknown): boolean => codeOf(error) === 'DEPTH_ZERO_SELF_SIGNED_CERT';

const UNKNOWN_AUTHORITY = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Message for a failed connection, with the wording of Go where OpenSSL's differs. */
export function connectionFailure(error: Error): string {
  const code = codeOf(error);
  if (typeof code === 'string' && UNKNOWN_AUTHORITY.has(code))
    return 'tls: failed to verify certificate: x509: certificate signed by unknown authority';
  return messageOf(error);
}

const isCurrent = (certificate: X509Certificate, nowMs: number): boolean =>
  certificate.validFromDate.getTime() <= nowMs && nowMs <= certificate.validToDate.getTime();

function isSignedBy(leaf: X509Certificate, authority: X509Certificate): boolean {
  return authority.ca && leaf.checkIssued(authority) && leaf.verify(authority.publicKey);
}

function isFor(leaf: X509Certificate, host: string): boolean {
  if (isIP(host) !== 0) return leaf.checkIP(host) !== undefined;
  return leaf.checkHost(host, { subject: 'never' }) !== undefined;
}

/**
 * Reports whether one of `authorities` (PEM) signed `leaf`, `leaf` is valid for a server named `host`, and both
 * certificates are valid at this time.
 */
export function isTrustedForHost(leaf: X509Certificate, authorities: string, host: string, nowMs: number): boolean {
  // Node's `keyUsage` contains the extended key usages.
  const usages: readonly string[] | undefined = leaf.keyUsage;
  if (usages !== undefined && !usages.some((usage) => SERVER_AUTHENTICATION.includes(usage))) return false;
  if (!isCurrent(leaf, nowMs) || !isFor(leaf, host)) return false;
  return (authorities.match(PEM) ?? []).some((pem) => {
    const authority = new X509Certificate(pem);
    return isCurrent(authority, nowMs) && isSignedBy(leaf, authority);
  });
}
