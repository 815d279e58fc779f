/** Code shared by the three controllers of certificate signing requests. */
import type { CertificateSigningRequest } from '../../../api/generated/certificates/v1.ts';
import type { CertificateRequestFacts } from '../../../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import { messageOf } from '../../../base/errors.ts';
import type { ControllerHandle } from '../../framework/framework.ts';

export const nameOf = (request: CertificateSigningRequest): string => request.metadata?.name ?? '';

/** PEM text in `spec.request`, which is in base64 like all byte fields. */
export function pemOf(request: CertificateSigningRequest): string {
  return Buffer.from(request.spec?.request ?? '', 'base64').toString('latin1');
}

/** Facts of the request in `spec.request`; the error message if the request cannot be parsed. */
export function inspect(
  handle: ControllerHandle,
  request: CertificateSigningRequest,
): CertificateRequestFacts | string {
  try {
    return handle.use('signer').inspect(pemOf(request));
  } catch (error) {
    return messageOf(error);
  }
}
