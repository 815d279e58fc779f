/** A complete API server on a free port, with TLS, certificates and an in-memory store. */
import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { type RequestOptions, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ImageRegistries } from '../../src/apiserver/computed-resources/image-streams/registry-port.ts';
import type { ConsoleFiles } from '../../src/apiserver/console/console.ts';
import {
  type ApiServer,
  type ApiServerConfig,
  type AuditSettings,
  createApiServer,
  type EncryptionSource,
  type Followed,
  type FollowedCertificates,
  type IdentitySettings,
} from '../../src/apiserver/index.ts';
import { createHttp } from '../../src/apiserver/io/http/index.ts';
import type { HttpPort } from '../../src/apiserver/port.ts';
import type { CreateLogin } from '../../src/apiserver/server/login-port.ts';
import type { ReleaseSource } from '../../src/apiserver/server/release-port.ts';
import { type Log, silentLog } from '../../src/base/log.ts';
import type { Clock } from '../../src/base/time/clock.ts';
import { systemClock, systemRandom } from '../../src/host/process/process.ts';
import { processFacts } from '../../src/kubelet/io/host-facts/index.ts';
import { type Authority, createAuthority, issue, type KeyPair, lifetimeFrom } from '../../src/pki/certificate.ts';
import { createKubeconfig } from '../../src/pki/kubeconfig.ts';
import { parseSigningRequest } from '../../src/pki/signing-request.ts';
import type { Store } from '../../src/store/port.ts';
import type { MemoryStore } from '../conformance/memory-store.ts';
import { openStore } from './stores.ts';

export interface Answer<T = Record<string, unknown>> {
  readonly code: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly bytes: Buffer;
  readonly body: T;
}

export interface CallOptions {
  readonly body?: unknown;
  /** Body that is sent unchanged, with content type `type`. */
  readonly raw?: string | Buffer;
  readonly type?: string;
  readonly headers?: Record<string, string>;
  readonly as?: KeyPair | null;
}

export interface TestServer {
  readonly port: number;
  readonly url: string;
  readonly ca: Authority & KeyPair;
  readonly admin: KeyPair;
  readonly store: MemoryStore;
  readonly server: ApiServer;
  /** PEM of the key that signs service account tokens. */
  readonly tokenKey: string;
  readonly directory: string;
  readonly kubeconfig: string;
  /** A client certificate of this user, created once. */
  user(name: string, ...groups: string[]): Promise<KeyPair>;
  kubeconfigFor(name: string, pair: KeyPair): Promise<string>;
  call<T = Record<string, unknown>>(method: string, path: string, options?: CallOptions): Promise<Answer<T>>;
  /** Stops the server and deletes its files, and closes the store unless the caller owns it. */
  stop(keepStore?: boolean): Promise<void>;
}

const day = lifetimeFrom(Date.now(), 1);

let pki: Promise<{ ca: Authority & KeyPair; serving: KeyPair; admin: KeyPair; kubelet: KeyPair }> | undefined;

async function material() {
  pki ??= (async () => {
    const ca = await createAuthority('test-ca', day);
    const serving = await issue(ca, {
      subject: { commonName: 'kube-apiserver' },
      usages: ['server'],
      names: { dns: ['localhost'], ips: ['127.0.0.1'] },
      validity: day,
    });
    const client = (commonName: string, ...organizations: string[]) =>
      issue(ca, { subject: { commonName, organizations }, usages: ['client'], validity: day });
    return {
      ca,
      serving,
      admin: await client('system:admin', 'system:masters'),
      kubelet: await client('system:kube-apiserver'),
    };
  })();
  return pki;
}

export interface HarnessOptions {
  readonly config?: Partial<ApiServerConfig>;
  readonly store?: Store & Partial<MemoryStore>;
  readonly log?: Log;
  readonly encryption?: EncryptionSource;
  readonly audit?: AuditSettings;
  readonly identities?: Followed<IdentitySettings>;
  readonly certificates?: FollowedCertificates;
  /** Default: the implementation that the product uses. */
  readonly clock?: Clock;
  /** Default: the implementation that the product uses. */
  readonly http?: HttpPort;
  readonly login?: CreateLogin;
  readonly imageRegistries?: ImageRegistries;
  readonly releases?: ReleaseSource;
  readonly loadConsole?: () => ConsoleFiles;
}

export async function startServer(options: HarnessOptions = {}): Promise<TestServer> {
  const { ca, serving, admin, kubelet } = await material();
  const signing = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const tokenKey = signing.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const opened = options.store === undefined ? await openStore() : undefined;
  const store = (options.store ?? opened?.store) as MemoryStore;
  const server = createApiServer({
    store,
    http: options.http ?? createHttp(),
    log: options.log ?? silentLog,
    clock: options.clock ?? systemClock,
    random: systemRandom,
    readSigningRequest: parseSigningRequest,
    processFacts,
    ...(options.encryption === undefined ? {} : { encryption: options.encryption }),
    ...(options.audit === undefined ? {} : { audit: options.audit }),
    ...(options.identities === undefined ? {} : { identities: options.identities }),
    ...(options.certificates === undefined ? {} : { certificates: options.certificates }),
    ...(options.login === undefined ? {} : { login: options.login }),
    ...(options.imageRegistries === undefined ? {} : { imageRegistries: options.imageRegistries }),
    ...(options.releases === undefined ? {} : { releases: options.releases }),
    ...(options.loadConsole === undefined ? {} : { loadConsole: options.loadConsole }),
    config: {
      bindAddress: '127.0.0.1',
      port: 0,
      advertiseAddress: '192.0.2.10',
      serving: { certificate: serving.certPem, key: serving.keyPem },
      clientCa: ca.certPem,
      serviceAccounts: {
        signingKey: tokenKey,
        publicKeys: [signing.publicKey.export({ type: 'spki', format: 'pem' }).toString()],
        issuer: 'https://kubernetes.default.svc',
      },
      kubelet: { certificate: kubelet.certPem, key: kubelet.keyPem, ca: ca.certPem },
      soleWriter: true,
      ...options.config,
    },
  });
  const { port } = await server.start();
  const directory = await mkdtemp(join(tmpdir(), 'apiserver-test-'));
  const url = `https://127.0.0.1:${port}`;
  const kubeconfigFor = async (name: string, pair: KeyPair): Promise<string> => {
    const path = join(directory, `${name.replaceAll(/[^\w-]/g, '_')}.kubeconfig`);
    const client = { certPem: pair.certPem, keyPem: pair.keyPem };
    await writeFile(path, createKubeconfig({ server: url, caPem: ca.certPem, user: name, client }), { mode: 0o600 });
    return path;
  };
  return {
    port,
    url,
    ca,
    admin,
    store,
    server,
    tokenKey,
    directory,
    kubeconfig: await kubeconfigFor('system:admin', admin),
    kubeconfigFor,
    user: (commonName, ...organizations) =>
      issue(ca, { subject: { commonName, organizations }, usages: ['client'], validity: day }),
    call: (method, path, callOptions = {}) => call(port, ca, admin, method, path, callOptions),
    stop: async (keepStore = false) => {
      await server.stop();
      if (!keepStore) await (opened?.close() ?? store.close());
      await rm(directory, { recursive: true, force: true });
    },
  };
}

export function call<T = Record<string, unknown>>(
  port: number,
  ca: KeyPair,
  admin: KeyPair,
  method: string,
  path: string,
  options: CallOptions,
): Promise<Answer<T>> {
  const identity = options.as === undefined ? admin : options.as;
  const payload = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
  const settings: RequestOptions = {
    host: '127.0.0.1',
    port,
    method,
    path,
    ca: ca.certPem,
    ...(identity === null ? {} : { cert: identity.certPem, key: identity.keyPem }),
    agent: false,
    headers: {
      ...(payload === undefined
        ? {}
        : { 'content-type': options.type ?? 'application/json', 'content-length': Buffer.byteLength(payload) }),
      ...options.headers,
    },
  };
  return new Promise((resolve, reject) => {
    const sent = request(settings, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const bytes = Buffer.concat(chunks);
        const text = bytes.toString('utf8');
        let body: unknown;
        try {
          body = JSON.parse(text);
        } catch {
          body = undefined;
        }
        resolve({ code: response.statusCode ?? 0, headers: response.headers, text, bytes, body: body as T });
      });
    });
    sent.on('error', reject);
    sent.end(payload);
  });
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function run(file: string, args: readonly string[], input?: string, timeoutMs = 20_000): Promise<Ran> {
  return new Promise((resolve) => {
    const child = execFile(
      file,
      args,
      { timeout: timeoutMs, env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir() }, maxBuffer: 16 * 1024 * 1024 },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1;
        resolve({ code, stdout, stderr });
      },
    );
    child.stdin?.end(input ?? '');
  });
}
