/**
 * First contact with a cluster: reads `kube-public/cluster-info` from an unverified server. Then verifies the content
 * by the token, which signs it as a detached JWS, and by the hash of the CA. Source: kubeadm's token-based discovery.
 */

import { X509Certificate } from 'node:crypto';
import { request } from 'node:https';
import { compactVerify } from 'jose';
import { parse } from 'yaml';
import { decodeJson, fields, object, optional } from '../../base/decode.ts';
import { CodedError, messageOf } from '../../base/errors.ts';
import { contentDigest } from '../../wire/digest.ts';
import type { Token } from './token-format.ts';

const PATH = '/api/v1/namespaces/kube-public/configmaps/cluster-info';
const TIMEOUT_MS = 10_000;
/** Time limit for the complete response, which a server may send slowly. */
const ANSWER_MS = 30_000;
const MAX_BYTES = 1024 * 1024;
/** Maximum size of the CA bundle, which is parsed before it is trusted. */
const MAX_CA_BYTES = 64 * 1024;

export interface Discovered {
  /** PEM bundle of the cluster's CA. */
  readonly caPem: string;
  /** Time in the Date header of the response; undefined if the header is missing. */
  readonly serverMs: number | undefined;
}

/**
 * Hash of a certificate's public key: `sha256:` and the hex digest of its SubjectPublicKeyInfo, as in kubeadm's
 * discovery-token-ca-cert-hash.
 */
export function caHashOf(certificate: X509Certificate): string {
  const spki = certificate.publicKey.export({ type: 'spki', format: 'der' });
  return contentDigest(spki);
}

/** The certificates of a PEM bundle. Throws if one cannot be parsed. */
export function certificatesOf(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/**
 * Verifies the cluster by token and hash. Throws CodedErrors 'unreachable', 'not-a-cluster', 'bad-token' and
 * 'bad-ca-hash' with the field and the fix.
 */
export async function discover(server: string, token: Token, caHash: string): Promise<Discovered> {
  const { body, serverMs } = await fetchClusterInfo(server);
  const data = dataOf(body);
  const content = data['kubeconfig'];
  if (content === undefined) throw notACluster(server, 'kube-public/cluster-info contains no kubeconfig');
  await verifySignature(content, data[`jws-kubeconfig-${token.id}`], token);
  const caPem = caOf(content);
  const hashes = caPem === undefined ? [] : tryCertificates(caPem).map(caHashOf);
  if (caPem === undefined || hashes.length === 0) throw notACluster(server, 'kube-public/cluster-info contains no CA');
  if (!hashes.includes(caHash)) {
    throw new CodedError(
      'bad-ca-hash',
      `join.caHash: the CA of ${server} has ${hashes[0]}, not ${caHash}; compare with what "hyperedge token create" printed`,
    );
  }
  return { caPem, serverMs };
}

/**
 * Verifies the cluster only by the hash of its CA, as kubeadm does without a token. Throws CodedErrors 'unreachable',
 * 'not-a-cluster' and 'bad-ca-hash'.
 */
export async function discoverPinned(server: string, caHash: string): Promise<Discovered> {
  const { body, serverMs } = await fetchClusterInfo(server);
  const caPem = unverifiedCaOf(dataOf(body)['kubeconfig'] ?? '');
  const pinned = caPem
    ?.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g)
    ?.find((pem) => tryCertificates(pem).map(caHashOf).includes(caHash));
  // The document is not signed, so other authorities in it are not trusted.
  if (pinned !== undefined) return { caPem: `${pinned}\n`, serverMs };
  throw new CodedError(
    'bad-ca-hash',
    `offer.caHash: ${server} has no CA with ${caHash}; compare with what "hyperedge token create" prints`,
  );
}

async function verifySignature(content: string, signature: string | undefined, token: Token): Promise<void> {
  if (signature === undefined) {
    throw new CodedError(
      'bad-token',
      `join.token: the cluster has no token ${token.id}; it has expired or was revoked: run "hyperedge token create" on a master`,
    );
  }
  const [header = '', , mac = ''] = signature.split('.');
  const jws = `${header}.${Buffer.from(content).toString('base64url')}.${mac}`;
  try {
    await compactVerify(jws, new TextEncoder().encode(token.stored), { algorithms: ['HS256'] });
  } catch (error) {
    throw new CodedError(
      'bad-token',
      `join.token: the secret of token ${token.id} is wrong, or the server belongs to another cluster; copy the complete token`,
      { cause: error },
    );
  }
}

function fetchClusterInfo(server: string): Promise<{ body: string; serverMs: number | undefined }> {
  return new Promise((resolve, reject) => {
    const unreachable = (cause: string): void =>
      reject(
        new CodedError(
          'unreachable',
          `join.server: ${server} does not answer: ${cause}; check address, cable, firewall`,
        ),
      );
    const late = setTimeout(
      () => outgoing.destroy(new Error(`no complete response within ${ANSWER_MS / 1000} s`)),
      ANSWER_MS,
    );
    // The server's certificate is not verified. The caller verifies the token's signature and the CA's hash before it
    // uses the response.
    const outgoing = request(new URL(PATH, server), { rejectUnauthorized: false, timeout: TIMEOUT_MS }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_BYTES) outgoing.destroy(new Error('the answer is too large'));
        else chunks.push(chunk);
      });
      response.on('end', () => {
        const { statusCode } = response;
        const date = Date.parse(response.headers.date ?? '');
        if (statusCode === 200) {
          resolve({ body: Buffer.concat(chunks).toString('utf8'), serverMs: Number.isNaN(date) ? undefined : date });
        } else if (statusCode !== undefined && (statusCode === 429 || statusCode >= 500)) {
          unreachable(`status ${statusCode}`);
        } else if (statusCode === 404) {
          // The controllers of a new cluster publish the object a moment after the API server is ready.
          unreachable('kube-public/cluster-info does not exist yet');
        } else reject(notACluster(server, `status ${statusCode} for kube-public/cluster-info`));
      });
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer within ${TIMEOUT_MS / 1000} s`)));
    outgoing.on('error', (error) => unreachable(messageOf(error)));
    outgoing.on('close', () => clearTimeout(late));
    outgoing.end();
  });
}

const CLUSTER_INFO = object({ data: optional(fields) });

function dataOf(body: string): Readonly<Record<string, string>> {
  try {
    const { data = {} } = decodeJson(CLUSTER_INFO, body, 'cluster-info');
    return Object.fromEntries(
      Object.entries(data).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
    );
  } catch {
    return {};
  }
}

/** Reads the CA from a kubeconfig whose signature was verified. */
function caOf(content: string): string | undefined {
  const config = parse(content) as {
    readonly clusters?: ReadonlyArray<{ readonly cluster?: { readonly 'certificate-authority-data'?: unknown } }>;
  };
  const data = config?.clusters?.[0]?.cluster?.['certificate-authority-data'];
  if (typeof data !== 'string' || data.length > (MAX_CA_BYTES * 4) / 3) return undefined;
  return Buffer.from(data, 'base64').toString('utf8');
}

/** Like `caOf`, for unverified content; undefined if the content is not a kubeconfig. */
function unverifiedCaOf(content: string): string | undefined {
  try {
    return caOf(content);
  } catch {
    return undefined;
  }
}

function tryCertificates(pem: string): X509Certificate[] {
  try {
    return certificatesOf(pem);
  } catch {
    return [];
  }
}

function notACluster(server: string, why: string): CodedError {
  return new CodedError('not-a-cluster', `join.server: ${server} is not an API server that can be joined: ${why}`);
}
