/** Signs approved certificate signing requests of the built-in signers. */

import type { CertificateSigningRequest } from '../../../api/generated/certificates/v1.ts';
import {
  authorityOf,
  isOurSigner,
  rejectionReason,
} from '../../../api/kinds/identity/certificatesigningrequests/policy.ts';
import { resources } from '../../../api/resources.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { awaitsSignature, BACKDATE_MS, validityMs } from './approval.ts';
import { inspect, nameOf, pemOf } from './requests-controller.ts';

export const csrSigningController: ControllerSpec = {
  name: 'csrsigning',
  reads: [resources.certificateSigningRequests, resources.nodes],
  writes: [resources.certificateSigningRequests],
  uses: ['signer'],
  prepare: (handle) => {
    const requests = handle.informer(resources.certificateSigningRequests);
    const nodes = handle.informer(resources.nodes);
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
      // Approval does not imply validity, so the signer checks the request again.
      const facts = inspect(handle, request);
      const why = typeof facts === 'string' ? facts : rejectionReason(signerName, usages, facts);
      if (why !== undefined) {
        await fail(request, why);
        return;
      }
      const { nowMs } = handle.plan();
      const certificate = await handle.use('signer').sign({
        signerName,
        authority: authorityOf(signerName, request.spec?.username ?? '', nodes.list()),
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
