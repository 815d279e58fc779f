/** Two API servers: upstream's on upstream's etcd, and this project's on its own store. */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createAuthority, issue, lifetimeFrom } from '../../../src/pki/index.ts';
import { Connection } from '../../differential/exchange.ts';
import { freePort } from '../../support/ports.ts';

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));

/** Feature gates that later versions of Kubernetes have locked to true. */
const FEATURES = [
  'CSIServiceAccountToken',
  'CSIStorageCapacity',
  'EphemeralContainers',
  'GenericEphemeralVolume',
  'MixedProtocolLBService',
  'ServiceLBNodePortControl',
  'SizeMemoryBackedVolumes',
  'TTLAfterFinished',
];

export interface Pair {
  readonly ours: Connection;
  readonly upstream: Connection;
  stop(): Promise<void>;
}

type Material = Awaited<ReturnType<typeof material>>;

async function material(directory: string) {
  const day = lifetimeFrom(Date.now(), 1);
  const ca = await createAuthority('differential', day);
  const serving = await issue(ca, {
    subject: { commonName: 'apiserver' },
    usages: ['server'],
    names: { dns: ['localhost'], ips: ['127.0.0.1'] },
    validity: day,
  });
  const admin = await issue(ca, {
    subject: { commonName: 'admin', organizations: ['system:masters'] },
    usages: ['client'],
    validity: day,
  });
  const signer = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const files = {
    'apiserver.crt': serving.certPem,
    'apiserver.key': serving.keyPem,
    'ca.crt': ca.certPem,
    'signer.key': signer.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
    'signer.crt': signer.publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text, { mode: 0o600 });
  return { ca, admin };
}

class Processes {
  readonly #directory: string;
  readonly #running: { child: ChildProcess; exited: Promise<unknown> }[] = [];

  constructor(directory: string) {
    this.#directory = directory;
  }

  start(name: string, command: readonly string[]): ChildProcess {
    const [file = '', ...args] = command;
    const child = spawn(file, args, { cwd: this.#directory, stdio: ['ignore', 'pipe', 'pipe'] });
    const log = createWriteStream(join(this.#directory, `${name}.log`));
    child.stdout?.pipe(log, { end: false });
    child.stderr?.pipe(log, { end: false });
    this.#running.push({ child, exited: new Promise((resolve) => child.once('close', resolve)) });
    return child;
  }

  async stop(): Promise<void> {
    for (const { child } of this.#running.toReversed()) child.kill('SIGTERM');
    const late = setTimeout(() => {
      for (const { child } of this.#running) child.kill('SIGKILL');
    }, 5_000);
    await Promise.all(this.#running.map(({ exited }) => exited));
    clearTimeout(late);
  }
}

async function startEtcd(processes: Processes, directory: string, name: string, command: readonly string[]) {
  const url = `http://127.0.0.1:${await freePort()}`;
  const peer = `http://127.0.0.1:${await freePort()}`;
  processes.start(`${name}-etcd`, [
    ...command,
    `--listen-client-urls=${url}`,
    `--advertise-client-urls=${url}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    `--data-dir=${join(directory, `${name}-etcd`)}`,
  ]);
  return url;
}

/** Flags for both servers. */
const serving = (directory: string, port: number, etcd: string): string[] => [
  '--bind-address=127.0.0.1',
  `--tls-cert-file=${join(directory, 'apiserver.crt')}`,
  `--tls-private-key-file=${join(directory, 'apiserver.key')}`,
  `--client-ca-file=${join(directory, 'ca.crt')}`,
  `--etcd-servers=${etcd}`,
  `--secure-port=${port}`,
];

const kubeApiserver = (directory: string): string[] => [
  '--advertise-address=192.0.2.10',
  '--allow-privileged=true',
  '--authorization-mode=Node,RBAC',
  '--disable-admission-plugins=ServiceAccount',
  '--service-account-issuer=https://kubernetes.default.svc',
  `--service-account-key-file=${join(directory, 'signer.crt')}`,
  `--service-account-signing-key-file=${join(directory, 'signer.key')}`,
  '--service-cluster-ip-range=10.0.0.0/16',
];

async function startServer(
  processes: Processes,
  directory: string,
  name: string,
  command: readonly string[],
  etcd: string,
  { ca, admin }: Material,
): Promise<Connection> {
  const port = await freePort();
  const child = processes.start(name, [...command, ...serving(directory, port, etcd)]);
  const connection = new Connection({ port, ca: ca.certPem, identity: admin });
  for (let attempt = 0; attempt < 600; attempt++) {
    const code = await connection.send({ method: 'GET', path: '/readyz' }).then(
      (reply) => reply.code,
      () => 0,
    );
    if (code === 200) return connection;
    if (child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${name} does not become ready: see ${join(directory, `${name}.log`)}`);
}

interface Site {
  readonly processes: Processes;
  readonly directory: string;
  readonly pki: Material;
  readonly ours: Connection;
  /** Endpoint of upstream's etcd. */
  readonly etcd: string;
}

/** Starts this project's server, and the other one with `second`. Logs are in a temporary directory until `stop`. */
async function startBeside(second: (site: Site) => Promise<Connection>): Promise<Pair> {
  const directory = await mkdtemp(join(tmpdir(), 'differential-'));
  const processes = new Processes(directory);
  const pki = await material(directory);
  const self = [process.execPath, MAIN];
  try {
    const ourEtcd = await startEtcd(processes, directory, 'ours', [...self, 'etcd', '--unsafe-no-fsync']);
    const etcd = await startEtcd(processes, directory, 'upstream', ['etcd']);
    const ours = await startServer(
      processes,
      directory,
      'ours',
      [...self, 'api', ...kubeApiserver(directory)],
      ourEtcd,
      pki,
    );
    const upstream = await second({ processes, directory, pki, ours, etcd });
    return {
      ours,
      upstream,
      stop: async () => {
        ours.close();
        upstream.close();
        await processes.stop();
        await rm(directory, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await processes.stop();
    throw error;
  }
}

/** `program`: upstream's kube-apiserver. */
export function startPair(program: string): Promise<Pair> {
  return startBeside(({ processes, directory, etcd, pki }) => {
    const gates = `--feature-gates=${FEATURES.map((feature) => `${feature}=true`).join(',')}`;
    return startServer(processes, directory, 'upstream', [program, gates, ...kubeApiserver(directory)], etcd, pki);
  });
}

/**
 * `program`: upstream's apiextensions-apiserver, which only serves custom resources and delegates everything else to
 * this project's server.
 */
export function startExtensionsPair(program: string): Promise<Pair> {
  return startBeside(async ({ processes, directory, etcd, pki, ours }) => {
    const kubeconfig = join(directory, 'kubeconfig');
    await writeFile(kubeconfig, kubeconfigOf(ours.port, pki), { mode: 0o600 });
    const lookUps = ['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'];
    const flags = [...lookUps.map((flag) => `--${flag}=${kubeconfig}`), '--authentication-skip-lookup'];
    return startServer(processes, directory, 'upstream', [program, ...flags], etcd, pki);
  });
}

function kubeconfigOf(port: number, { ca, admin }: Material): string {
  const data = (text: string): string => Buffer.from(text).toString('base64');
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'c', cluster: { server: `https://127.0.0.1:${port}`, 'certificate-authority-data': data(ca.certPem) } },
    ],
    users: [
      { name: 'u', user: { 'client-certificate-data': data(admin.certPem), 'client-key-data': data(admin.keyPem) } },
    ],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  });
}
