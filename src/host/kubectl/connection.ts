/** Finds and reads the kubeconfig, and connects to its cluster. */
import { open, readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { messageOf } from '../../base/errors.ts';
import type { ClientCredentials } from '../../client/credentials.ts';
import { type ClusterAccess, mergeKubeconfigs, type PemSource, parseKubeconfig } from '../../client/kubeconfig.ts';
import { parseGoDuration } from '../../kubectl/core/durations.ts';
import { ClientError } from '../../kubectl/core/errors.ts';
import type { Flags } from '../../kubectl/core/flags.ts';
import type { Connection, ConnectOptions, KubeconfigFile } from '../../kubectl/port.ts';
import type { CredentialSource } from './exec-credentials.ts';
import { agentFor, agentsFor, httpRequests } from './http-requests.ts';
import { proxyOfEnvironment, proxyOfKubeconfig } from './proxies.ts';
import { simpleYaml } from './simple-yaml.ts';

const MAX_KUBECONFIG_BYTES = 16 << 20;
const IN_CLUSTER = '/var/run/secrets/kubernetes.io/serviceaccount';

export interface KubeconfigPlaces {
  /** Value of the environment variable `KUBECONFIG`. */
  readonly variable: string | undefined;
  /** The administrator's kubeconfig of this host. Only root can read it. */
  readonly hostFile: string;
}

/** Paths of kubeconfigs in the order of their precedence. `isExplicit`: whether a missing file is an error. */
function candidates(
  flag: string | undefined,
  { variable, hostFile }: KubeconfigPlaces,
): { readonly paths: readonly string[]; readonly isExplicit: boolean } {
  if (flag !== undefined && flag !== '') return { paths: [flag], isExplicit: true };
  if (variable !== undefined && variable !== '')
    return { paths: variable.split(':').filter((path) => path !== ''), isExplicit: false };
  return { paths: [join(homedir(), '.kube/config'), hostFile], isExplicit: false };
}

/** Reads and merges the files that exist. Without `$KUBECONFIG`, only the first existing file is read. */
export async function readKubeconfig(flag: string | undefined, places: KubeconfigPlaces): Promise<KubeconfigFile> {
  const { paths, isExplicit } = candidates(flag, places);
  const documents: unknown[] = [];
  let first: string | undefined;
  for (const path of paths) {
    let text: string;
    try {
      text = await readBounded(path);
    } catch (error) {
      if (error instanceof ClientError) throw error;
      const code = (error as NodeJS.ErrnoException).code;
      if (!isExplicit && (code === 'ENOENT' || code === 'EACCES')) continue;
      throw new ClientError(
        `error loading config file "${path}": ${code === 'ENOENT' ? `open ${path}: no such file or directory` : messageOf(error)}`,
      );
    }
    try {
      // The complete parser is loaded only if necessary, because that takes longer than most commands.
      const document: unknown = (simpleYaml(text) ?? { value: (await import('yaml')).parse(text) }).value;
      if (document !== null && (typeof document !== 'object' || Array.isArray(document)))
        throw new Error('must be a mapping with clusters, contexts and users');
      documents.push(absolute(document, dirname(path)));
    } catch (error) {
      throw new ClientError(`error loading config file "${path}": ${messageOf(error).split('\n')[0]}`);
    }
    first ??= path;
    if (places.variable === undefined || places.variable === '') break;
  }
  return { path: first ?? paths[0] ?? '', document: mergeKubeconfigs(documents) };
}

/** Reads a file up to a size limit. Pipes and devices can be read too. */
async function readBounded(path: string): Promise<string> {
  const file = await open(path);
  try {
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of file.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_KUBECONFIG_BYTES)
        throw new ClientError(
          `error loading config file "${path}": is larger than ${MAX_KUBECONFIG_BYTES >> 20} MiB; name a kubeconfig`,
        );
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString('utf8');
  } finally {
    await file.close();
  }
}

const FILE_FIELDS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

/** Makes the paths in a kubeconfig absolute. Relative paths are relative to the directory of the kubeconfig. */
function absolute(document: unknown, directory: string): unknown {
  if (typeof document !== 'object' || document === null) return document;
  const { clusters, users } = document as Record<string, unknown>;
  for (const list of [clusters, users])
    for (const entry of Array.isArray(list) ? list : [])
      for (const holder of [entry?.cluster, entry?.user])
        for (const field of FILE_FIELDS)
          if (typeof holder?.[field] === 'string' && holder[field] !== '' && !isAbsolute(holder[field]))
            holder[field] = join(directory, holder[field]);
  for (const entry of Array.isArray(users) ? users : []) {
    const exec = entry?.user?.exec;
    // A command without a slash stays relative, because it is searched in PATH.
    if (typeof exec?.command === 'string' && exec.command.includes('/') && !isAbsolute(exec.command))
      exec.command = join(directory, exec.command);
  }
  return document;
}

/**
 * Connects to the API server of the flags or the kubeconfig; without both, to the cluster of the pod in which this
 * process runs.
 */
export async function connect({ flags, onWarning }: ConnectOptions, places: KubeconfigPlaces): Promise<Connection> {
  const access = await accessOf(flags, places);
  const fixed = await credentialsOf(flags, access);
  const server = serverOf(flags.text('server'), access);
  const insecure = flags.bool('insecure-skip-tls-verify') || access.insecureSkipTlsVerify === true;
  const tlsServerName = flags.text('tls-server-name') || access.tlsServerName;
  const timeout = flags.text('request-timeout');
  const timeoutMs =
    timeout === '' || timeout === '0' ? undefined : parseGoDuration(/^\d+$/.test(timeout) ? `${timeout}s` : timeout);
  const impersonate =
    flags.text('as') === ''
      ? access.impersonate
      : {
          name: flags.text('as'),
          groups: flags.list('as-group'),
          ...(flags.text('as-uid') === '' ? {} : { uid: flags.text('as-uid') }),
        };
  const headers: Record<string, string | string[]> =
    impersonate === undefined
      ? {}
      : {
          'impersonate-user': impersonate.name,
          ...(impersonate.groups.length === 0 ? {} : { 'impersonate-group': [...impersonate.groups] }),
          ...('uid' in impersonate ? { 'impersonate-uid': impersonate.uid } : {}),
        };
  const proxy =
    access.proxyUrl === undefined
      ? proxyOfEnvironment(new URL(server), process.env)
      : proxyOfKubeconfig(access.proxyUrl);
  const source = await sourceOf(fixed, access, { server, tlsServerName: tlsServerName || undefined, insecure });
  let credentials = await source.current();
  const requests = {
    server,
    credentials,
    source: {
      ...source,
      current: async () => {
        credentials = await source.current();
        return credentials;
      },
    },
    insecure,
    headers,
    timeoutMs,
    onWarning,
    tlsServerName: tlsServerName || undefined,
    ...(proxy === undefined ? {} : { proxy }),
  };
  const client = httpRequests(requests);
  const given = flags.text('namespace');
  return {
    client,
    server,
    namespace: given || access.namespace || 'default',
    namespaceGiven: given !== '',
    credentials: () => credentials,
    headers,
    insecure,
    tlsServerName: tlsServerName || undefined,
    agent: proxy === undefined ? undefined : agentFor(requests, credentials, proxy),
    serve: async (options) => {
      const { serveApiProxy } = await import('./api-proxy.ts');
      const isPlain = proxy === undefined && server.startsWith('http:');
      const agents = agentsFor(requests, proxy);
      const access = async () => {
        const { token } = await requests.source.current();
        const own = { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
        return { headers: own, agent: isPlain ? undefined : agents.of(credentials) };
      };
      return serveApiProxy({ server, access }, options);
    },
    close: () => client.close(),
  };
}

/** Source of credentials: the kubeconfig and the flags, or the exec plug-in of the user. */
async function sourceOf(
  fixed: ClientCredentials,
  { exec, proxyUrl }: ClusterAccess,
  cluster: { readonly server: string; readonly tlsServerName: string | undefined; readonly insecure: boolean },
): Promise<CredentialSource> {
  // As in client-go, the plug-in is not used if a token or a certificate is given.
  if (exec === undefined || fixed.token !== undefined || fixed.cert !== undefined)
    return { current: async () => fixed, refuse: () => {} };
  const { execCredentials } = await import('./exec-credentials.ts');
  const surroundings = { isInputTerminal: process.stdin.isTTY === true, now: () => Date.now() };
  return execCredentials(exec, { ...cluster, ca: fixed.ca, proxyUrl }, fixed, surroundings);
}

/** URL of the API server. Throws ClientError if it is not an HTTP or HTTPS URL. */
function serverOf(flag: string, access: ClusterAccess): string {
  const where = flag === '' ? 'kubeconfig: server of the cluster' : '--server';
  // As in kubectl, an address without a scheme uses HTTPS if an authority or a client certificate is configured,
  // otherwise HTTP.
  const text = flag === '' || /^[a-z]+:\/\//i.test(flag) ? flag || access.server : `${schemeOf(access)}://${flag}`;
  if (!URL.canParse(text) || !/^https?:\/\//i.test(text))
    throw new ClientError(`${where}: ${JSON.stringify(text)} is not a URL; use https://HOST:PORT`);
  if (new URL(text).username !== '')
    throw new ClientError(`${where}: must not contain a user name; use a token or a client certificate`);
  return text;
}

const schemeOf = ({ ca, cert }: ClusterAccess): string => (ca === undefined && cert === undefined ? 'http' : 'https');

async function accessOf(flags: Flags, places: KubeconfigPlaces): Promise<ClusterAccess> {
  const { document } = await readKubeconfig(flags.text('kubeconfig') || undefined, places);
  const current = document['current-context'];
  if (current !== undefined && current !== null && typeof current !== 'string')
    throw new ClientError('kubeconfig: current-context must be a string; quote the name');
  const context = flags.text('context') || current || '';
  if (context === '' && document['contexts'] === undefined) {
    const inside = await inClusterAccess();
    if (inside !== undefined) return inside;
    const server = flags.text('server');
    if (server !== '') return { contextName: '', server };
    throw new ClientError(
      'no kubeconfig was found: set KUBECONFIG or --kubeconfig; on a master, root uses /etc/origin/master/admin.kubeconfig',
    );
  }
  try {
    return parseKubeconfig(withNames(document, flags, context), { context, proxies: true, plugins: true });
  } catch (error) {
    throw new ClientError(messageOf(error));
  }
}

/** The kubeconfig with `--cluster` and `--user` in place of the cluster and user of the context. */
function withNames(document: Readonly<Record<string, unknown>>, flags: Flags, context: string): unknown {
  const cluster = flags.text('cluster');
  const user = flags.text('user');
  if (cluster === '' && user === '') return document;
  const contexts = document['contexts'];
  if (!Array.isArray(contexts)) return document;
  return {
    ...document,
    contexts: contexts.map((entry: { name?: string; context?: object } | null) =>
      entry?.name !== context
        ? entry
        : {
            ...entry,
            context: { ...entry.context, ...(cluster === '' ? {} : { cluster }), ...(user === '' ? {} : { user }) },
          },
    ),
  };
}

/** Access with the service account of the pod in which this process runs; undefined outside of a pod. */
async function inClusterAccess(): Promise<ClusterAccess | undefined> {
  const host = process.env['KUBERNETES_SERVICE_HOST'];
  const port = process.env['KUBERNETES_SERVICE_PORT'];
  if (host === undefined || port === undefined) return undefined;
  const namespace = await readFile(join(IN_CLUSTER, 'namespace'), 'utf8').catch(() => undefined);
  if (namespace === undefined) return undefined;
  return {
    contextName: 'in-cluster',
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca: { file: join(IN_CLUSTER, 'ca.crt') },
    tokenFile: join(IN_CLUSTER, 'token'),
    namespace: namespace.trim(),
  };
}

async function credentialsOf(flags: Flags, access: ClusterAccess): Promise<ClientCredentials> {
  const source = (flag: string, own: PemSource | undefined): PemSource | undefined =>
    flags.text(flag) === '' ? own : { file: flags.text(flag) };
  const token =
    flags.text('token') ||
    access.token ||
    (access.tokenFile === undefined ? undefined : (await text({ file: access.tokenFile })).trim());
  const parts = {
    ca: source('certificate-authority', access.ca),
    cert: source('client-certificate', access.cert),
    key: source('client-key', access.key),
  };
  const read = await Promise.all(
    Object.entries(parts).map(async ([name, from]) => (from === undefined ? [] : [[name, await text(from)]])),
  );
  const pems = Object.fromEntries(read.flat());
  checkPems(pems);
  if (token !== undefined && /[^\x21-\x7e]/.test(token))
    throw new ClientError('token: contains spaces, line breaks or other characters that a token cannot have');
  return { ...pems, ...(token === undefined || token === '' ? {} : { token }) };
}

const PEM_FIELDS = { ca: 'certificate-authority', cert: 'client-certificate', key: 'client-key' } as const;

/** Checks the PEM texts, so that an error names the field. OpenSSL's errors do not. */
function checkPems(pems: Readonly<Record<string, string>>): void {
  for (const [name, field] of Object.entries(PEM_FIELDS)) {
    const pem = pems[name];
    if (pem !== undefined && !/-----BEGIN [A-Z ]+-----[\s\S]+-----END [A-Z ]+-----/.test(pem))
      throw new ClientError(
        `${field}: is not PEM; use the file or base64 data of a ${name === 'key' ? 'key' : 'certificate'}`,
      );
  }
}

async function text(source: PemSource): Promise<string> {
  if ('data' in source) return source.data;
  try {
    return await readFile(source.file, 'utf8');
  } catch (error) {
    throw new ClientError(`unable to read ${source.file}: ${messageOf(error)}`);
  }
}
