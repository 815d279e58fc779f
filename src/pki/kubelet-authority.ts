/**
 * The authority of kubelets' serving certificates. It is separate from the cluster's authority, so that a node's
 * certificate is never accepted as that of the API server or of a webhook. Its key is derived from the key of the
 * cluster's authority (HKDF-SHA256, RFC 5869). So all masters derive the same key, and a rotation of the cluster's
 * authority rotates it too.
 */

import { createECDH, createPrivateKey, hkdfSync, type KeyObject, X509Certificate } from 'node:crypto';
import { sha256Hex } from '../wire/digest.ts';
import { loadIfPresent, trustedBundle } from './authorities.ts';
import { type Authority, createAuthority, datesOf, type KeyPair } from './certificate.ts';
import { type PairFiles, predecessorOf, successorOf } from './layout.ts';

const CONTEXT = 'hyperedge.dev/kubelet-serving-authority/v1';
const KEY_BYTES = 32;
const NAME = 'kubelet-serving-signer';
const NAME_DIGITS = 16;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----\n?/g;

/**
 * Name of the kubelets' authority. It contains a hash of the cluster's authority, so that a node can determine the
 * authority from which a certificate's issuer was derived.
 */
export function kubeletAuthorityName(cluster: X509Certificate): string {
  const spki = cluster.publicKey.export({ type: 'spki', format: 'der' });
  return `${NAME}@${sha256Hex(spki).slice(0, NAME_DIGITS)}`;
}

/**
 * Derives the authority. Its name and key are deterministic. Its certificate expires together with that of the
 * cluster's authority.
 */
export function deriveKubeletAuthority({ certificate, privateKey }: Authority): Promise<Authority & KeyPair> {
  const { notBeforeMs, notAfterMs } = datesOf(certificate);
  return createAuthority(kubeletAuthorityName(certificate), { notBeforeMs, notAfterMs }, deriveKey(privateKey));
}

function deriveKey(secret: KeyObject): KeyObject {
  const input = secret.export({ type: 'pkcs8', format: 'der' });
  const curve = createECDH('prime256v1');
  for (let attempt = 0; ; attempt++) {
    const scalar = Buffer.from(hkdfSync('sha256', input, '', `${CONTEXT}/${attempt}`, KEY_BYTES));
    try {
      curve.setPrivateKey(scalar);
    } catch {
      // With a probability of 2^-32, the output is not a valid scalar of the curve. The next output is tried.
      continue;
    }
    const point = curve.getPublicKey();
    const part = (from: number): string => point.subarray(from, from + KEY_BYTES).toString('base64url');
    const jwk = { kty: 'EC', crv: 'P-256', d: scalar.toString('base64url'), x: part(1), y: part(1 + KEY_BYTES) };
    return createPrivateKey({ key: jwk, format: 'jwk' });
  }
}

/**
 * PEM bundle of the authorities by which a kubelet is verified: those that are derived from the cluster's authority,
 * its successor and its predecessor, and the cluster's authority itself, which has issued the serving certificates of
 * earlier releases. `present`: the current bundle, whose certificates are kept if they match.
 */
export async function kubeletBundle(files: PairFiles, present: string | undefined): Promise<string> {
  const kept = (present?.match(CERTIFICATE) ?? []).map((pem) => new X509Certificate(pem));
  const derived: string[] = [];
  for (const each of [files, successorOf(files), predecessorOf(files)]) {
    const cluster = await loadIfPresent(each);
    if (cluster === undefined) continue;
    const authority = await deriveKubeletAuthority(cluster);
    const same = kept.find((certificate) => isSame(certificate, authority.certificate));
    derived.push(same === undefined ? authority.certPem : `${same.toString().trim()}\n`);
  }
  return derived.join('') + (await trustedBundle(files));
}

const isSame = (left: X509Certificate, right: X509Certificate): boolean =>
  left.subject === right.subject && left.validTo === right.validTo && left.publicKey.equals(right.publicKey);

/** Whether the certificate's issuer name is that of the authority derived from `cluster`. */
export const namesKubeletAuthority = (certificate: X509Certificate, cluster: X509Certificate): boolean =>
  certificate.issuer === `CN=${kubeletAuthorityName(cluster)}`;
