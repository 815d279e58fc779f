/** Clusters for upstream's suite: one appliance in a network namespace, or hosts of the lab. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Appliance, run } from '../../e2e/harness.ts';
import { LabCluster } from '../../lab/support/lab-cluster.ts';
import { whyNoNspawn } from '../../lab/support/nspawn-host.ts';
import { REGISTRY, REGISTRY_PORT, REPOSITORIES, type UpstreamPlaces, writeConformanceImages } from './images.ts';
import { writeLayout } from './registry.ts';

const UNPACK_MS = 300_000;
const SERVER = join(import.meta.dirname, 'registry.ts');

export interface ConformanceCluster {
  readonly kubeconfig: string;
  readonly nodes: number;
  /** Data that `--hold` prints. */
  readonly about: Readonly<Record<string, unknown>>;
  /** Starts a program of this machine in the network of a host. Default: the first host. */
  spawnInside(file: string, args: readonly string[], host?: number): ChildProcess;
  stop(): Promise<void>;
}

/** `inLab`: use lab hosts with root file systems of their own, in which drivers find `/var/lib/kubelet`. */
export async function createCluster(hosts: number, inLab: boolean): Promise<ConformanceCluster> {
  return hosts === 1 && !inLab ? createAppliance() : createLab(hosts);
}

/** Registries with the suite's images, one in each host's network. */
export interface ImageRegistries {
  /** Path of the file with the registries for the suite. */
  readonly repositories: string;
  /** Names of images that were pulled so far. */
  readonly pulled: ReadonlySet<string>;
  stop(): Promise<void>;
}

/** Builds the images and serves them on the loopback address of each host. */
export async function serveImages(cluster: ConformanceCluster, from: UpstreamPlaces): Promise<ImageRegistries> {
  const scratch = await mkdtemp(join(tmpdir(), 'he-registry-'));
  const servers: ChildProcess[] = [];
  const pulled = new Set<string>();
  const stop = async (): Promise<void> => {
    for (const server of servers) server.kill('SIGKILL');
    await rm(scratch, { recursive: true, force: true });
  };
  try {
    const [archive, unpacked, layout] = [
      join(scratch, 'images.tar'),
      join(scratch, 'unpacked'),
      join(scratch, 'layout'),
    ];
    await writeConformanceImages(archive, from);
    await mkdir(unpacked);
    const tar = await run('tar', ['-xf', archive, '-C', unpacked], { timeoutMs: UNPACK_MS });
    if (tar.code !== 0) throw new Error(`tar: ${tar.stderr}`);
    await writeLayout(unpacked, layout, REGISTRY);
    for (const each of [archive, unpacked]) await rm(each, { recursive: true });
    for (let host = 0; host < cluster.nodes; host++) {
      const server = cluster.spawnInside(process.execPath, [SERVER, layout, String(REGISTRY_PORT)], host);
      servers.push(server);
      await servingOf(server, (image) => pulled.add(image));
    }
    const repositories = join(scratch, 'repositories.yaml');
    await writeFile(repositories, REPOSITORIES);
    return { repositories, pulled, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Resolves when the registry listens. Each further line names a pulled image. */
function servingOf(server: ChildProcess, onPull: (image: string) => void): Promise<void> {
  const { stdout, stderr } = server;
  if (stdout === null || stderr === null) throw new Error('the registry has no output');
  let errors = '';
  stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text;
  });
  return new Promise((resolve, reject) => {
    createInterface(stdout).on('line', (line) => (line === 'serving' ? resolve() : onPull(line)));
    server.on('error', reject);
    server.on('exit', (code) => reject(new Error(`registry ended with ${code}: ${errors}`)));
  });
}

async function createAppliance(): Promise<ConformanceCluster> {
  const appliance = await Appliance.create();
  try {
    await appliance.start();
  } catch (error) {
    await appliance.stop();
    throw error;
  }
  const { root, kubeconfig, hostPid, holderPid } = appliance;
  return {
    kubeconfig,
    nodes: 1,
    about: { root, kubeconfig, hostPid, holderPid },
    spawnInside: (file, args) => appliance.spawnInside(file, args),
    stop: () => appliance.stop(),
  };
}

/** Every host is a master and a node, as in an installation on three bare hosts. */
async function createLab(hosts: number): Promise<ConformanceCluster> {
  const missing = await whyNoNspawn();
  if (missing !== undefined) throw new Error(missing);
  const lab = await LabCluster.formed({ masters: hosts, nodes: 0 }, 'conformance');
  const first = lab.host(0);
  const kubeconfig = join(first.root, 'etc/origin/master/admin.kubeconfig');
  return {
    kubeconfig,
    nodes: hosts,
    about: { kubeconfig, hosts: lab.hosts.map(({ name, root, pid1 }) => ({ name, root, pid1 })) },
    spawnInside: (file, args, host = 0) =>
      spawn('nsenter', ['-t', String(lab.host(host).pid1), '-n', file, ...args], {
        stdio: ['pipe', 'pipe', 'pipe'],
        env: { ...process.env, KUBECONFIG: kubeconfig },
      }),
    stop: () => lab.stop(),
  };
}
