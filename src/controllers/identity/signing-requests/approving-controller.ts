/**
 * Approves kubelet client and serving certificate requests according to the rules of
 * controllers/identity/signing-requests.
 */

import type { CertificateSigningRequest } from '../../../api/generated/certificates/v1.ts';
import type { Node, Secret } from '../../../api/generated/core/v1.ts';
import { isOurSigner, NODE_PREFIX, SIGNER } from '../../../api/kinds/identity/certificatesigningrequests/policy.ts';
import type { CertificateRequestFacts } from '../../../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import {
  APPROVED_ANNOTATION,
  PROTECTED_ANNOTATIONS,
  SOURCE_EXTRA,
} from '../../../api/kinds/nodes/nodes/serving-addresses.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import { timestamp } from '../../../base/times.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { bootstrapTokenId, isPending, isReady, planApproval } from './approval.ts';
import { inspect, nameOf } from './requests-controller.ts';
import { EVIDENCE, servingEvidence } from './serving-evidence-controller.ts';

/** Permission that a requester needs for the automatic approval of a kind of request. */
const creationOf = (subresource: string) => ({
  resourceAttributes: {
    group: 'certificates.k8s.io',
    version: '*',
    resource: 'certificatesigningrequests',
    verb: 'create',
    subresource,
  },
});

export const csrApprovingController: ControllerSpec = {
  name: 'csrapproving',
  reads: [resources.certificateSigningRequests, ...EVIDENCE.reads],
  writes: [resources.certificateSigningRequests, resources.secrets, resources.nodes, ...EVIDENCE.writes],
  uses: ['signer', 'accessReview', ...EVIDENCE.uses],
  prepare: (handle) => {
    const requests = handle.informer(resources.certificateSigningRequests);
    const nodes = handle.informer(resources.nodes);
    const client = handle.writer(resources.certificateSigningRequests);
    const secrets = handle.writer(resources.secrets);
    const evidenceFor = servingEvidence(handle);
    return (scope) => {
      const queue = scope.queue(sync, 2);
      const wake = (request: CertificateSigningRequest): void => {
        if (isPending(request)) queue.add(nameOf(request));
      };
      scope.onChange(requests, { added: wake, updated: wake });
      // Changes of nodes queue all requests: a serving request may arrive before its Node or before a declared address,
      // and a bootstrap request may arrive before its Node has become NotReady.
      const wakeAll = (): void => {
        for (const request of requests.list()) wake(request);
      };
      scope.onChange(nodes, {
        added: wakeAll,
        deleted: wakeAll,
        updated: (node, old) => {
          const differs = PROTECTED_ANNOTATIONS.some(
            (name) => node.metadata?.annotations?.[name] !== old.metadata?.annotations?.[name],
          );
          if (differs || isReady(node) !== isReady(old)) wakeAll();
        },
      });
    };

    async function sync(name: string): Promise<void> {
      const request = requests.get(name);
      if (request === undefined || !isPending(request) || !isOurSigner(request.spec?.signerName)) return;
      const facts = inspect(handle, request);
      if (typeof facts === 'string') return;
      const tokenId = bootstrapTokenId(request.spec?.username);
      const nodeName = facts.commonName.startsWith(NODE_PREFIX) ? facts.commonName.slice(NODE_PREFIX.length) : '';
      const node = nodes.get(nodeName);
      const plan = planApproval(
        {
          request,
          facts,
          node,
          evidence: await evidenceFor(
            request.spec?.extra?.[SOURCE_EXTRA]?.[0],
            request.spec?.signerName === SIGNER.kubeletServing,
            nodeName,
          ),
          tokenEndsAtMs: tokenId === undefined ? undefined : await tokenEnd(tokenId),
        },
        handle.plan().nowMs,
      );
      if (plan.kind === 'ignore') {
        const isServing = request.spec?.signerName === SIGNER.kubeletServing;
        const note = { request: name, why: plan.why };
        // This is logged at the default level: until an administrator approves the request, logs, exec and port-forward
        // of the node fail.
        if (isServing && node !== undefined) handle.log.info('serving certificate requires manual approval', note);
        else handle.log.v(2, 'certificate signing request requires manual approval', note);
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
      if (request.spec?.signerName === SIGNER.kubeletServing && node !== undefined) await record(node, facts);
      await approve(request, plan.message);
    }

    async function record(node: Node, { dnsNames, ipAddresses }: CertificateRequestFacts): Promise<void> {
      const names = [...dnsNames, ...ipAddresses].join(',');
      if (node.metadata?.annotations?.[APPROVED_ANNOTATION] === names) return;
      await handle.writer(resources.nodes).patch(node.metadata?.name ?? '', undefined, 'merge', {
        metadata: { annotations: { [APPROVED_ANNOTATION]: names } },
      });
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

    function mayCreate(request: CertificateSigningRequest, subresource: string): Promise<boolean> {
      const { username: name = '', uid, groups = [], extra } = request.spec ?? {};
      const more = { ...(uid === undefined ? {} : { uid }), ...(extra === undefined ? {} : { extra }) };
      return handle.use('accessReview')({ name, groups, ...more }, creationOf(subresource));
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
