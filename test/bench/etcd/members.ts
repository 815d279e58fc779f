/** Clusters of real processes on loopback with TLS: this project's store and Debian's etcd, with the same flags. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Certificates, connect, DEBIAN_ETCD } from '../../store/harness.ts';
import { freePort } from '../../support/ports.ts';

export type Kind = 'ours' | 'etcd';
export const KINDS: readonly Kind[] = ['etcd', 'ours'];

const ROOT = join(import.meta.dirname, '../../..');
const START_MS = 30_000;

export interface ClusterOptions {
  readonly kind: Kind;
  readonly members: number;
  /** Directory for the data directories. */
  readonly directory: string;
  readonly certificates: Certificates;
  /** Directory for `--cpu-prof` of each member of this project. */
  readonly profile?: string | undefined;
  /** Path of the packaged executable; undefined runs the sources. */
  readonly executable?: string | undefined;
}

/** The packaged executable, if it has been built. */
export function packaged(): string | undefined {
  const path = join(ROOT, 'dist/hyperedge-linux-x64');
  return existsSync(path) ? path : undefined;
}

export class BenchCluster {
  readonly #options: ClusterOptions;
  readonly #ports: ReadonlyArray<{ readonly client: number; readonly peer: number }>;
  #children: ChildProcess[] = [];

  private constructor(options: ClusterOptions, ports: ReadonlyArray<{ client: number; peer: number }>) {
    this.#options = options;
    this.#ports = ports;
  }

  static async start(options: ClusterOptions): Promise<BenchCluster> {
    const ports: Array<{ client: number; peer: number }> = [];
    for (let i = 0; i < options.members; i += 1) ports.push({ client: await freePort(), peer: await freePort() });
    const cluster = new BenchCluster(options, ports);
    await cluster.start();
    return cluster;
  }

  get kind(): Kind {
    return this.#options.kind;
  }

  get endpoints(): string[] {
    return this.#ports.map(({ client }) => `https://127.0.0.1:${client}`);
  }

  get pids(): number[] {
    return this.#children.map(({ pid }) => pid ?? 0);
  }

  get dataDirectories(): string[] {
    return this.#ports.map((_, i) => join(this.#options.directory, `${this.kind}-${i}`));
  }

  /** Starts all members on existing data. Resolves with the milliseconds until all respond to a linearizable read. */
  async start(): Promise<number> {
    const began = performance.now();
    this.#children = this.#ports.map((_, i) => this.#spawn(i));
    const { certificates } = this.#options;
    await Promise.all(
      this.endpoints.map(async (endpoint) => {
        const store = connect(endpoint, certificates);
        try {
          await store.ping(START_MS);
        } finally {
          await store.close();
        }
      }),
    );
    return performance.now() - began;
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.#children.map(
        (child) =>
          new Promise<void>((resolve) => {
            if (child.exitCode !== null || child.signalCode !== null) resolve();
            child.once('close', () => resolve());
            child.kill('SIGTERM');
          }),
      ),
    );
    this.#children = [];
  }

  async remove(): Promise<void> {
    await this.stop();
    await Promise.all(this.dataDirectories.map((path) => rm(path, { recursive: true, force: true })));
  }

  #spawn(i: number): ChildProcess {
    const { kind, profile, executable } = this.#options;
    const args = this.#flags(i);
    const node = [
      ...(profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]),
      join(ROOT, 'src/main.ts'),
    ];
    const [file, before]: [string, string[]] =
      kind === 'etcd'
        ? [DEBIAN_ETCD, []]
        : executable === undefined
          ? [process.execPath, [...node, 'etcd']]
          : [executable, ['etcd']];
    const child = spawn(file, [...before, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.on('data', (chunk) => {
      stderr = `${stderr}${chunk}`.slice(-4000);
    });
    child.once('close', (code) => {
      if (code !== 0 && code !== null) process.stderr.write(`${kind} ended with ${code}: ${stderr}\n`);
    });
    return child;
  }

  #flags(i: number): string[] {
    const { directory, certificates, kind } = this.#options;
    const pki = (name: string): string => join(certificates.directory, name);
    const own = this.#ports[i] as { client: number; peer: number };
    const peer = (port: number): string => `https://127.0.0.1:${port}`;
    const flags = {
      name: `m${i}`,
      'data-dir': join(directory, `${kind}-${i}`),
      'listen-client-urls': `https://127.0.0.1:${own.client}`,
      'advertise-client-urls': `https://127.0.0.1:${own.client}`,
      'listen-peer-urls': peer(own.peer),
      'initial-advertise-peer-urls': peer(own.peer),
      'initial-cluster': this.#ports.map((each, at) => `m${at}=${peer(each.peer)}`).join(),
      'client-cert-auth': 'true',
      'trusted-ca-file': pki('ca.crt'),
      'cert-file': pki('server.crt'),
      'key-file': pki('server.key'),
      'peer-client-cert-auth': 'true',
      'peer-trusted-ca-file': pki('ca.crt'),
      'peer-cert-file': pki('server.crt'),
      'peer-key-file': pki('server.key'),
      'log-level': 'error',
    };
    return Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  }
}

/** Total usage of the processes of a cluster. */
export async function usage(pids: readonly number[]): Promise<{
  readonly cpuSeconds: number;
  readonly written: number;
  readonly rss: number;
  readonly pss: number;
}> {
  const total = { cpuSeconds: 0, written: 0, rss: 0, pss: 0 };
  for (const pid of pids) {
    const read = (name: string): Promise<string> => readFile(`/proc/${pid}/${name}`, 'latin1');
    const stat = (await read('stat')).split(') ')[1]?.split(' ') ?? [];
    total.cpuSeconds += (Number(stat[11]) + Number(stat[12])) / 100;
    total.written += Number(/^write_bytes: (\d+)/m.exec(await read('io'))?.[1]);
    const rollup = await read('smaps_rollup');
    total.rss += Number(/^Rss:\s+(\d+)/m.exec(rollup)?.[1]) * 1024;
    total.pss += Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1]) * 1024;
  }
  return total;
}
