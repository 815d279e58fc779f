/**
 * Rejects new externalIPs, which would let a service intercept traffic. Source:
 * plugin/pkg/admission/network/denyserviceexternalips.
 */
import type { Service } from '../../../api/generated/core/v1.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor } from '../subject.ts';

export const denyServiceExternalIps: AdmissionPlugin = {
  name: 'DenyServiceExternalIPs',
  resources: ['services'],
  validate(request) {
    const isWrite = request.operation === 'CREATE' || request.operation === 'UPDATE';
    if (!isWrite || !isFor(request, '', 'services') || request.subresource !== '') return;
    const now = (request.object as Service).spec?.externalIPs ?? [];
    const before = new Set((request.old as Service | undefined)?.spec?.externalIPs);
    if (now.some((address) => !before.has(address))) {
      throw forbid(request, 'Use of external IPs is denied by admission control');
    }
  },
};
