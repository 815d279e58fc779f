/**
 * Automatic approval of certificate signing requests. Source: upstream's certificate approver for kubelet clients,
 * OpenShift's machine approver for serving certificates and for bootstrap identities.
 */

import type { CertificateSigningRequest } from '../../../api/generated/certificates/v1.ts';
import type { Node } from '../../../api/generated/core/v1.ts';
import {
  CLIENT_KEY,
  EXPIRED_NODES_GROUP,
} from '../../../api/kinds/identity/certificatesigningrequests/expired-nodes.ts';
import { NODE_PREFIX, rejectionReason, SIGNER } from '../../../api/kinds/identity/certificatesigningrequests/policy.ts';
import type { CertificateRequestFacts } from '../../../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import { timeMs } from '../../../base/time/timestamps.ts';
import { namesRejection, type ServingEvidence } from './serving-names.ts';

export interface ApprovalSnapshot {
  readonly request: CertificateSigningRequest;
  readonly facts: CertificateRequestFacts;
  /** Node named by the request, if it exists. */
  readonly node: Node | undefined;
  /**
   * For `system:bootstrap:<id>`: expiration time of the token from its secret; `'absent'` if the secret does not exist.
   */
  readonly tokenEndsAtMs: number | 'absent' | undefined;
  readonly evidence: ServingEvidence;
}

export type ApprovalPlan =
  /** The request waits for approval by an administrator. */
  | { readonly kind: 'ignore'; readonly why: string }
  /**
   * The request is approved if a SubjectAccessReview shows that the requester may create this sub-resource of
   * certificatesigningrequests.
   */
  | { readonly kind: 'approve-if-allowed'; readonly subresources: readonly string[]; readonly message: string }
  | { readonly kind: 'approve'; readonly message: string };

const BOOTSTRAP_USER = 'system:bootstrap:';

export function planApproval(snapshot: ApprovalSnapshot, nowMs: number): ApprovalPlan {
  const { request, facts } = snapshot;
  const signerName = request.spec?.signerName ?? '';
  if (signerName !== SIGNER.kubeletClient && signerName !== SIGNER.kubeletServing) {
    return { kind: 'ignore', why: 'this signer has no automatic approval' };
  }
  const why = rejectionReason(signerName, request.spec?.usages ?? [], facts);
  if (why !== undefined) return { kind: 'ignore', why };
  return signerName === SIGNER.kubeletClient ? approveClient(snapshot, nowMs) : approveServing(snapshot);
}

function approveClient(snapshot: ApprovalSnapshot, nowMs: number): ApprovalPlan {
  const { request, facts, node } = snapshot;
  const username = request.spec?.username ?? '';
  if (username === facts.commonName) {
    if (request.spec?.groups?.includes(EXPIRED_NODES_GROUP) === true) return approveExpired(snapshot);
    return {
      kind: 'approve-if-allowed',
      subresources: ['selfnodeclient', 'nodeclient'],
      message: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
    };
  }
  // All other requesters are bootstrap identities. A leaked token must not take over a node that is alive.
  if (node !== undefined && isReady(node)) {
    return { kind: 'ignore', why: `node ${facts.commonName.slice(NODE_PREFIX.length)} exists and is ready` };
  }
  const ends = snapshot.tokenEndsAtMs;
  if (ends === 'absent') return { kind: 'ignore', why: 'the bootstrap token does not exist' };
  if (ends !== undefined && ends <= nowMs) return { kind: 'ignore', why: 'the bootstrap token has expired' };
  return {
    kind: 'approve-if-allowed',
    subresources: ['nodeclient'],
    message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
  };
}

/**
 * Plans the approval of a request that was authenticated with an expired certificate. The certificate's key proves that
 * the request comes from the host with the node's last certificate, not from an older copy of the host.
 */
function approveExpired({ request, node }: ApprovalSnapshot): ApprovalPlan {
  if (node === undefined) return { kind: 'ignore', why: 'the node is deleted; the host must join again' };
  const key = request.spec?.extra?.[CLIENT_KEY]?.[0];
  if (key === undefined || key !== node.metadata?.annotations?.[CLIENT_KEY]) {
    return { kind: 'ignore', why: 'the expired certificate is not the last one of the node' };
  }
  return { kind: 'approve', message: 'Auto approving the renewal of the expired client certificate of a known node.' };
}

function approveServing(snapshot: ApprovalSnapshot): ApprovalPlan {
  const { request, facts, node, evidence } = snapshot;
  if (request.spec?.username !== facts.commonName)
    return { kind: 'ignore', why: 'the requester is not the node in the request' };
  if (request.spec.groups?.includes('system:nodes') !== true) {
    return { kind: 'ignore', why: 'the requester is not in system:nodes' };
  }
  if (node === undefined) return { kind: 'ignore', why: 'the node is not registered' };
  const why = namesRejection(node, facts, evidence);
  if (why !== undefined) return { kind: 'ignore', why };
  return {
    kind: 'approve',
    message: 'Auto approving kubelet serving certificate: every name is proven to belong to the node.',
  };
}

/** ID of the bootstrap token with which the requester authenticated; undefined for other users. */
export function bootstrapTokenId(username: string | undefined): string | undefined {
  return username?.startsWith(BOOTSTRAP_USER) === true ? username.slice(BOOTSTRAP_USER.length) : undefined;
}

export function isReady(node: Node): boolean {
  return node.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') === true;
}

export function hasCondition(request: CertificateSigningRequest, type: 'Approved' | 'Denied' | 'Failed'): boolean {
  return request.status?.conditions?.some((condition) => condition.type === type) === true;
}

export function isPending(request: CertificateSigningRequest): boolean {
  return !hasCondition(request, 'Approved') && !hasCondition(request, 'Denied') && !hasCondition(request, 'Failed');
}

export function awaitsSignature(request: CertificateSigningRequest): boolean {
  return (
    hasCondition(request, 'Approved') &&
    !hasCondition(request, 'Denied') &&
    !hasCondition(request, 'Failed') &&
    (request.status?.certificate ?? '') === ''
  );
}

const MIN_SECONDS = 600;
/**
 * Time by which a certificate's validity begins before it is issued, because the clock of a peer may be behind.
 * Upstream's value.
 */
export const BACKDATE_MS = 5 * 60_000;

/** Validity of the certificate in milliseconds: the requested validity within the limits. */
export function validityMs(request: CertificateSigningRequest, longestMs: number): number {
  const requestedSeconds = request.spec?.expirationSeconds;
  if (requestedSeconds === undefined) return longestMs;
  return Math.min(longestMs, Math.max(MIN_SECONDS, requestedSeconds) * 1000);
}

const FINISHED_MS = 3_600_000;
const PENDING_MS = 24 * 3_600_000;

/** Milliseconds until the request is deleted: finished requests after an hour, pending ones after a day. */
export function cleanInMs(request: CertificateSigningRequest, nowMs: number): number {
  const created = timeMs(request.metadata?.creationTimestamp, nowMs);
  if (isPending(request)) return Math.max(0, created + PENDING_MS - nowMs);
  if (awaitsSignature(request)) return Math.max(0, created + PENDING_MS - nowMs);
  const decided = (request.status?.conditions ?? []).reduce(
    (latest, condition) => Math.max(latest, timeMs(condition.lastUpdateTime, created)),
    created,
  );
  return Math.max(0, decided + FINISHED_MS - nowMs);
}
