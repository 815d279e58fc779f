/** Creates X.509 certificates: ASN.1 by forge, keys and signatures by node:crypto. Source: RFC 5280. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { promisify } from 'node:util';
import type forge from 'node-forge';
import { CodedError } from '../base/errors.ts';
import type { CertificateDates } from '../base/time/certificate-life.ts';
import { childrenOf, contentOf, der, parseDer, toDer } from './der.ts';
import {
  type AlternativeNames,
  alternativeNamesToAsn1,
  isEmpty,
  type KeyUsage,
  keyUsageToAsn1,
  nameToAsn1,
  OID,
  type Subject,
} from './subject-names.ts';

const DAY_MS = 24 * 3600 * 1000;

/**
 * Start of the validity of all certificates. A host without a battery-backed clock starts in 1970, or at the first date
 * of its clock chip, until it receives the time. The lifetime counts from the current time, but not from before the
 * release (`lifetimeFrom`).
 */
const VALID_SINCE_MS = 0;
export const RELEASED_MS = Date.UTC(2026, 0, 1);

/** Certificate and private key in PEM format. */
export interface KeyPair {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface Authority {
  readonly certificate: X509Certificate;
  readonly certPem: string;
  readonly privateKey: KeyObject;
}

export interface Validity {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

export interface LeafRequest {
  readonly subject: Subject;
  readonly usages: readonly ('server' | 'client')[];
  readonly names?: AlternativeNames;
  /** Key usages. The default depends on the type of the key. */
  readonly keyUsages?: readonly KeyUsage[];
  readonly validity: Validity;
}

/**
 * A validity of `days` days from now on. It also includes the past, because the host's clock may show a time far in the
 * past, now or at the next boot.
 */
export function lifetimeFrom(nowMs: number, days: number): Validity {
  return {
    notBeforeMs: Math.min(VALID_SINCE_MS, nowMs - DAY_MS),
    notAfterMs: Math.max(nowMs, RELEASED_MS) + days * DAY_MS,
  };
}

export function datesOf(certificate: X509Certificate): CertificateDates {
  return {
    notBeforeMs: certificate.validFromDate.getTime(),
    notAfterMs: certificate.validToDate.getTime(),
    serial: certificate.serialNumber,
  };
}

const generateKeys = promisify(generateKeyPair);

/** A new EC P-256 private key. */
export async function generateKey(): Promise<KeyObject> {
  const { privateKey } = await generateKeys('ec', { namedCurve: 'P-256' });
  return privateKey;
}

export function keyToPem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

export function publicKeyToPem(key: KeyObject): string {
  return createPublicKey(key).export({ type: 'spki', format: 'pem' }).toString();
}

/**
 * A self-signed certificate authority. If `key` is the key of an existing authority, the result is a renewal:
 * certificates that it has issued stay valid.
 */
export async function createAuthority(
  commonName: string,
  validity: Validity,
  key?: KeyObject,
): Promise<Authority & KeyPair> {
  return selfSignedAuthority(() => nameToAsn1({ commonName }), validity, key ?? (await generateKey()));
}

/**
 * The same authority with another validity. It keeps its name and key, so certificates that it has issued stay valid.
 */
export function renewAuthority({ certificate, privateKey }: Authority, validity: Validity): Authority & KeyPair {
  return selfSignedAuthority(() => rawSubjectOf(certificate), validity, privateKey);
}

function selfSignedAuthority(
  name: () => forge.asn1.Asn1,
  validity: Validity,
  privateKey: KeyObject,
): Authority & KeyPair {
  const publicKey = createPublicKey(privateKey);
  const keyId = keyIdOf(publicKey);
  const certPem = assemble({
    issuer: name(),
    subject: name(),
    publicKey,
    signingKey: privateKey,
    validity,
    extensions: [
      criticalExtension(OID.keyUsage, keyUsageToAsn1(['digitalSignature', 'keyEncipherment', 'keyCertSign'])),
      criticalExtension(OID.basicConstraints, der.sequence([der.boolean(true)])),
      extension(OID.subjectKeyId, der.octets(keyId)),
    ],
  });
  return { certificate: new X509Certificate(certPem), certPem, privateKey, keyPem: keyToPem(privateKey) };
}

/** A self-signed server and client certificate with a new key. */
export async function createSelfSigned(
  commonName: string,
  names: AlternativeNames,
  validity: Validity,
): Promise<KeyPair> {
  const privateKey = await generateKey();
  const publicKey = createPublicKey(privateKey);
  const name = nameToAsn1({ commonName });
  const certPem = assemble({
    issuer: name,
    subject: name,
    publicKey,
    signingKey: privateKey,
    validity,
    extensions: [
      criticalExtension(OID.keyUsage, keyUsageToAsn1(['digitalSignature'])),
      extension(OID.extKeyUsage, der.sequence([der.oid(OID.serverAuth), der.oid(OID.clientAuth)])),
      criticalExtension(OID.basicConstraints, der.sequence([])),
      extension(OID.subjectKeyId, der.octets(keyIdOf(publicKey))),
      extension(OID.subjectAltName, alternativeNamesToAsn1(names)),
    ],
  });
  return { certPem, keyPem: keyToPem(privateKey) };
}

/**
 * Loads an authority from PEM. Throws CodedError 'bad-authority' if the key does not match the certificate, or if the
 * certificate is not that of a CA.
 */
export function loadAuthority(certPem: string, keyPem: string): Authority {
  const certificate = new X509Certificate(certPem);
  const privateKey = createPrivateKey(keyPem);
  if (!certificate.ca) throw new CodedError('bad-authority', 'the certificate is not a certificate authority');
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new CodedError('bad-authority', 'the key does not belong to the certificate');
  }
  return { certificate, certPem, privateKey };
}

/** Issues a server or client certificate with a new key. */
export async function issue(authority: Authority, request: LeafRequest): Promise<KeyPair> {
  const key = await generateKey();
  return { certPem: issueFor(authority, createPublicKey(key), request), keyPem: keyToPem(key) };
}

/** Issues a certificate for a public key. The certificate is never one of an authority. */
export function issueFor(authority: Authority, publicKey: KeyObject, request: LeafRequest): string {
  const caEndsMs = authority.certificate.validToDate.getTime();
  const names = request.names;
  return assemble({
    issuer: rawSubjectOf(authority.certificate),
    subject: nameToAsn1(request.subject),
    publicKey,
    signingKey: authority.privateKey,
    validity: { ...request.validity, notAfterMs: Math.min(request.validity.notAfterMs, caEndsMs) },
    extensions: [
      criticalExtension(
        OID.keyUsage,
        // The usage key encipherment only applies to RSA keys (RFC 5480 §3).
        keyUsageToAsn1(
          request.keyUsages ??
            (publicKey.asymmetricKeyType === 'rsa' ? ['digitalSignature', 'keyEncipherment'] : ['digitalSignature']),
        ),
      ),
      extension(
        OID.extKeyUsage,
        der.sequence(request.usages.map((usage) => der.oid(usage === 'server' ? OID.serverAuth : OID.clientAuth))),
      ),
      criticalExtension(OID.basicConstraints, der.sequence([])),
      extension(OID.authorityKeyId, der.sequence([der.implicit(0, keyIdOf(authority.certificate.publicKey))])),
      ...(names === undefined || isEmpty(names) ? [] : [extension(OID.subjectAltName, alternativeNamesToAsn1(names))]),
    ],
  });
}

interface Assembly {
  readonly issuer: forge.asn1.Asn1;
  readonly subject: forge.asn1.Asn1;
  readonly publicKey: KeyObject;
  readonly signingKey: KeyObject;
  readonly validity: Validity;
  readonly extensions: readonly forge.asn1.Asn1[];
}

function assemble(parts: Assembly): string {
  const algorithm = signatureAlgorithm(parts.signingKey);
  const serial = randomBytes(16);
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x01;
  const tbs = der.sequence([
    der.explicit(0, [der.integer(Buffer.of(2))]),
    der.integer(serial),
    algorithm.asn1(),
    parts.issuer,
    der.sequence([der.time(parts.validity.notBeforeMs), der.time(parts.validity.notAfterMs)]),
    parts.subject,
    parseDer(parts.publicKey.export({ type: 'spki', format: 'der' })),
    der.explicit(3, [der.sequence([...parts.extensions])]),
  ]);
  const tbsDer = toDer(tbs);
  const certificate = der.sequence([tbs, algorithm.asn1(), der.bits(sign(algorithm.hash, tbsDer, parts.signingKey))]);
  return toPem('CERTIFICATE', toDer(certificate));
}

function signatureAlgorithm(key: KeyObject): { hash: string | null; asn1: () => forge.asn1.Asn1 } {
  switch (key.asymmetricKeyType) {
    case 'ec':
      return { hash: 'sha256', asn1: () => der.sequence([der.oid(OID.ecdsaSha256)]) };
    case 'rsa':
      return { hash: 'sha256', asn1: () => der.sequence([der.oid(OID.rsaSha256), der.null()]) };
    case 'ed25519':
      return { hash: null, asn1: () => der.sequence([der.oid(OID.ed25519)]) };
    default:
      throw new CodedError('bad-authority', `cannot sign with a key of type ${key.asymmetricKeyType ?? 'unknown'}`);
  }
}

/**
 * The subject with the same encoding as in the authority's certificate, because verifiers compare issuers byte by byte.
 */
function rawSubjectOf(certificate: X509Certificate): forge.asn1.Asn1 {
  const tbs = childrenOf(certificate.raw)[0];
  const subject = tbs === undefined ? undefined : childrenOf(tbs)[5];
  if (subject === undefined) throw new CodedError('bad-authority', 'the certificate has no subject');
  return parseDer(subject);
}

/**
 * SHA-1 of the public key bits (RFC 5280 §4.2.1.2, method 1). It is only an identifier, so collisions do not matter.
 */
function keyIdOf(publicKey: KeyObject): Buffer {
  const bits = childrenOf(publicKey.export({ type: 'spki', format: 'der' }))[1];
  if (bits === undefined) throw new CodedError('bad-authority', 'the public key has no bits');
  return createHash('sha1').update(contentOf(bits).subarray(1)).digest();
}

function extension(oid: string, value: forge.asn1.Asn1): forge.asn1.Asn1 {
  return der.sequence([der.oid(oid), der.octets(toDer(value))]);
}

/** An extension that a verifier must understand (RFC 5280 §4.2). */
function criticalExtension(oid: string, value: forge.asn1.Asn1): forge.asn1.Asn1 {
  return der.sequence([der.oid(oid), der.boolean(true), der.octets(toDer(value))]);
}

export function toPem(label: string, bytes: Uint8Array): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
