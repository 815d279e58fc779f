/**
 * Collects secret values for the redaction: from this host's files, its running containers, and the Secrets of the API
 * server.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import type { Secret } from '../../api/generated/core/v1.ts';
import type { KubeObject, ResourceType } from '../../api/meta/object.ts';
import type { ApiClient } from '../../client/index.ts';
import { secretsIn } from '../../support-bundle/core/index.ts';
import { pagesOf } from './cluster.ts';
import { isSecretFile } from './configuration-files.ts';
import { filesBelow } from './files.ts';

const MAX_FILES = 4000;
const MAX_FILE_BYTES = 256 * 1024;
const MAX_VALUES = 60_000;
const MAX_TOTAL = 64 << 20;
/** Keys of Secrets whose values are public. */
const PUBLIC_KEY = /^(?:namespace|username|type|name|server|host|.*\.crt|.*\.pem\.pub|ssh-publickey)$/;

const SECRETS: ResourceType<Secret> = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
};
const OAUTH_CLIENTS: ResourceType<KubeObject> = {
  group: 'oauth.openshift.io',
  version: 'v1',
  kind: 'OAuthClient',
  plural: 'oauthclients',
  namespaced: false,
};

/** A set of secret values. Their number and total size are limited. */
export class SecretValues {
  readonly values = new Set<string>();
  #size = 0;
  /** Whether some values did not fit. These values are only recognized by the name of their field or by their form. */
  full = false;

  add(value: string): void {
    if (value.length < 6 || this.values.has(value)) return;
    if (this.values.size >= MAX_VALUES || this.#size + value.length > MAX_TOTAL) {
      this.full = true;
      return;
    }
    this.values.add(value);
    this.#size += value.length;
    // A value that is base64 is decoded, such as the keys in a kubeconfig. The decoded text is a secret too.
    if (value.length >= 12 && /^[A-Za-z0-9+/]+={0,2}$/.test(value) && value.length % 4 === 0) {
      const decoded = Buffer.from(value, 'base64').toString('utf8');
      if (!decoded.includes('\uFFFD')) this.add(decoded);
    }
  }

  /** Adds the secrets in a text. `whole`: the text itself is a secret. */
  addText(text: string, { whole }: { readonly whole: boolean }): void {
    if (whole) this.add(text);
    for (const key of text.match(/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[^-]+-----END [A-Z0-9 ]*PRIVATE KEY-----/g) ??
      [])
      this.add(key);
    for (const [, user = ''] of text.matchAll(/:\/\/([^/\s@"'<>]{1,512})@/g)) {
      const password = user.slice(user.indexOf(':') + 1);
      this.add(password);
      this.add(decodedUrl(password));
    }
    try {
      for (const document of parseAllDocuments(text)) for (const value of secretsIn(document.toJS())) this.add(value);
    } catch {
      // The text is not a YAML document. The patterns above have been searched in any text.
    }
  }
}

function decodedUrl(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export interface SecretPlaces {
  readonly root: string;
  readonly volumes: string;
  readonly containers: string;
}

/**
 * Adds the secrets in files below the root. Files that cannot be read are skipped, because a bundle cannot contain them
 * either.
 */
export async function secretsOfHost({ root, volumes, containers }: SecretPlaces, found: SecretValues): Promise<void> {
  for (const directory of ['etc/origin', 'etc/etcd', 'etc/sysconfig', 'etc/cni', 'etc/containers']) {
    for (const { path, size } of await filesBelow(join(root, directory), MAX_FILES)) {
      if (size > MAX_FILE_BYTES) continue;
      const text = await textOf(path);
      const isNamed = /(?:^|[-_.])(?:token|password|secret|keyring)(?:\.\w+)?$/.test(basename(path));
      found.addText(text, { whole: isNamed || isSecretFile(path) });
      if (/keyring/.test(path)) for (const [, key = ''] of text.matchAll(/"([^"]{8,})"/g)) found.add(key);
      if (/\.env$|sysconfig/.test(path))
        for (const [, value = ''] of text.matchAll(/^[^#=\n]+=["']?(.{12,}?)["']?$/gm)) addVariable(value, found);
    }
  }
  for (const name of ['.docker/config.json', '.config/containers/auth.json'])
    found.addText(await textOf(join(root, 'root', name)), { whole: false });
  for (const { path, size } of await filesBelow(volumes, MAX_FILES)) {
    // Files of Secrets and service account tokens that are mounted into pods.
    if (
      size <= MAX_FILE_BYTES &&
      /\/volumes\/kubernetes\.io~(?:secret|projected)\//.test(path) &&
      !PUBLIC_KEY.test(basename(path))
    )
      found.addText(await textOf(path), { whole: true });
  }
  for (const { path, size } of await filesBelow(join(containers, 'containers'), MAX_FILES, 1))
    if (basename(path) === 'config.json' && size <= MAX_FILE_BYTES) found.addText(await textOf(path), { whole: false });
}

function addVariable(value: string, found: SecretValues): void {
  if (/^(?=.*\d)(?=.*[A-Za-z])[^\s/]+$/.test(value)) found.add(value);
}

export async function secretsOfCluster(client: ApiClient, found: SecretValues, signal: AbortSignal): Promise<void> {
  for await (const { items } of pagesOf(client, SECRETS, signal)) {
    for (const { data = {}, type } of items)
      for (const [key, value] of Object.entries(data)) {
        if (PUBLIC_KEY.test(key)) continue;
        found.add(value);
        const text = Buffer.from(value, 'base64').toString('utf8');
        found.addText(text, { whole: true });
        if (type === 'kubernetes.io/dockerconfigjson' || type === 'kubernetes.io/dockercfg') addLogins(text, found);
      }
    if (found.full) return;
  }
  for await (const { items } of pagesOf(client, OAUTH_CLIENTS, signal))
    for (const each of items) for (const value of secretsIn(each)) found.add(value);
}

/** Adds the credentials in a registry configuration, whose field `auth` is base64 of USER:PASSWORD. */
function addLogins(text: string, found: SecretValues): void {
  for (const [, auth = ''] of text.matchAll(/"auth"\s*:\s*"([^"]+)"/g)) {
    const login = Buffer.from(auth, 'base64').toString('utf8');
    found.add(auth);
    found.add(login.slice(login.indexOf(':') + 1));
  }
}

async function textOf(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK).catch(() => undefined);
  if (file === undefined) return '';
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_FILE_BYTES), 0, MAX_FILE_BYTES, 0);
    return buffer.toString('utf8', 0, bytesRead);
  } catch {
    return '';
  } finally {
    await file.close();
  }
}
