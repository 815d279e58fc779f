/** Additional data for driver calls: secrets, pod information and tokens. Source: pkg/volume/csi csi_mounter.go. */

import type { Pod, SecretReference } from '../../../api/generated/core/v1.ts';
import type { CSIDriver } from '../../../api/generated/storage/v1.ts';
import { resources } from '../../../api/resources.ts';
import { timestamp } from '../../../base/time/timestamps.ts';
import type { ApiClient } from '../../../client/types.ts';
import type { VolumeRequest } from '../request.ts';
import type { TokenSource } from '../tokens.ts';

type Texts = Readonly<Record<string, string>>;

const DEFAULT_TOKEN_SECONDS = 3600;

export class CsiContext {
  readonly #tokens: Pick<TokenSource, 'issued'>;
  #client: ApiClient | undefined;

  constructor(tokens: Pick<TokenSource, 'issued'>) {
    this.#tokens = tokens;
  }

  connect(client: ApiClient): void {
    this.#client = client;
  }

  async secretOf(reference: SecretReference | undefined): Promise<Texts> {
    if (reference?.name === undefined) return {};
    if (this.#client === undefined) throw new Error('the API server is not available yet');
    const secret = await this.#client.resource(resources.secrets).get(reference.name, reference.namespace);
    return Object.fromEntries(
      Object.entries(secret.data ?? {}).map(([key, base64]) => [key, Buffer.from(base64, 'base64').toString('utf8')]),
    );
  }

  publishSecrets(pod: Pod, { persistent, volume }: VolumeRequest): Promise<Texts> {
    if (persistent !== undefined) return this.secretOf(persistent.spec?.csi?.nodePublishSecretRef);
    const name = volume.csi?.nodePublishSecretRef?.name;
    return this.secretOf(name === undefined ? undefined : { name, namespace: pod.metadata?.namespace ?? '' });
  }

  /** Tokens of the pod's service account for the audiences that the driver requests. */
  async tokens(pod: Pod, object: CSIDriver | undefined): Promise<Texts> {
    const requests = object?.spec.tokenRequests ?? [];
    if (requests.length === 0) return {};
    const tokens: Record<string, object> = {};
    for (const { audience, expirationSeconds } of requests) {
      const { token, expiresAtMs } = await this.#tokens.issued(
        pod,
        audience,
        expirationSeconds ?? DEFAULT_TOKEN_SECONDS,
      );
      const expirationTimestamp = timestamp(expiresAtMs);
      tokens[audience] = { token, expirationTimestamp };
    }
    return { 'csi.storage.k8s.io/serviceAccount.tokens': JSON.stringify(tokens) };
  }
}

/** Whether tokens are passed as secrets instead of volume context, which drivers may log. Source: KEP-5538. */
export const hasTokensInSecrets = (object: CSIDriver | undefined): boolean =>
  (object?.spec as { readonly serviceAccountTokenInSecrets?: boolean } | undefined)?.serviceAccountTokenInSecrets ===
  true;

export function podInfoOf({ metadata, spec }: Pod, ephemeral: boolean): Texts {
  return {
    'csi.storage.k8s.io/pod.name': metadata?.name ?? '',
    'csi.storage.k8s.io/pod.namespace': metadata?.namespace ?? '',
    'csi.storage.k8s.io/pod.uid': metadata?.uid ?? '',
    'csi.storage.k8s.io/serviceAccount.name': spec?.serviceAccountName ?? 'default',
    'csi.storage.k8s.io/ephemeral': String(ephemeral),
  };
}
