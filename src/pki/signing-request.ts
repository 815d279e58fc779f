/**
 * PKCS #10 certificate signing requests (RFC 2986). They are created for keys of the node, and parsed from untrusted
 * clients. forge parses the structure after a check of its depth. node:crypto verifies the signature over the original
 * bytes.
 */
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { CertificateRequestFacts } from '../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import { CodedError, messageOf } from '../base/errors.ts';
import { type Authority, issueFor, toPem, type Validity } from './certificate.ts';
import { childrenOf, contentOf, der, parseDer, toDer } from './der.ts';
import {
  type AlternativeNames,
  alternativeNamesToAsn1,
  bytesToIp,
  isEmpty,
  type KeyUsage,
  nameToAsn1,
  OID,
  type Subject,
} from './subject-names.ts';

const LABEL = 'CERTIFICATE REQUEST';
const MAX_PEM_BYTES = 64 * 1024;
const RSA_MIN_BITS = 2048;
/** Maximum size of RSA keys. Go's TLS rejects larger keys, and their verification would permit a denial of service. */
const RSA_MAX_BITS = 8192;
const RSA_MAX_EXPONENT = 0x7fffffffn;
const CURVE_BITS: ReadonlyMap<string, number> = new Map([
  ['prime256v1', 256],
  ['secp384r1', 384],
  ['secp521r1', 521],
]);

export interface SigningRequest extends CertificateRequestFacts {
  /** Public key of the request; undefined if node:crypto cannot read it. */
  readonly publicKey: KeyObject | undefined;
  /** Reason why the key or the signature is not acceptable; undefined if both are. */
  readonly refusal: string | undefined;
}

/**
 * Parses an untrusted request and determines whether it could be signed. The signature is verified only if the key has
 * an accepted size, so that the work is limited. Throws CodedError 'invalid-request' if the request cannot be parsed.
 */
export function parseSigningRequest(pem: string): SigningRequest {
  try {
    return parse(pemToDer(pem));
  } catch (error) {
    if (error instanceof CodedError && error.code === 'invalid-request') throw error;
    throw bad(messageOf(error), error);
  }
}

/** Creates a request for `key`, which also signs the request. */
export function createSigningRequest(key: KeyObject, subject: Subject, names?: AlternativeNames): string {
  const attributes =
    names === undefined || isEmpty(names)
      ? []
      : [
          der.sequence([
            der.oid(OID.extensionRequest),
            der.set([
              der.sequence([
                der.sequence([der.oid(OID.subjectAltName), der.octets(toDer(alternativeNamesToAsn1(names)))]),
              ]),
            ]),
          ]),
        ];
  const info = der.sequence([
    der.integer(Buffer.of(0)),
    nameToAsn1(subject),
    parseDer(createPublicKey(key).export({ type: 'spki', format: 'der' })),
    der.explicit(0, attributes),
  ]);
  const rsa = key.asymmetricKeyType === 'rsa';
  const request = der.sequence([
    info,
    der.sequence(rsa ? [der.oid(OID.rsaSha256), der.null()] : [der.oid(OID.ecdsaSha256)]),
    der.bits(sign('sha256', toDer(info), key)),
  ]);
  return toPem(LABEL, toDer(request));
}

export interface SigningOptions {
  readonly usages: readonly ('server' | 'client')[];
  /** Key usages. The default depends on the type of the key. */
  readonly keyUsages?: readonly KeyUsage[];
  readonly validity: Validity;
}

/**
 * Issues a certificate with the subject, the DNS, IP, e-mail and URI names and the key of a request. Other content of
 * the request is ignored. The caller must have approved the request. Throws CodedError 'invalid-request' for a key,
 * signature or name that must not be signed.
 */
export function signRequest(authority: Authority, request: SigningRequest, options: SigningOptions): string {
  if (request.refusal !== undefined || request.publicKey === undefined)
    throw bad(request.refusal ?? 'the request has no public key');
  if (request.requestsCa) throw bad('the request is for a certificate authority');
  return issueFor(authority, request.publicKey, {
    subject: { commonName: request.commonName, organizations: request.organizations },
    usages: options.usages,
    names: {
      dns: request.dnsNames,
      ips: request.ipAddresses,
      emails: request.emailAddresses,
      uris: request.uris,
    },
    validity: options.validity,
    ...(options.keyUsages === undefined ? {} : { keyUsages: options.keyUsages }),
  });
}

function pemToDer(pem: string): Buffer {
  if (pem.length > MAX_PEM_BYTES) throw bad(`larger than ${MAX_PEM_BYTES} bytes`);
  const begin = `-----BEGIN ${LABEL}-----`;
  const end = `-----END ${LABEL}-----`;
  const from = pem.indexOf(begin);
  const to = pem.indexOf(end, from + begin.length);
  if (from < 0 || to < 0) throw bad(`no PEM block of type "${LABEL}"`);
  const body = pem.slice(from + begin.length, to).replaceAll(/\s/g, '');
  if (body === '' || !/^[A-Za-z0-9+/]+={0,2}$/.test(body)) throw bad('the PEM block is not base64');
  return Buffer.from(body, 'base64');
}

function parse(bytes: Buffer): SigningRequest {
  parseDer(bytes);
  const [info, algorithm, signature, ...rest] = childrenOf(bytes);
  if (info === undefined || algorithm === undefined || signature === undefined || rest.length > 0) {
    throw bad('not a PKCS #10 structure');
  }
  const [, subject, spki, attributes] = childrenOf(info);
  if (subject === undefined || spki === undefined) throw bad('not a PKCS #10 structure');
  const names: MutableNames = { dnsNames: [], ipAddresses: [], emailAddresses: [], uris: [] };
  let requestsCa = false;
  for (const { oid, value } of attributes === undefined ? [] : requestedExtensions(attributes)) {
    if (oid === OID.subjectAltName) readAlternativeNames(value, names);
    if (oid === OID.basicConstraints && requestsAuthority(value)) requestsCa = true;
  }
  const key = readPublicKey(spki);
  const refusal = key.refusal ?? refusalOfSignature(info, oidOf(childrenOf(algorithm)[0]), signature, key.publicKey);
  return {
    ...readSubject(subject),
    ...names,
    requestsCa,
    signatureValid: refusal === undefined,
    keyType: key.keyType,
    keyBits: key.keyBits,
    publicKey: key.publicKey,
    refusal,
  };
}

interface RequestKey extends Pick<SigningRequest, 'keyType' | 'keyBits' | 'publicKey' | 'refusal'> {}

function readPublicKey(spki: Uint8Array): RequestKey {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: Buffer.from(spki), type: 'spki', format: 'der' });
  } catch {
    return { keyType: 'other', keyBits: 0, publicKey: undefined, refusal: 'the public key cannot be read' };
  }
  const details = key.asymmetricKeyDetails ?? {};
  switch (key.asymmetricKeyType) {
    case 'rsa': {
      const keyBits = details.modulusLength ?? 0;
      const sizeFits = keyBits >= RSA_MIN_BITS && keyBits <= RSA_MAX_BITS;
      const refusal = !sizeFits
        ? `the RSA key has ${keyBits} bits; ${RSA_MIN_BITS} to ${RSA_MAX_BITS} are accepted`
        : (details.publicExponent ?? 0n) > RSA_MAX_EXPONENT
          ? 'the RSA exponent is too large'
          : undefined;
      return { keyType: 'rsa', keyBits, publicKey: key, refusal };
    }
    case 'ec': {
      const keyBits = CURVE_BITS.get(details.namedCurve ?? '') ?? 0;
      const refusal = keyBits === 0 ? `the curve "${details.namedCurve ?? ''}" is not accepted` : undefined;
      return { keyType: 'ec', keyBits, publicKey: key, refusal };
    }
    case 'ed25519':
      return { keyType: 'ed25519', keyBits: 256, publicKey: key, refusal: undefined };
    default:
      return {
        keyType: 'other',
        keyBits: 0,
        publicKey: key,
        refusal: `the key type "${key.asymmetricKeyType ?? ''}" is not accepted`,
      };
  }
}

function refusalOfSignature(
  info: Uint8Array,
  oid: string,
  signature: Uint8Array,
  publicKey: KeyObject | undefined,
): string | undefined {
  const algorithm = SIGNATURES.get(oid);
  if (algorithm === undefined || publicKey === undefined) return `the signature algorithm ${oid} is not accepted`;
  if (algorithm.keyType !== publicKey.asymmetricKeyType) return 'the signature algorithm does not match the key type';
  return verify(algorithm.hash, info, publicKey, contentOf(signature).subarray(1))
    ? undefined
    : 'the signature does not match the public key';
}

/** Hash and key type, by signature algorithm. Requests with other algorithms (SHA-1, MD5) are rejected. */
const SIGNATURES: ReadonlyMap<string, { readonly hash: string | null; readonly keyType: string }> = new Map([
  [OID.ecdsaSha256, { hash: 'sha256', keyType: 'ec' }],
  [OID.ecdsaSha384, { hash: 'sha384', keyType: 'ec' }],
  [OID.ecdsaSha512, { hash: 'sha512', keyType: 'ec' }],
  [OID.rsaSha256, { hash: 'sha256', keyType: 'rsa' }],
  [OID.rsaSha384, { hash: 'sha384', keyType: 'rsa' }],
  [OID.rsaSha512, { hash: 'sha512', keyType: 'rsa' }],
  [OID.ed25519, { hash: null, keyType: 'ed25519' }],
]);

/**
 * Reads the common name and the organizations of a subject. Other attributes are ignored, because no Kubernetes
 * identity uses them.
 */
function readSubject(subject: Uint8Array): Pick<SigningRequest, 'commonName' | 'organizations'> {
  let commonName: string | undefined;
  const organizations: string[] = [];
  for (const rdn of childrenOf(subject)) {
    for (const attribute of childrenOf(rdn)) {
      const [type, value] = childrenOf(attribute);
      const oid = oidOf(type);
      if (oid === OID.organization) organizations.push(textOf(value));
      else if (oid === OID.commonName) {
        if (commonName !== undefined) throw bad('the subject has two common names');
        commonName = textOf(value);
      }
    }
  }
  return { commonName: commonName ?? '', organizations };
}

function requestedExtensions(attributes: Uint8Array): { oid: string; value: Uint8Array }[] {
  const found: { oid: string; value: Uint8Array }[] = [];
  for (const attribute of childrenOf(attributes)) {
    const [type, values] = childrenOf(attribute);
    if (oidOf(type) !== OID.extensionRequest || values === undefined) continue;
    for (const list of childrenOf(values)) {
      for (const each of childrenOf(list)) {
        const parts = childrenOf(each);
        const value = parts[parts.length - 1];
        if (value === undefined || value[0] !== 0x04) throw bad('an extension has no value');
        found.push({ oid: oidOf(parts[0]), value: contentOf(value) });
      }
    }
  }
  return found;
}

interface MutableNames {
  readonly dnsNames: string[];
  readonly ipAddresses: string[];
  readonly emailAddresses: string[];
  readonly uris: string[];
}

function readAlternativeNames(value: Uint8Array, into: MutableNames): void {
  parseDer(value);
  for (const name of childrenOf(value)) {
    const content = contentOf(name);
    switch ((name[0] ?? 0) & 0x1f) {
      case 1:
        into.emailAddresses.push(asciiOf(content));
        break;
      case 2:
        into.dnsNames.push(asciiOf(content));
        break;
      case 6:
        into.uris.push(asciiOf(content));
        break;
      case 7:
        into.ipAddresses.push(bytesToIp(content));
        break;
      default:
        throw bad('the request has an alternative name that is neither DNS, IP, e-mail nor URI');
    }
  }
}

function requestsAuthority(value: Uint8Array): boolean {
  parseDer(value);
  const flag = childrenOf(value)[0];
  return flag !== undefined && flag[0] === 0x01 && contentOf(flag).some((byte) => byte !== 0);
}

function oidOf(element: Uint8Array | undefined): string {
  if (element === undefined || element[0] !== 0x06) throw bad('an object identifier is missing');
  return der.readOid(contentOf(element));
}

/**
 * Text of a PrintableString, UTF8String or IA5String. NUL and control characters are rejected, because a user name must
 * not contain them.
 */
function textOf(element: Uint8Array | undefined): string {
  const tag = element?.[0] ?? 0;
  if (element === undefined || (tag !== 0x0c && tag !== 0x13 && tag !== 0x16)) {
    throw bad('the subject has a string of a type that is not accepted');
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(contentOf(element));
  } catch (error) {
    throw bad('the subject is not valid UTF-8', error);
  }
  if (hasControl(text)) throw bad('the subject has control characters');
  return text;
}

function asciiOf(bytes: Uint8Array): string {
  const text = Buffer.from(bytes).toString('latin1');
  if (hasControl(text) || bytes.some((byte) => byte > 0x7e)) throw bad('an alternative name is not ASCII');
  return text;
}

function hasControl(text: string): boolean {
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return false;
}

function bad(why: string, cause?: unknown): CodedError {
  return new CodedError('invalid-request', `certificate signing request: ${why}`, { cause });
}
