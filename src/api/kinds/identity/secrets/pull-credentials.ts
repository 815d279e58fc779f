/** Registry credentials in image pull secrets. Source: k8s.io/kubernetes/pkg/credentialprovider (keyring.go). */
import type { Secret } from '../../../generated/core/v1.ts';
import { decodeBase64 } from '../../../validation/base64.ts';

export interface PullCredentials {
  readonly username: string;
  readonly password: string;
}

interface Entry {
  readonly username?: string;
  readonly password?: string;
  /** Base64 of `USER:PASSWORD`. */
  readonly auth?: string;
}

/**
 * Credentials for the image from both types of pull secrets. The entry that matches the host, the port and the most
 * path segments is used.
 */
export function pullCredentials(secrets: readonly Secret[], image: string): PullCredentials | undefined {
  const registry = registryOf(image);
  const path = image.startsWith(`${registry}/`) ? image.slice(registry.length + 1) : image;
  let best: { readonly length: number; readonly found: PullCredentials } | undefined;
  for (const secret of secrets)
    for (const [address, entry] of entriesOf(secret)) {
      const prefix = address.replace(/^https?:\/\//, '').replace(/\/(v[12]\/?)?$/, '');
      const found = isMeant(prefix, registry, path) ? toCredentials(entry) : undefined;
      if (found !== undefined && (best === undefined || prefix.length > best.length))
        best = { length: prefix.length, found };
    }
  return best?.found;
}

function isMeant(prefix: string, registry: string, path: string): boolean {
  const slash = prefix.indexOf('/');
  const [host, folder] = slash < 0 ? [prefix, ''] : [prefix.slice(0, slash), prefix.slice(slash + 1)];
  const isHost = matchesHost(host, registry) || (registry === 'docker.io' && host === 'index.docker.io');
  return isHost && (folder === '' || `${path}/`.startsWith(`${folder}/`) || path.startsWith(`${folder}:`));
}

/** Matches host and port. `*` matches one label or a part of it; the number of labels and the port must be equal. */
function matchesHost(pattern: string, registry: string): boolean {
  if (!pattern.includes('*')) return pattern === registry;
  const [own = '', ownPort = ''] = pattern.split(':');
  const [host = '', port = ''] = registry.split(':');
  const labels = own.split('.');
  const given = host.split('.');
  return ownPort === port && labels.length === given.length && labels.every((each, at) => fits(each, given[at] ?? ''));
}

/**
 * Matches a label against a pattern with at most one `*`. A pattern with several `*` matches nothing, because the match
 * could take long.
 */
function fits(pattern: string, label: string): boolean {
  const [before = '', after, ...more] = pattern.split('*');
  if (after === undefined) return pattern === label;
  if (more.length > 0) return false;
  return label.length >= before.length + after.length && label.startsWith(before) && label.endsWith(after);
}

function entriesOf({ data }: Secret): [string, Entry][] {
  const modern = parsed(data?.['.dockerconfigjson']);
  const entries = modern === undefined ? parsed(data?.['.dockercfg']) : modern['auths'];
  if (typeof entries !== 'object' || entries === null) return [];
  return Object.entries(entries).filter(([, each]) => typeof each === 'object' && each !== null);
}

/**
 * Returns the parsed JSON object; undefined for other text. The secret then has no credentials, and the registry
 * reports the failure.
 */
function parsed(text: string | undefined): Record<string, unknown> | undefined {
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(decodeBase64(text) ?? '');
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function toCredentials({ auth, username, password }: Entry): PullCredentials | undefined {
  if (typeof auth === 'string' && auth !== '') {
    const text = decodeBase64(auth) ?? '';
    const colon = text.indexOf(':');
    if (colon > 0) return { username: text.slice(0, colon), password: text.slice(colon + 1) };
  }
  return typeof username === 'string'
    ? { username, password: typeof password === 'string' ? password : '' }
    : undefined;
}

function registryOf(image: string): string {
  const [first = ''] = image.split('/');
  return image.includes('/') && /[.:]|^localhost$/.test(first) ? first : 'docker.io';
}
