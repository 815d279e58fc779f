import type { CertificateSigner } from '../api/kinds/identity/certificatesigningrequests/signer-port.ts';
import { CodedError } from '../base/errors.ts';
import type { Authority } from './certificate.ts';
import { deriveKubeletAuthority } from './kubelet-authority.ts';
import { parseSigningRequest, signRequest } from './signing-request.ts';
import type { KeyUsage } from './subject-names.ts';

const EXTENDED: ReadonlyMap<string, 'server' | 'client'> = new Map([
  ['server auth', 'server'],
  ['client auth', 'client'],
]);
const KEY_USAGES: ReadonlyMap<string, KeyUsage> = new Map([
  ['digital signature', 'digitalSignature'],
  ['signing', 'digitalSignature'],
  ['key encipherment', 'keyEncipherment'],
]);

/**
 * Signs certificates for the signers of Kubernetes. Serving certificates of kubelets are signed by the authority that
 * is derived for them. All other certificates are signed by the cluster's authority, as by OKD's `openshift-signer`.
 */
export function createCertificateSigner(authority: Authority): CertificateSigner {
  let derived: Promise<Authority> | undefined;
  return {
    inspect: (requestPem) => {
      const { publicKey, refusal, ...facts } = parseSigningRequest(requestPem);
      return facts;
    },
    sign: async (order) => {
      const usages: ('server' | 'client')[] = [];
      const keyUsages: KeyUsage[] = [];
      for (const usage of order.usages) {
        const extended = EXTENDED.get(usage);
        const key = KEY_USAGES.get(usage);
        if (extended !== undefined) usages.push(extended);
        else if (key !== undefined) keyUsages.push(key);
        else throw new CodedError('invalid-request', `usage "${usage}" is not signed for ${order.signerName}`);
      }
      if (order.authority === 'kubelet') derived ??= deriveKubeletAuthority(authority);
      const signing = order.authority === 'kubelet' ? await derived : undefined;
      return signRequest(signing ?? authority, parseSigningRequest(order.requestPem), {
        usages,
        keyUsages: keyUsages.length === 0 ? ['digitalSignature'] : keyUsages,
        validity: { notBeforeMs: order.notBeforeMs, notAfterMs: order.notAfterMs },
      });
    },
  };
}
