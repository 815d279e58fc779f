/**
 * Who may approve and sign, and what nobody may ask for.
 * Sources: plugin/pkg/admission/certificates/{approval,signing,subjectrestriction}.
 */
import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1';
import { semanticEqual } from '../../../api/meta/equality.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import type { Authorization } from '../authorization/index.ts';
import type { AdmissionPlugin } from './index.ts';
import { forbid, isFor } from './subject.ts';

const GROUP = 'certificates.k8s.io';
const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';
const PRIVILEGED = 'system:masters';

export function certificates(authorization: Authorization): AdmissionPlugin {
  const mayUseSigner = (user: UserInfo, verb: string, signer: string): boolean => {
    const action = { verb, group: GROUP, resource: 'signers', subresource: '', namespace: '' };
    const domain = signer.slice(0, signer.indexOf('/'));
    return (
      authorization.allows(user, { ...action, name: signer }) ||
      authorization.allows(user, { ...action, name: `${domain}/*` })
    );
  };
  return {
    name: 'Certificates',
    validate(request) {
      if (!isFor(request, GROUP, 'certificatesigningrequests') || request.object === undefined) return;
      const now = request.object as CertificateSigningRequest;
      const old = request.old as CertificateSigningRequest | undefined;
      const signer = (old ?? now).spec?.signerName ?? '';
      if (request.operation === 'CREATE') {
        if (signer === CLIENT_SIGNER && namesPrivilegedGroup(now.spec?.request ?? '')) {
          throw forbid(request, `use of ${CLIENT_SIGNER} signer with system:masters group is not allowed`);
        }
        return;
      }
      if (request.subresource === 'approval') {
        if (semanticEqual(now.status?.conditions, old?.status?.conditions)) return;
        if (!mayUseSigner(request.user, 'approve', signer)) {
          throw forbid(request, `user not permitted to approve requests with signerName ${JSON.stringify(signer)}`);
        }
      } else if (request.subresource === 'status') {
        const same =
          now.status?.certificate === old?.status?.certificate &&
          semanticEqual(now.status?.conditions, old?.status?.conditions);
        if (!same && !mayUseSigner(request.user, 'sign', signer)) {
          throw forbid(request, `user not permitted to sign requests with signerName ${JSON.stringify(signer)}`);
        }
      }
    },
  };
}

/**
 * Whether the request has the words `system:masters` in it, in any of the encodings DER knows for text. Looking for the bytes
 * instead of reading the structure errs on the side of refusal and cannot be led astray by an unusual structure.
 */
function namesPrivilegedGroup(request: string): boolean {
  const pem = Buffer.from(request, 'base64').toString('latin1');
  const body = /-----BEGIN [A-Z ]*CERTIFICATE REQUEST-----([\s\S]*?)-----END/.exec(pem)?.[1] ?? '';
  const der = Buffer.from(body, 'base64').toString('latin1');
  const wide = (bytes: number): string => [...PRIVILEGED].map((letter) => '\0'.repeat(bytes - 1) + letter).join('');
  return [PRIVILEGED, wide(2), wide(4)].some((text) => der.includes(text));
}
