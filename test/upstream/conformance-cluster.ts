/** Clusters that upstream's suite runs against: one appliance in a network namespace, or hosts of the lab. */
import { type ChildProcess, spawn } from 'node:child_process';
import { copyFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Appliance } from '../e2e/harness.ts';
import { LabCluster } from '../lab/lab-cluster.ts';
import { whyNoNspawn } from '../lab/nspawn-host.ts';
import { REPOSITORIES, type UpstreamPlaces, writeConformanceImages } from './conformance-images.ts';

const IMPORT_MS = 300_000;
const ARCHIVE = 'root/images.tar';

export interface ConformanceCluster {
  readonly kubeconfig: string;
  readonly nodes: number;
  /** What `--hold` prints. */
  readonly about: Readonly<Record<string, unknown>>;
  /** Starts a program of this machine in the network of a host. */
  spawnInside(file: string, args: readonly string[]): ChildProcess;
  /** Writes the suite's images with `write` and imports them into the store of each host. */
  importImages(write: (archive: string) => Promise<void>): Promise<void>;
  /** A directory that goes with the cluster. */
  readonly scratch: string;
  stop(): Promise<void>;
}

/** `inLab`: with root file systems of their own, where drivers find `/var/lib/kubelet`. */
export async function createCluster(hosts: number, inLab: boolean): Promise<ConformanceCluster> {
  return hosts === 1 && !inLab ? createAppliance() : createLab(hosts);
}

/** Writes the list of repositories for the suite; returns its path. */
export async function prepareImages(cluster: ConformanceCluster, from: UpstreamPlaces): Promise<string> {
  await cluster.importImages((archive) => writeConformanceImages(archive, from));
  const repositories = join(cluster.scratch, 'repositories.yaml');
  await writeFile(repositories, REPOSITORIES);
  return repositories;
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
    scratch: root,
    spawnInside: (file, args) => appliance.spawnInside(file, args),
    importImages: async (write) => {
      const archive = join(root, 'images.tar');
      await write(archive);
      const imported = await appliance.hyperedge(['image', 'import', '--root', root, archive]);
      if (imported.code !== 0) throw new Error(`image import: ${imported.stdout}${imported.stderr}`);
      await rm(archive);
    },
    stop: () => appliance.stop(),
  };
}

/** Every host is a master and a node, as three bare hosts are installed. */
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
    scratch: join(first.root, 'root'),
    spawnInside: (file, args) =>
      spawn('nsenter', ['-t', String(first.pid1), '-n', file, ...args], {
        stdio: ['pipe', 'pipe', 'pipe'],
        env: { ...process.env, KUBECONFIG: kubeconfig },
      }),
    importImages: async (write) => {
      const archive = join(first.root, ARCHIVE);
      await write(archive);
      for (const host of lab.hosts) {
        if (host !== first) await copyFile(archive, join(host.root, ARCHIVE));
        await host.must('hyperedge', ['image', 'import', `/${ARCHIVE}`], { timeoutMs: IMPORT_MS });
        if (host !== first) await rm(join(host.root, ARCHIVE));
      }
      await rm(archive);
    },
    stop: () => lab.stop(),
  };
}
