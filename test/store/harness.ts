/**
 * Real stores for tests: this store in the same process or in a separate one, and Debian's etcd, all over TLS with
 * client certificates.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { access, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { silentLog } from '../../src/base/log.ts';
import type { Clock } from '../../src/base/time/clock.ts';
import { processFacts } from '../../src/kubelet/io/host-facts/index.ts';
import { createEtcdStore, type EtcdStoreOptions } from '../../src/store/client/etcd-store.ts';
import { createSqliteLog } from '../../src/store/disk/index.ts';
import { createEtcdServer, type EtcdServer, type EtcdServerDeps } from '../../src/store/index.ts';
import type { Store } from '../../src/store/port.ts';
import { createRpcListener } from '../../src/wire/grpc/index.ts';
import { freePort } from '../support/ports.ts';

const run = promisify(execFile);

export const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs).unref();
    return { cancel: () => clearTimeout(timer) };
  },
};

export interface Certificates {
  readonly directory: string;
  readonly ca: string;
  readonly server: { readonly cert: string; readonly key: string };
  readonly client: { readonly cert: string; readonly key: string };
}

/** Creates a CA, a server certificate for 127.0.0.1 and a client certificate with openssl in `directory`. */
export async function makeCertificates(directory: string): Promise<Certificates> {
  const file = (name: string): string => join(directory, name);
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const openssl = (...args: string[]): Promise<unknown> => run('openssl', ['req', '-x509', ...ec, ...args]);
  await openssl('-keyout', file('ca.key'), '-out', file('ca.crt'), '-subj', '/CN=test-ca');
  const issue = async (name: string, subject: string, extension: string): Promise<void> => {
    const by = ['-CA', file('ca.crt'), '-CAkey', file('ca.key')];
    const out = ['-keyout', file(`${name}.key`), '-out', file(`${name}.crt`)];
    await openssl(...by, ...out, '-subj', subject, '-addext', extension, '-addext', 'basicConstraints=CA:FALSE');
  };
  await Promise.all([
    issue('server', '/CN=etcd', 'subjectAltName=IP:127.0.0.1,DNS:localhost'),
    issue('client', '/CN=system:etcd-client', 'extendedKeyUsage=clientAuth'),
  ]);
  const read = (name: string): Promise<string> => readFile(file(name), 'utf8');
  return {
    directory,
    ca: await read('ca.crt'),
    server: { cert: await read('server.crt'), key: await read('server.key') },
    client: { cert: await read('client.crt'), key: await read('client.key') },
  };
}

export async function temporaryDirectory(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'hyperedge-etcd-'));
}

export async function remove(directory: string): Promise<void> {
  await rm(directory, { recursive: true, force: true });
}

export interface Running {
  readonly endpoint: string;
  readonly server: EtcdServer;
  readonly fatal: Error[];
}

/** Starts this store in the same process. */
export async function startHere(
  directory: string,
  certificates: Certificates | undefined,
  overrides: Partial<EtcdServerDeps> = {},
  port = 0,
): Promise<Running> {
  const fatal: Error[] = [];
  const tls = certificates === undefined ? {} : { tls: { ...certificates.server, ca: certificates.ca } };
  const server = createEtcdServer({
    storage: createSqliteLog({ directory, log: silentLog }),
    listener: createRpcListener({ host: '127.0.0.1', port, log: silentLog, ...tls }),
    clock,
    log: silentLog,
    name: 'test',
    processFacts,
    clientUrls: ['https://127.0.0.1:2379'],
    onFatal: (error) => fatal.push(error),
    ...overrides,
  });
  const address = await server.start();
  const scheme = certificates === undefined ? 'http' : 'https';
  return { endpoint: `${scheme}://127.0.0.1:${address.port}`, server, fatal };
}

export function connect(
  endpoint: string,
  certificates: Certificates | undefined,
  options: Partial<EtcdStoreOptions> = {},
): Store {
  const tls = certificates === undefined ? {} : { ca: certificates.ca, ...certificates.client };
  return createEtcdStore({ endpoints: [endpoint], log: silentLog, clock, ...tls, ...options });
}

export interface Process {
  readonly endpoint: string;
  readonly child: ChildProcess;
  readonly stderr: () => string;
  /** Resolves with the exit code or signal. */
  readonly exited: Promise<number | string>;
}

const SERVE = fileURLToPath(new URL('./serve.ts', import.meta.url));

/** Starts this store as a separate process. Resolves when it listens. Rejects when it exits before that. */
export function startProcess(directory: string, certificates: Certificates | undefined, port = 0): Promise<Process> {
  const child = spawn(process.execPath, [SERVE, directory, certificates?.directory ?? '', String(port)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  const exited = new Promise<number | string>((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal ?? 'unknown'));
  });
  return new Promise((resolve, reject) => {
    void exited.then((code) => reject(new Error(`etcd process ended with ${code}: ${stderr}`)));
    child.stdout.once('data', (line) => {
      const scheme = certificates === undefined ? 'http' : 'https';
      const endpoint = `${scheme}://127.0.0.1:${String(line).trim()}`;
      resolve({ endpoint, child, stderr: () => stderr, exited });
    });
  });
}

export async function isInstalled(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

export const DEBIAN_ETCD = '/usr/bin/etcd';

/** Starts Debian's etcd as a process. Resolves when it responds. */
export async function startDebianEtcd(
  directory: string,
  { directory: pki }: Certificates,
  more: Readonly<Record<string, string>> = {},
): Promise<{ readonly endpoint: string; stop(): Promise<void> }> {
  const [clientPort, peerPort] = [await freePort(), await freePort()];
  const endpoint = `https://127.0.0.1:${clientPort}`;
  const peer = `http://127.0.0.1:${peerPort}`;
  const flags = {
    name: 'test',
    'data-dir': join(directory, 'debian'),
    'listen-client-urls': endpoint,
    'advertise-client-urls': endpoint,
    'listen-peer-urls': peer,
    'initial-advertise-peer-urls': peer,
    'initial-cluster': `test=${peer}`,
    'client-cert-auth': 'true',
    'trusted-ca-file': join(pki, 'ca.crt'),
    'cert-file': join(pki, 'server.crt'),
    'key-file': join(pki, 'server.key'),
    'log-level': 'error',
    ...more,
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const child = spawn(DEBIAN_ETCD, args, { stdio: 'ignore' });
  const exited = new Promise<void>((resolve) => {
    child.once('close', () => resolve());
  });
  const certificates = await makeReader(pki);
  const store = connect(endpoint, certificates);
  try {
    await store.ping(15_000);
  } finally {
    await store.close();
  }
  return {
    endpoint,
    stop: async () => {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

async function makeReader(directory: string): Promise<Certificates> {
  const read = (name: string): Promise<string> => readFile(join(directory, name), 'utf8');
  const pair = async (name: string) => ({ cert: await read(`${name}.crt`), key: await read(`${name}.key`) });
  return { directory, ca: await read('ca.crt'), server: await pair('server'), client: await pair('client') };
}
