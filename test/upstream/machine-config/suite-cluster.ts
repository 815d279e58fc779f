/** Lab hosts in the profile `okd`, and the state that cases of upstream's suite expect. */
import assert from 'node:assert/strict';
import { appendFile, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, run } from '../../e2e/harness.ts';
import { LabCluster } from '../../lab/support/lab-cluster.ts';
import type { NspawnHost } from '../../lab/support/nspawn-host.ts';
import { GROUP, isTrue, type Pool } from './cluster.ts';

const READY_MS = 300_000;
const ROLE = 'node-role.kubernetes.io';
/** The suite detects OKD by this URL. */
const OKD_UPSTREAM = 'https://origin-release.svc.ci.openshift.org/graph';
/** Cases that use the pool `infra`, which an earlier case creates. */
const IN_INFRA = new Set(['TestKernelType', 'TestExtensions', 'TestNoReboot', 'TestDontDeleteRPMFiles', 'TestIgn3Cfg']);

interface Listed {
  readonly items: readonly { readonly metadata: { readonly name: string; readonly labels?: Record<string, string> } }[];
}

export class SuiteCluster {
  readonly #cluster: LabCluster;
  readonly #oc: string;
  readonly #single: boolean;

  private constructor(cluster: LabCluster, oc: string, single: boolean) {
    this.#cluster = cluster;
    this.#oc = oc;
    this.#single = single;
  }

  static async create(oc: string, single: boolean): Promise<SuiteCluster> {
    const lab = await LabCluster.create(single ? 1 : 2, 'machine-config-operator');
    const cluster = new SuiteCluster(lab, oc, single);
    try {
      await cluster.#form();
    } catch (error) {
      await lab.stop();
      throw error;
    }
    return cluster;
  }

  async #form(): Promise<void> {
    const [master] = this.#cluster.hosts;
    assert.ok(master);
    for (const { root } of this.#cluster.hosts) {
      const directory = join(root, 'etc/origin/bootstrap.yaml.d');
      await mkdir(directory, { recursive: true });
      const text = 'apiVersion: hyperedge.dev/v1\nkind: Bootstrap\nopenshift: {profile: okd}\n';
      await writeFile(join(directory, 'openshift.yaml'), text, { mode: 0o600 });
      await appendFile(join(root, 'etc/passwd'), 'core:x:1000:1000::/home/core:/bin/sh\n');
      await appendFile(join(root, 'etc/group'), 'core:x:1000:\n');
    }
    await this.#cluster.install(master);
    for (const host of this.#cluster.others(master))
      await this.#cluster.install(host, await this.#cluster.joinCommand(master, '--roles', 'node', '--ttl', '1h'));
    await this.#cluster.untilReady(master, this.#cluster.hosts, READY_MS);
    const spec = { upstream: OKD_UPSTREAM };
    await this.oc('patch', 'clusterversion', 'version', '--type=merge', '-p', JSON.stringify({ spec }));
    // The suite selects masters by an empty label value, as in OpenShift 4.
    await this.oc('label', 'node', master.name, '--overwrite', `${ROLE}/master=`);
    // OpenShift's installer configures an SSH key. Without it, the file that some cases read does not exist.
    const passwd = { users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 installer'] }] };
    for (const role of ['master', 'worker']) await this.#fragment(`99-${role}-ssh`, role, { passwd });
  }

  get #master(): NspawnHost {
    return this.#cluster.host(0);
  }

  get kubeconfig(): string {
    return join(this.#master.root, 'etc/origin/master/admin.kubeconfig');
  }

  /** Arguments of nsenter for the master's network. */
  get network(): readonly string[] {
    return ['-t', String(this.#master.pid1), '-n'];
  }

  async oc(...args: readonly string[]): Promise<string> {
    return this.#ocWith(undefined, args);
  }

  async #ocWith(input: object | undefined, args: readonly string[]): Promise<string> {
    const ran = await run('nsenter', [...this.network, this.#oc, ...args], {
      timeoutMs: 120_000,
      env: { KUBECONFIG: this.kubeconfig },
      ...(input === undefined ? {} : { input: JSON.stringify(input) }),
    });
    assert.equal(ran.code, 0, `oc ${args.join(' ')}: ${ran.stderr}`);
    return ran.stdout;
  }

  async #list(kind: string): Promise<Listed['items']> {
    return (JSON.parse(await this.oc('get', kind, '-o', 'json')) as Listed).items;
  }

  /** Removes leftovers of an earlier case and waits until hosts have the config of their pools. */
  async prepare(name: string): Promise<void> {
    const left = async (kind: string, keep: RegExp): Promise<void> => {
      for (const { metadata } of await this.#list(kind))
        if (!keep.test(metadata.name)) await this.oc('delete', kind, metadata.name);
    };
    const spec = { mastersSchedulable: false };
    await this.oc('patch', 'scheduler', 'cluster', '--type=merge', '-p', JSON.stringify({ spec }));
    for (const host of this.#cluster.others(this.#master)) {
      const node = (await this.#list('node')).find(({ metadata }) => metadata.name === host.name);
      const roles = Object.keys(node?.metadata.labels ?? {}).filter((key) => key.startsWith(`${ROLE}/`));
      const others = roles.filter((key) => !/\/(worker|compute)$/.test(key)).map((key) => `${key}-`);
      await this.oc('label', 'node', host.name, '--overwrite', `${ROLE}/worker=`, ...others);
    }
    await left('kubeletconfigs', /^$/);
    await left('containerruntimeconfigs', /^$/);
    await left('machineconfigs', /^(rendered-|00-(master|worker)$|99-(master|worker)-ssh$)/);
    const pools = ['master', 'worker'];
    await this.#settled(pools);
    const wantsInfra = IN_INFRA.has(name) && !this.#single;
    await left('machineconfigpools', wantsInfra ? /^(master|worker|infra)$/ : /^(master|worker)$/);
    if (!wantsInfra) return;
    await this.#fragment('old-infra', 'infra', {});
    const apiVersion = `${GROUP}/v1`;
    const machineConfigSelector = {
      matchExpressions: [{ key: `${GROUP}/role`, operator: 'In', values: ['worker', 'infra'] }],
    };
    const nodeSelector = { matchLabels: { [`${ROLE}/infra`]: '' } };
    const pool = { apiVersion, kind: 'MachineConfigPool', metadata: { name: 'infra', labels: { infra: '' } } };
    await this.#ocWith({ ...pool, spec: { machineConfigSelector, nodeSelector } }, ['apply', '-f', '-']);
    await this.#settled([...pools, 'infra']);
  }

  async #fragment(name: string, role: string, config: object): Promise<void> {
    const metadata = { name, labels: { [`${GROUP}/role`]: role } };
    const spec = { config: { ignition: { version: '3.2.0' }, ...config } };
    await this.#ocWith({ apiVersion: `${GROUP}/v1`, kind: 'MachineConfig', metadata, spec }, ['apply', '-f', '-']);
  }

  async #settled(pools: readonly string[]): Promise<void> {
    for (const name of pools)
      await eventually(`pool ${name} updated`, READY_MS, async () => {
        const pool = JSON.parse(await this.oc('get', 'machineconfigpool', name, '-o', 'json')) as Pool;
        const { spec, status } = pool;
        const current = spec.configuration?.name ?? '';
        const isCurrent = current !== '' && status?.configuration?.name === current;
        return isCurrent && isTrue(status?.conditions, 'Updated') ? true : undefined;
      });
  }

  async journals(): Promise<string> {
    const texts = await Promise.all(this.#cluster.hosts.map((host) => host.journal()));
    return texts.map((text, index) => `== ${this.#cluster.host(index).name}\n${text.slice(-60_000)}`).join('\n');
  }

  async untilInterrupted(): Promise<void> {
    console.log(`KUBECONFIG=${this.kubeconfig} nsenter ${this.network.join(' ')}`);
    await new Promise((resolve) => process.stdin.once('data', resolve));
  }

  stop(): Promise<void> {
    return this.#cluster.stop();
  }
}
