/** Deletes certificate signing requests that are finished, expired or were never approved. */
import type { CertificateSigningRequest } from '../../../api/generated/certificates/v1.ts';
import { isApiError } from '../../../api/meta/status.ts';
import { resources } from '../../../api/resources.ts';
import type { ControllerSpec } from '../../framework/framework.ts';
import { cleanInMs } from './approval.ts';
import { nameOf } from './requests-controller.ts';

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
