/** Validates certificates of routes and caches their TLS contexts. */

import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { BoundedMap } from '../../../base/bounded-map.ts';
import { messageOf } from '../../../base/errors.ts';
import type { Certificate } from '../core/port.ts';
import type { CertificateVerifier } from '../port.ts';

/** Maximum number of cached results, and of cached TLS contexts. A route needs one of each. */
const REMEMBERED = 4_096;
const BLOCK = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g;
const MAX_PEM_BYTES = 256 * 1024;
/**
 * Largest RSA key. A TLS handshake signs on the event loop: 2 ms with 4,096 bits, but 30 ms with 8,192 and 0.3 s with
 * 16,384 bits.
 */
const MAX_RSA_BITS = 4_096;

/**
 * Creates a verifier of certificates. Verdicts do not depend on time: an expired certificate is served, as in
 * OpenShift's router.
 */
export function createCertificateVerifier(): CertificateVerifier {
  const results = new BoundedMap<string, string | undefined>(REMEMBERED);
  return ({ certificate = '', key = '', caCertificate = '', destinationCACertificate = '' }) => {
    const text = JSON.stringify([certificate, key, caCertificate, destinationCACertificate]);
    if (results.has(text)) return results.get(text);
    const problem = certificateProblem(certificate, key, caCertificate, destinationCACertificate);
    results.set(text, problem);
    return problem;
  };
}

function certificateProblem(certificate: string, key: string, ca: string, destinationCa: string): string | undefined {
  for (const [field, text] of Object.entries({ caCertificate: ca, destinationCACertificate: destinationCa })) {
    const problem = text === '' ? undefined : bundleProblem(text);
    if (problem !== undefined) return `spec.tls.${field}: Invalid value: "redacted ca certificate data": ${problem}`;
  }
  if (certificate === '' && key === '') return undefined;
  if (certificate === '') return 'spec.tls.certificate: Required value: a certificate must be specified with a key';
  if (key === '') return 'spec.tls.key: Required value: a key must be specified with a certificate';
  const problem = bundleProblem(certificate);
  if (problem !== undefined) return `spec.tls.certificate: Invalid value: "redacted certificate data": ${problem}`;
  try {
    const privateKey = createPrivateKey(key);
    const tooLarge = keyProblem(privateKey);
    if (tooLarge !== undefined) return `spec.tls.key: Invalid value: "redacted key data": ${tooLarge}`;
    if (!new X509Certificate(certificate).checkPrivateKey(privateKey))
      return 'spec.tls.key: Invalid value: "redacted key data": private key does not match public key';
    createSecureContext({ cert: certificate, key });
  } catch (error) {
    return `spec.tls.key: Invalid value: "redacted key data": ${messageOf(error).split('\n')[0]}`;
  }
  return undefined;
}

function keyProblem({ asymmetricKeyDetails }: KeyObject): string | undefined {
  const bits = asymmetricKeyDetails?.modulusLength ?? 0;
  return bits > MAX_RSA_BITS ? `a key of ${bits} bits; use at most ${MAX_RSA_BITS}` : undefined;
}

function bundleProblem(text: string): string | undefined {
  if (text.length > MAX_PEM_BYTES) return `larger than ${MAX_PEM_BYTES} bytes`;
  const blocks = text.match(BLOCK) ?? [];
  if (blocks.length === 0) return 'data does not contain any valid RSA or ECDSA certificates';
  try {
    for (const block of blocks) new X509Certificate(block);
    return undefined;
  } catch (error) {
    return messageOf(error).split('\n')[0];
  }
}

export class SecureContexts {
  readonly #known = new BoundedMap<string, SecureContext | undefined>(REMEMBERED);

  /** TLS context of a certificate; undefined if TLS rejects the certificate or key. */
  of({ certificate, key }: Certificate): SecureContext | undefined {
    const text = `${certificate}\n${key}`;
    if (this.#known.has(text)) return this.#known.get(text);
    let context: SecureContext | undefined;
    try {
      if (keyProblem(createPrivateKey(key)) === undefined) context = createSecureContext({ cert: certificate, key });
    } catch {
      context = undefined;
    }
    this.#known.set(text, context);
    return context;
  }
}
