/**
 * Restricts approval and signing of certificate requests, and their subjects. Sources:
 * plugin/pkg/admission/certificates/{approval,signing,subjectrestriction}.
 */

import type { CertificateSigningRequest } from '../../../api/generated/certificates/v1.ts';
import { inferredSigner } from '../../../api/kinds/identity/certificatesigningrequests/policy.ts';
import type { CertificateRequestFacts } from '../../../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import { LEGACY_SIGNER } from '../../../api/kinds/identity/certificatesigningrequests/validation.ts';
import { semanticEqual } from '../../../api/meta/equality.ts';
import { fieldError, invalid } from '../../../api/meta/field-error.ts';
import { isSet } from '../../../api/meta/validation.ts';
import type { UserInfo } from '../../../api/registry/definition.ts';
import { CodedError } from '../../../base/errors.ts';
import type { Authorization } from '../../authorization/index.ts';
import type { AdmissionRequest } from '../../pipeline/admission.ts';
import type { AdmissionPlugin } from '../admission.ts';
import { forbid, isFor } from '../subject.ts';

const GROUP = 'certificates.k8s.io';
const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client';
const PRIVILEGED = 'system:masters';

/** Parses a PEM certificate request. Throws a CodedError when it cannot be parsed. */
export type ReadSigningRequest = (
  pem: string,
) => CertificateRequestFacts & { /** Reason to reject the key or signature. */ readonly refusal: string | undefined };

type MayUseSigner = (user: UserInfo, verb: string, signer: string) => boolean;

const signerRights =
  (authorization: Authorization): MayUseSigner =>
  (user, verb, signer) => {
    const action = { verb, group: GROUP, resource: 'signers', subresource: '', namespace: '' };
    const domain = signer.slice(0, signer.indexOf('/'));
    return (
      authorization.allows(user, { ...action, name: signer }) ||
      authorization.allows(user, { ...action, name: `${domain}/*` })
    );
  };

const isForCertificates = (request: AdmissionRequest): boolean =>
  isFor(request, GROUP, 'certificatesigningrequests') && request.object !== undefined;
const requestsOf = (request: AdmissionRequest) => ({
  now: request.object as CertificateSigningRequest,
  old: request.old as CertificateSigningRequest | undefined,
});

export function certificateApproval(authorization: Authorization): AdmissionPlugin {
  const mayUseSigner = signerRights(authorization);
  return {
    name: 'CertificateApproval',
    resources: ['certificatesigningrequests.certificates.k8s.io'],
    validate(request) {
      if (!isForCertificates(request) || request.subresource !== 'approval') return;
      const { now, old } = requestsOf(request);
      if (semanticEqual(now.status?.conditions, old?.status?.conditions)) return;
      const signer = (old ?? now).spec?.signerName ?? '';
      if (!mayUseSigner(request.user, 'approve', signer)) {
        throw forbid(request, `user not permitted to approve requests with signerName ${JSON.stringify(signer)}`);
      }
    },
  };
}

export function certificateSigning(authorization: Authorization): AdmissionPlugin {
  const mayUseSigner = signerRights(authorization);
  return {
    name: 'CertificateSigning',
    resources: ['certificatesigningrequests.certificates.k8s.io'],
    validate(request) {
      if (!isForCertificates(request) || request.subresource !== 'status') return;
      const { now, old } = requestsOf(request);
      const same =
        now.status?.certificate === old?.status?.certificate &&
        semanticEqual(now.status?.conditions, old?.status?.conditions);
      const signer = (old ?? now).spec?.signerName ?? '';
      if (!same && !mayUseSigner(request.user, 'sign', signer)) {
        throw forbid(request, `user not permitted to sign requests with signerName ${JSON.stringify(signer)}`);
      }
    },
  };
}

/**
 * Sets the signer of v1beta1 requests without a signer. Upstream does this in the defaults of the version, not in a
 * plug-in. Source: pkg/apis/certificates/v1beta1/defaults.go.
 */
export function inferSigner(read: ReadSigningRequest): AdmissionPlugin {
  return {
    name: 'CertificateSignerOfBeta',
    resources: ['certificatesigningrequests.certificates.k8s.io'],
    mutate(request) {
      if (!isForCertificates(request) || request.operation !== 'CREATE' || request.kind.version !== 'v1beta1') return;
      const { spec } = requestsOf(request).now;
      if (spec === undefined || isSet(spec.signerName)) return;
      spec.signerName = inferred(read, spec) ?? LEGACY_SIGNER;
    },
  };
}

function inferred(
  read: ReadSigningRequest,
  { request = '', usages }: Partial<CertificateSigningRequest['spec']>,
): string | undefined {
  try {
    return inferredSigner(usages ?? [], read(Buffer.from(request, 'base64').toString('latin1')));
  } catch (error) {
    if (error instanceof CodedError) return undefined;
    throw error;
  }
}

/**
 * Rejects certificate requests that cannot be parsed or signed: the structure must be bounded, the key must have a type
 * and size that signers accept, and the signature must match the key. Upstream does this in validation, not in a
 * plug-in. Source: pkg/apis/certificates/validation (validateCSR).
 */
export function readableRequest(read: ReadSigningRequest): AdmissionPlugin {
  return {
    name: 'CertificateRequestSyntax',
    resources: ['certificatesigningrequests.certificates.k8s.io'],
    validate(request) {
      if (!isForCertificates(request) || request.operation !== 'CREATE' || request.subresource !== '') return;
      const { spec, metadata } = requestsOf(request).now;
      const why = refusalOf(read, spec?.request ?? '');
      if (why === undefined) return;
      const failure = fieldError.invalid('spec.request', spec?.request ?? '', why);
      throw invalid({ group: GROUP, kind: 'CertificateSigningRequest' }, metadata?.name ?? '', [failure]);
    },
  };
}

/** The reason to reject the request; undefined if it is acceptable. */
function refusalOf(read: ReadSigningRequest, request: string): string | undefined {
  try {
    return read(Buffer.from(request, 'base64').toString('latin1')).refusal;
  } catch (error) {
    if (error instanceof CodedError) return error.message;
    throw error;
  }
}

export const certificateSubjectRestriction: AdmissionPlugin = {
  name: 'CertificateSubjectRestriction',
  resources: ['certificatesigningrequests.certificates.k8s.io'],
  validate(request) {
    if (!isForCertificates(request) || request.operation !== 'CREATE' || request.subresource !== '') return;
    const { spec } = requestsOf(request).now;
    if (spec?.signerName === CLIENT_SIGNER && namesPrivilegedGroup(spec.request ?? '')) {
      throw forbid(request, `use of ${CLIENT_SIGNER} signer with system:masters group is not allowed`);
    }
  },
};

/**
 * Reports whether the request contains `system:masters` in any text encoding of DER. The function searches the bytes of
 * the whole request, so an unusual structure cannot hide the name. It may reject too much, but never too little.
 */
function namesPrivilegedGroup(request: string): boolean {
  const pem = Buffer.from(request, 'base64').toString('latin1');
  const body = /-----BEGIN [A-Z ]*CERTIFICATE REQUEST-----([\s\S]*?)-----END/.exec(pem)?.[1] ?? '';
  const der = Buffer.from(body, 'base64').toString('latin1');
  const wide = (bytes: number): string => [...PRIVILEGED].map((letter) => '\0'.repeat(bytes - 1) + letter).join('');
  return [PRIVILEGED, wide(2), wide(4)].some((text) => der.includes(text));
}
