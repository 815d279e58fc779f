/** A master and a worker in a pool, used through `oc` (HYPEREDGE_OC) if available, and through their files. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Appliance, eventually } from '../../e2e/harness.ts';
import { helloImage, importHelloImage } from '../../e2e/images.ts';
import { Lan } from '../../e2e/lan.ts';

export const GROUP = 'machineconfiguration.openshift.io';
export const WORKER = 'w1';
const START_MS = 180_000;
const POOL_MS = 120_000;
const USERS = 'root:x:0:0:root:/root:/bin/sh\ncore:x:1000:1000::/home/core:/bin/sh\n';
const GROUPS = 'root:x:0:\ncore:x:1000:\n';

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly message?: string;
}

export interface Pool {
  readonly spec: { readonly configuration?: { readonly name: string; readonly source?: readonly { name: string }[] } };
  readonly status?: {
    readonly configuration?: { readonly name: string };
    readonly degradedMachineCount?: number;
    readonly conditions?: readonly Condition[];
  };
}

export interface FoundNode {
  readonly metadata: { readonly annotations: Readonly<Record<string, string>> };
  readonly status: { readonly allocatable: { readonly memory: string; readonly pods: string } };
}

export class PoolCluster {
  readonly #lan: Lan;
  readonly #master: Appliance;
  readonly worker: Appliance;

  private constructor(lan: Lan, master: Appliance, worker: Appliance) {
    this.#lan = lan;
    this.#master = master;
    this.worker = worker;
  }

  static async create(): Promise<PoolCluster> {
    const lan = await Lan.create();
    try {
      const openshift = 'openshift: {profile: okd}\n';
      const master = await lan.add({ name: 'm1', address: '10.88.0.1', config: openshift });
      await master.start(START_MS);
      const created = await master.hyperedge(['token', 'create', '-o', 'json', '--root', master.root]);
      const { server, token, caHash } = JSON.parse(created.stdout) as Record<'server' | 'token' | 'caHash', string>;
      const join_ = `join: {server: '${server}', token: ${token}, caHash: '${caHash}'}\n`;
      const worker = await lan.add({ name: WORKER, address: '10.88.0.2', config: join_ });
      const cluster = new PoolCluster(lan, master, worker);
      await cluster.write('/etc/passwd', USERS);
      await cluster.write('/etc/group', GROUPS);
      await cluster.write('/etc/motd', 'of the distribution\n');
      worker.launch();
      await eventually('the worker', START_MS, async () =>
        (await cluster.oc(['label', 'node', WORKER, '--overwrite', 'node-role.kubernetes.io/worker='])) === ''
          ? undefined
          : true,
      );
      await cluster.done('worker', () => true);
      return cluster;
    } catch (error) {
      await lan.stop();
      throw error;
    }
  }

  /** Disconnects or connects the worker's cable. */
  cable(state: 'up' | 'down'): Promise<void> {
    return this.#lan.cable(WORKER, state);
  }

  stop(): Promise<void> {
    return this.#lan.stop();
  }

  async oc(args: readonly string[], input?: object): Promise<string> {
    const path = process.env['HYPEREDGE_OC'];
    const text = input === undefined ? {} : { input: JSON.stringify(input) };
    const ran = await this.#master.kubectl(args, { ...(path === undefined ? {} : { path }), ...text });
    assert.equal(ran.code, 0, `oc ${args.join(' ')}: ${ran.stderr}`);
    return ran.stdout;
  }

  async get<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.oc(['get', ...args, '-o', 'json'])) as T;
  }

  create(object: object): Promise<string> {
    return this.oc(['create', '-f', '-'], object);
  }

  pool(name: string): Promise<Pool> {
    return this.get<Pool>('machineconfigpool', name);
  }

  node(): Promise<FoundNode> {
    return this.get<FoundNode>('node', WORKER);
  }

  async annotation(name: string): Promise<string> {
    return (await this.node()).metadata.annotations[`${GROUP}/${name}`] ?? '';
  }

  /** Waits for the pool's rendered config with the fragment and returns its name. */
  rendered(pool: string, fragment: string): Promise<string> {
    return eventually(`${fragment} rendered`, POOL_MS, async () => {
      const { configuration } = (await this.pool(pool)).spec;
      return configuration?.source?.some(({ name }) => name === fragment) === true ? configuration.name : undefined;
    });
  }

  /** Waits until the pool reports Updated with a config that satisfies `wanted`, and returns its name. */
  done(pool: string, wanted: (config: string) => boolean): Promise<string> {
    return eventually(`pool ${pool} updated`, POOL_MS, async () => {
      const { spec, status } = await this.pool(pool);
      const name = status?.configuration?.name ?? '';
      const current = name !== '' && name === spec.configuration?.name;
      return current && isTrue(status?.conditions, 'Updated') && wanted(name) ? name : undefined;
    });
  }

  async rolled(pool: string, fragment: string): Promise<string> {
    const config = await this.rendered(pool, fragment);
    await this.done(pool, (name) => name === config);
    assert.equal(await this.annotation('currentConfig'), config);
    assert.equal(await this.annotation('state'), 'Done');
    return config;
  }

  /** Waits until the node has the pool's current config. */
  moved(pool: string): Promise<true> {
    return eventually(`node in ${pool}`, POOL_MS, async () => {
      const config = (await this.pool(pool)).spec.configuration?.name;
      const [current, desired] = [await this.annotation('currentConfig'), await this.annotation('desiredConfig')];
      return current === config && desired === config && (await this.annotation('state')) === 'Done' ? true : undefined;
    });
  }

  /** Runs `act` while the worker is in a custom pool. */
  async inPool(name: string, act: () => Promise<void>): Promise<void> {
    await this.create({
      apiVersion: `${GROUP}/v1`,
      kind: 'MachineConfigPool',
      metadata: { name, labels: { [name]: '' } },
      spec: {
        machineConfigSelector: {
          matchExpressions: [{ key: `${GROUP}/role`, operator: 'In', values: ['worker', name] }],
        },
        nodeSelector: { matchLabels: { [`node-role.kubernetes.io/${name}`]: '' } },
      },
    });
    await this.oc(['label', 'node', WORKER, `node-role.kubernetes.io/${name}=`]);
    try {
      await this.moved(name);
      await act();
    } finally {
      await this.oc(['label', 'node', WORKER, `node-role.kubernetes.io/${name}-`]);
      await this.moved('worker');
      await this.oc(['delete', 'machineconfigpool', name]);
    }
  }

  fragment(name: string, role: string, config: object, more: object = {}): Promise<string> {
    return this.create({
      apiVersion: `${GROUP}/v1`,
      kind: 'MachineConfig',
      metadata: { name, labels: { [`${GROUP}/role`]: role } },
      spec: { config: { ignition: { version: '3.2.0' }, ...config }, ...more },
    });
  }

  /** Config that the machine config server serves to a new host of the pool. */
  async served(pool: string, version: string): Promise<{ readonly ignition: { readonly version: string } }> {
    const master = this.#master;
    const created = await master.hyperedge(['token', 'create', '-o', 'json', '--root', master.root]);
    const { token } = JSON.parse(created.stdout) as { token: string };
    const accept = `Accept: application/vnd.coreos.ignition+json;version=${version}, */*;q=0.1`;
    const url = `https://10.88.0.1:22623/config/${pool}`;
    const args = ['-skS', '-H', accept, '-H', `Authorization: Bearer ${token}`, url];
    const { stdout, stderr } = await this.worker.inside('curl', args);
    assert.equal(stderr, '');
    return JSON.parse(stdout) as { ignition: { version: string } };
  }

  /** Runs a shell script in a pod on the worker, optionally in the host network, and returns its output. */
  async inPod(name: string, script: string, hostNetwork = false): Promise<string> {
    const scratch = await mkdtemp(join(tmpdir(), 'he-mc-pod-'));
    try {
      await importHelloImage(this.worker, scratch);
    } finally {
      await rm(scratch, { recursive: true });
    }
    await this.create({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: {
        nodeName: WORKER,
        restartPolicy: 'Never',
        hostNetwork,
        containers: [{ name: 'main', image: helloImage, command: ['/bin/sh', '-c', script] }],
      },
    });
    await eventually(`pod ${name} has ended`, POOL_MS, async () => {
      const { status } = await this.get<{ status: { phase: string } }>('pod', name, '-n', 'default');
      return ['Succeeded', 'Failed'].includes(status.phase) ? true : undefined;
    });
    return this.oc(['logs', name, '-n', 'default']);
  }

  read(path: string): Promise<string> {
    return readFile(join(this.worker.root, path), 'utf8').catch(() => '');
  }

  async write(path: string, text: string): Promise<void> {
    const file = join(this.worker.root, path);
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, text);
  }

  async owner(path: string): Promise<readonly [uid: number, gid: number, mode: string]> {
    const { uid, gid, mode } = await stat(join(this.worker.root, path));
    return [uid, gid, (mode & 0o7777).toString(8)];
  }
}

export const isTrue = (conditions: readonly Condition[] | undefined, type: string): boolean =>
  conditions?.some((each) => each.type === type && each.status === 'True') === true;

export const isFalse = (conditions: readonly Condition[] | undefined, type: string): boolean =>
  conditions?.some((each) => each.type === type && each.status === 'False') === true;

export const files = (found: Readonly<Record<string, string>>): object => ({
  storage: {
    files: Object.entries(found).map(([path, text]) => ({
      path,
      mode: 0o644,
      contents: { source: `data:,${encodeURIComponent(text)}` },
    })),
  },
});
