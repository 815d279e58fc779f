/** Network namespaces on one switch, with a connection to this process. Packets between members can be dropped. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { readlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { eventually } from './processes.ts';

const run = promisify(execFile);

export class Network implements AsyncDisposable {
  readonly #holders: ChildProcess[] = [];
  readonly #subnet: string;
  readonly #link: string;

  private constructor(subnet: string, link: string) {
    this.#subnet = subnet;
    this.#link = link;
  }

  /** Hosts are numbered from 0. Requires the permission to create namespaces. */
  static async make(hosts: number): Promise<Network> {
    const third = 1 + (process.pid % 250);
    const network = new Network(`10.78.${third}`, `drill${third}`);
    const hub = await network.#hold();
    await network.#in(hub, 'ip', 'link', 'add', 'br0', 'type', 'bridge');
    await network.#in(hub, 'ip', 'link', 'set', 'br0', 'up');
    for (let host = 0; host < hosts; host += 1) {
      const holder = await network.#hold();
      await network.#plug(hub, `p${host}`, 'eth0', holder.pid as number);
      await network.#in(holder, 'ip', 'addr', 'add', `${network.address(host)}/24`, 'dev', 'eth0');
      await network.#in(holder, 'ip', 'link', 'set', 'eth0', 'up');
    }
    await network.#plug(hub, 'pc', network.#link, process.pid);
    await run('ip', ['addr', 'add', `${network.#subnet}.254/24`, 'dev', network.#link]);
    await run('ip', ['link', 'set', network.#link, 'up']);
    return network;
  }

  address(host: number): string {
    return `${this.#subnet}.${host + 1}`;
  }

  /** Command prefix that runs a program on `host`. */
  through(host: number): readonly string[] {
    return ['nsenter', '-t', String(this.#holder(host).pid), '-n'];
  }

  /** Drops this percentage of the packets that `host` receives from the hosts `from`; 100 disconnects them. */
  async lose(host: number, from: readonly number[], percent: number): Promise<void> {
    await this.heal(host);
    const addresses = `{ ${from.map((each) => this.address(each)).join(', ')} }`;
    const chance = percent >= 100 ? '' : `numgen random mod 100 < ${percent} `;
    const rules = `table inet drill {\nchain input {\ntype filter hook input priority 0;\nip saddr ${addresses} ${chance}drop\n}\n}`;
    await this.#in(this.#holder(host), 'nft', rules);
  }

  async heal(host: number): Promise<void> {
    await this.#in(this.#holder(host), 'nft', 'table inet drill { }; delete table inet drill;');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await run('ip', ['link', 'del', this.#link]).catch(() => {});
    for (const holder of this.#holders) holder.kill('SIGKILL');
  }

  #holder(host: number): ChildProcess {
    return this.#holders[host + 1] as ChildProcess;
  }

  async #hold(): Promise<ChildProcess> {
    const holder = spawn('unshare', ['--net', 'sleep', 'infinity'], { stdio: 'ignore' });
    this.#holders.push(holder);
    const ours = await readlink('/proc/self/ns/net');
    await eventually('network namespace', 10_000, async () =>
      (await readlink(`/proc/${holder.pid}/ns/net`)) === ours ? undefined : true,
    );
    await this.#in(holder, 'ip', 'link', 'set', 'lo', 'up');
    return holder;
  }

  async #plug(hub: ChildProcess, port: string, name: string, pid: number): Promise<void> {
    await this.#in(hub, 'ip', 'link', 'add', port, 'type', 'veth', 'peer', 'name', name, 'netns', String(pid));
    await this.#in(hub, 'ip', 'link', 'set', port, 'master', 'br0', 'up');
  }

  async #in(holder: ChildProcess, file: string, ...args: string[]): Promise<void> {
    await run('nsenter', ['-t', String(holder.pid), '-n', file, ...args]);
  }
}
