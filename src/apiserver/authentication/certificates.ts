/**
 * The user of a verified client certificate: CN is the user, O the groups. Source:
 * k8s.io/apiserver/pkg/authentication/request/x509.
 */

import { X509Certificate } from 'node:crypto';
import { CLIENT_KEY, EXPIRED_NODES_GROUP } from '../../api/kinds/identity/certificatesigningrequests/expired-nodes.ts';
import type { UserInfo } from '../../api/registry/definition.ts';
import { contentDigest, sha256Hex } from '../../wire/digest.ts';
import type { ConnectionInfo } from '../port.ts';

const NODE_PREFIX = 'system:node:';
const NODES_GROUP = 'system:nodes';
const PEM_BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Parses a PEM bundle. Throws an Error if it contains no certificate. */
export function parseAuthorities(pem: string): X509Certificate[] {
  const blocks = pem.match(PEM_BLOCK);
  if (blocks === null) throw new Error('no certificate in the CA bundle');
  return blocks.map((block) => new X509Certificate(block));
}

interface CertificateIdentity {
  /** User of the certificate. Undefined for a certificate without a common name. */
  readonly user: UserInfo | undefined;
  readonly notAfterMs: number;
}

/**
 * Returns the leaf certificate of a chain that ends at one of `authorities`; undefined otherwise. TLS has verified the
 * chain against all configured CAs together, but each CA is trusted only for its purpose: clients or front proxies.
 */
export function issuedBy(
  chain: readonly Uint8Array[],
  authorities: readonly X509Certificate[],
): X509Certificate | undefined {
  const [leafDer] = chain;
  if (leafDer === undefined) return undefined;
  const leaf = new X509Certificate(leafDer);
  let current = leaf;
  for (let depth = 0; depth <= chain.length; depth++) {
    if (authorities.some((authority) => signed(authority, current))) return leaf;
    const nextDer = chain[depth + 1];
    if (nextDer === undefined) return undefined;
    const next = new X509Certificate(nextDer);
    if (!signed(next, current)) return undefined;
    current = next;
  }
  return undefined;
}

function signed(authority: X509Certificate, certificate: X509Certificate): boolean {
  return authority.ca && certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}

const listOf = (value: string | string[] | undefined): string[] =>
  value === undefined ? [] : Array.isArray(value) ? value : [value];

export function commonNameOf(certificate: X509Certificate): string {
  return listOf(certificate.toLegacyObject().subject.CN)[0] ?? '';
}

export function createCertificateAuthenticator(clientCa: string) {
  const authorities = parseAuthorities(clientCa);
  const known = new WeakMap<ConnectionInfo, CertificateIdentity | null>();
  /** Identity in the client certificate. Null if the certificate was not issued by one of the client CAs. */
  const identify = (connection: ConnectionInfo, chain: readonly Uint8Array[]): CertificateIdentity | null => {
    const present = known.get(connection);
    if (present !== undefined) return present;
    const leaf = issuedBy(chain, authorities);
    const identity = leaf === undefined ? null : { user: userOf(leaf), notAfterMs: Date.parse(leaf.validTo) };
    known.set(connection, identity);
    return identity;
  };
  return {
    /**
     * Returns the user of the connection, 'none' without a client certificate, or 'refused' for an invalid or expired
     * certificate. The certificate is verified once per connection, its expiry on every request.
     */
    authenticate(connection: ConnectionInfo, nowMs: number): UserInfo | 'none' | 'refused' {
      const { peerChain, peerRefused, peerExpired } = connection;
      if (peerExpired !== undefined) return expiredNode(peerExpired, authorities) ?? 'refused';
      if (peerChain === undefined) return peerRefused ? 'refused' : 'none';
      const identity = identify(connection, peerChain);
      if (identity === null) return 'refused';
      if (identity.notAfterMs < nowMs) return expiredNode(peerChain, authorities) ?? 'refused';
      return identity.user ?? 'none';
    },
  };
}

const CLIENT_AUTH = '1.3.6.1.5.5.7.3.2';

/**
 * The user of a node whose client certificate has expired: it has the name of the node but not its group, and may only
 * request a new certificate. Decision 0018.
 */
function expiredNode(chain: readonly Uint8Array[], authorities: readonly X509Certificate[]): UserInfo | undefined {
  const leaf = issuedBy(chain, authorities);
  if (leaf === undefined || leaf.ca || leaf.keyUsage?.includes(CLIENT_AUTH) !== true) return undefined;
  const { CN, O } = leaf.toLegacyObject().subject as Readonly<Record<string, string | string[] | undefined>>;
  if (typeof CN !== 'string' || !CN.startsWith(NODE_PREFIX) || O !== NODES_GROUP) return undefined;
  const spki = leaf.publicKey.export({ type: 'spki', format: 'der' });
  const key = contentDigest(spki);
  return { name: CN, groups: [EXPIRED_NODES_GROUP], extra: { [CLIENT_KEY]: [key] } };
}

/** Subject attribute that contains the UID of the user. */
const UID_OID = '1.3.6.1.4.1.57683.2';

function userOf(leaf: X509Certificate): UserInfo | undefined {
  const subject = leaf.toLegacyObject().subject as Readonly<Record<string, string | string[] | undefined>>;
  const name = listOf(subject['CN'])[0] ?? '';
  if (name === '') return undefined;
  const uids = listOf(subject[UID_OID]);
  const fingerprint = sha256Hex(leaf.raw);
  return {
    name,
    ...(uids.length === 1 && uids[0] !== undefined && uids[0] !== '' ? { uid: uids[0] } : {}),
    groups: [...listOf(subject['O']), 'system:authenticated'],
    extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
  };
}
