/** The first client certificate of a node, and the kubeconfig that uses it. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { NodeName } from '../../base/brand.ts';
import type { ApiClient } from '../../client/index.ts';
import { CLIENT_SIGNER, requestSignature } from '../../kubelet/index.ts';
import { createKubeconfig, kubeletCertificates, nodeFiles, writeWhole } from '../../pki/index.ts';
import type { Settings } from '../config/settings.ts';
import { balancerUrl } from '../network/balancer-url.ts';
import { systemClock as clock } from '../process/process.ts';
import { certificatesOf } from './discovery.ts';

export interface EnrolContext {
  readonly caPem: string;
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Requests the first client certificate and writes the kubeconfig. Waits for the approval of the request without a time
 * limit. Throws CodedErrors 'denied' and 'closed', and ApiErrors.
 */
export async function enrol(
  client: ApiClient,
  settings: Pick<Settings, 'root' | 'nodeName' | 'ports'>,
  { caPem, note, signal }: EnrolContext,
): Promise<void> {
  const { root, nodeName } = settings;
  const files = nodeFiles(root);
  const certificates = kubeletCertificates(files, 'client', nodeName);
  const pem = await readFile(files.clientCurrent, 'utf8').catch(() => '');
  if ((await certificates.current()) === undefined || !isIssuedBy(pem, caPem, nodeName)) {
    const request = await certificates.request({ dns: [], ips: [] });
    const certificate = await requestSignature(
      { signerName: CLIENT_SIGNER, ...request },
      {
        client,
        clock,
        signal,
        onWaiting: (name) =>
          note(`certificate signing request ${name} waits for its approval: kubectl certificate approve ${name}`),
      },
    );
    await certificates.save(certificate, clock.nowMs());
  }
  await writeWhole(files.clientCa, caPem, { mode: 0o644 });
  await writeNodeKubeconfig(settings, caPem);
}

export async function writeNodeKubeconfig(
  { root, nodeName, ports }: Pick<Settings, 'root' | 'nodeName' | 'ports'>,
  caPem: string,
): Promise<void> {
  // The kubeconfig names the balancer. The balancer reads its first API servers from joined.yaml and requests the
  // others from them.
  const server = balancerUrl({ ports });
  const files = nodeFiles(root);
  const client = { certFile: files.clientCurrent, keyFile: files.clientCurrent };
  const text = createKubeconfig({ server, caPem, user: `system:node:${nodeName}`, client });
  await writeWhole(files.kubeconfig, text, { durable: true });
}

/**
 * Whether a certificate of an earlier join can be used again: it is valid, for this node name, and signed by an
 * authority of this cluster.
 */
function isIssuedBy(pem: string, caPem: string, nodeName: NodeName): boolean {
  try {
    const certificate = new X509Certificate(pem);
    const isOwn = certificate.subject.split('\n').includes(`CN=system:node:${nodeName}`);
    const isValid = certificate.validToDate.getTime() > clock.nowMs();
    return isOwn && isValid && certificatesOf(caPem).some((ca) => certificate.verify(ca.publicKey));
  } catch {
    return false;
  }
}
