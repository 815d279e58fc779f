/** Certificate signing requests: approval, signature, clean-up. Rules in core/reconcile/csr. */
import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1';
import type { Secret } from 'kubernetes-types/core/v1';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { messageOf } from '../../base/errors.ts';
import { timestamp } from '../../core/reconcile/context.ts';
import {
  awaitsSignature,
  BACKDATE_MS,
  bootstrapTokenId,
  cleanInMs,
  isPending,
  planApproval,
  validityMs,
} from '../../core/reconcile/csr/approval.ts';
import { isOurSigner, NODE_PREFIX, objection } from '../../core/reconcile/csr/policy.ts';
import type { CertificateRequestFacts } from '../../core/reconcile/csr/port.ts';
import type { ControllerHandle, ControllerSpec } from './framework.ts';

const nameOf = (request: CertificateSigningRequest): string => request.metadata?.name ?? '';

/** `spec.request` is the PEM in base64, as all byte fields. */
function pemOf(request: CertificateSigningRequest): string {
  return Buffer.from(request.spec?.request ?? '', 'base64').toString('latin1');
}

function inspect(handle: ControllerHandle, request: CertificateSigningRequest): CertificateRequestFacts | string {
  try {
    return handle.deps.signer.inspect(pemOf(request));
  } catch (error) {
    return messageOf(error);
  }
}

export const csrApprovingController: ControllerSpec = {
  name: 'csrapproving',
  reads: [resources.certificateSigningRequests, resources.nodes],
  writes: [resources.certificateSigningRequests, resources.secrets],
  prepare: (handle) => {
    const requests = handle.informer(resources.certificateSigningRequests);
    const nodes = handle.informer(resources.nodes);
    const client = handle.writer(resources.certificateSigningRequests);
    const secrets = handle.writer(resources.secrets);
    return (scope) => {
      const queue = scope.queue(sync, 2);
      const wake = (request: CertificateSigningRequest): void => {
        if (isPending(request)) queue.add(nameOf(request));
      };
      scope.onChange(requests, { added: wake, updated: wake });
      // A serving request may come before its node has told its addresses, a bootstrap one while the old node still seems ready.
      const wakeAll = (): void => {
        for (const request of requests.list()) wake(request);
      };
      scope.onChange(nodes, {
        added: wakeAll,
        updated: (node, old) => {
          if (JSON.stringify(node.status?.addresses) !== JSON.stringify(old.status?.addresses)) wakeAll();
        },
      });
    };

    async function sync(name: string): Promise<void> {
      const request = requests.get(name);
      if (request === undefined || !isPending(request) || !isOurSigner(request.spec?.signerName)) return;
      const facts = inspect(handle, request);
      if (typeof facts === 'string') return;
      const tokenId = bootstrapTokenId(request.spec?.username);
      const plan = planApproval(
        {
          request,
          facts,
          node: nodes.get(facts.commonName.startsWith(NODE_PREFIX) ? facts.commonName.slice(NODE_PREFIX.length) : ''),
          tokenEndsAtMs: tokenId === undefined ? undefined : await tokenEnd(tokenId),
        },
        handle.plan().nowMs,
      );
      if (plan.kind === 'ignore') {
        handle.log.v(2, 'left for a human to decide', { request: name, why: plan.why });
        return;
      }
      if (plan.kind === 'approve-if-allowed') {
        let isAllowed = false;
        for (const subresource of plan.subresources) isAllowed ||= await mayCreate(request, subresource);
        if (!isAllowed) {
          handle.log.v(2, 'the requester has no right to automatic approval', { request: name });
          return;
        }
      }
      await approve(request, plan.message);
    }

    async function approve(request: CertificateSigningRequest, message: string): Promise<void> {
      const now = timestamp(handle.plan().nowMs);
      const condition = {
        type: 'Approved',
        status: 'True',
        reason: 'AutoApproved',
        message,
        lastUpdateTime: now,
        lastTransitionTime: now,
      };
      const status = { ...request.status, conditions: [...(request.status?.conditions ?? []), condition] };
      await client.update({ ...request, status }, { subresource: 'approval' });
      handle.log.info('approved a certificate signing request', { request: nameOf(request) });
    }

    async function mayCreate(request: CertificateSigningRequest, subresource: string): Promise<boolean> {
      const review = await handle.deps.client.request<{ status?: { allowed?: boolean } }>(
        'POST',
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: {
            user: request.spec?.username,
            uid: request.spec?.uid,
            groups: request.spec?.groups,
            extra: request.spec?.extra,
            resourceAttributes: {
              group: 'certificates.k8s.io',
              version: '*',
              resource: 'certificatesigningrequests',
              verb: 'create',
              subresource,
            },
          },
        },
      );
      return review.status?.allowed === true;
    }

    async function tokenEnd(id: string): Promise<number | 'gone' | undefined> {
      let secret: Secret;
      try {
        secret = await secrets.get(`bootstrap-token-${id}`, 'kube-system');
      } catch (error) {
        if (isApiError(error, 'NotFound')) return 'gone';
        throw error;
      }
      const expiration = secret.data?.['expiration'];
      if (expiration === undefined) return undefined;
      const endsAtMs = Date.parse(Buffer.from(expiration, 'base64').toString('utf8'));
      return Number.isNaN(endsAtMs) ? 'gone' : endsAtMs;
    }
  },
};

export const csrSigningController: ControllerSpec = {
  name: 'csrsigning',
  reads: [resources.certificateSigningRequests],
  writes: [resources.certificateSigningRequests],
  prepare: (handle) => {
    const requests = handle.informer(resources.certificateSigningRequests);
    const client = handle.writer(resources.certificateSigningRequests);
    return (scope) => {
      const queue = scope.queue(sync, 2);
      const wake = (request: CertificateSigningRequest): void => {
        if (awaitsSignature(request)) queue.add(nameOf(request));
      };
      scope.onChange(requests, { added: wake, updated: wake });
    };

    async function sync(name: string): Promise<void> {
      const request = requests.get(name);
      const signerName = request?.spec?.signerName;
      if (request === undefined || !awaitsSignature(request) || signerName === undefined || !isOurSigner(signerName)) {
        return;
      }
      const usages = request.spec?.usages ?? [];
      // Approved by whomever: the signer looks again.
      const facts = inspect(handle, request);
      const why = typeof facts === 'string' ? facts : objection(signerName, usages, facts);
      if (why !== undefined) {
        await fail(request, why);
        return;
      }
      const { nowMs } = handle.plan();
      const certificate = await handle.deps.signer.sign({
        signerName,
        requestPem: pemOf(request),
        usages,
        notBeforeMs: nowMs - BACKDATE_MS,
        notAfterMs: nowMs + validityMs(request, handle.options.certificateLifetimeMs),
      });
      const status = { ...request.status, certificate: Buffer.from(certificate, 'latin1').toString('base64') };
      await client.update({ ...request, status }, { subresource: 'status' });
      handle.log.info('signed a certificate', { request: name, signer: signerName });
    }

    async function fail(request: CertificateSigningRequest, message: string): Promise<void> {
      const now = timestamp(handle.plan().nowMs);
      const condition = {
        type: 'Failed',
        status: 'True',
        reason: 'SignerValidationFailure',
        message,
        lastUpdateTime: now,
        lastTransitionTime: now,
      };
      const status = { ...request.status, conditions: [...(request.status?.conditions ?? []), condition] };
      await client.update({ ...request, status }, { subresource: 'status' });
      handle.log.warn('refused to sign an approved request', { request: nameOf(request), why: message });
    }
  },
};

export const csrCleanerController: ControllerSpec = {
  name: 'csrcleaner',
  reads: [resources.certificateSigningRequests],
  writes: [resources.certificateSigningRequests],
  prepare: (handle) => {
    const requests = handle.informer(resources.certificateSigningRequests);
    const client = handle.writer(resources.certificateSigningRequests);
    return (scope) => {
      const queue = scope.queue(async (name) => {
        const request = requests.get(name);
        if (request === undefined) return;
        const inMs = cleanInMs(request, handle.plan().nowMs);
        if (inMs > 0) {
          queue.addAfter(name, inMs);
          return;
        }
        try {
          const uid = request.metadata?.uid;
          await client.delete(name, undefined, uid === undefined ? {} : { preconditions: { uid } });
        } catch (error) {
          if (!isApiError(error, 'NotFound')) throw error;
        }
      }, 1);
      const wake = (request: CertificateSigningRequest): void => queue.add(nameOf(request));
      scope.onChange(requests, { added: wake, updated: wake });
    };
  },
};
