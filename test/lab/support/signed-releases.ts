/** Releases that a lab cluster trusts, imports and updates to. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { mkdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { releaseFileName } from '../../../src/api/releases/manifest.ts';
import type { ClusterVersion } from '../../../src/openshift/operators/kinds/config/types.ts';
import { digestOf, writeBundle } from '../../../src/openshift/updates/io/index.ts';
import { eventually } from '../../e2e/harness.ts';
import type { LabCluster } from './lab-cluster.ts';
import type { NspawnHost } from './nspawn-host.ts';

const DROP_IN = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nupdates: {healthyWithin: 60s}\n';

export class SignedReleases {
  readonly #key: KeyObject;
  readonly #publicKey: KeyObject;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    this.#key = privateKey;
    this.#publicKey = publicKey;
  }

  /** Makes the cluster trust the key, and shortens the time for a host to become healthy. */
  async trust(cluster: LabCluster, by: NspawnHost): Promise<void> {
    const pem = this.#publicKey.export({ type: 'spki', format: 'pem' }).toString();
    const create = ['-n', 'openshift-config', 'create', 'configmap', 'release-keys', `--from-literal=lab.pem=${pem}`];
    await by.mustKubectl(create);
    for (const host of cluster.hosts) {
      const directory = join(host.root, 'etc/origin/bootstrap.yaml.d');
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, '50-updates.yaml'), DROP_IN, { mode: 0o600 });
      await host.inside('systemctl', ['restart', 'hyperedge']);
      await cluster.untilBack(host, cluster.hosts, 240_000);
    }
  }

  /** Imports a release. `storeLevel`: level of the store's log in the manifest; undefined as for older releases. */
  async import(by: NspawnHost, version: string, program: string, storeLevel?: number): Promise<void> {
    const name = releaseFileName('x64');
    const { size } = await stat(program);
    const files = [{ name, architecture: 'x64', size, sha256: await digestOf(program) } as const];
    const level = storeLevel === undefined ? {} : { storeLevel };
    const manifest = { version, kubernetes: 'v1.36.0+hyperedge1', channels: [], files, ...level };
    await writeBundle(join(by.root, 'root/release'), manifest, new Map([[name, program]]), this.#key);
    await by.must('hyperedge', ['bundle', 'import', '/root/release'], { timeoutMs: 240_000 });
    await rm(join(by.root, 'root/release'));
  }
}

export async function requestUpdate(by: NspawnHost, version: string): Promise<void> {
  const patch = JSON.stringify({ spec: { desiredUpdate: { version } } });
  await by.mustKubectl(['patch', 'clusterversion', 'version', '--type=merge', '-p', patch]);
}

export async function clusterVersion(by: NspawnHost): Promise<ClusterVersion> {
  return JSON.parse(await by.mustKubectl(['get', 'clusterversion', 'version', '-o', 'json', '--request-timeout=5s']));
}

/** Entries of the history, the newest first, each as `VERSION STATE`. */
export const historyOf = ({ status }: ClusterVersion): string[] =>
  (status?.history ?? []).map((each) => `${each.version} ${each.state}`);

/** Waits until the newest entry of the history is `0.2.0 Completed` for version 0.2.0. */
export async function untilCompleted(by: NspawnHost, version: string, timeoutMs: number): Promise<ClusterVersion> {
  return eventually(`the completed update to ${version}`, timeoutMs, async () => {
    const found = await clusterVersion(by);
    return historyOf(found)[0] === `${version} Completed` ? found : undefined;
  });
}
