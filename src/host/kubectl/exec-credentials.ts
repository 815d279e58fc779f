/**
 * Runs the exec credential plug-in of a kubeconfig and caches its credentials until they expire. Messages are those of
 * k8s.io/client-go/plugin/pkg/client/auth/exec.
 */
import { spawn } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { messageOf } from '../../base/errors.ts';
import type { ClientCredentials } from '../../client/credentials.ts';
import type { ExecConfig } from '../../client/exec-config.ts';
import { ClientError } from '../../kubectl/core/errors.ts';

const MAX_OUTPUT_BYTES = 4 << 20;

const INSTALL_HELP = `

It looks like you are trying to use a client-go credential plugin that is not installed.

To learn more about this feature, consult the documentation available at:
      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins`;

/** Cluster that is passed to plug-ins with `provideClusterInfo`. */
export interface ExecCluster {
  readonly server: string;
  readonly tlsServerName: string | undefined;
  readonly insecure: boolean;
  readonly ca: string | undefined;
  readonly proxyUrl: string | undefined;
}

export interface ExecEnvironment {
  readonly isInputTerminal: boolean;
  now(): number;
}

export interface CredentialSource {
  /** Valid credentials. Simultaneous calls share one run of the plug-in. */
  current(): Promise<ClientCredentials>;
  /** Discards credentials that the server has rejected. The next request runs the plug-in again. */
  refuse(credentials: ClientCredentials): void;
}

type PluginCredentials = Pick<ClientCredentials, 'token' | 'cert' | 'key'>;

/** Credentials from the plug-in, combined with the credentials in the kubeconfig, such as the authority. */
export function execCredentials(
  config: ExecConfig,
  cluster: ExecCluster,
  fixed: ClientCredentials,
  surroundings: ExecEnvironment,
): CredentialSource {
  let running: Promise<ClientCredentials> | undefined;
  let known: ClientCredentials | undefined;
  let expiresMs: number | undefined;
  const read = async (): Promise<ClientCredentials> => {
    const { credentials, expires } = await runPlugin(config, cluster, surroundings);
    known = { ...fixed, ...credentials };
    expiresMs = expires;
    return known;
  };
  return {
    current: async () => {
      if (known !== undefined && (expiresMs === undefined || surroundings.now() <= expiresMs)) return known;
      running ??= read().finally(() => {
        running = undefined;
      });
      return running;
    },
    refuse: (credentials) => {
      if (credentials === known) known = undefined;
    },
  };
}

async function runPlugin(
  config: ExecConfig,
  cluster: ExecCluster,
  { isInputTerminal }: ExecEnvironment,
): Promise<{ readonly credentials: PluginCredentials; readonly expires: number | undefined }> {
  const { apiVersion, interactiveMode, provideClusterInfo } = config;
  if (interactiveMode === 'Always' && !isInputTerminal)
    throw failed('exec plugin cannot support interactive mode: standard input is not a terminal');
  const interactive = interactiveMode !== 'Never' && isInputTerminal;
  const spec = { ...(provideClusterInfo ? { cluster: clusterOf(config, cluster) } : {}), interactive };
  const info = JSON.stringify({ kind: 'ExecCredential', apiVersion, spec });
  const text = await outputOf(config, { KUBERNETES_EXEC_INFO: info }, interactive);
  return statusOf(text, apiVersion);
}

function clusterOf({ clusterConfig }: ExecConfig, cluster: ExecCluster): object {
  const { server, tlsServerName, insecure, ca, proxyUrl } = cluster;
  return {
    server,
    ...(tlsServerName === undefined ? {} : { 'tls-server-name': tlsServerName }),
    ...(insecure ? { 'insecure-skip-tls-verify': true } : {}),
    ...(ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') }),
    ...(proxyUrl === undefined ? {} : { 'proxy-url': proxyUrl }),
    config: clusterConfig ?? null,
  };
}

function outputOf(config: ExecConfig, more: Readonly<Record<string, string>>, interactive: boolean): Promise<string> {
  const { command, args, env } = config;
  const given = Object.fromEntries(env.map(({ name, value }) => [name, value]));
  return new Promise((resolve, reject) => {
    const child = spawn(command, [...args], {
      env: { ...process.env, ...given, ...more },
      stdio: [interactive ? 'inherit' : 'ignore', 'pipe', 'inherit'],
    });
    const chunks: Buffer[] = [];
    let size = 0;
    child.stdout?.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_OUTPUT_BYTES) chunks.push(chunk);
      else {
        child.kill('SIGKILL');
        reject(failed(`exec plugin printed more than ${MAX_OUTPUT_BYTES >> 20} MiB`));
      }
    });
    child.once('error', (error: NodeJS.ErrnoException) => reject(failed(startProblem(config, error))));
    child.once('close', (code) => {
      if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'));
      else reject(failed(`exec: executable ${command} failed with exit code ${code ?? -1}`));
    });
  });
}

function startProblem({ command, installHint }: ExecConfig, error: NodeJS.ErrnoException): string {
  const isPath = command.includes('/');
  if (isPath || error.code !== 'ENOENT') {
    const reason = error.code === 'ENOENT' ? 'no such file or directory' : reasonOf(error);
    return `exec: fork/exec ${command}: ${reason}`;
  }
  return `exec: executable ${command} not found${INSTALL_HELP}${installHint === '' ? '' : `\n\n${installHint}`}`;
}

const reasonOf = (error: NodeJS.ErrnoException): string =>
  error.code === 'EACCES' ? 'permission denied' : messageOf(error);

function statusOf(
  text: string,
  apiVersion: string,
): { readonly credentials: PluginCredentials; readonly expires: number | undefined } {
  let document: Readonly<Record<string, unknown>>;
  try {
    const parsed: unknown = JSON.parse(text);
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) throw new Error('no object');
    document = parsed as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw failed(`decoding stdout: couldn't get version/kind; json parse error: ${messageOf(error)}`);
  }
  if (document['kind'] !== 'ExecCredential')
    throw failed(`decoding stdout: kind is ${JSON.stringify(document['kind'])}; it must be "ExecCredential"`);
  if (document['apiVersion'] !== apiVersion)
    throw failed(
      `exec plugin is configured to use API version ${apiVersion}, plugin returned version ${String(document['apiVersion'])}`,
    );
  const status = document['status'] as Readonly<Record<string, unknown>> | undefined | null;
  if (typeof status !== 'object' || status === null) throw failed("exec plugin didn't return a status field");
  const field = (name: string): string => {
    const value = status[name] ?? '';
    if (typeof value !== 'string') throw failed(`decoding stdout: status.${name} must be a string`);
    return value;
  };
  const [token, cert, key] = [field('token'), field('clientCertificateData'), field('clientKeyData')];
  if (token === '' && cert === '' && key === '') throw failed("exec plugin didn't return a token or cert/key pair");
  if ((cert === '') !== (key === '')) throw failed('exec plugin returned only certificate or key, not both');
  if (cert !== '') checkPair(cert, key);
  if (/[^\x21-\x7e]/.test(token)) throw failed('exec plugin returned a token with spaces or line breaks');
  const expiry = field('expirationTimestamp');
  const expires = expiry === '' ? undefined : Date.parse(expiry);
  if (Number.isNaN(expires)) throw failed(`decoding stdout: status.expirationTimestamp ${expiry} is not a time`);
  return { credentials: { ...(token === '' ? {} : { token }), ...(cert === '' ? {} : { cert, key }) }, expires };
}

function checkPair(cert: string, key: string): void {
  try {
    const isPair = new X509Certificate(cert).checkPrivateKey(createPrivateKey(key));
    if (!isPair) throw new Error('tls: private key does not match public key');
  } catch (error) {
    throw failed(`failed parsing client key/certificate: ${messageOf(error)}`);
  }
}

const failed = (problem: string): ClientError =>
  new ClientError(`Unable to connect to the server: getting credentials: ${problem}`, { isPlain: true });
