import { CodedError } from '../base/errors.ts';
import { type ExecConfig, execConfigOf } from './exec-config.ts';

/**
 * PEM text, or the path of a file with it, which the caller reads. A relative path is relative to the directory of the
 * kubeconfig.
 */
export type PemSource = { readonly data: string } | { readonly file: string };

/** Server and credentials of one context of a kubeconfig. */
export interface ClusterAccess {
  readonly contextName: string;
  readonly server: string;
  readonly tlsServerName?: string;
  readonly insecureSkipTlsVerify?: boolean;
  /** Proxy between this client and the server. */
  readonly proxyUrl?: string;
  readonly ca?: PemSource;
  readonly cert?: PemSource;
  readonly key?: PemSource;
  readonly token?: string;
  readonly tokenFile?: string;
  /** Exec plug-in that prints credentials. It is not used if a token or a certificate is present. */
  readonly exec?: ExecConfig;
  /** Default namespace of the context. */
  readonly namespace?: string;
  /** User to impersonate. */
  readonly impersonate?: { readonly name: string; readonly groups: readonly string[]; readonly uid?: string };
}

type Named = ReadonlyMap<string, Readonly<Record<string, unknown>>>;

/**
 * Interprets a kubeconfig (`v1` Config) that was parsed from YAML. Throws CodedError 'kubeconfig' with the field.
 * `context`: name of the context; default `current-context`. `proxies` and `plugins`: whether `proxy-url` and `exec`
 * are accepted; otherwise they are errors. Source: k8s.io/client-go/tools/clientcmd/api/v1.
 */
export function parseKubeconfig(
  document: unknown,
  options: { readonly context?: string; readonly proxies?: boolean; readonly plugins?: boolean } = {},
): ClusterAccess {
  const config = record(document, 'kubeconfig');
  if (config['kind'] !== undefined && config['kind'] !== 'Config') throw broken('kind', 'must be Config');
  const contextName = options.context ?? text(config['current-context'], 'current-context');
  if (contextName === undefined || contextName === '') throw broken('current-context', 'is empty: name a context');
  const context = lookup(named(config['contexts'], 'contexts', 'context'), contextName, 'contexts');
  const clusterName = text(context['cluster'], `contexts[${contextName}].cluster`) ?? '';
  const cluster = lookup(named(config['clusters'], 'clusters', 'cluster'), clusterName, 'clusters');
  const userName = text(context['user'], `contexts[${contextName}].user`) ?? '';
  const user = userName === '' ? {} : lookup(named(config['users'], 'users', 'user'), userName, 'users');
  const at = { cluster: `clusters[${clusterName}].`, user: `users[${userName}].` };

  const server = text(cluster['server'], `${at.cluster}server`);
  if (server === undefined || !URL.canParse(server)) throw broken(`${at.cluster}server`, 'is not a URL');
  if (!/^https?:$/.test(new URL(server).protocol)) throw broken(`${at.cluster}server`, 'must begin with https://');
  const proxyUrl = text(cluster['proxy-url'], `${at.cluster}proxy-url`) || undefined;
  if (proxyUrl !== undefined && options.proxies !== true)
    throw broken(`${at.cluster}proxy-url`, 'is not supported: remove it');
  const usesPlugins = options.plugins === true;
  for (const field of [...(usesPlugins ? [] : ['exec']), 'auth-provider', 'username']) {
    if (user[field] !== undefined) throw broken(at.user + field, 'is not supported: use a certificate or a token');
  }
  const ca = pem(cluster, 'certificate-authority', at.cluster);
  const cert = pem(user, 'client-certificate', at.user);
  const key = pem(user, 'client-key', at.user);
  if ((cert === undefined) !== (key === undefined)) {
    throw broken(
      `${at.user}client-${cert === undefined ? 'certificate' : 'key'}`,
      'is missing: the client certificate and its key must be given together',
    );
  }
  const tlsServerName = text(cluster['tls-server-name'], `${at.cluster}tls-server-name`);
  const token = text(user['token'], `${at.user}token`);
  const tokenFile = text(user['tokenFile'], `${at.user}tokenFile`);
  const exec = usesPlugins ? execConfigOf(user['exec'], userName, cluster) : undefined;
  const namespace = text(context['namespace'], `contexts[${contextName}].namespace`);
  const impersonate = impersonationOf(user, at.user);
  return {
    contextName,
    server,
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(cluster['insecure-skip-tls-verify'] === true ? { insecureSkipTlsVerify: true } : {}),
    ...(proxyUrl === undefined ? {} : { proxyUrl }),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(token === undefined ? {} : { token }),
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(exec === undefined ? {} : { exec }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(impersonate === undefined ? {} : { impersonate }),
  };
}

/**
 * Merges several kubeconfigs, as for `KUBECONFIG=a:b`. Of entries with the same name, and of several `current-context`
 * fields, the first is used. Source: k8s.io/client-go/tools/clientcmd ClientConfigLoadingRules.
 */
export function mergeKubeconfigs(documents: readonly unknown[]): Record<string, unknown> {
  const merged: Record<string, unknown> = { apiVersion: 'v1', kind: 'Config', preferences: {} };
  for (const document of documents) {
    if (document === null || document === undefined) continue;
    for (const [key, value] of Object.entries(record(document, 'kubeconfig'))) {
      if (Array.isArray(value)) {
        const before = (merged[key] ?? []) as { name?: unknown }[];
        const names = new Set(before.map(({ name }) => name));
        merged[key] = [...before, ...value.filter((entry: { name?: unknown } | null) => !names.has(entry?.name))];
      } else if (merged[key] === undefined || merged[key] === '') merged[key] = value;
    }
  }
  return merged;
}

/**
 * User to impersonate. The fields must not be ignored, because requests would then have the permissions of the user
 * itself.
 */
function impersonationOf(user: Readonly<Record<string, unknown>>, path: string): ClusterAccess['impersonate'] {
  const name = text(user['as'], `${path}as`);
  const uid = text(user['as-uid'], `${path}as-uid`);
  const groups = user['as-groups'] ?? [];
  if (!Array.isArray(groups) || !groups.every((each) => typeof each === 'string'))
    throw broken(`${path}as-groups`, 'must be a list of strings');
  if (user['as-user-extra'] !== undefined) throw broken(`${path}as-user-extra`, 'is not supported: remove it');
  if (name === undefined || name === '') {
    if (groups.length > 0 || uid !== undefined) throw broken(`${path}as`, 'is required with as-groups or as-uid');
    return undefined;
  }
  return { name, groups, ...(uid === undefined ? {} : { uid }) };
}

/** PEM source of a field. As in client-go, `<field>-data` (base64) takes precedence over `<field>` (a file). */
function pem(from: Readonly<Record<string, unknown>>, field: string, path: string): PemSource | undefined {
  const data = text(from[`${field}-data`], `${path}${field}-data`);
  if (data !== undefined && data !== '') {
    const decoded = Buffer.from(data, 'base64').toString('utf8');
    if (!decoded.includes('-----BEGIN ')) throw broken(`${path}${field}-data`, 'is not base64 of PEM');
    return { data: decoded };
  }
  const file = text(from[field], path + field);
  return file === undefined || file === '' ? undefined : { file };
}

function named(list: unknown, field: string, inner: string): Named {
  const entries = new Map<string, Readonly<Record<string, unknown>>>();
  if (list === undefined || list === null) return entries;
  if (!Array.isArray(list)) throw broken(field, 'must be a list');
  for (const [index, each] of list.entries()) {
    const entry = record(each, `${field}[${index}]`);
    const name = text(entry['name'], `${field}[${index}].name`) ?? '';
    // As in client-go, the first of several entries with the same name is used.
    if (!entries.has(name)) entries.set(name, record(entry[inner] ?? {}, `${field}[${name}].${inner}`));
  }
  return entries;
}

function lookup(entries: Named, name: string, field: string): Readonly<Record<string, unknown>> {
  const entry = entries.get(name);
  if (entry === undefined) throw broken(field, `has no entry named ${JSON.stringify(name)}`);
  return entry;
}

function record(value: unknown, field: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw broken(field, 'must be a mapping');
  return value as Readonly<Record<string, unknown>>;
}

function text(value: unknown, field: string): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw broken(field, 'must be a string');
  return value;
}

function broken(field: string, problem: string): CodedError {
  return new CodedError('kubeconfig', `kubeconfig: ${field} ${problem}`);
}
