/**
 * Requests that each built-in signer accepts. Source: the Kubernetes page "Certificates and Certificate Signing
 * Requests", built-in signers.
 */

import { dns1123SubdomainErrors } from '../../../../base/names.ts';
import type { Node } from '../../../generated/core/v1.ts';
import { hostReportOf } from '../../nodes/nodes/host-report.ts';
import type { CertificateRequestFacts } from './signer-port.ts';

export const SIGNER = {
  client: 'kubernetes.io/kube-apiserver-client',
  kubeletClient: 'kubernetes.io/kube-apiserver-client-kubelet',
  kubeletServing: 'kubernetes.io/kubelet-serving',
} as const;

export const NODE_PREFIX = 'system:node:';
const NODES = 'system:nodes';
const MASTERS = 'system:masters';

const CLIENT_USAGES = ['digital signature', 'client auth'];
const SERVER_USAGES = ['digital signature', 'server auth'];
const OPTIONAL_USAGE = 'key encipherment';

/** Limits for RSA keys. Smaller keys are insecure, and larger keys are slow. */
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 8192;

/** Reason why the signer rejects the request; undefined if it accepts it. */
export function rejectionReason(
  signerName: string,
  usages: readonly string[],
  facts: CertificateRequestFacts,
): string | undefined {
  const general = generalObjection(facts);
  if (general !== undefined) return general;
  switch (signerName) {
    case SIGNER.kubeletClient:
      return kubeletClientObjection(usages, facts);
    case SIGNER.kubeletServing:
      return kubeletServingObjection(usages, facts);
    case SIGNER.client:
      return clientObjection(usages, facts);
    default:
      return 'unknown signer';
  }
}

export function isOurSigner(signerName: string | undefined): boolean {
  return signerName !== undefined && Object.values(SIGNER).some((each) => each === signerName);
}

const MASTER_LABEL = 'node-role.kubernetes.io/master';

/**
 * Authority that signs the certificate. Earlier releases have no separate kubelet authority and do not trust its
 * certificates. Therefore the cluster's authority signs serving certificates while a master or the requesting node runs
 * such a release.
 */
export function authorityOf(signerName: string, username: string, nodes: readonly Node[]): 'cluster' | 'kubelet' {
  if (signerName !== SIGNER.kubeletServing) return 'cluster';
  const isOlder = (node: Node): boolean => hostReportOf(node)?.kubeletAuthority === false;
  const decides = ({ metadata }: Node): boolean =>
    metadata?.labels?.[MASTER_LABEL] !== undefined || username === `${NODE_PREFIX}${metadata?.name ?? ''}`;
  return nodes.some((node) => decides(node) && isOlder(node)) ? 'cluster' : 'kubelet';
}

/** Kubelet signer that accepts the request, if any. v1beta1 derived missing signer names this way. */
export function inferredSigner(usages: readonly string[], facts: CertificateRequestFacts): string | undefined {
  if (kubeletClientObjection(usages, facts) === undefined) return SIGNER.kubeletClient;
  return kubeletServingObjection(usages, facts) === undefined ? SIGNER.kubeletServing : undefined;
}

function generalObjection(facts: CertificateRequestFacts): string | undefined {
  if (!facts.signatureValid) return 'the request is not signed with its own key';
  if (facts.requestsCa) return 'the request is for a CA certificate';
  if (facts.keyType === 'other') return 'the key type is not supported';
  if (facts.keyType === 'rsa' && (facts.keyBits < MIN_RSA_BITS || facts.keyBits > MAX_RSA_BITS)) {
    return `an RSA key must have ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits, not ${facts.keyBits}`;
  }
  return undefined;
}

function kubeletClientObjection(usages: readonly string[], facts: CertificateRequestFacts): string | undefined {
  if (facts.organizations.length !== 1 || facts.organizations[0] !== NODES) return `organization must be ${NODES}`;
  if (facts.dnsNames.length + facts.ipAddresses.length > 0) return 'DNS names and IP addresses are not allowed';
  if (facts.emailAddresses.length + facts.uris.length > 0) return 'email addresses and URIs are not allowed';
  if (!isNodeName(facts.commonName)) return `common name must be ${NODE_PREFIX} and the name of a node`;
  return usagesAre(usages, CLIENT_USAGES) ? undefined : `usages must be ${CLIENT_USAGES.join(', ')}`;
}

function kubeletServingObjection(usages: readonly string[], facts: CertificateRequestFacts): string | undefined {
  if (facts.organizations.length !== 1 || facts.organizations[0] !== NODES) return `organization must be ${NODES}`;
  if (facts.dnsNames.length + facts.ipAddresses.length === 0) return 'at least one DNS name or IP address is required';
  if (facts.emailAddresses.length + facts.uris.length > 0) return 'email addresses and URIs are not allowed';
  if (!isNodeName(facts.commonName)) return `common name must be ${NODE_PREFIX} and the name of a node`;
  return usagesAre(usages, SERVER_USAGES) ? undefined : `usages must be ${SERVER_USAGES.join(', ')}`;
}

/**
 * Reports whether the common name contains a valid node name. A name with spaces, slashes or look-alike letters would
 * only imitate a node name.
 */
function isNodeName(commonName: string): boolean {
  const name = commonName.startsWith(NODE_PREFIX) ? commonName.slice(NODE_PREFIX.length) : '';
  return name !== '' && dns1123SubdomainErrors(name).length === 0;
}

const CLIENT_SIGNER_USAGES = new Set(['digital signature', 'key encipherment', 'client auth']);

function clientObjection(usages: readonly string[], facts: CertificateRequestFacts): string | undefined {
  // Admission already rejects this organization with 403; a request restored from a backup has not passed admission.
  if (facts.organizations.includes(MASTERS)) return `organization ${MASTERS} is not allowed`;
  if (!usages.includes('client auth')) return 'usages must include client auth';
  const foreign = usages.find((usage) => !CLIENT_SIGNER_USAGES.has(usage));
  return foreign === undefined ? undefined : `usage ${foreign} is not allowed`;
}

/** Reports whether the usages are exactly the required ones; key encipherment is optional. */
function usagesAre(usages: readonly string[], required: readonly string[]): boolean {
  const given = new Set(usages);
  given.delete(OPTIONAL_USAGE);
  return given.size === required.length && required.every((usage) => given.has(usage));
}
