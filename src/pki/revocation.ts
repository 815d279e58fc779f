import type { X509Certificate } from 'node:crypto';
import { CodedError } from '../base/errors.ts';
import { childrenOf, contentOf } from './der.ts';

const INTEGER = 0x02;
const SEQUENCE = 0x30;
const TIMES = [0x17, 0x18];

/**
 * Serial numbers on a certificate revocation list (RFC 5280 §5) in PEM or DER, for `isRevoked`. Signature and dates are
 * not checked: a user who can write the file may revoke certificates, and the revocations in an outdated list remain
 * valid. Throws CodedError 'bad-der'.
 */
export function parseRevocationList(bytes: Buffer): ReadonlySet<bigint> {
  const pem = /-----BEGIN X509 CRL-----([^-]+)-----END X509 CRL-----/.exec(bytes.toString('latin1'));
  const der = pem === null ? bytes : Buffer.from(pem[1] ?? '', 'base64');
  if (der[0] !== SEQUENCE) throw new CodedError('bad-der', 'not a certificate revocation list');
  const [list] = childrenOf(der);
  if (list === undefined || list[0] !== SEQUENCE) throw new CodedError('bad-der', 'not a certificate revocation list');
  const parts = childrenOf(list);
  if (parts[0]?.[0] === INTEGER) parts.shift();
  // The first three parts are algorithm, issuer and this update. The next update and the entries are optional.
  const rest = parts.slice(TIMES.includes(parts[3]?.[0] ?? 0) ? 4 : 3);
  const serials = new Set<bigint>();
  for (const entry of rest[0]?.[0] === SEQUENCE ? childrenOf(rest[0]) : []) {
    const [serial] = childrenOf(entry);
    if (serial === undefined || serial[0] !== INTEGER) throw new CodedError('bad-der', 'an entry has no serial number');
    serials.add(BigInt(`0x${Buffer.from(contentOf(serial)).toString('hex')}`));
  }
  return serials;
}

/** Maximum number of certificates that are checked. It exceeds the length of any chain that was verified. */
const MAX_CHAIN = 16;

/** Whether the certificate or another certificate of its chain is on the list. */
export function isRevoked(certificate: X509Certificate, serials: ReadonlySet<bigint>): boolean {
  let at: X509Certificate | undefined = certificate;
  for (let depth = 0; at !== undefined && depth < MAX_CHAIN; depth += 1) {
    if (serials.has(BigInt(`0x${at.serialNumber}`))) return true;
    at = at.issuerCertificate;
  }
  return false;
}
