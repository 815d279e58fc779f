/** X.509 encodings of distinguished names, subject alternative names and key usages (RFC 5280). */
import { isIP } from 'node:net';
import type forge from 'node-forge';
import { CodedError } from '../base/errors.ts';
import { der } from './der.ts';

/** The parts of a distinguished name that Kubernetes uses: common name (user) and organizations (groups). */
export interface Subject {
  readonly commonName: string;
  readonly organizations?: readonly string[];
}

export interface AlternativeNames {
  readonly dns: readonly string[];
  /** Textual IPv4 or IPv6 addresses. */
  readonly ips: readonly string[];
  readonly emails?: readonly string[];
  readonly uris?: readonly string[];
}

export function isEmpty(names: AlternativeNames): boolean {
  return names.dns.length + names.ips.length + (names.emails?.length ?? 0) + (names.uris?.length ?? 0) === 0;
}

export const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  subjectKeyId: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyId: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  extensionRequest: '1.2.840.113549.1.9.14',
  ecdsaSha256: '1.2.840.10045.4.3.2',
  ecdsaSha384: '1.2.840.10045.4.3.3',
  ecdsaSha512: '1.2.840.10045.4.3.4',
  rsaSha256: '1.2.840.113549.1.1.11',
  rsaSha384: '1.2.840.113549.1.1.12',
  rsaSha512: '1.2.840.113549.1.1.13',
  ed25519: '1.3.101.112',
} as const;

/** Encodes a name as Go's crypto/x509 does: the organizations, then the common name, each in a separate RDN. */
export function nameToAsn1(subject: Subject): forge.asn1.Asn1 {
  const attribute = (oid: string, text: string): forge.asn1.Asn1 =>
    der.set([der.sequence([der.oid(oid), der.utf8(text)])]);
  return der.sequence([
    ...(subject.organizations ?? []).map((organization) => attribute(OID.organization, organization)),
    attribute(OID.commonName, subject.commonName),
  ]);
}

export function alternativeNamesToAsn1(names: AlternativeNames): forge.asn1.Asn1 {
  const text = (tag: number, value: string): forge.asn1.Asn1 => der.implicit(tag, Buffer.from(value, 'latin1'));
  return der.sequence([
    ...names.dns.map((name) => text(2, name)),
    ...(names.emails ?? []).map((email) => text(1, email)),
    ...names.ips.map((ip) => der.implicit(7, ipToBytes(ip))),
    ...(names.uris ?? []).map((uri) => text(6, uri)),
  ]);
}

/** Bytes of an address in network order: 4 for IPv4, 16 for IPv6. Throws CodedError 'bad-address'. */
export function ipToBytes(text: string): Buffer {
  switch (isIP(text)) {
    case 4:
      return Buffer.from(text.split('.').map(Number));
    case 6: {
      // The URL parser accepts all text forms of IPv6, including an embedded IPv4 address, and returns hexadecimal
      // groups.
      const groups = new URL(`http://[${text}]`).hostname.slice(1, -1).split('::');
      const left = (groups[0] ?? '').split(':').filter((group) => group !== '');
      const right = (groups[1] ?? '').split(':').filter((group) => group !== '');
      const zeros = new Array<string>(groups.length === 1 ? 0 : 8 - left.length - right.length).fill('0');
      const bytes = Buffer.alloc(16);
      [...left, ...zeros, ...right].forEach((group, index) => {
        bytes.writeUInt16BE(Number.parseInt(group, 16), index * 2);
      });
      return bytes;
    }
    default:
      throw new CodedError('bad-address', `"${text}" is not an IP address`);
  }
}

/**
 * Text of an address: the inverse of `ipToBytes`. IPv6 addresses have the compressed form of RFC 5952. Throws
 * CodedError 'bad-address'.
 */
export function bytesToIp(bytes: Uint8Array): string {
  if (bytes.length === 4) return [...bytes].join('.');
  if (bytes.length !== 16) throw new CodedError('bad-address', `an IP address of ${bytes.length} bytes`);
  const buffer = Buffer.from(bytes);
  const groups = Array.from({ length: 8 }, (_, index) => buffer.readUInt16BE(index * 2).toString(16));
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

/** Bit numbers of the KeyUsage extension (RFC 5280 §4.2.1.3). Bit 0 is the most significant one. */
const KEY_USAGE_BITS = {
  digitalSignature: 0,
  keyEncipherment: 2,
  keyCertSign: 5,
  cRLSign: 6,
} as const;

export type KeyUsage = keyof typeof KEY_USAGE_BITS;

export function keyUsageToAsn1(usages: readonly KeyUsage[]): forge.asn1.Asn1 {
  let bits = 0;
  let last = 0;
  for (const usage of usages) {
    bits |= 0x80 >> KEY_USAGE_BITS[usage];
    last = Math.max(last, KEY_USAGE_BITS[usage]);
  }
  return der.bits(Buffer.of(bits), 7 - last);
}
