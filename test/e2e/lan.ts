/** Several appliances on one link: a bridge in a network namespace of its own, with a cable to each host. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readdir, readlink, rmdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Appliance, eventually, type Ran, run } from './harness.ts';

const CGROUPS = '/sys/fs/cgroup';

export interface LanHost {
  readonly name: string;
  readonly address: string;
  /** Additional lines of the bootstrap file in YAML. */
  readonly config?: string;
}

export class Lan {
  readonly #holder: ChildProcess;
  readonly #hosts: { readonly name: string; readonly appliance: Appliance }[] = [];

  private constructor(holder: ChildProcess) {
    this.#holder = holder;
  }

  static async create(): Promise<Lan> {
    const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' });
    const lan = new Lan(holder);
    const ours = await readlink('/proc/self/ns/net');
    await eventually('network namespace', 10_000, async () =>
      (await readlink(`/proc/${holder.pid}/ns/net`)) === ours ? undefined : true,
    );
    await lan.#ip('link', 'add', 'lan', 'type', 'bridge');
    await lan.#ip('link', 'set', 'lan', 'up');
    return lan;
  }

  /** Creates a host with an address in 10.88.0.0/24 and its bootstrap file, without starting it. */
  async add({ name, address, config = '' }: LanHost): Promise<Appliance> {
    const appliance = await Appliance.create();
    this.#hosts.push({ name, appliance });
    const port = `p-${name}`;
    await this.#ip('link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(appliance.holderPid));
    await this.#ip('link', 'set', port, 'master', 'lan', 'up');
    for (const args of [
      ['addr', 'add', `${address}/24`, 'dev', 'eth0'],
      ['link', 'set', 'eth0', 'up'],
      ['route', 'add', 'default', 'via', '10.88.0.254'],
    ]) {
      must(await appliance.inside('ip', args), `ip ${args.join(' ')}`);
    }
    await this.configure(appliance, name, config);
    return appliance;
  }

  /** Writes the bootstrap file. `config` replaces the lines of an earlier one. */
  async configure(appliance: Appliance, name: string, config: string): Promise<void> {
    const file = join(appliance.root, 'etc/origin/bootstrap.yaml');
    await mkdir(dirname(file), { recursive: true });
    const own = `node: {name: ${name}}\ncgroup: {root: ${cgroupOf(appliance)}}\n`;
    await writeFile(file, `apiVersion: hyperedge.dev/v1\nkind: Bootstrap\n${own}${config}`, { mode: 0o600 });
  }

  /** Connects or disconnects the cable of a host. */
  async cable(name: string, state: 'up' | 'down'): Promise<void> {
    await this.#ip('link', 'set', `p-${name}`, state);
  }

  async #ip(...args: readonly string[]): Promise<void> {
    must(await run('nsenter', ['-t', String(this.#holder.pid), '-n', 'ip', ...args]), `ip ${args.join(' ')}`);
  }

  async stop(): Promise<void> {
    for (const { appliance } of this.#hosts) {
      await appliance.stop();
      await removeCgroups(cgroupOf(appliance));
    }
    this.#holder.kill('SIGKILL');
  }
}

/** Hosts on the same machine need different cgroups. */
const cgroupOf = ({ root }: Appliance): string => `/${root.split('/').at(-1) ?? ''}`;

function must({ code, stderr }: Ran, what: string): void {
  if (code !== 0) throw new Error(`${what}: ${stderr}`);
}

async function removeCgroups(path: string): Promise<void> {
  const removeTree = async (directory: string): Promise<void> => {
    for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => []))
      if (entry.isDirectory()) await removeTree(join(directory, entry.name));
    await rmdir(directory).catch(() => {});
  };
  for (const hierarchy of await readdir(CGROUPS)) await removeTree(join(CGROUPS, hierarchy, path));
  await removeTree(join(CGROUPS, path));
}
