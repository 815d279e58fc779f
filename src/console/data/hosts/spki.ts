/** Hash of a certificate's public key, in the form of `kubeadm`'s discovery hash. Source: RFC 5280 §4.1, X.690 §8.1. */

const SEQUENCE = 0x30;
const VERSION = 0xa0;
const MAX_BYTES = 64 * 1024;

interface Element {
  readonly tag: number;
  /** Offsets of the element, of its content, and of the byte after it. */
  readonly start: number;
  readonly content: number;
  readonly end: number;
}

function elementAt(der: Uint8Array, start: number, limit: number): Element {
  const tag = der[start];
  const first = der[start + 1];
  if (tag === undefined || first === undefined) throw new Error('certificate: is cut off');
  let length = first;
  let content = start + 2;
  if (first >= 0x80) {
    const count = first & 0x7f;
    if (count === 0 || count > 3) throw new Error('certificate: has a length that is not allowed');
    length = 0;
    for (let index = 0; index < count; index++) length = length * 256 + (der[content + index] ?? 0);
    content += count;
  }
  const end = content + length;
  if (end > limit) throw new Error('certificate: is cut off');
  return { tag, start, content, end };
}

/** DER of the SubjectPublicKeyInfo. Throws if the bytes are not a certificate. */
export function publicKeyInfo(der: Uint8Array): Uint8Array<ArrayBuffer> {
  if (der.length > MAX_BYTES) throw new Error('certificate: is too large');
  const certificate = elementAt(der, 0, der.length);
  const body = elementAt(der, certificate.content, certificate.end);
  let field = elementAt(der, body.content, body.end);
  if (field.tag === VERSION) field = elementAt(der, field.end, body.end);
  // Skips serialNumber, signature, issuer, validity and subject.
  for (let skipped = 0; skipped < 5; skipped++) field = elementAt(der, field.end, body.end);
  if (certificate.tag !== SEQUENCE || body.tag !== SEQUENCE || field.tag !== SEQUENCE)
    throw new Error('certificate: is not a certificate');
  return new Uint8Array(der.slice(field.start, field.end));
}

/** `sha256:` and the hexadecimal hash of the public key in the first certificate of a PEM bundle. */
export async function caHash(pem: string): Promise<string> {
  const [, base64] = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/.exec(pem) ?? [];
  if (base64 === undefined) throw new Error('the cluster publishes no certificate of its authority');
  const der = Uint8Array.from(atob(base64.replaceAll(/\s/g, '')), (character) => character.charCodeAt(0));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', publicKeyInfo(der)));
  return `sha256:${[...digest].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`;
}
