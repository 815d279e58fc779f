import type { Pod, Secret } from 'kubernetes-types/core/v1';
import type { RegistryAuth } from '../../../core/podplan/port.ts';
import type { PodServices } from './services.ts';

interface AuthEntry {
  readonly username?: string;
  readonly password?: string;
  /** base64 of user:password. */
  readonly auth?: string;
}

/** The credentials of the pod's pull secrets, or else of the node. */
export async function podRegistryAuth(
  { config, credentials }: Pick<PodServices, 'config' | 'credentials'>,
  pod: Pod,
  image: string,
): Promise<RegistryAuth | undefined> {
  const secrets: Secret[] = [];
  for (const reference of pod.spec?.imagePullSecrets ?? []) {
    // Upstream pulls without a secret that is missing: the image may be public.
    const secret = await config.secretObject(pod, reference.name ?? '').catch(() => undefined);
    if (secret !== undefined) secrets.push(secret);
  }
  return registryAuth(secrets, image) ?? credentials?.find(image);
}

/** The credentials for the image's registry, from docker config secrets. Source: pkg/credentialprovider. */
export function registryAuth(secrets: readonly Secret[], image: string): RegistryAuth | undefined {
  const registry = registryOf(image);
  let best: { readonly length: number; readonly auth: RegistryAuth } | undefined;
  for (const secret of secrets) {
    for (const [address, entry] of entriesOf(secret)) {
      const prefix = address.replace(/^https?:\/\//, '').replace(/\/(v[12]\/?)?$/, '');
      const matches =
        prefix === registry ||
        `${registry}/${pathOf(image)}`.startsWith(`${prefix}/`) ||
        (registry === 'docker.io' && prefix === 'index.docker.io');
      const auth = matches ? toAuth(entry) : undefined;
      if (auth !== undefined && (best === undefined || prefix.length > best.length))
        best = { length: prefix.length, auth };
    }
  }
  return best?.auth;
}

function entriesOf(secret: Secret): [string, AuthEntry][] {
  const modern = secret.data?.['.dockerconfigjson'];
  const old = secret.data?.['.dockercfg'];
  try {
    if (modern !== undefined) {
      const parsed = JSON.parse(Buffer.from(modern, 'base64').toString('utf8')) as {
        auths?: Record<string, AuthEntry>;
      };
      return Object.entries(parsed.auths ?? {});
    }
    if (old !== undefined) {
      return Object.entries(JSON.parse(Buffer.from(old, 'base64').toString('utf8')) as Record<string, AuthEntry>);
    }
  } catch {
    // A secret that is not JSON has no credentials in it; the pull then fails with the registry's own words.
  }
  return [];
}

function toAuth(entry: AuthEntry): RegistryAuth | undefined {
  if (entry.auth !== undefined && entry.auth !== '') {
    const text = Buffer.from(entry.auth, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    if (colon > 0) return { username: text.slice(0, colon), password: text.slice(colon + 1) };
  }
  return entry.username === undefined ? undefined : { username: entry.username, password: entry.password ?? '' };
}

function registryOf(image: string): string {
  const [first = ''] = image.split('/');
  return image.includes('/') && /[.:]|^localhost$/.test(first) ? first : 'docker.io';
}

function pathOf(image: string): string {
  const registry = registryOf(image);
  return image.startsWith(`${registry}/`) ? image.slice(registry.length + 1) : image;
}
