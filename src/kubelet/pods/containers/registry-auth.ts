import type { Pod, Secret } from '../../../api/generated/core/v1.ts';
import { pullCredentials } from '../../../api/kinds/identity/secrets/pull-credentials.ts';
import type { RegistryAuth } from '../../../runtime/port.ts';
import type { PodServices } from '../services.ts';

/** Credentials from the pod's pull secrets, or from the node if there are none. */
export async function podRegistryAuth(
  { config, credentials }: Pick<PodServices, 'config' | 'credentials'>,
  pod: Pod,
  image: string,
): Promise<RegistryAuth | undefined> {
  const secrets: Secret[] = [];
  for (const reference of pod.spec?.imagePullSecrets ?? []) {
    // A missing secret is ignored, as upstream does: the image may be public.
    const secret = await config.secretObject(pod, reference.name ?? '').catch(() => undefined);
    if (secret !== undefined) secrets.push(secret);
  }
  return pullCredentials(secrets, image) ?? credentials?.find(image);
}
