/** Requests a certificate from the cluster's signer. Source: k8s.io/client-go/util/certificate/csr. */
import type { CertificateSigningRequest } from '../../api/generated/certificates/v1.ts';
import { isApiError } from '../../api/meta/status.ts';
import { resources } from '../../api/resources.ts';
import { encodeBase64 } from '../../api/validation/base64.ts';
import { CodedError, ignore } from '../../base/errors.ts';
import type { Clock } from '../../base/time/clock.ts';
import { sleep } from '../../base/time/sleep.ts';
import type { ApiClient } from '../../client/types.ts';

export const CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
export const SERVING_SIGNER = 'kubernetes.io/kubelet-serving';

export interface SignatureOrder {
  readonly signerName: typeof CLIENT_SIGNER | typeof SERVING_SIGNER;
  readonly pem: string;
  /** Digest of key and content. Equal orders share one request. */
  readonly digest: string;
}

export interface SignatureDeps {
  readonly client: ApiClient;
  readonly clock: Clock;
  /** Called once when the request has not been approved after some seconds. */
  readonly onWaiting: (name: string) => void;
  readonly signal: AbortSignal;
}

const POLL_MS = 200;
const SLOW_POLL_MS = 2000;
const WAITING_MS = 5000;

/**
 * Resolves with the PEM certificate; the approval may take any time. Throws CodedError 'denied' with the reason,
 * CodedError 'closed' after an abort, and ApiError.
 */
export async function requestSignature(order: SignatureOrder, deps: SignatureDeps): Promise<string> {
  const { client, clock, signal, onWaiting } = deps;
  const requests = client.resource(resources.certificateSigningRequests);
  const name = `node-csr-${order.digest.slice(0, 32)}`;
  const beganMs = clock.monotonicMs();
  let announced = false;
  for (let request = await submit(); ; ) {
    const { conditions = [], certificate } = request.status ?? {};
    const refusal = conditions.find(({ type }) => type === 'Denied' || type === 'Failed');
    if (refusal !== undefined) {
      throw new CodedError(
        'denied',
        `certificate signing request ${name}: ${refusal.type.toLowerCase()}: ${refusal.message ?? refusal.reason ?? ''}`,
      );
    }
    if (certificate !== undefined && certificate !== '') return atob(certificate);
    const waitedMs = clock.monotonicMs() - beganMs;
    if (waitedMs > WAITING_MS && !announced) {
      announced = true;
      onWaiting(name);
    }
    await sleep(clock, waitedMs > WAITING_MS ? SLOW_POLL_MS : POLL_MS, signal).catch(
      ignore('the signal is checked below'),
    );
    if (signal.aborted) throw new CodedError('closed', `stopped before ${name} was approved`);
    request = await again(request);
  }

  async function submit(): Promise<CertificateSigningRequest> {
    const usage = order.signerName === CLIENT_SIGNER ? 'client auth' : 'server auth';
    try {
      return await requests.create({
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        metadata: { name },
        spec: {
          request: encodeBase64(order.pem),
          signerName: order.signerName,
          usages: ['digital signature', usage],
        },
      });
    } catch (error) {
      if (!isApiError(error, 'AlreadyExists')) throw error;
      return requests.get(name);
    }
  }

  /**
   * Reads the request again. Submits it again if it was deleted, and returns `before` while the server is unavailable.
   */
  async function again(before: CertificateSigningRequest): Promise<CertificateSigningRequest> {
    try {
      return await requests.get(name);
    } catch (error) {
      if (isApiError(error, 'NotFound')) return submit();
      if (isApiError(error, 'ServiceUnavailable')) return before;
      throw error;
    }
  }
}
